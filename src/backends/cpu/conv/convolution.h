// SPDX-License-Identifier: Apache-2.0
//
// What the convolution families share: reading the region, the parameters in the code, packing, binding.
#pragma once

#include <optional>

#include "backends/cpu/conv/conv_kernel.h"
#include "backends/cpu/tactic_table.h"
#include "regions/region_match.h"

namespace hone::cpu {

/// A convolution region that a generated kernel can take.
struct ConvRegion {
  RegionMatch match;
  int input = -1;  // the region input that is convolved
  Attrs attrs;     // filter, strides, pads, …, epilogue: what load() needs besides the tile
};

enum class Operands { f32, f32_or_bf16 };

/// Nothing when the region is not about `op` (Conv or ConvTranspose), or refused with a reason under `family`.
std::optional<ConvRegion> read_conv_region(const Problem& problem, const OpDef& op, std::string_view family,
                                           const CpuInfo& info, Candidates& out, Operands operands = Operands::f32);
/// The same when the tactic has been offered already.
ConvRegion conv_region(const Problem& problem, const OpDef& op, Operands operands = Operands::f32);

/// The convolution of an input of these sizes; a region of rank 3 is one of height 1.
ConvShape conv_shape(const Attrs& attrs, const Dims& input, Layout layout);
/// Throws Error when the plan's sizes contradict each other.
ConvShape checked_conv_shape(const Attrs& attrs, const KernelShapes& shapes, Operands operands = Operands::f32);
/// N, C, H, W of a tensor of rank 3 or 4.
struct ImageSize {
  int64_t n, c, h, w;
};
ImageSize image_size(const Dims& dims);
/// The concrete shape of the region's convolution input.
Dims input_dims(const Problem& problem, const ConvRegion& region);

/// Layouts of the tactic: the input in `input`, residual and result channels-last.
Tactic conv_tactic(std::string_view family, const Problem& problem, const ConvRegion& region, Layout input,
                   Attrs params);

void write_config(Attrs& attrs, const ConvConfig& config);
ConvConfig read_config(const Attrs& attrs);
/// Copies the entries of `from`, for building code out of region and tile.
void merge(Attrs& into, const Attrs& from);

/// The second half of every family's compile(): `weights` packed by the caller, then the bias in panels of `panel` of the `oc`
/// channels in `groups` groups, and the code with the tile's parameters and the instruction set.
Compiled finish_conv(std::string_view family, const Problem& problem, const ConvRegion& region, const Tactic& tactic,
                     Tensor weights, int64_t oc, int64_t groups, int64_t panel);

/// A bias in the panels that a kernel reads (pack.h).
Tensor packed_bias(const std::vector<float>& bias, int64_t oc, int64_t groups, int64_t panel);

/// Where a kernel's operands are bound.
struct ConvBinding {
  int input = 0, residual = -1;
  bool bias = false;
  explicit ConvBinding(const Attrs& attrs)
      : input(static_cast<int>(attrs.integer("input"))),
        residual(read_residual(attrs)),
        bias(attrs.integer("bias") != 0) {}
  ConvArgs args(const Bindings& bindings) const {
    const auto floats = [](const void* memory) { return static_cast<const float*>(memory); };
    return {floats(bindings.inputs[input]), floats(bindings.constants[0]),
            bias ? floats(bindings.constants[1]) : nullptr, residual >= 0 ? floats(bindings.inputs[residual]) : nullptr,
            static_cast<float*>(bindings.outputs[0])};
  }
};
/// What a plan has to bring of a bias, in panels of `panel` of the `oc` channels in `groups` groups.
void require_bias(const Attrs& attrs, const KernelShapes& shapes, int64_t oc, int64_t groups, int64_t panel);
/// Throws Error when an operand does not exist or has another type.
void check_binding(const Attrs& attrs, const KernelShapes& shapes, Operands operands = Operands::f32);

Tensor make_floats(size_t count, auto&& fill) {
  TensorBuilder builder(DType::f32, {static_cast<int64_t>(count)});
  fill(builder.data<float>().data());
  return builder.finish();
}

}  // namespace hone::cpu
