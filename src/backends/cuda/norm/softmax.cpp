// SPDX-License-Identifier: Apache-2.0
//
// Softmax and LogSoftmax along any axis, in any dense layout: a block per row, or a thread where rows are short.
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cuda {
namespace {

void propose(const Problem& problem, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !(node->is(ops::softmax) || node->is(ops::log_softmax))) return;
  if (std::string reason = reason_not_float(problem, *node); !reason.empty())
    return out.refuse("softmax", std::move(reason));
  offer_layouts(problem, "cuda", "softmax", out);
}

Generated generate(const Problem& problem, const std::string&, const Tactic&) {
  const Node* node = problem.only();
  std::string source =
      fmt::format("typedef {} T;\n#define LOG {}\n", type_name(node->output()->type.dtype), node->is(ops::log_softmax));
  return {{{"axis", node->attrs.integer("axis")}}, source + kernels::softmax, {}};
}

std::shared_ptr<const CudaKernel> load(const LoadContext& context) {
  HONE_CHECK(context.shapes.inputs.size() == 1 && context.shapes.inputs == context.shapes.outputs &&
                 !context.shapes.inputs[0].dims.empty(),
             "a softmax in the plan changes its tensor's type");
  const ConcreteType& type = context.shapes.inputs[0];
  const Dims dims = physical_dims(type);
  const size_t axis = physical_axis(normalize_axis(context.attrs.integer("axis"), dims.size()), type);
  int64_t inner = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
  const int64_t n = dims[axis], rows = n == 0 ? 0 : elements(dims) / n;
  HONE_CHECK(rows > 0 && n * inner < int64_t{1} << 31, "a softmax in the plan has {} rows", rows);
  constexpr int64_t kShort = 128, kSideBySide = 8;
  if (n <= kShort && inner >= kSideBySide) {
    GridLaunch launch{
        .function = context.module->function("softmax_by_thread"), .grid = {blocks_of(rows, 128), 1, 1}, .block = 128};
    launch.arguments.input(0).output(0);
    for (const int64_t number : {n, inner, rows}) launch.arguments.value(static_cast<int32_t>(number));
    return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
  }
  GridLaunch launch{.function = context.module->function("softmax"),
                    .grid = {rows, 1, 1},
                    .block = n <= 64    ? 32u
                             : n <= 512 ? 128u
                                        : 256u};
  launch.arguments.input(0).output(0).value(static_cast<int32_t>(n)).value(static_cast<int32_t>(inner));
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace

const CudaTactic tactics::softmax = {"softmax", propose, generate, load};

}  // namespace hone::cuda
