// SPDX-License-Identifier: Apache-2.0
//
// Conv with a filter per channel, channels last. How many results of a row and how many channels a thread makes is for the tuner
// to choose: many where the image is large, few where there would not be enough threads.
#include <algorithm>
#include <array>

#include "backends/cuda/conv/filters.h"
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone::cuda {
namespace {

constexpr int64_t kMaxColumns = 24;  // of the image that a thread walks per row

struct Images {
  static constexpr std::string_view kName = "Images";
  int32_t in_h = 0, in_w = 0, out_h = 0, out_w = 0, strips = 0, count = 0;  // strips of a row; threads
  static void fields(auto& self, auto& visit) {
    visit("in_h", self.in_h);
    visit("in_w", self.in_w);
    visit("out_h", self.out_h);
    visit("out_w", self.out_w);
    visit("strips", self.strips);
    visit("count", self.count);
  }
};

struct DepthwiseParameters {
  static constexpr std::string_view kKernel = "depthwise";
  Reads x, weights;
  EpilogueReads epilogue;
  Writes y;
  Images images;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "Operand");
    visit("weights", self.weights, "T");
    EpilogueReads::fields(self.epilogue, visit);
    visit("y", self.y, "Result");
    visit("images", self.images);
  }
};

/// What a thread makes.
struct DepthwiseTactic {
  int64_t results = 1, width = 1;  // of a row; neighbouring channels
  static void fields(auto& self, auto& visit) {
    visit("results", self.results, 1, 8);
    visit("width", self.width, 1, 8);
  }
};

struct DepthwiseCode {
  int64_t x = 0, channels = 1;
  DepthwiseTactic share;
  EpilogueCode epilogue;
  std::vector<double> numbers = {};
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, kMostOperands - 1);
    visit("channels", self.channels, 1, kMostSize);
    DepthwiseTactic::fields(self.share, visit);
    EpilogueCode::fields(self.epilogue, visit);
    visit("numbers", self.numbers, StepNumbers::kMost);
  }
};

struct Share {
  int64_t results, bytes;  // of a row; of neighbouring channels
};
constexpr std::array kShares{Share{4, 16}, Share{2, 16}, Share{4, 8}, Share{2, 8},
                             Share{1, 8},  Share{8, 8},  Share{4, 4}};

std::string reason_against(const Problem& problem, const ConvRegion& region) {
  const Node& node = region.node();
  const DType dtype = node.input(0)->type.dtype;
  if (!is_kernel_float(dtype)) return fmt::format("input is {}, not a float", name_of(dtype));
  if (std::string reason = reason_against_operands(problem.region, node); !reason.empty()) return reason;
  if (region.window.kernel.size() != 2) return fmt::format("{} spatial axes", region.window.kernel.size());
  if (region.window.auto_pad != "NOTSET") return "padding depends on the size";
  if (node.output()->type.shape.elements() == Dim(0)) return "empty result";
  if (region.code.channels % 2 != 0) return "an odd number of channels";
  if (region.match.late_bias) return "a bias behind a rounding";
  return region.match.refusal;
}

/// A filter for each of several channels. Of weights that are not constant nothing is said.
bool is_depthwise(const ConvRegion& region) {
  const Value* weights = region.node().input(1);
  return !region.transposed && weights->is_constant() && weights->constant->dims()[1] == 1 &&
         region.code.channels == region.code.groups && region.code.channels > 1;
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

struct DepthwiseFamily {
  static constexpr std::string_view kName = "depthwise";
  static constexpr int kVersion = 6;
  using Params = DepthwiseTactic;
  using Code = DepthwiseCode;

  /// Silent about filters that see more than one channel.
  static void propose(const Problem& problem, Candidates& out) {
    const std::optional<ConvRegion> region = read_conv_region(problem.region, Roundings::codes);
    if (!region || !is_depthwise(*region)) return;
    if (std::string reason = reason_against(problem, *region); !reason.empty())
      return out.refuse(kName, std::move(reason));
    const WindowAttrs& window = region->window;
    const auto element = static_cast<int64_t>(size_of(region->node().output()->type.dtype));
    for (const Share& share : kShares) {
      const int64_t width = std::max<int64_t>(share.bytes / element, 1);
      const int64_t columns =
          (share.results - 1) * window.strides[1] + (window.kernel[1] - 1) * window.dilations[1] + 1;
      if (region->code.channels % width != 0 || columns > kMaxColumns) continue;
      out.offer({"cuda",
                 std::string(kName),
                 write_fields(Params{.results = share.results, .width = width}),
                 std::vector<Layout>(problem.region.inputs().size(), Layout::channels_last),
                 {Layout::channels_last}});
    }
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params& params, const Tactic&) {
    const ConvRegion region = *read_conv_region(problem.region, Roundings::codes);
    Built<Code> built;
    built.constants.push_back(taps_first(filter_rows(region)));
    append_bias(region.bias(), built.constants);
    built.code = {.x = region.code.input,
                  .channels = region.code.channels,
                  .share = params,
                  .epilogue = region.code.epilogue,
                  .numbers = step_numbers(region.match)};
    built.source =
        fmt::format("typedef {} T;\n#define V {}\n#define OUT {}\n#define CHANNELS {}\n",
                    type_name(region.node().output()->type.dtype), params.width, params.results, region.code.channels);
    built.source += window_text(region.window) + declare<DepthwiseParameters>() + operand_text(region.match) +
                    epilogue_text(region.match, region.code.epilogue) + kernels::depthwise;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(context.shapes.outputs.size() == 1 && !context.constants.empty() &&
                   context.constants[0].dims.back() == code.channels,
               "a convolution in the plan has {} results", context.shapes.outputs.size());
    const Place x{PlaceKind::input, code.x};
    const Dims &in = context.dims_of(x), &out = context.shapes.outputs[0].dims;
    HONE_CHECK(in.size() == 4 && out.size() == 4 && in[0] == out[0] && in[1] == code.channels &&
                   out[1] == code.channels && code.channels % code.share.width == 0,
               "a convolution in the plan turns {} into {}", join_dims(in), join_dims(out));
    const int64_t strips = blocks_of(out[3], code.share.results),
                  count = out[0] * out[2] * strips * (code.channels / code.share.width);
    HONE_CHECK(count > 0 && count < int64_t{1} << 31, "a convolution in the plan has {} results", elements(out));
    const DepthwiseParameters parameters{
        .x = x.pointer(),
        .weights = constant(0),
        .epilogue = epilogue_reads(code.epilogue, context, code.channels, code.numbers),
        .y = output(0),
        .images = {.in_h = static_cast<int32_t>(in[2]),
                   .in_w = static_cast<int32_t>(in[3]),
                   .out_h = static_cast<int32_t>(out[2]),
                   .out_w = static_cast<int32_t>(out[3]),
                   .strips = static_cast<int32_t>(strips),
                   .count = static_cast<int32_t>(count)}};
    return single(context, launch_of(*context.module, parameters, {{blocks_of(count, 128)}, 128}));
  }
};

}  // namespace

const CudaTactic tactics::depthwise = describe<DepthwiseFamily>();

}  // namespace hone::cuda
