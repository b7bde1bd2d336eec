// SPDX-License-Identifier: Apache-2.0
//
// Weights in the order in which the kernels read them: plain f32 that can be stored in a plan. A pure function of weights,
// shape and the two numbers `panel` (output channels of a panel, ConvConfig::panel_channels) and `depth` (ConvConfig::depth).
//
//   convolution  [group][panel][depth block][kh][kw][ic in block][panel channel]    from OIHW (O, I/groups, KH, KW)
//   GEMM         the same with kh = kw = 1: [panel][depth block][k][panel channel]  from [K, N] or [N, K]
//   depthwise    [channel block][kh][kw][block channel]                             from (C, 1, KH, KW)
//
// Output channels past the end of a group are zero. A bias is packed alike: [group][panel][panel channel].
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/conv/conv_kernel.h"

namespace hone::cpu {

size_t packed_conv_floats(const ConvShape& shape, int64_t panel);
void pack_conv_weights(const float* oihw, const ConvShape& shape, int64_t panel, int64_t depth, float* packed);

/// For convolution, GEMM (groups 1) and depthwise (groups 1, panel = channel block).
size_t packed_bias_floats(int64_t oc, int64_t groups, int64_t panel);
void pack_bias(const float* bias, int64_t oc, int64_t groups, int64_t panel, float* packed);

size_t packed_gemm_floats(int64_t n, int64_t k, int64_t panel);
/// `b` is [k][n] with rows of ldb elements, or [n][k] when transposed.
void pack_gemm_weights(const float* b, int64_t n, int64_t k, int64_t ldb, bool transposed, int64_t panel, int64_t depth,
                       float* packed);

size_t packed_depthwise_floats(int64_t channels, int64_t kh, int64_t kw, int64_t block);
void pack_depthwise_weights(const float* chw, int64_t channels, int64_t kh, int64_t kw, int64_t block, float* packed);

/// The equal parts into which `depth` at most divides `total`: what packing and kernels agree on.
int64_t depth_block_size(int64_t total, int64_t depth);

}  // namespace hone::cpu
