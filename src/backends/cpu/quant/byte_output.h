// SPDX-License-Identifier: Apache-2.0
//
// The end of a tile whose scaled sums become bytes: an activation, a rounding to bytes and back, a residual in bytes, and the
// result's own rounding, all in registers and each step rounded as its meaning is.
#pragma once

#include "backends/cpu/jit/byte_memory.h"
#include "backends/cpu/jit/tile_output.h"
#include "backends/cpu/quant/byte_rounding.h"

namespace hone::cpu {

struct ByteOutputSpec {
  Quantization rounding, residual, result;
};

class ByteOutput {
 public:
  ByteOutput(Emitter& emitter, const OutputSpec& spec, const ByteOutputSpec& bytes, TileOutput& out)
      : e_(emitter), s_(spec), b_(bytes), out_(out), math_(emitter), memory_(emitter) {}

  /// Everything behind the accumulators' floats, including the return. Clobbers rsi.
  void end();

 private:
  using Vec = Emitter::Vec;
  void activate(const Vec& x);
  /// In spare(0); clobbers spare(1).
  Vec steps_of(const Vec& x, const Quantization& type, const StepBounds& bounds);
  void add_residual(const Vec& x, int pixel, int vector);
  void store(const Vec& x, int pixel, int vector);

  Emitter& e_;
  const OutputSpec& s_;
  const ByteOutputSpec& b_;
  TileOutput& out_;
  VectorMath math_;
  ByteMemory memory_;
};

}  // namespace hone::cpu
