// SPDX-License-Identifier: Apache-2.0
//
// The linear maps of Winograd's algorithm by Toom-Cook interpolation, and the code that applies them to vectors of channels.
#pragma once

#include <vector>

#include "backends/cpu/jit/tile_output.h"

namespace hone::cpu {

using Matrix = std::vector<std::vector<double>>;

/// y = out ((filter g) * (in d)) is the correlation of d (m + 2 values) with g (3 values), where it is fully inside.
struct WinogradMatrices {
  Matrix in, filter, out;  // n x n, n x 3, m x n, with n = m + 2
};

/// m is 2, 4 or 6.
WinogradMatrices winograd_matrices(int m);

/// Offsets in the code depend on the order.
struct TransformArgs {
  const float* src;  // input: first pixel of the patch; output: the tile's product at position 0
  float* dst;        // input: the tile's place at position 0; output: first pixel
  const float* residual;
  const float* bias;
  float* temporary;  // n * n vectors
};

/// Strides in bytes.
struct InputTransformSpec {
  int m = 4;
  int64_t channels = 0;  // results are padded with zeros to whole vectors
  int64_t src_row = 0, src_pixel = 0, position = 0;
};

/// One patch of n x n pixels, all channels: dst = in d in^T, one element per position.
size_t emit_input_transform(Emitter& emitter, const InputTransformSpec& spec);

struct OutputTransformSpec {
  int m = 4;
  int rows = 4, columns = 4;  // of the Winograd tile, inside the image
  int vectors = 1, tail = 0;
  int64_t position = 0;
  int64_t dst_row = 0, dst_pixel = 0, residual_row = 0, residual_pixel = 0;
  Epilogue epilogue;
};

/// The products of one Winograd tile, a few vectors of channels: out p out^T, bias, residual, activation, store.
size_t emit_output_transform(Emitter& emitter, const OutputTransformSpec& spec);

}  // namespace hone::cpu
