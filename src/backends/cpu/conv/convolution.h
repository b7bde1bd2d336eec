// SPDX-License-Identifier: Apache-2.0
//
// What the families on the convolution's loops share, matmuls with constant weights included: the code of a kernel, packing,
// binding.
#pragma once

#include <optional>

#include "backends/cpu/conv/conv_kernel.h"
#include "backends/cpu/family.h"
#include "regions/conv_region.h"

namespace hone::cpu {

/// A convolution and the register tile that computes it.
template <typename Config>
struct TiledConv {
  ConvCode conv;
  Config config;
  static void fields(auto& self, auto& visit) {
    ConvCode::fields(self.conv, visit);
    Config::fields(self.config, visit);
  }
};

enum class Operands { f32, f32_or_bf16 };

/// Nothing when the region is not about `op` (Conv or ConvTranspose), or refused with a reason under `family`.
std::optional<ConvRegion> offered_conv_region(const Problem& problem, const OpDef& op, std::string_view family,
                                              Candidates& out, Operands operands = Operands::f32);

/// The convolution of an input of these sizes; a region of rank 3 is one of height 1.
ConvShape conv_shape(const ConvCode& code, const Dims& input, Layout layout);
/// The same at the sizes of a problem that was offered.
ConvShape conv_shape(const ConvRegion& region, Layout layout);
/// Throws Error when the plan's sizes or types contradict each other.
ConvShape checked_conv_shape(const ConvCode& code, const KernelShapes& shapes, Operands operands = Operands::f32);
/// N, C, H, W of a tensor of rank 3 or 4.
struct ImageSize {
  int64_t n, c, h, w;
};
ImageSize image_size(const Dims& dims);

/// Layouts of the tactic: the input in `input`, residual and result channels-last.
Tactic conv_tactic(std::string_view family, const Problem& problem, const ConvRegion& region, Layout input,
                   Attrs params);

/// The constants of a kernel: its packed weights, then the bias in panels of `panel` of the `oc` channels in `groups` groups.
std::vector<Tensor> with_packed_bias(Tensor weights, const std::vector<float>& bias, int64_t oc, int64_t groups,
                                     int64_t panel);
/// The same as a plan has to bring them.
std::vector<ConstantSpec> with_packed_bias(ConstantSpec weights, const EpilogueCode& epilogue, int64_t oc,
                                           int64_t groups, int64_t panel);

/// Where a kernel's operands are bound.
struct ConvBinding {
  int64_t input = 0, residual = -1;
  bool bias = false;
  ConvBinding(int64_t source, const EpilogueCode& epilogue)
      : input(source), residual(epilogue.residual), bias(epilogue.bias) {}
  ConvArgs args(const Bindings& bindings) const {
    const auto floats = [](const void* memory) { return static_cast<const float*>(memory); };
    const auto in = [&](int64_t i) { return floats(bindings.inputs[static_cast<size_t>(i)]); };
    return {in(input), floats(bindings.constants[0]), bias ? floats(bindings.constants[1]) : nullptr,
            residual >= 0 ? in(residual) : nullptr, static_cast<float*>(bindings.outputs[0])};
  }
};

/// A generated kernel, and where its operands are bound.
template <typename TileKernel>
class BoundConv final : public CpuKernel {
 public:
  template <typename Code, typename Shape, typename... Machine>
  BoundConv(const Code& code, const Shape& shape, const Machine&... machine)
      : binding_(code.conv.input, code.conv.epilogue),
        kernel_(shape, code.conv.epilogue.epilogue(), code.config, machine...) {}
  void run(int, int worker, int workers, const Bindings& bindings) const override {
    kernel_.run(worker, workers, binding_.args(bindings));
  }

 private:
  ConvBinding binding_;
  TileKernel kernel_;
};

/// Throws Error where the instruction set cannot widen weights that are kept like this.
void require_widening(const ConvConfig& config, Isa isa);

Tensor make_floats(size_t count, auto&& fill) {
  TensorBuilder builder(DType::f32, {static_cast<int64_t>(count)});
  fill(builder.data<float>().data());
  return builder.finish();
}

}  // namespace hone::cpu
