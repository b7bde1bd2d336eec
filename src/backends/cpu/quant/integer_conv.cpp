// SPDX-License-Identifier: Apache-2.0
//
// ConvInteger with constant weights, its sums exact, and what may follow them, channels last. Images with few channels are read as
// they come (linear): they are packed anyway. Where windows are one pixel the image is a matrix.
#include <algorithm>

#include "backends/cpu/quant/integer_convolution.h"
#include "backends/cpu/quant/integer_weights.h"

namespace hone::cpu {
namespace {

constexpr int64_t kFewChannels = 4;

struct IntegerConvolution {
  IntegerConvCode region;
  bool column_zeros = false;
  IntegerConfig config;
  static void fields(auto& self, auto& visit) {
    IntegerConvCode::fields(self.region, visit);
    visit("column_zeros", self.column_zeros);
    IntegerConfig::fields(self.config, visit);
  }
  IntegerSums sums() const { return {region.conv.input, column_zeros, region.conv.epilogue, region.sums}; }
};

bool all_are(const Dims& list, int64_t value) {
  return std::ranges::all_of(list, [value](int64_t v) { return v == value; });
}

Dims with_images(int64_t images, const Dims& axes) {
  Dims dims{images};
  dims.insert(dims.end(), axes.begin(), axes.end());
  return dims;
}

/// Whether every window is a pixel of A, channels last.
bool windows_are_pixels(const IntegerShape& shape) {
  if (!all_are(shape.filter, 1) || !all_are(shape.pads, 0) || shape.layout != Layout::channels_last) return false;
  for (size_t axis = 0; axis < shape.in.size(); ++axis)
    if (shape.out[axis] - 1 > (shape.in[axis] - 1) / shape.strides[axis]) return false;
  return true;
}

/// The pixels of all images as one row, where windows are one pixel; tiles of vectors leave those with a stride where they are.
IntegerShape as_matrix(IntegerShape shape, IntegerDot dot) {
  const bool strides = shape.in != shape.out;
  if (!windows_are_pixels(shape) || (strides && dot != IntegerDot::tiles)) return shape;
  if (strides) {
    shape.source = with_images(shape.images, shape.in);
    shape.kept = with_images(shape.images, shape.out);
    shape.apart = with_images(1, shape.strides);
  }
  const Dims one{1};
  shape.in = shape.out = {shape.images * elements(shape.out)};
  shape.images = 1;
  shape.filter = shape.strides = shape.dilations = one;
  shape.pads = {0};
  return shape;
}

struct IntegerConvFamily {
  static constexpr std::string_view kName = "integer_conv";
  static constexpr int kVersion = 2;
  static constexpr bool kPacksForIsa = true;
  static constexpr Cost kCost = {.arithmetic = 0.5, .operands = 2, .weights = 0.5};
  using Params = IntegerConfig;
  using Code = IntegerConvolution;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::optional<IntegerConvRegion> region = offered_integer_conv(problem, info, kName, out);
    if (!region) return;
    if (is_depthwise(integer_conv_shape(*region, Layout::channels_last)))
      return out.refuse(kName, "integer_depthwise is the kernel for it");
    const auto offer = [&](Layout layout) {
      const std::vector<IntegerConfig> configs =
          integer_configs(as_matrix(integer_conv_shape(*region, layout), IntegerDot::bytes), region->code.conv.epilogue,
                          static_cast<bool>(region->code.sums.result), info.isa, problem.device.byte_dots);
      if (configs.empty()) return out.refuse(kName, "bytes and an activation that needs many registers");
      for (const IntegerConfig& config : configs)
        out.offer(integer_conv_tactic(kName, problem, *region, layout, write_fields(config)));
    };
    const int64_t channels = region->node().input(0)->type.shape[1].value();
    if (channels <= kFewChannels && region->match.residual != region->code.conv.input) offer(Layout::linear);
    offer(Layout::channels_last);
  }

  static Built<Code> compile(const Problem& problem, const Params& config, const Tactic& tactic) {
    const IntegerConvRegion region = *read_integer_conv_region(problem.region);
    const SignedWeights weights(region.node());
    const Code code{region.code, weights.have_zeros(), config};
    const Layout layout = tactic.in[static_cast<size_t>(region.code.conv.input)];
    return {code, integer_constants(as_matrix(integer_conv_shape(region, layout), config.dot), config, code.sums(),
                                    weights, region, cpu_info(problem.device).isa)};
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    return integer_constants(as_matrix(integer_conv_shape(code.region, shapes), code.config.dot), code.config,
                             code.sums(), info.isa);
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const IntegerShape shape = as_matrix(integer_conv_shape(code.region, shapes), code.config.dot);
    require_integer_kernel(shape, code.config, code.sums(), info.isa);
    return make_integer_kernel(shape, code.config, code.sums(), shapes, info.isa);
  }
};

}  // namespace

const CpuTactic tactics::integer_conv = describe<IntegerConvFamily>();

}  // namespace hone::cpu
