// SPDX-License-Identifier: Apache-2.0
//
// MaxPool and AveragePool of one to three spatial axes.
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/old.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "ops/window.h"

namespace hone::cuda {
namespace {

struct WindowArgument {
  int32_t input[3], result[3], kernel[3], stride[3], dilation[3], before[3], after[3];
};

void propose(const Problem& problem, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !(node->is(ops::max_pool) || node->is(ops::average_pool))) return;
  if (std::string reason = reason_not_float(problem, *node); !reason.empty())
    return out.refuse("pool", std::move(reason));
  if (problem.region.outputs()[0] != node->output(0)) return out.refuse("pool", "indices are wanted");
  const size_t rank = node->input(0)->type.shape.rank();
  if (rank < 3 || rank > 5) return out.refuse("pool", fmt::format("{} spatial axes", rank - 2));
  offer_layouts(problem, "cuda", "pool", out);
}

Generated generate(const Problem& problem, const std::string&, const Tactic& tactic) {
  const Node* node = problem.only();
  const bool channels_last = tactic.in[0] == Layout::channels_last;
  std::string source = fmt::format("typedef {} T;\n#define MAXIMUM {}\n#define CHANNELS_LAST {}\n",
                                   type_name(node->output()->type.dtype), node->is(ops::max_pool), channels_last);
  const int64_t width = channels_last ? vector_width(node->output()->type.dtype) : 1;
  Attrs attrs = node->attrs;
  attrs.set("width", width);
  return {std::move(attrs), source + fmt::format("#define V {}\n", width) + kernels::pool, {}};
}

std::shared_ptr<const CudaKernel> load(const OldContext& context) {
  HONE_CHECK(context.shapes.inputs.size() == 1 && context.shapes.outputs.size() == 1,
             "a pool in the plan has {} inputs", context.shapes.inputs.size());
  const Dims &in = context.shapes.inputs[0].dims, &out = context.shapes.outputs[0].dims;
  HONE_CHECK(in.size() >= 3 && in.size() <= 5 && in.size() == out.size() && in[0] == out[0] && in[1] == out[1],
             "a pool in the plan turns {} into {}", join_dims(in), join_dims(out));
  const size_t spatial = in.size() - 2;
  const WindowAttrs attrs(context.attrs, spatial, {});
  WindowArgument window{};
  for (size_t axis = 0; axis < 3; ++axis)
    window.input[axis] = window.result[axis] = window.kernel[axis] = window.stride[axis] = window.dilation[axis] = 1;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t axis = 3 - spatial + i;
    const auto [before, after] = attrs.padding(in[2 + i], i);
    window.input[axis] = static_cast<int32_t>(in[2 + i]);
    window.result[axis] = static_cast<int32_t>(out[2 + i]);
    window.kernel[axis] = static_cast<int32_t>(attrs.kernel[i]);
    window.stride[axis] = static_cast<int32_t>(attrs.strides[i]);
    window.dilation[axis] = static_cast<int32_t>(attrs.dilations[i]);
    window.before[axis] = static_cast<int32_t>(before);
    window.after[axis] = static_cast<int32_t>(after);
  }
  const int64_t width = context.attrs.integer("width");
  HONE_CHECK(width > 0 && width <= 16, "a pool in the plan takes {} channels at once", width);
  const bool columns = width > 1 && in[1] % width == 0;
  const int64_t results = elements(out) / (columns ? width : 1);
  HONE_CHECK(results > 0 && results < int64_t{1} << 31, "a pool in the plan has {} results", results);
  GridLaunch launch{.function = context.module->function(columns ? "pool_columns" : "pool"),
                    .grid = {blocks_of(results, 128), 1, 1},
                    .block = 128};
  launch.arguments.input(0)
      .output(0)
      .value(window)
      .value(static_cast<int32_t>(in[1]))
      .value(static_cast<int32_t>(context.attrs.integer_or("count_include_pad", 0)))
      .value(static_cast<int32_t>(results));
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace

const CudaTactic tactics::pool = describe_old<generate, load>("pool", propose);

}  // namespace hone::cuda
