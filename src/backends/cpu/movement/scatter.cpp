// SPDX-License-Identifier: Apache-2.0
//
// ScatterElements and ScatterND with every reduction, and TensorScatter: the data are copied, then updates are put in. Updates that
// meet the same element must keep their order, so workers share an axis along which updates can not meet.
#include <algorithm>
#include <cstring>

#include "backends/cpu/movement/indices.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/row_walk.h"
#include "base/enum_names.h"
#include "base/numbers.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

enum class Combine { none, add, mul, max, min };
constexpr std::array<std::string_view, 5> field_names(Combine) { return {"none", "add", "mul", "max", "min"}; }

template <typename T>
T combined(Combine how, T old, T update) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) {
    return T(combined(how, static_cast<float>(old), static_cast<float>(update)));
  } else {
    switch (how) {
      case Combine::none: return update;
      case Combine::add: return wrapping_add(old, update);
      case Combine::mul: return wrapping_multiply(old, update);
      case Combine::max: return std::max(old, update);
      case Combine::min: return std::min(old, update);
    }
    return update;
  }
}

std::string reason_against(const Node& node) {
  if (std::string reason = reason_not_numeric(node); !reason.empty()) return reason;
  if (node.is(ops::tensor_scatter)) {
    if (node.input(0)->type.shape.elements() == Dim(0)) return "an empty cache";
    return node.input(0)->type.dtype == node.input(1)->type.dtype ? "" : "updates have another type";
  }
  if (!is_index_type(node.input(1)->type.dtype))
    return fmt::format("indices are {}", name_of(node.input(1)->type.dtype));
  if (node.input(0)->type.dtype != node.input(2)->type.dtype) return "updates have another type";
  return {};
}

enum class What { elements, positions, cache };  // ScatterElements, ScatterND, TensorScatter
constexpr std::array<std::string_view, 3> field_names(What) { return {"elements", "positions", "cache"}; }

struct ScatterCode {
  NodeCode node;
  What what = What::elements;
  int64_t axis = 0;  // of elements, of a cache
  Combine how = Combine::none;
  bool circular = false;  // a cache that begins anew behind its end
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("what", self.what);
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
    visit("how", self.how);
    visit("circular", self.circular);
  }
};

/// The copy of the data; the updates are the derived class's.
class Scatter : public CpuKernel {
 public:
  Scatter(const ScatterCode& code, const BoundNode& node, size_t updates = 2)
      : data_(node.operand(0)), updates_(node.operand(updates)), result_(node.result()), how_(code.how) {
    node.require(data_.type == result_.type && updates_.type.dtype == data_.type.dtype);
    if (updates == 1 && !node.has(2)) return;
    indices_ = node.operand(3 - updates);
    node.require(is_index_type(indices_.type.dtype));
  }
  int phases() const override { return 2; }
  bool serial() const override { return elements(data_.type.dims) + elements(updates_.type.dims) < 8192; }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    if (phase == 1) return update(worker, workers, bindings);
    const Share share = share_of(data_.type.bytes(), worker, workers);
    if (share.begin < share.end)
      std::memcpy(result_.as<std::byte>(bindings) + share.begin, data_.as<std::byte>(bindings) + share.begin,
                  static_cast<size_t>(share.end - share.begin));
  }

 protected:
  virtual void update(int worker, int workers, const Bindings& bindings) const = 0;

  NodeOperand data_, indices_, updates_;
  NodeResult result_;
  Combine how_;
};

class ScatterElements final : public Scatter {
 public:
  ScatterElements(const ScatterCode& code, const BoundNode& node) : Scatter(code, node) {
    const Dims &data = data_.type.dims, &dims = indices_.type.dims;
    node.require(data.size() == dims.size() && updates_.type.dims == dims && !dims.empty());
    const size_t axis = normalize_axis(code.axis, data.size());
    n_ = data[axis];
    step_ = strides_of(data)[axis];
    node.require(n_ > 0 || elements(dims) == 0);
    for (size_t i = 0; i < dims.size(); ++i) node.require(i == axis || dims[i] <= data[i]);
    if (elements(dims) == 0) return;
    Dims sizes = dims, from = strides_of(dims), to = strides_of(data);
    to[axis] = 0;
    for (size_t i = 0; i < dims.size() && shared_ == 1; ++i) {
      if (i == axis || dims[i] == 1) continue;
      shared_ = dims[i], shared_from_ = from[i], shared_to_ = to[i];
      sizes[i] = 1;
    }
    walk_ = RowWalk(sizes, {from, to});
    empty_ = false;
  }

 private:
  void update(int worker, int workers, const Bindings& bindings) const override {
    if (empty_) return;
    const Share share = share_of(shared_, worker, workers);
    const IndexReader index(indices_, bindings);
    visit(data_.type.dtype, [&]<typename T>() {
      const T* updates = updates_.as<T>(bindings);
      T* result = result_.as<T>(bindings);
      for (int64_t i = share.begin; i < share.end; ++i)
        for (int64_t row = 0; row < walk_.rows(); ++row) {
          int64_t offsets[2];
          walk_.seek(row, offsets);
          const int64_t from = offsets[0] + i * shared_from_, to = offsets[1] + i * shared_to_;
          for (int64_t j = 0; j < walk_.length(); ++j) {
            const int64_t at = from + j * walk_.stride(0);
            T& place = result[to + j * walk_.stride(1) + index.inside(at, n_) * step_];
            place = combined(how_, place, updates[at]);
          }
        }
    });
  }

