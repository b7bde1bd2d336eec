// SPDX-License-Identifier: Apache-2.0
//
// Gather, GatherElements and GatherND: elements and rows copied by index. An index outside of its axis is brought inside, so
// that bad data cannot make a kernel read elsewhere.
#include <algorithm>
#include <cstring>

#include "backends/cpu/movement/indices.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/number.h"
#include "backends/cpu/support/row_walk.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

std::string reason_against(const Problem& problem, const Node& node) {
  if (std::string reason = reason_not_numeric(node); !reason.empty()) return reason;
  if (!is_index_type(node.input(1)->type.dtype))
    return fmt::format("indices are {}", name_of(node.input(1)->type.dtype));
  if (problem.region.nodes()[0]->input(0)->type.shape.elements() == Dim(0)) return "empty operand";
  return {};
}

enum class Rule { rows, elements, positions };  // Gather, GatherElements, GatherND
constexpr std::array<std::string_view, 3> field_names(Rule) { return {"rows", "elements", "positions"}; }

struct GatherCode {
  NodeCode node;
  Rule rule = Rule::rows;
  int64_t axis = 0;   // of rows and elements
  int64_t batch = 0;  // of positions: leading axes that data and indices share
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("rule", self.rule);
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
    visit("batch", self.batch, 0, kMostAxes - 1);
  }
};

/// Whole stretches of bytes behind an axis.
class GatherRows final : public ItemKernel {
 public:
  GatherRows(const GatherCode& code, const BoundNode& node)
      : ItemKernel(
            elements(node.result().type.dims) == 0 ? 0 : outer_of(code, node) * elements(node.operand(1).type.dims),
            node.result().type.bytes() / 4),
        data_(node.operand(0)),
        indices_(node.operand(1)),
        result_(node.result()) {
    const Dims& data = data_.type.dims;
    const size_t axis = normalize_axis(code.axis, data.size());
    const int64_t behind = elements(std::span(data).subspan(axis + 1));
    row_ = static_cast<int64_t>(size_of(data_.type.dtype)) * behind;
    n_ = data[axis];
    count_ = elements(indices_.type.dims);
    node.require(n_ > 0 && is_index_type(indices_.type.dtype) && data_.type.dtype == result_.type.dtype &&
                 elements(result_.type.dims) == elements(Dims{outer_of(code, node), count_, behind}));
  }

 private:
  static int64_t outer_of(const GatherCode& code, const BoundNode& node) {
    const Dims& data = node.operand(0).type.dims;
    return elements(std::span(data).first(normalize_axis(code.axis, data.size())));
  }

  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const std::byte* data = data_.as<std::byte>(bindings);
    std::byte* result = result_.as<std::byte>(bindings);
    const IndexReader index(indices_, bindings);
    if (row_ == static_cast<int64_t>(size_of(data_.type.dtype)))
      visit_bits(size_of(data_.type.dtype), [&]<typename T>() {
        visit_rows(begin, end, index, [&](int64_t item, int64_t row) {
          reinterpret_cast<T*>(result)[item] = reinterpret_cast<const T*>(data)[row];
        });
      });
    else
      visit_rows(begin, end, index, [&](int64_t item, int64_t row) {
        std::memcpy(result + item * row_, data + row * row_, static_cast<size_t>(row_));
      });
  }

  /// Calls visit(item, row of the data).
  template <typename Visit>
  void visit_rows(int64_t begin, int64_t end, const IndexReader& index, const Visit& visit) const {
    int64_t first = begin / count_ * n_, at = begin % count_;
    for (int64_t item = begin; item < end; ++item) {
      visit(item, first + index.inside(at, n_));
      if (++at == count_) at = 0, first += n_;
    }
  }

  NodeOperand data_, indices_;
  NodeResult result_;
  int64_t n_ = 1, row_ = 1, count_ = 1;
};

/// result[i][j] = data[indices[i][j]][j] for axis 0.
class GatherElements final : public ItemKernel {
 public:
  GatherElements(const GatherCode& code, const BoundNode& node)
      : ItemKernel(walk_of(code, node).rows(), elements(node.result().type.dims)),
        data_(node.operand(0)),
        indices_(node.operand(1)),
        result_(node.result()),
        walk_(walk_of(code, node)) {
    const Dims& data = data_.type.dims;
    const size_t axis = normalize_axis(code.axis, data.size());
    n_ = data[axis];
    step_ = strides_of(data)[axis];
    node.require(is_index_type(indices_.type.dtype) && data_.type.dtype == result_.type.dtype &&
                 indices_.type.dims == result_.type.dims && (n_ > 0 || elements(result_.type.dims) == 0));
    for (size_t i = 0; i < data.size(); ++i) node.require(i == axis || indices_.type.dims[i] <= data[i]);
  }

