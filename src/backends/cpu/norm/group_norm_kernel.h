// SPDX-License-Identifier: Apache-2.0
//
// The loops of normalizations that are not over the innermost axes, f32, compiled for every instruction set: sums and
// scaled rows of channels, and the response of a channel among its neighbours.
#pragma once

#include <cstdint>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

/// `rows` rows of `channels` floats, `step` apart; sums over the rows are added to `sums` (and of squared distances to `centres`).
struct ChannelSums {
  const float* x;
  int64_t rows, channels, step;
  const float* centres;  // null: plain sums
  double* sums;
};
/// y = (x - centre) * factor + shift. The mean is subtracted first: times a factor of 1/sqrt(epsilon) its rounding alone would be 1e-5 of y.
struct Affine {
  float centre, factor, shift;
};
/// The same for rows of channels, each with its own three.
struct ChannelScale {
  const float* x;
  float* y;
  int64_t rows, channels, step;
  const float *centres, *factors, *shifts;
};
/// One channel of LRN: y = x / (bias + factor * sum of squares over `neighbours` channels from `first`)^beta, for `count` floats.
struct ChannelResponse {
  const float *x, *first;
  float* y;
  int64_t neighbours, step, count;
  float factor, beta, bias;
};

struct GroupNormKernels {
  /// Sum of x, or of squared distances to `centre`, over a contiguous stretch.
  double (*sum)(const float* x, int64_t n);
  double (*distance)(const float* x, int64_t n, float centre);
  void (*scale)(const float* x, float* y, int64_t n, const Affine& affine);
  void (*channel_sums)(const ChannelSums&);
  void (*channel_scale)(const ChannelScale&);
  void (*channel_response)(const ChannelResponse&);
};

/// The kernels for an instruction set (at most the machine's).
GroupNormKernels group_norm_kernels(Isa isa);

}  // namespace hone::cpu
