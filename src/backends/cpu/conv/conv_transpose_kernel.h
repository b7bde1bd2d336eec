// SPDX-License-Identifier: Apache-2.0
//
// Transposed convolution, NHWC. Output pixels whose coordinates agree modulo the stride form a phase; each phase is an
// ordinary convolution of the input with every stride-th filter tap, written to every stride-th pixel. No scatter, no
// partial sums, and the epilogue stays fused.
#pragma once

#include "backends/cpu/conv/conv_kernel.h"

namespace hone::cpu {

struct ConvTransposeShape {
  int64_t n = 1, ic = 1, ih = 1, iw = 1, oc = 1, oh = 1, ow = 1, kh = 1, kw = 1;
  int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;  // dilation only with stride 1
  int64_t pad_top = 0, pad_left = 0;  // what the operator cuts off; the far side follows from oh and ow
  int64_t groups = 1;
  int64_t src_pixel_stride = 0, dst_pixel_stride = 0, residual_pixel_stride = 0;  // 0 means dense
};

/// Why this shape has no kernel, or nullptr.
const char* conv_transpose_refusal(const ConvTransposeShape& shape);

std::vector<ConvConfig> conv_transpose_candidates(const ConvTransposeShape& shape, Isa isa, int workers);

size_t packed_conv_transpose_floats(const ConvTransposeShape& shape, int64_t panel);
/// From ONNX's order (I, O/groups, KH, KW): the packed convolutions of all phases, one after the other. Bias: pack_bias.
void pack_conv_transpose_weights(const float* iohw, const ConvTransposeShape& shape, int64_t panel, int64_t depth,
                                 float* packed);

class ConvTransposeKernel {
 public:
  ConvTransposeKernel(const ConvTransposeShape& shape, const Epilogue& epilogue, const ConvConfig& config, Isa isa);
  void run(int worker, int workers, const ConvArgs& args) const noexcept;
  bool accumulates_in_dst() const;

 private:
  struct Phase {
    ConvKernel kernel;
    size_t weights;         // offset in the packed weights
    int64_t dst, residual;  // offset of the phase's first pixel
  };
  std::vector<Phase> phases_;
};

}  // namespace hone::cpu
