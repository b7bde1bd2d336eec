// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/quant/byte_output.h"

#include <algorithm>
#include <cmath>

namespace hone::cpu {
namespace {

uint32_t bits_of(int64_t number) { return static_cast<uint32_t>(number); }
uint32_t words_of(int64_t number) { return (bits_of(number) & 0xffff) * 0x10001; }

}  // namespace

ByteOutputSpec byte_output_spec(const Quantization& rounding, const Quantization& residual, const Quantization& result,
                                const Epilogue& epilogue) {
  ByteOutputSpec spec{rounding, residual, result};
  const bool is_sum = epilogue.residual && rounding && residual && result &&
                      (epilogue.residual_after_activation || are_bounds(epilogue.activation.kind));
  if (is_sum) spec.sum = step_sum(rounding, residual, result);
  return spec;
}

ByteOutput::ByteOutput(Emitter& emitter, const OutputSpec& spec, const ByteOutputSpec& bytes, TileOutput& out)
    : e_(emitter),
      s_(spec),
      b_(bytes),
      out_(out),
      math_(emitter),
      memory_(emitter),
      rounding_(bytes.rounding.scale),
      result_(bytes.result.scale) {}

void ByteOutput::end() {
  if (s_.epilogue.residual) e_.mov(e_.rsi, out_.arg(offsetof(TileArgs, residual)));
  if (const int bytes = s_.tail != 0 ? (s_.vectors - 1) * e_.lanes() + s_.tail : s_.vectors * e_.lanes(); e_.avx512()) {
    e_.mov(e_.rax, ~uint64_t{0} >> (64 - bytes));
    e_.kmovq(e_.k3, e_.rax);
  }
  for (int pixel = 0; pixel < s_.pixels; pixel += rows_together()) {
    const int rows = std::min(rows_together(), s_.pixels - pixel);
    for (int row = 0; row < rows; ++row)
      for (int vector = 0; vector < s_.vectors; ++vector) {
        make_integers(out_.acc(pixel + row, vector), pixel + row, vector);
        if (!joins()) store(out_.acc(pixel + row, vector), pixel + row, vector);
      }
    if (joins()) store_joined(pixel, rows);
  }
  e_.vzeroupper();
  e_.ret();
}

void ByteOutput::make_integers(const Vec& x, int pixel, int vector) {
  const bool activates_early = s_.epilogue.residual_after_activation;
  if (activates_early) activate(x);
  if (b_.sum) return add_steps(x, pixel, vector);
  if (b_.rounding) round_between(x);
  if (s_.epilogue.residual) add_residual(x, pixel, vector);
  if (!activates_early && !are_bounds(s_.epilogue.activation.kind)) activate(x);
  e_.vcvtps2dq(x, steps_of(x, result_, result_bounds()));
}

void ByteOutput::activate(const Vec& x) {
  const auto spare = [&](int i) { return out_.spare(std::min(i, out_.spare_count() - 1)); };
  math_.activation(s_.epilogue.activation, x, spare(0), spare(1), spare(2));
}

ByteOutput::Vec ByteOutput::steps_of(const Vec& x, const StepQuotient& quotient, const StepBounds& bounds) {
  const Vec q = out_.spare(0);
  emit_clamped_steps(e_, q, x, out_.spare(1), quotient, bounds);
  return q;
}

ByteOutput::Vec ByteOutput::rounded_steps(const Vec& x) {
  const Vec steps = steps_of(x, rounding_, step_bounds(b_.rounding));
  e_.round_to_nearest(steps);
  return steps;
}

void ByteOutput::round_between(const Vec& x) { e_.vmulps(x, rounded_steps(x), e_.constant(b_.rounding.scale)); }

void ByteOutput::load_residual(const Vec& r, int pixel, int vector) {
  const auto from = out_.place(e_.rsi, pixel * s_.residual_pixel + out_.vector_offset(vector) / 4);
  memory_.load_integers(r, from, is_signed(b_.residual), out_.is_tail(vector));
}

void ByteOutput::add_residual(const Vec& x, int pixel, int vector) {
  const Vec r = out_.spare(0);
  load_residual(r, pixel, vector);
  if (b_.residual.zero != 0) e_.vpsubd(r, r, e_.constant_bits(bits_of(b_.residual.zero)));
  e_.vcvtdq2ps(r, r);
  e_.vmulps(r, r, e_.constant(b_.residual.scale));
  e_.vaddps(x, x, r);
}

/// The sum is bounded, so that narrowing clamps it.
void ByteOutput::add_steps(const Vec& x, int pixel, int vector) {
  const Vec steps = rounded_steps(x), sum = out_.spare(1);
  load_residual(x, pixel, vector);
  e_.vcvtdq2ps(x, x);
  emit_step_sum(e_, sum, steps, x, *b_.sum);
  const StepBounds bounds = result_bounds(), all = step_bounds(b_.result);
  if (std::isfinite(bounds.low)) e_.vmaxps(sum, sum, e_.constant(bounds.low));
  if (!joins() || bounds.high < all.high) e_.vminps(sum, sum, e_.constant(bounds.high));
  e_.vcvtps2dq(x, sum);
}

StepBounds ByteOutput::result_bounds() const {
  const bool clamps = !s_.epilogue.residual_after_activation && are_bounds(s_.epilogue.activation.kind);
  const StepBounds bounds = clamps ? step_bounds_behind(s_.epilogue.activation, b_.result) : step_bounds(b_.result);
  return joins() ? saturating(bounds, b_.result) : bounds;
}

void ByteOutput::store(const Vec& x, int pixel, int vector) {
  if (b_.result.zero != 0) e_.vpaddd(x, x, e_.constant_bits(bits_of(b_.result.zero)));
  const auto to = out_.place(TileOutput::dst(), pixel * s_.dst_pixel + out_.vector_offset(vector) / 4);
  memory_.store_integers(to, x, out_.spare(1), is_signed(b_.result), out_.is_tail(vector));
}

/// Narrowing joins the 128-bit lanes of four vectors, so that lane l has its four bytes of each: one permutation of doublewords puts
/// them in a row.
void ByteOutput::store_joined(int pixel, int rows) {
  const int count = rows * s_.vectors, parts = e_.lanes() / 4;
  const auto slot = [&](int i) { return out_.acc(pixel, std::min(i, count - 1)); };  // rows follow each other
  const auto to_words = [&](const Vec& low, const Vec& high) {
    e_.vpackssdw(low, low, high);
    const std::vector<uint32_t> zero(static_cast<size_t>(e_.lanes()), words_of(b_.result.zero));
    if (b_.result.zero != 0) e_.vpaddsw(low, low, e_.constant_lanes(zero));
  };
  to_words(slot(0), slot(1));
  if (count > 2) to_words(slot(2), slot(3));
  const Vec bytes = slot(0), order = out_.spare(0), high = count > 2 ? slot(2) : bytes;
  if (is_signed(b_.result)) e_.vpacksswb(bytes, bytes, high);
  else e_.vpackuswb(bytes, bytes, high);
  std::vector<uint32_t> places;
  for (int i = 0; i < e_.lanes(); ++i) places.push_back(static_cast<uint32_t>(i % parts * 4 + i / parts));
  e_.vmovups(order, e_.constant_lanes(places));
  const Xbyak::Zmm wide(bytes.getIdx()), wide_order(order.getIdx());
  const Xbyak::Ymm narrow(bytes.getIdx()), narrow_order(order.getIdx());
  if (e_.avx512()) e_.vpermd(wide, wide_order, wide);
  else e_.vpermd(narrow, narrow_order, narrow);
  for (int row = 0; row < rows; ++row) store_row(bytes, pixel + row, row);
}

void ByteOutput::store_row(const Vec& bytes, int pixel, int row) {
  const auto to = out_.place(TileOutput::dst(), pixel * s_.dst_pixel);
  const Vec part = row == 0 ? bytes : out_.spare(0);
  const int parts = s_.vectors == 3 ? 4 : s_.vectors;
  if (!e_.avx512()) {
    if (row > 0) e_.vextracti128(Xbyak::Xmm(part.getIdx()), Xbyak::Ymm(bytes.getIdx()), 1);
    return parts == 4 ? e_.vmovups(e_.ptr[to], bytes) : e_.vmovups(e_.ptr[to], Xbyak::Xmm(part.getIdx()));
  }
  const Xbyak::Xmm x(part.getIdx());
  const Xbyak::Ymm y(part.getIdx());
  const auto index = static_cast<uint8_t>(row);
  if (row > 0 && parts == 2) e_.vextracti64x4(y, Xbyak::Zmm(bytes.getIdx()), index);
  if (row > 0 && parts == 1) e_.vextracti32x4(x, Xbyak::Zmm(bytes.getIdx()), index);
  const Vec stored = parts == 4 ? bytes : parts == 2 ? Vec(y) : Vec(x);
  if (s_.tail == 0 && s_.vectors != 3) e_.vmovups(e_.ptr[to], stored);
  else e_.vmovdqu8(e_.ptr[to] | e_.k3, stored);
}

}  // namespace hone::cpu
