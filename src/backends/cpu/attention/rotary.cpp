// SPDX-License-Identifier: Apache-2.0
//
// Rotate: rotary embeddings of vectors in f32 or bf16. Neighbours that step evenly through vectors and angles are one call.
#include <algorithm>

#include "backends/cpu/attention/rotary_kernel.h"
#include "backends/cpu/support/node_code.h"
#include "backends/cpu/support/region_reader.h"
#include "backends/cpu/support/row_walk.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

struct RotaryCode {
  NodeCode node;
  static void fields(auto& self, auto& visit) { NodeCode::fields(self.node, visit); }
};

/// All axes but the last one: the vectors.
RowWalk walk_of(const BoundNode& node) {
  Dims vectors = node.operand(0).type.dims;
  node.require(!vectors.empty());
  Dims steps = strides_of(vectors), angles = node.strides_along(vectors, 1);
  for (Dims* list : {&vectors, &steps, &angles}) list->pop_back();
  return RowWalk(vectors, {steps, angles});
}

template <typename T>
class Rotary final : public ItemKernel {
 public:
  Rotary(const BoundNode& node, Isa isa)
      : ItemKernel(walk_of(node).rows() * walk_of(node).length(), elements(node.result().type.dims)),
        kernel_(rotary_kernel<T>(isa)),
        x_(node.operand(0)),
        cosines_(node.operand(1)),
        sines_(node.operand(2)),
        y_(node.result()),
        walk_(walk_of(node)),
        depth_(x_.type.dims.back()) {
    node.require(x_.type == y_.type && depth_ > 0 && depth_ % 2 == 0);
    node.require(cosines_.type == sines_.type && cosines_.type.dtype == x_.type.dtype && !cosines_.type.dims.empty() &&
                 cosines_.type.dims.back() == depth_);
  }

 private:
  void run_items(int64_t begin, int64_t end, const Bindings& bindings) const override {
    while (begin < end) {
      const int64_t skipped = begin % walk_.length(), count = std::min(end - begin, walk_.length() - skipped);
      int64_t offsets[2];
      walk_.seek(begin / walk_.length(), offsets);
      const int64_t at = offsets[0] + skipped * walk_.stride(0), angle = offsets[1] + skipped * walk_.stride(1);
      kernel_({x_.as<T>(bindings) + at, cosines_.as<T>(bindings) + angle, sines_.as<T>(bindings) + angle,
               y_.as<T>(bindings) + at, count, depth_ / 2, walk_.stride(0), walk_.stride(1)});
      begin += count;
    }
  }

  RotaryKernel<T> kernel_;
  NodeOperand x_, cosines_, sines_;
  NodeResult y_;
  RowWalk walk_;
  int64_t depth_;
};

struct RotaryFamily : NodeFamily<RotaryCode> {
  static constexpr std::string_view kName = "rotary";

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) {
    const Node* node = single_node(problem);
    if (node == nullptr || !node->is(ops::rotate)) return;
    if (std::string reason = reason_not_f32_or_bf16(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_linear(problem, kName, out);
  }
  static Built<RotaryCode> compile(const Problem& problem, const NoParams&, const Tactic&) {
    Built<RotaryCode> built;
    built.code.node = describe_node(problem, built.constants);
    return built;
  }
  static std::shared_ptr<const CpuKernel> load(const RotaryCode& code, const KernelShapes& shapes,
                                               const CpuInfo& info) {
    check_f32_or_bf16(shapes, 1, kName);
    const BoundNode node(code.node, shapes, kName);
    if (shapes.inputs[0].dtype == DType::bf16) return std::make_shared<Rotary<BFloat>>(node, info.isa);
    return std::make_shared<Rotary<float>>(node, info.isa);
  }
};

}  // namespace

const CpuTactic tactics::rotary = describe<RotaryFamily>();

}  // namespace hone::cpu
