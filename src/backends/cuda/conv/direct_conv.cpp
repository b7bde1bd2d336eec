// SPDX-License-Identifier: Apache-2.0
//
// Conv and ConvTranspose by the definition, with the region's epilogue: depthwise filters, and whatever no library takes.
#include <algorithm>

#include "backends/cuda/conv/filters.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/old.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "ops/window.h"
#include "regions/region_match.h"

namespace hone::cuda {
namespace {

constexpr double kMaxProducts = 2e9;  // by far slower than a library beyond this

struct ConvArgument {
  int32_t input[3], result[3], kernel[3], stride[3], dilation[3], before[3];
  int32_t channels, filters, group_channels, group_filters, results;
};

const Node* anchor_in(const Graph& region) {
  const Node* conv = anchor_of(region, ops::conv);
  return conv != nullptr ? conv : anchor_of(region, ops::conv_transpose);
}

std::string reason_against(const Problem& problem, const Node& node) {
  const Value *x = node.input(0), *w = node.input(1);
  if (!is_kernel_float(x->type.dtype)) return fmt::format("input is {}, not a float", name_of(x->type.dtype));
  if (x->is_constant() || !w->is_constant() || (node.input(2) != nullptr && !node.input(2)->is_constant()))
    return "weights are not constant";
  const size_t rank = x->type.shape.rank();
  if (rank < 3 || rank > 5) return fmt::format("{} spatial axes", rank - 2);
  const double products = static_cast<double>(elements(node.output()->type.shape.values())) *
                          static_cast<double>(w->constant->size()) / static_cast<double>(w->constant->dims()[0]);
  if (products > kMaxProducts) return "too many products for a kernel without tensor cores";
  return match_region(problem.region, &node, rank - 1).refusal;
}

void propose(const Problem& problem, Candidates& out) {
  const Node* node = anchor_in(problem.region);
  if (node == nullptr) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("direct_conv", std::move(reason));
  for (const Layout layout : {Layout::channels_last, Layout::linear})
    out.offer({"cuda", "direct_conv", {}, std::vector<Layout>(problem.region.inputs().size(), layout), {layout}});
}

Generated generate(const Problem& problem, const std::string&, const Tactic& tactic) {
  const Node& node = *anchor_in(problem.region);
  const RegionMatch match = match_region(problem.region, &node, node.input(0)->type.shape.rank() - 1);
  const bool transposed = node.is(ops::conv_transpose);
  Generated result;
  result.attrs = node.attrs;
  result.constants.push_back(filter_rows(match, node));
  const int64_t filters = result.constants[0].dims()[0];
  const std::vector<float> bias = collect_bias(match, node.input(2), filters);
  if (!bias.empty()) result.constants.push_back(Tensor::of<float>({filters}, std::span<const float>(bias)));
  result.attrs.set("transposed", int64_t{transposed});
  result.attrs.set("kernel_dims", spatial_of(node.input(1)->constant->dims()));
  result.attrs.set("filters", filters);
  write_epilogue(result.attrs, match, !bias.empty());
  result.attrs.set("x", int64_t{input_index(problem.region, node.input(0))});
  result.source = fmt::format("typedef {} T;\n#define CHANNELS_LAST {}\n#define TRANSPOSED {}\n",
                              type_name(node.output()->type.dtype), tactic.out[0] == Layout::channels_last, transposed);
  result.source += epilogue_text(match, !bias.empty());
  result.source += std::string(kernels::activation) + std::string(kernels::direct_conv);
  return result;
}

ConvArgument conv_argument(const Attrs& attrs, const Dims& in, const Dims& out) {
  const size_t spatial = in.size() - 2;
  const WindowAttrs window(attrs, spatial, attrs.integers("kernel_dims"));
  ConvArgument conv{};
  for (size_t axis = 0; axis < 3; ++axis)
    conv.input[axis] = conv.result[axis] = conv.kernel[axis] = conv.stride[axis] = conv.dilation[axis] = 1;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t axis = 3 - spatial + i;
    conv.input[axis] = static_cast<int32_t>(in[2 + i]);
    conv.result[axis] = static_cast<int32_t>(out[2 + i]);
    conv.kernel[axis] = static_cast<int32_t>(window.kernel[i]);
    conv.stride[axis] = static_cast<int32_t>(window.strides[i]);
    conv.dilation[axis] = static_cast<int32_t>(window.dilations[i]);
    conv.before[axis] =
        static_cast<int32_t>(attrs.integer("transposed") != 0 ? window.pads[i] : window.padding(in[2 + i], i).first);
  }
  const int64_t group = attrs.integer("group"), filters = attrs.integer("filters");
  HONE_CHECK(group > 0 && filters > 0 && filters == out[1] && filters % group == 0 && in[1] % group == 0,
             "a convolution in the plan has {} groups of {} filters", group, filters);
  conv.channels = static_cast<int32_t>(in[1]);
  conv.filters = static_cast<int32_t>(filters);
  conv.group_channels = static_cast<int32_t>(in[1] / group);
  conv.group_filters = static_cast<int32_t>(filters / group);
  conv.results = static_cast<int32_t>(elements(out));
  return conv;
}

std::shared_ptr<const CudaKernel> load(const OldContext& context) {
  const int64_t x = context.attrs.integer("x");
  const Epilogue epilogue = read_epilogue(context.attrs);
  const int residual = read_residual(context.attrs);
  const auto& inputs = context.shapes.inputs;
  HONE_CHECK(x >= 0 && x < static_cast<int64_t>(inputs.size()) && residual < static_cast<int>(inputs.size()) &&
                 context.shapes.outputs.size() == 1,
             "a convolution in the plan reads input {}", x);
  const Dims &in = inputs[static_cast<size_t>(x)].dims, &out = context.shapes.outputs[0].dims;
  HONE_CHECK(in.size() >= 3 && in.size() <= 5 && out.size() == in.size() && elements(out) < int64_t{1} << 31,
             "a convolution in the plan turns {} into {}", join_dims(in), join_dims(out));
  GridLaunch launch{.function = context.module->function("direct_conv"),
                    .grid = {blocks_of(std::max<int64_t>(elements(out), 1), 128), 1, 1},
                    .block = 128};
  launch.arguments.input(x).constant(0);
  add_place(launch.arguments, epilogue.bias ? -2 : kNoPlace);
  add_place(launch.arguments, residual >= 0 ? residual : kNoPlace);
  launch.arguments.output(0).value(conv_argument(context.attrs, in, out));
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace

const CudaTactic tactics::direct_conv = describe_old<generate, load>("direct_conv", propose);

}  // namespace hone::cuda
