// SPDX-License-Identifier: Apache-2.0
//
// Conv and ConvTranspose by the definition, with the region's epilogue: depthwise filters, and whatever no library takes.
#include <algorithm>

#include "backends/cuda/conv/filters.h"
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "base/checked.h"
#include "ops/window.h"

namespace hone::cuda {
namespace {

constexpr double kMaxProducts = 2e9;  // by far slower than a library beyond this

/// Depth, height and width.
struct Conv {
  static constexpr std::string_view kName = "Conv";
  int32_t input[3] = {1, 1, 1}, result[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1};
  int32_t dilation[3] = {1, 1, 1}, before[3] = {};
  int32_t channels = 0, filters = 0, group_channels = 0, group_filters = 0, results = 0;
  static void fields(auto& self, auto& visit) {
    visit("input", self.input);
    visit("result", self.result);
    visit("kernel", self.kernel);
    visit("stride", self.stride);
    visit("dilation", self.dilation);
    visit("before", self.before);
    visit("channels", self.channels);
    visit("filters", self.filters);
    visit("group_channels", self.group_channels);
    visit("group_filters", self.group_filters);
    visit("results", self.results);
  }
};

struct DirectConvParameters {
  static constexpr std::string_view kKernel = "direct_conv";
  Reads x, weights;
  EpilogueReads epilogue;
  Writes y;
  Conv conv;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "Operand");
    visit("weights", self.weights, "T");
    EpilogueReads::fields(self.epilogue, visit);
    visit("y", self.y, "Result");
    visit("c", self.conv);
  }
};

struct DirectConvCode {
  int64_t x = 0;
  WindowAttrs window;
  int64_t group = 1, filters = 1;
  bool transposed = false;
  EpilogueCode epilogue;
  std::vector<double> numbers = {};
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, kMostOperands - 1);
    WindowAttrs::fields(self.window, visit);
    visit("group", self.group, 1, kMostSize);
    visit("filters", self.filters, 1, kMostSize);
    visit("transposed", self.transposed);
    EpilogueCode::fields(self.epilogue, visit);
    visit("numbers", self.numbers, StepNumbers::kMost);
  }
};

std::string reason_against(const Problem& problem, const ConvRegion& region) {
  const Node& node = region.node();
  const Value *x = node.input(0), *w = node.input(1);
  if (!is_kernel_float(x->type.dtype)) return fmt::format("input is {}, not a float", name_of(x->type.dtype));
  if (std::string reason = reason_against_operands(problem.region, node); !reason.empty()) return reason;
  const size_t axes = region.window.kernel.size();
  if (axes < 1 || axes > 3) return fmt::format("{} spatial axes", axes);
  const double products = static_cast<double>(elements(node.output()->type.shape.values())) *
                          static_cast<double>(w->constant->size()) / static_cast<double>(w->constant->dims()[0]);
  if (products > kMaxProducts) return "too many products for a kernel without tensor cores";
  if (region.match.late_bias) return "a bias behind a rounding";
  return region.match.refusal;
}

Conv conv_of(const DirectConvCode& code, const Dims& in, const Dims& out) {
  const size_t spatial = in.size() - 2;
  const WindowAttrs& window = code.window;
  Conv conv;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t axis = 3 - spatial + i;
    conv.input[axis] = static_cast<int32_t>(in[2 + i]);
    conv.result[axis] = static_cast<int32_t>(out[2 + i]);
    conv.kernel[axis] = static_cast<int32_t>(window.kernel[i]);
    conv.stride[axis] = static_cast<int32_t>(window.strides[i]);
    conv.dilation[axis] = static_cast<int32_t>(window.dilations[i]);
    conv.before[axis] = static_cast<int32_t>(code.transposed ? window.pads[i] : window.padding(in[2 + i], i).first);
  }
  HONE_CHECK(code.filters == out[1] && code.filters % code.group == 0 && in[1] % code.group == 0,
             "a convolution in the plan has {} groups of {} filters", code.group, code.filters);
  conv.channels = static_cast<int32_t>(in[1]);
  conv.filters = static_cast<int32_t>(code.filters);
  conv.group_channels = static_cast<int32_t>(in[1] / code.group);
  conv.group_filters = static_cast<int32_t>(code.filters / code.group);
  conv.results = static_cast<int32_t>(elements(out));
  return conv;
}

struct DirectConvFamily {
  static constexpr std::string_view kName = "direct_conv";
  static constexpr int kVersion = 6;
  using Params = NoParams;
  using Code = DirectConvCode;

  static void propose(const Problem& problem, Candidates& out) {
    const std::optional<ConvRegion> region = read_conv_region(problem.region, Roundings::codes);
    if (!region) return;
    if (std::string reason = reason_against(problem, *region); !reason.empty())
      return out.refuse(kName, std::move(reason));
    for (const Layout layout : {Layout::channels_last, Layout::linear})
      out.offer(
          {"cuda", std::string(kName), {}, std::vector<Layout>(problem.region.inputs().size(), layout), {layout}});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic& tactic) {
    const ConvRegion region = *read_conv_region(problem.region, Roundings::codes);
    Built<Code> built;
    built.constants.push_back(filter_rows(region));
    append_bias(region.bias(), built.constants);
    built.code = {.x = region.code.input,
                  .window = region.window,
                  .group = region.code.groups,
                  .filters = region.code.channels,
                  .transposed = region.transposed,
                  .epilogue = region.code.epilogue,
                  .numbers = step_numbers(region.match)};
    built.source = fmt::format("typedef {} T;\n#define CHANNELS_LAST {}\n#define TRANSPOSED {}\n",
                               type_name(region.node().output()->type.dtype), tactic.out[0] == Layout::channels_last,
                               region.transposed);
    built.source += declare<DirectConvParameters>() + operand_text(region.match) +
                    epilogue_text(region.match, region.code.epilogue) + kernels::direct_conv;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(context.shapes.outputs.size() == 1 && !context.constants.empty(),
               "a convolution in the plan has {} results", context.shapes.outputs.size());
    const Place x{PlaceKind::input, code.x};
    const Dims &in = context.dims_of(x), &out = context.shapes.outputs[0].dims;
    HONE_CHECK(in.size() >= 3 && in.size() <= 5 && out.size() == in.size() && in[0] == out[0] &&
                   elements(out) < int64_t{1} << 31,
               "a convolution in the plan turns {} into {}", join_dims(in), join_dims(out));
    code.window.check(in.size() - 2);
    require_sizes(code.window.kernel);
    const Dims weights{code.filters, elements(code.window.kernel), in[1] / code.group};
    HONE_CHECK(context.constants[0].dims == weights, "a convolution in the plan has weights {}, not {}",
               join_dims(context.constants[0].dims), join_dims(weights));
    const DirectConvParameters parameters{
        .x = x.pointer(),
        .weights = constant(0),
        .epilogue = epilogue_reads(code.epilogue, context, code.filters, code.numbers),
        .y = output(0),
        .conv = conv_of(code, in, out)};
    const int64_t blocks = blocks_of(std::max<int64_t>(elements(out), 1), 128);
    return single(context, launch_of(*context.module, parameters, {{blocks}, 128}));
  }
};

}  // namespace

const CudaTactic tactics::direct_conv = describe<DirectConvFamily>();

}  // namespace hone::cuda
