// SPDX-License-Identifier: Apache-2.0
//
// NonZero: the places of the elements that are not zero, in their order, all coordinates along an axis behind each other. Each
// worker counts what it finds in its share; then all know where their finds begin.
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/number.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

class NonZero final : public CpuKernel {
 public:
  NonZero(const BoundNode& node, NodeResult sizes, int workers)
      : x_(node.operand(0)), places_(node.result()), sizes_(std::move(sizes)), workers_(workers) {
    const auto rank = static_cast<int64_t>(x_.type.dims.size());
    node.require(rank > 0 && places_.type == ConcreteType{DType::i64, {rank, elements(x_.type.dims)}} &&
                 sizes_.type == ConcreteType{DType::i64, {2}});
  }

  size_t workspace_bytes() const override { return static_cast<size_t>(workers_) * sizeof(int64_t); }
  int phases() const override { return 2; }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(elements(x_.type.dims), worker, workers);
    auto* found = static_cast<int64_t*>(bindings.workspace);
    visit(x_.type.dtype, [&]<typename T>() {
      const T* x = x_.as<T>(bindings);
      if (phase == 0) found[worker] = std::count_if(x + share.begin, x + share.end, is_found<T>);
      else write(x, share, std::span(found, static_cast<size_t>(workers)), worker, bindings);
    });
  }

 private:
  template <typename T>
  static bool is_found(const T& element) {
    return comparable(element) != 0;
  }

  template <typename T>
  void write(const T* x, const Share& share, std::span<const int64_t> found, int worker,
             const Bindings& bindings) const {
    const Dims& dims = x_.type.dims;
    const int64_t total = std::accumulate(found.begin(), found.end(), int64_t{0});
    int64_t* to = places_.as<int64_t>(bindings) + std::accumulate(found.begin(), found.begin() + worker, int64_t{0});
    for (int64_t i = share.begin; i < share.end; ++i) {
      if (!is_found(x[i])) continue;
      int64_t rest = i;
      for (size_t axis = dims.size(); axis-- > 0; rest /= dims[axis])
        to[static_cast<int64_t>(axis) * total] = rest % dims[axis];
      ++to;
    }
    if (worker != 0) return;
    auto* sizes = sizes_.as<int64_t>(bindings);
    sizes[0] = static_cast<int64_t>(dims.size());
    sizes[1] = total;
  }

  NodeOperand x_;
  NodeResult places_, sizes_;
  int workers_;
};

struct NonZeroCode {
  NodeCode node;
  static void fields(auto& self, auto& visit) { NodeCode::fields(self.node, visit); }
};

struct NonZeroFamily : NodeFamily<NonZeroCode> {
  static constexpr std::string_view kName = "non_zero";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::non_zero)) return;
    if (std::string reason = reason_not_numeric(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    if (node->input(0)->type.shape.rank() == 0) return out.refuse(kName, "its input is a scalar");
    offer_linear(problem, kName, out);
  }

  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    Built<Code> built;
    built.code.node = describe_node(problem, built.constants);
    return built;
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const BoundNode node(code.node, shapes, kName);
    node.require(shapes.outputs.size() == 2 && code.node.results == Dims{0});
    return std::make_shared<NonZero>(node, NodeResult{shapes.outputs[1], 1}, info.workers);
  }
};

}  // namespace

const CpuTactic tactics::non_zero = describe<NonZeroFamily>();

}  // namespace hone::cpu
