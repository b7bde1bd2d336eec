// SPDX-License-Identifier: Apache-2.0
//
// Cast between any two numeric types, in whatever layout the tensor has: one element per thread.
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

void propose(const Problem& problem, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !node->is(ops::cast)) return;
  if (!has_type_name(node->input(0)->type.dtype) || !has_type_name(node->output()->type.dtype))
    return out.refuse("cast", "a type that the card does not have");
  if (node->input(0)->is_constant() || problem.region.inputs().empty())
    return out.refuse("cast", "its input is a constant");
  out.offer({"cuda", "cast", {}, {Layout::linear}, {Layout::linear}});
  const size_t rank = node->output()->type.shape.rank();
  if (rank >= 3 && rank <= 5) out.offer({"cuda", "cast", {}, {Layout::channels_last}, {Layout::channels_last}});
}

Generated generate(const Problem& problem, const std::string&, const Tactic&) {
  const Node* node = problem.only();
  std::string source = fmt::format("typedef {} From;\ntypedef {} To;\n", type_name(node->input(0)->type.dtype),
                                   type_name(node->output()->type.dtype));
  return {{}, source + kernels::cast, {}};
}

std::shared_ptr<const CudaKernel> load(const LoadContext& context) {
  HONE_CHECK(context.shapes.inputs.size() == 1 && context.shapes.outputs.size() == 1 &&
                 context.shapes.inputs[0].dims == context.shapes.outputs[0].dims,
             "a cast in the plan changes the size");
  const int64_t count = elements(context.shapes.outputs[0].dims);
  HONE_CHECK(count < int64_t{1} << 31, "a cast in the plan has {} elements", count);
  GridLaunch launch{.function = context.module->function("cast")};
  launch.arguments.input(0).output(0).value(static_cast<int32_t>(count));
  launch.grid.x = blocks_of(std::max<int64_t>(count, 1), launch.block);
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace

const CudaTactic tactics::cast = {"cast", propose, generate, load};

}  // namespace hone::cuda
