// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/quant/byte_output.h"

#include <algorithm>

namespace hone::cpu {
namespace {

uint32_t bits_of(int64_t number) { return static_cast<uint32_t>(number); }

}  // namespace

void ByteOutput::end() {
  if (s_.epilogue.residual) e_.mov(e_.rsi, out_.arg(offsetof(TileArgs, residual)));
  const bool activates_early = s_.epilogue.residual_after_activation;
  for (int pixel = 0; pixel < s_.pixels; ++pixel)
    for (int vector = 0; vector < s_.vectors; ++vector) {
      const Vec x = out_.acc(pixel, vector);
      if (activates_early) activate(x);
      if (b_.rounding) {
        const Vec steps = steps_of(x, b_.rounding, step_bounds(b_.rounding));
        e_.round_to_nearest(steps);
        e_.vmulps(x, steps, e_.constant(b_.rounding.scale));
      }
      if (s_.epilogue.residual) add_residual(x, pixel, vector);
      if (!activates_early && !are_bounds(s_.epilogue.activation.kind)) activate(x);
      store(x, pixel, vector);
    }
  e_.vzeroupper();
  e_.ret();
}

void ByteOutput::activate(const Vec& x) {
  const auto spare = [&](int i) { return out_.spare(std::min(i, out_.spare_count() - 1)); };
  math_.activation(s_.epilogue.activation, x, spare(0), spare(1), spare(2));
}

ByteOutput::Vec ByteOutput::steps_of(const Vec& x, const Quantization& type, const StepBounds& bounds) {
  const Vec q = out_.spare(0);
  emit_clamped_steps(e_, q, x, out_.spare(1), type.scale, bounds);
  return q;
}

void ByteOutput::add_residual(const Vec& x, int pixel, int vector) {
  const Vec r = out_.spare(0);
  const auto from = out_.place(e_.rsi, pixel * s_.residual_pixel + out_.vector_offset(vector) / 4);
  memory_.load_integers(r, from, is_signed(b_.residual), out_.is_tail(vector));
  if (b_.residual.zero != 0) e_.vpsubd(r, r, e_.constant_bits(bits_of(b_.residual.zero)));
  e_.vcvtdq2ps(r, r);
  e_.vmulps(r, r, e_.constant(b_.residual.scale));
  e_.vaddps(x, x, r);
}

void ByteOutput::store(const Vec& x, int pixel, int vector) {
  const bool clamps = !s_.epilogue.residual_after_activation && are_bounds(s_.epilogue.activation.kind);
  const Vec q =
      steps_of(x, b_.result, clamps ? step_bounds_behind(s_.epilogue.activation, b_.result) : step_bounds(b_.result));
  e_.vcvtps2dq(q, q);
  if (b_.result.zero != 0) e_.vpaddd(q, q, e_.constant_bits(bits_of(b_.result.zero)));
  const auto to = out_.place(TileOutput::dst(), pixel * s_.dst_pixel + out_.vector_offset(vector) / 4);
  memory_.store_integers(to, q, out_.spare(1), is_signed(b_.result), out_.is_tail(vector));
}

}  // namespace hone::cpu
