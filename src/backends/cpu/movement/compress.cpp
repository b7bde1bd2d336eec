// SPDX-License-Identifier: Apache-2.0
//
// Compress: the slices whose condition holds, behind each other. Each worker counts those of its share; then all know where theirs
// begin.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/number.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

struct CompressCode {
  NodeCode node;
  std::optional<int64_t> axis = {};  // none: of elements
  static void fields(auto& self, auto& visit) {
    NodeCode::fields(self.node, visit);
    visit("axis", self.axis, -kMostAxes, kMostAxes - 1);
  }
};

class Compress final : public CpuKernel {
 public:
  Compress(const CompressCode& code, const BoundNode& node, NodeResult sizes, int workers)
      : x_(node.operand(0)),
        condition_(node.operand(1)),
        y_(node.result()),
        sizes_(std::move(sizes)),
        dims_(code.axis ? x_.type.dims : Dims{elements(x_.type.dims)}),
        axis_(code.axis ? normalize_axis(*code.axis, dims_.size()) : 0),
        workers_(workers) {
    outer_ = elements(std::span(dims_).first(axis_)), inner_ = elements(std::span(dims_).subspan(axis_ + 1));
    asked_ = std::min(dims_[axis_], elements(condition_.type.dims));
    Dims most = dims_;
    most[axis_] = asked_;
    node.require(condition_.type.dtype == DType::boolean && y_.type == ConcreteType{x_.type.dtype, most} &&
                 sizes_.type == ConcreteType{DType::i64, {static_cast<int64_t>(dims_.size())}});
  }

  int phases() const override { return 2; }
  bool serial() const override { return elements(dims_) < 8192; }
  size_t workspace_bytes() const override { return static_cast<size_t>(workers_) * sizeof(int64_t); }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(asked_, worker, workers);
    auto* found = static_cast<int64_t*>(bindings.workspace);
    const auto* condition = condition_.as<uint8_t>(bindings);
    if (phase == 0) {
      int64_t count = 0;
      for (int64_t i = share.begin; i < share.end; ++i) count += condition[i] != 0 ? 1 : 0;
      found[worker] = count;
      return;
    }
    const int64_t before = std::accumulate(found, found + worker, int64_t{0}),
                  total = std::accumulate(found, found + workers, int64_t{0});
    const size_t size = size_of(x_.type.dtype);
    for (int64_t o = 0; o < outer_; ++o) {
      const int64_t from = o * dims_[axis_] * inner_, to = (o * total + before) * inner_;
      if (inner_ == 1) visit_bits(size, [&]<typename T>() { take<T>(from, to, share, found[worker], bindings); });
      else take_slices(from, to, share, static_cast<int64_t>(size) * inner_, static_cast<int64_t>(size), bindings);
    }
    if (worker != 0) return;
    auto* sizes = sizes_.as<int64_t>(bindings);
    std::copy(dims_.begin(), dims_.end(), sizes);
    sizes[axis_] = total;
  }

 private:
  /// Writes every element, and goes on behind those that are kept: nothing to guess for the processor.
  template <typename T>
  void take(int64_t from, int64_t to, const Share& share, int64_t count, const Bindings& bindings) const {
    const T* x = x_.as<T>(bindings) + from;
    T* y = y_.as<T>(bindings) + to;
    const auto* condition = condition_.as<uint8_t>(bindings);
    for (int64_t i = share.begin, kept = 0; kept < count; ++i) {
      y[kept] = x[i];
      kept += condition[i] != 0 ? 1 : 0;
    }
  }

  void take_slices(int64_t from, int64_t to, const Share& share, int64_t bytes, int64_t size,
                   const Bindings& bindings) const {
    const std::byte* x = x_.as<std::byte>(bindings) + from * size;
    std::byte* y = y_.as<std::byte>(bindings) + to * size;
    const auto* condition = condition_.as<uint8_t>(bindings);
    for (int64_t i = share.begin; i < share.end; ++i) {
      if (condition[i] == 0) continue;
      std::memcpy(y, x + i * bytes, static_cast<size_t>(bytes));
      y += bytes;
    }
  }

  NodeOperand x_, condition_;
  NodeResult y_, sizes_;
  Dims dims_;
  size_t axis_;
  int64_t workers_, outer_ = 1, inner_ = 1, asked_ = 0;
};

struct CompressFamily : NodeFamily<CompressCode> {
  static constexpr std::string_view kName = "compress";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::compress)) return;
    if (std::string reason = reason_not_numeric(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    if (node->input(1)->type.dtype != DType::boolean) return out.refuse(kName, "its condition is not bool");
    offer_linear(problem, kName, out);
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    const Node& node = *single_node(problem);
    Built<Code> built;
    built.code.node = describe_node(problem, built.constants);
    if (node.attrs.has("axis")) built.code.axis = node.attrs.integer("axis");
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const BoundNode node(code.node, shapes, kName);
    node.require(shapes.outputs.size() == 2 && code.node.results == Dims{0});
    return std::make_shared<Compress>(code, node, NodeResult{shapes.outputs[1], 1}, info.workers);
  }
};

}  // namespace

const CpuTactic tactics::compress = describe<CompressFamily>();

}  // namespace hone::cpu
