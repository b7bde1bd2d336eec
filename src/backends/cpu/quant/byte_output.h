// SPDX-License-Identifier: Apache-2.0
//
// The end of a tile whose scaled sums become bytes: an activation, a rounding to bytes and back, a residual in bytes, and the
// result's own rounding, all in registers and each step rounded as its meaning is.
#pragma once

#include <algorithm>

#include "backends/cpu/jit/byte_memory.h"
#include "backends/cpu/jit/tile_output.h"
#include "backends/cpu/quant/byte_rounding.h"

namespace hone::cpu {

struct ByteOutputSpec {
  Quantization rounding, residual, result;
  std::optional<StepSum> sum = std::nullopt;  // of the rounding's steps and the residual, where that is all there is
};
/// With the sum, where it can be used.
ByteOutputSpec byte_output_spec(const Quantization& rounding, const Quantization& residual, const Quantization& result,
                                const Epilogue& epilogue);

class ByteOutput {
 public:
  ByteOutput(Emitter& emitter, const OutputSpec& spec, const ByteOutputSpec& bytes, TileOutput& out);

  /// Everything behind the accumulators' floats, including the return. Clobbers rsi.
  void end();

 private:
  using Vec = Emitter::Vec;
  /// Whether rows are narrowed four vectors at a time, not one.
  bool joins() const { return e_.avx512() || (s_.tail == 0 && s_.vectors % 2 == 0); }
  int rows_together() const { return joins() ? std::max(1, 4 / s_.vectors) : 1; }
  /// Integers that narrowing makes bytes of, but for the zero point where rows are joined.
  void make_integers(const Vec& x, int pixel, int vector);
  void activate(const Vec& x);
  /// In spare(0); clobbers spare(1).
  Vec steps_of(const Vec& x, const StepQuotient& quotient, const StepBounds& bounds);
  void round_between(const Vec& x);
  Vec rounded_steps(const Vec& x);
  void add_steps(const Vec& x, int pixel, int vector);
  void add_residual(const Vec& x, int pixel, int vector);
  void load_residual(const Vec& r, int pixel, int vector);
  StepBounds result_bounds() const;

  void store(const Vec& x, int pixel, int vector);
  void store_joined(int pixel, int rows);
  void store_row(const Vec& bytes, int pixel, int row);

  Emitter& e_;
  const OutputSpec& s_;
  const ByteOutputSpec& b_;
  TileOutput& out_;
  VectorMath math_;
  ByteMemory memory_;
  StepQuotient rounding_, result_;
};

}  // namespace hone::cpu
