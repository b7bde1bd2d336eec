// SPDX-License-Identifier: Apache-2.0
//
// Transposed convolution as one ordinary convolution per phase of the stride.
#include "backends/cpu/conv/conv_transpose_kernel.h"
#include "backends/cpu/conv/convolution.h"
#include "backends/cpu/conv/pack.h"
#include "base/checked.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

/// The output's size decides what is cut off at the far side, so the pads after the image are not needed.
ConvTransposeShape transpose_shape(const Attrs& attrs, const Dims& input, const Dims& output) {
  const ConvShape conv = conv_shape(attrs, input, Layout::channels_last);
  const ImageSize out = image_size(output);
  ConvTransposeShape shape;
  shape.n = conv.n, shape.ic = conv.ic, shape.ih = conv.ih, shape.iw = conv.iw;
  shape.oc = conv.oc, shape.oh = out.h, shape.ow = out.w, shape.kh = conv.kh, shape.kw = conv.kw;
  shape.stride_h = conv.stride_h, shape.stride_w = conv.stride_w, shape.dilation_h = conv.dilation_h,
  shape.dilation_w = conv.dilation_w;
  shape.pad_top = conv.pad_top, shape.pad_left = conv.pad_left, shape.groups = conv.groups;
  return shape;
}

ConvTransposeShape transpose_shape(const Problem& problem, const ConvRegion& region) {
  return transpose_shape(region.attrs, input_dims(problem, region), region.match.anchor->output()->type.shape.values());
}

/// Every phase has a tap at least: only as many as the plan has weights for are gone through.
void require_weights(const KernelShapes& shapes, const ConvTransposeShape& shape, int64_t panel) {
  const int64_t rows = std::min(shape.stride_h, shape.oh), columns = std::min(shape.stride_w, shape.ow),
                channels = static_cast<int64_t>(packed_bias_floats(shape.oc, shape.groups, panel)),
                depth = shape.ic / shape.groups;
  require_constant(shapes, 0, DType::f32, Dims{rows, columns, channels, depth});
  require_sizes(Dims{shape.kh, shape.kw, channels, depth});
  require_constant(shapes, 0, DType::f32, Dims{static_cast<int64_t>(packed_conv_transpose_floats(shape, panel))});
}

void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
  const std::optional<ConvRegion> region = read_conv_region(problem, ops::conv_transpose, "conv_transpose", info, out);
  if (!region) return;
  if (region->attrs.text("auto_pad").starts_with("SAME")) return out.refuse("conv_transpose", "automatic padding");
  const ConvTransposeShape shape = transpose_shape(problem, *region);
  if (const char* reason = conv_transpose_refusal(shape)) return out.refuse("conv_transpose", reason);
  for (const ConvConfig& config : conv_transpose_candidates(shape, info.isa, info.workers)) {
    Attrs params;
    write_config(params, config);
    out.offer(conv_tactic("conv_transpose", problem, *region, Layout::channels_last, std::move(params)));
  }
}

Compiled compile(const Problem& problem, const Tactic& tactic) {
  const ConvRegion region = conv_region(problem, ops::conv_transpose);
  const Isa isa = cpu_info(problem.device).isa;
  const ConvConfig config = read_config(tactic.params);
  const int64_t panel = config.panel_channels(isa);
  const ConvTransposeShape shape = transpose_shape(problem, region);

  const std::vector<float> weights = scaled_weights(region.match, *region.match.anchor->input(1)->constant);
  Tensor packed_weights = make_floats(packed_conv_transpose_floats(shape, panel), [&](float* packed) {
    pack_conv_transpose_weights(weights.data(), shape, panel, config.depth, packed);
  });
  return finish_conv("conv_transpose", problem, region, tactic, std::move(packed_weights), shape.oc, shape.groups,
                     panel);
}

class ConvTranspose final : public CpuKernel {
 public:
  ConvTranspose(const Attrs& attrs, const ConvTransposeShape& shape, Isa isa)
      : binding_(attrs), kernel_(shape, read_epilogue(attrs), read_config(attrs), isa) {}
  void run(int, int worker, int workers, const Bindings& bindings) const override {
    kernel_.run(worker, workers, binding_.args(bindings));
  }

 private:
  ConvBinding binding_;
  ConvTransposeKernel kernel_;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  check_binding(attrs, shapes);
  const ConvTransposeShape shape =
      transpose_shape(attrs, shapes.inputs[static_cast<size_t>(attrs.integer("input"))].dims, shapes.outputs[0].dims);
  const char* reason = conv_transpose_refusal(shape);
  HONE_CHECK(reason == nullptr, "a transposed convolution in the plan cannot run: {}", reason);
  const ImageSize out = image_size(shapes.outputs[0].dims);
  HONE_CHECK(shape.ic % shape.groups == 0 && shape.oc % shape.groups == 0 && out.n == shape.n && out.c == shape.oc,
             "a transposed convolution in the plan gives {}, not {}", join_dims(shapes.outputs[0].dims),
             join_dims(std::vector{shape.n, shape.oc}));
  const ConvConfig config = read_config(attrs);
  HONE_CHECK(config.weights == DType::f32, "a transposed convolution in the plan keeps its weights as {}",
             name_of(config.weights));
  const int64_t panel = config.panel_channels(info.isa);
  require_weights(shapes, shape, panel);
  require_bias(attrs, shapes, shape.oc, shape.groups, panel);
  return std::make_shared<ConvTranspose>(attrs, shape, info.isa);
}

}  // namespace

const CpuTactic tactics::conv_transpose = {"conv_transpose", propose, compile, load};

}  // namespace hone::cpu