  RowWalk walk_;
  bool empty_ = true;
  int64_t n_ = 1, step_ = 1;
  int64_t shared_ = 1, shared_from_ = 0, shared_to_ = 0;  // the axis that workers share
};

class ScatterNd final : public Scatter {
 public:
  ScatterNd(const ScatterCode& code, const BoundNode& node)
      : Scatter(code, node), positions_(data_.type.dims, 0, depth_of(node)) {
    count_ = elements(std::span(indices_.type.dims).first(indices_.type.dims.size() - 1));
    const int64_t written = elements(Dims{count_, positions_.run()});
    node.require(elements(updates_.type.dims) == written && (elements(data_.type.dims) > 0 || written == 0));
  }

 private:
  static size_t depth_of(const BoundNode& node) {
    const Dims& dims = node.operand(1).type.dims;
    node.require(!dims.empty() && dims.back() >= 0 &&
                 dims.back() <= static_cast<int64_t>(node.operand(0).type.dims.size()));
    return static_cast<size_t>(dims.back());
  }

  void update(int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(positions_.run(), worker, workers);
    if (share.begin == share.end) return;
    const IndexReader index(indices_, bindings);
    visit(data_.type.dtype, [&]<typename T>() {
      const T* updates = updates_.as<T>(bindings);
      T* result = result_.as<T>(bindings);
      for (int64_t i = 0; i < count_; ++i) {
        const T* from = updates + i * positions_.run();
        T* to = result + positions_.offset(index, i);
        if (how_ == Combine::none) std::copy(from + share.begin, from + share.end, to + share.begin);
        else
          for (int64_t j = share.begin; j < share.end; ++j) to[j] = combined(how_, to[j], from[j]);
      }
    });
  }

  PositionReader positions_;
  int64_t count_ = 0;
};

/// Some steps of each batch entry, from a position of its own on. A position outside is brought inside.
class TensorScatter final : public Scatter {
 public:
  TensorScatter(const ScatterCode& code, const BoundNode& node) : Scatter(code, node, 1), circular_(code.circular) {
    const Dims &data = data_.type.dims, &updates = updates_.type.dims;
    node.require(!data.empty() && updates.size() == data.size());
    const size_t axis = normalize_axis(code.axis, data.size());
    Dims same = data;
    same[axis] = updates[axis];
    node.require(axis > 0 && same == updates && updates[axis] <= data[axis] && data[axis] > 0);
    node.require(!node.has(2) || elements(indices_.type.dims) == data[0]);
    has_positions_ = node.has(2);
    length_ = data[axis], steps_ = updates[axis];
    per_batch_ = elements(std::span(data).subspan(1, axis - 1)), lines_ = data[0] * per_batch_;
    step_bytes_ = elements(std::span(data).subspan(axis + 1)) * static_cast<int64_t>(size_of(data_.type.dtype));
  }

 private:
  void update(int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(lines_, worker, workers);
    for (int64_t line = share.begin; line < share.end; ++line) {
      int64_t at = 0;
      if (has_positions_) {
        const IndexReader positions(indices_, bindings);
        at = circular_ ? std::max<int64_t>(0, positions[line / per_batch_]) % length_
                       : std::clamp<int64_t>(positions[line / per_batch_], 0, length_ - steps_);
      }
      const std::byte* from = updates_.as<std::byte>(bindings) + line * steps_ * step_bytes_;
      std::byte* to = result_.as<std::byte>(bindings) + line * length_ * step_bytes_;
      const int64_t first = std::min(steps_, length_ - at);
      std::memcpy(to + at * step_bytes_, from, static_cast<size_t>(first * step_bytes_));
      std::memcpy(to, from + first * step_bytes_, static_cast<size_t>((steps_ - first) * step_bytes_));
    }
  }

  bool circular_, has_positions_ = false;
  int64_t length_ = 0, steps_ = 0, per_batch_ = 1, lines_ = 0, step_bytes_ = 0;
};

struct ScatterFamily : NodeFamily<ScatterCode> {
  static constexpr std::string_view kName = "scatter";
  static constexpr int kVersion = 2;

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr ||
        !(node->is(ops::scatter_elements) || node->is(ops::scatter_nd) || node->is(ops::tensor_scatter)))
      return;
    if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }
  static Built<ScatterCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    if (node.is(ops::tensor_scatter)) {
      Built<ScatterCode> built;
      built.code = {describe_node(problem, built.constants), What::cache, node.attrs.integer("axis"), Combine::none,
                    node.attrs.text("mode") == "circular"};
      return built;
    }
    const bool positions = node.is(ops::scatter_nd);
    const std::optional<Combine> how = value_named<Combine>(node.attrs.text("reduction"));
    HONE_CHECK(how.has_value(), "unknown reduction '{}' of a scatter", node.attrs.text("reduction"));
    Built<ScatterCode> built;
    built.code = {describe_node(problem, built.constants), positions ? What::positions : What::elements,
                  positions ? 0 : node.attrs.integer("axis"), *how};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const ScatterCode& code, const KernelShapes& shapes, const CpuInfo&) {
    const BoundNode node(code.node, shapes, kName);
    switch (code.what) {
      case What::elements: return std::make_shared<ScatterElements>(code, node);
      case What::positions: return std::make_shared<ScatterNd>(code, node);
      case What::cache: return std::make_shared<TensorScatter>(code, node);
    }
    return nullptr;
  }
};

}  // namespace

const CpuTactic tactics::scatter = describe<ScatterFamily>();

}  // namespace hone::cpu