 private:
  static RowWalk walk_of(const GatherCode& code, const BoundNode& node) {
    const Dims &data = node.operand(0).type.dims, &dims = node.operand(1).type.dims;
    node.require(data.size() == dims.size() && !data.empty());
    Dims from = strides_of(data);
    from[normalize_axis(code.axis, data.size())] = 0;
    return elements(dims) == 0 ? RowWalk({0}, {{1}, {1}}) : RowWalk(dims, {strides_of(dims), from});
  }

  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const IndexReader index(indices_, bindings);
    visit_bits(size_of(data_.type.dtype), [&]<typename T>() {
      const T* data = data_.as<T>(bindings);
      T* result = result_.as<T>(bindings);
      for (int64_t row = begin; row < end; ++row) {
        int64_t offsets[2];
        walk_.seek(row, offsets);
        for (int64_t j = 0; j < walk_.length(); ++j) {
          const int64_t at = offsets[0] + j * walk_.stride(0);
          result[at] = data[offsets[1] + j * walk_.stride(1) + index.inside(at, n_) * step_];
        }
      }
    });
  }

  NodeOperand data_, indices_;
  NodeResult result_;
  RowWalk walk_;
  int64_t n_ = 1, step_ = 1;
};

/// The last axis of the indices holds whole positions; behind each stands a stretch of bytes.
class GatherNd final : public ItemKernel {
 public:
  GatherNd(const GatherCode& code, const BoundNode& node)
      : ItemKernel(count_of(code, node), node.result().type.bytes() / 4),
        data_(node.operand(0)),
        indices_(node.operand(1)),
        result_(node.result()),
        positions_(data_.type.dims, static_cast<size_t>(code.batch), static_cast<size_t>(indices_.type.dims.back())) {
    const int64_t batches = elements(std::span(data_.type.dims).first(positions_.batch()));
    per_batch_ = batches == 0 ? 1 : std::max<int64_t>(count_of(code, node) / batches, 1);
    batch_step_ = elements(std::span(data_.type.dims).subspan(positions_.batch()));
    element_ = static_cast<int64_t>(size_of(data_.type.dtype));
    for (size_t i = 0; i < positions_.batch(); ++i)
      node.require(i + 1 < indices_.type.dims.size() && indices_.type.dims[i] == data_.type.dims[i]);
    node.require(is_index_type(indices_.type.dtype) && data_.type.dtype == result_.type.dtype &&
                 elements(result_.type.dims) == elements(Dims{count_of(code, node), positions_.run()}));
    node.require(elements(data_.type.dims) > 0 || result_.type.bytes() == 0);
  }

 private:
  static int64_t count_of(const GatherCode& code, const BoundNode& node) {
    const Dims &data = node.operand(0).type.dims, &dims = node.operand(1).type.dims;
    node.require(!dims.empty() && dims.back() >= 1 && code.batch < static_cast<int64_t>(data.size()) &&
                 dims.back() <= static_cast<int64_t>(data.size()) - code.batch);
    return elements(std::span(dims).first(dims.size() - 1));
  }

  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    const std::byte* data = data_.as<std::byte>(bindings);
    std::byte* result = result_.as<std::byte>(bindings);
    const IndexReader index(indices_, bindings);
    const int64_t bytes = positions_.run() * element_;
    for (int64_t item = begin; item < end && bytes > 0; ++item)
      std::memcpy(result + item * bytes,
                  data + (item / per_batch_ * batch_step_ + positions_.offset(index, item)) * element_,
                  static_cast<size_t>(bytes));
  }

  NodeOperand data_, indices_;
  NodeResult result_;
  PositionReader positions_;
  int64_t per_batch_ = 1, batch_step_ = 1, element_ = 1;
};

struct GatherFamily : NodeFamily<GatherCode> {
  static constexpr std::string_view kName = "gather";
  static constexpr Cost kCost = {.weights = 0};  // of a table it reads a few rows

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !(node->is(ops::gather) || node->is(ops::gather_elements) || node->is(ops::gather_nd)))
      return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }
  static Built<GatherCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    const Node& node = *single_node(problem);
    const bool positions = node.is(ops::gather_nd);
    Built<GatherCode> built;
    built.code = {describe_node(problem, built.constants),
                  positions              ? Rule::positions
                  : node.is(ops::gather) ? Rule::rows
                                         : Rule::elements,
                  positions ? 0 : node.attrs.integer("axis"), positions ? node.attrs.integer("batch_dims") : 0};
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const GatherCode& code, const KernelShapes& shapes, const CpuInfo&) {
    const BoundNode node(code.node, shapes, kName);
    switch (code.rule) {
      case Rule::rows: return std::make_shared<GatherRows>(code, node);
      case Rule::elements: return std::make_shared<GatherElements>(code, node);
      case Rule::positions: return std::make_shared<GatherNd>(code, node);
    }
    return nullptr;
  }
};

}  // namespace

const CpuTactic tactics::gather = describe<GatherFamily>();

}  // namespace hone::cpu
