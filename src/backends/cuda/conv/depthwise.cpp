// SPDX-License-Identifier: Apache-2.0
//
// Conv with a filter per channel, channels last. How many results of a row and how many channels a thread makes is for the tuner
// to choose: many where the image is large, few where there would not be enough threads.
#include <algorithm>
#include <array>

#include "backends/cuda/conv/filters.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/old.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone::cuda {
namespace {

constexpr int64_t kMaxColumns = 24;  // of the image that a thread walks per row

struct ImagesArgument {
  int32_t in_h, in_w, out_h, out_w, strips, count;
};

struct Share {
  int64_t results, bytes;  // of a row; of neighbouring channels
};
constexpr std::array kShares{Share{4, 16}, Share{2, 16}, Share{4, 8}, Share{2, 8},
                             Share{1, 8},  Share{8, 8},  Share{4, 4}};

std::string reason_against(const Problem& problem, const Node& node) {
  const Value *x = node.input(0), *w = node.input(1);
  if (!is_kernel_float(x->type.dtype)) return fmt::format("input is {}, not a float", name_of(x->type.dtype));
  if (input_index(problem.region, x) < 0) return "its input is a constant";
  if (!w->is_constant() || (node.input(2) != nullptr && !node.input(2)->is_constant()))
    return "weights are not constant";
  if (x->type.shape.rank() != 4) return fmt::format("{} spatial axes", x->type.shape.rank() - 2);
  if (node.attrs.text("auto_pad") != "NOTSET") return "padding depends on the size";
  if (node.output()->type.shape.elements() == Dim(0)) return "empty result";
  if (w->constant->dims()[0] % 2 != 0) return "an odd number of channels";
  return match_region(problem.region, &node, 3).refusal;
}

/// Silent about filters that see more than one channel.
void propose(const Problem& problem, Candidates& out) {
  const Node* node = anchor_of(problem.region, ops::conv);
  if (node == nullptr || !node->input(1)->is_constant()) return;
  const Dims& weights = node->input(1)->constant->dims();
  if (weights[1] != 1 || weights[0] != node->attrs.integer("group") || weights[0] == 1) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("depthwise", std::move(reason));
  const WindowAttrs window(node->attrs, 2, spatial_of(weights));
  const auto element = static_cast<int64_t>(size_of(node->output()->type.dtype));
  for (const Share& share : kShares) {
    const int64_t width = std::max<int64_t>(share.bytes / element, 1);
    const int64_t columns = (share.results - 1) * window.strides[1] + (window.kernel[1] - 1) * window.dilations[1] + 1;
    if (weights[0] % width != 0 || columns > kMaxColumns) continue;
    out.offer({"cuda",
               "depthwise",
               {{"results", share.results}, {"width", width}},
               std::vector<Layout>(problem.region.inputs().size(), Layout::channels_last),
               {Layout::channels_last}});
  }
}

/// [channel][tap] as [tap][channel].
Tensor taps_first(const Tensor& rows) {
  const int64_t channels = rows.dims()[0], taps = rows.dims()[1];
  std::vector<float> packed(static_cast<size_t>(rows.size()));
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t t = 0; t < taps; ++t)
      packed[static_cast<size_t>(t * channels + c)] = static_cast<float>(rows.real(c * taps + t));
  return write_floats(rows.dtype(), {taps, channels}, packed);
}

Generated generate(const Problem& problem, const std::string&, const Tactic& tactic) {
  const Node& node = *anchor_of(problem.region, ops::conv);
  const RegionMatch match = match_region(problem.region, &node, 3);
  Generated result;
  result.constants.push_back(taps_first(filter_rows(match, node)));
  const int64_t channels = result.constants[0].dims()[1], results = tactic.params.integer("results"),
                width = tactic.params.integer("width");
  const std::vector<float> bias = collect_bias(match, node.input(2), channels);
  if (!bias.empty()) result.constants.push_back(Tensor::of<float>({channels}, std::span<const float>(bias)));
  result.attrs = {{"x", int64_t{input_index(problem.region, node.input(0))}},
                  {"channels", channels},
                  {"results", results},
                  {"width", width}};
  write_epilogue(result.attrs, match, !bias.empty());
  const WindowAttrs window(node.attrs, 2, spatial_of(node.input(1)->constant->dims()));
  result.source = fmt::format("typedef {} T;\n#define V {}\n#define OUT {}\n#define CHANNELS {}\n",
                              type_name(node.output()->type.dtype), width, results, channels);
  const char* names[] = {"H", "W"};
  for (size_t i = 0; i < 2; ++i)
    result.source +=
        fmt::format("#define KERNEL_{0} {1}\n#define STRIDE_{0} {2}\n#define DILATION_{0} {3}\n#define PAD_{0} {4}\n",
                    names[i], window.kernel[i], window.strides[i], window.dilations[i], window.pads[i]);
  result.source += epilogue_text(match, !bias.empty()) + kernels::activation + kernels::depthwise;
  return result;
}

std::shared_ptr<const CudaKernel> load(const OldContext& context) {
  const Attrs& attrs = context.attrs;
  const int64_t x = attrs.integer("x"), inputs = static_cast<int64_t>(context.shapes.inputs.size());
  const int64_t channels = attrs.integer("channels"), results = attrs.integer("results"),
                width = attrs.integer("width");
  const int residual = read_residual(attrs);
  HONE_CHECK(x >= 0 && x < inputs && residual < inputs && context.shapes.outputs.size() == 1,
             "a convolution in the plan reads input {}", x);
  const Dims &in = context.shapes.inputs[static_cast<size_t>(x)].dims, &out = context.shapes.outputs[0].dims;
  HONE_CHECK(in.size() == 4 && out.size() == 4 && in[0] == out[0] && in[1] == channels && out[1] == channels &&
                 results > 0 && width > 0 && channels % width == 0,
             "a convolution in the plan turns {} into {}", join_dims(in), join_dims(out));
  const int64_t strips = blocks_of(out[3], results), count = out[0] * out[2] * strips * (channels / width);
  HONE_CHECK(count > 0 && count < int64_t{1} << 31, "a convolution in the plan has {} results", elements(out));
  const ImagesArgument images{.in_h = static_cast<int32_t>(in[2]),
                              .in_w = static_cast<int32_t>(in[3]),
                              .out_h = static_cast<int32_t>(out[2]),
                              .out_w = static_cast<int32_t>(out[3]),
                              .strips = static_cast<int32_t>(strips),
                              .count = static_cast<int32_t>(count)};
  GridLaunch launch{
      .function = context.module->function("depthwise"), .grid = {blocks_of(count, 128), 1, 1}, .block = 128};
  launch.arguments.input(x).constant(0);
  add_place(launch.arguments, read_epilogue(attrs).bias ? -2 : kNoPlace);
  add_place(launch.arguments, residual >= 0 ? residual : kNoPlace);
  launch.arguments.output(0).value(images);
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace

const CudaTactic tactics::depthwise = describe_old<generate, load>("depthwise", propose);

}  // namespace hone::cuda
