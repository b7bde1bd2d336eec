// SPDX-License-Identifier: Apache-2.0
//
// Exact sums of products of bytes over windows of an image, and what may follow the sums. The rows of a matrix are the pixels of an
// image of one axis, whose windows are one pixel.
//
// Weights are kept signed (unsigned ones less 128), A as the tile wants it: unsigned bytes (signed ones plus 128) or words. With
// zero points z of A and w of a column, both of the kept form, and A's border filled with z,
//
//     sum (a - z)(b - w) = sum a b + z (K w - sum b) - w sum a
//
// where the second term is what a column's sums begin with and the third, which few models have, needs the sums of A's windows.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/kernel.h"
#include "backends/cpu/matmul/matrix_tile_code.h"
#include "backends/cpu/quant/integer_tile.h"

namespace hone::cpu {

/// The spatial axes are those of the lists, the innermost last.
struct IntegerShape {
  int64_t images = 1, groups = 1;
  int64_t depth = 1, columns = 1;                  // channels of a group, of A and of the result
  Dims in, out, filter, strides, dilations, pads;  // pads: before each axis
  Layout layout = Layout::channels_last;           // of A: channels_last, or linear
  bool signed_a = false;
  /// Where windows are single pixels and only some of A's have one: images and spatial axes of A, and of what is kept of it, with the
  /// distances. The other axes are then those of what is kept. Empty: every pixel counts.
  Dims source = {}, kept = {}, apart = {};

  int64_t taps() const { return elements(filter); }
  /// Taps that follow each other.
  int64_t run() const { return groups == 1 && dilations.back() == 1 ? filter.back() : 1; }
  /// Elements of A that the windows along an axis span.
  int64_t span(size_t axis) const { return (out[axis] - 1) * strides[axis] + (filter[axis] - 1) * dilations[axis] + 1; }
};

struct IntegerConfig {
  static constexpr int kMostVectors = 4, kMostRows = 32;
  IntegerDot dot = IntegerDot::words;
  int64_t rows = 1, vectors = 1;
  static void fields(auto& self, auto& visit) {
    visit("dot", self.dot);
    visit("rows", self.rows, 1, kMostRows);
    visit("vectors", self.vectors, 1, kMostVectors);
  }
  int64_t panel(Isa isa) const { return vectors * lanes_of(isa); }
  /// Steps of a pixel of A, within a group.
  int64_t pixel_steps(const IntegerShape& shape) const { return (shape.depth + step_of(dot) - 1) / step_of(dot); }
  /// Steps of a run, which is taps that follow each other in memory: of tiles, whole rows of them. What a row has too many, of pixels
  /// that follow, meets weights of zero.
  int64_t run_steps(const IntegerShape& shape) const {
    const int64_t unit = dot == IntegerDot::tiles ? kTileRow / kStepBytes : 1;
    return (shape.run() * pixel_steps(shape) + unit - 1) / unit * unit;
  }
  int64_t steps(const IntegerShape& shape) const { return shape.taps() / shape.run() * run_steps(shape); }
  /// What the form in which A is multiplied adds to its elements.
  int64_t added(const IntegerShape& shape) const { return shape.signed_a && dot != IntegerDot::words ? 128 : 0; }
};
constexpr IntegerConfig kIntegerTiles{IntegerDot::tiles, kTilePixels, kTileChannels / lanes_of(Isa::avx512)};

/// On matrix tiles where channels fill them; and of one to four vectors, as many rows as there are registers for and divide a row
/// of the result evenly. `to_bytes`: the epilogue ends in bytes.
std::vector<IntegerConfig> integer_configs(const IntegerShape& shape, const EpilogueCode& epilogue, bool to_bytes,
                                           Isa isa, bool byte_dots);

/// What becomes of the sums, and where the operands are bound.
struct IntegerSums {
  int64_t input = 0;
  bool column_zeros = false;  // whether the weights have zero points in their signed form
  EpilogueCode epilogue;
  SumsCode sums;
};

/// The order of a kernel's constants; -1: there is none. Each has whole panels of every group.
struct IntegerConstants {
  int weights = 0;
  int base = 1;    // what sums begin with, where the zero point is known
  int leans = -1;  // K w - sum b, where it is not
  int zeros = -1, factor = -1, bias = -1;
  int count = 2;
  explicit IntegerConstants(const IntegerSums& sums);
};

/// The zero point as it is bound or known.
int64_t zero_point(const SumsCode& sums, bool is_signed, const Bindings& bindings);

/// Throws Error where the sizes of what is packed do not fit what is calculated with them.
void require_packing(const IntegerShape& shape, const IntegerConfig& config);
/// The same, or where the plan's tile does not fit the machine.
void require_integer_kernel(const IntegerShape& shape, const IntegerConfig& config, const IntegerSums& sums, Isa isa);

std::shared_ptr<const CpuKernel> make_integer_kernel(const IntegerShape& shape, const IntegerConfig& config,
                                                     const IntegerSums& sums, const KernelShapes& shapes, Isa isa);

}  // namespace hone::cpu
