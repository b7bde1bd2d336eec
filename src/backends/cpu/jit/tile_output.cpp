// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/jit/tile_output.h"

#include <algorithm>

#include "base/error.h"

namespace hone::cpu {
namespace {

/// Few enough instructions to be unrolled over the whole tile.
bool is_light(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::none:
    case ActivationKind::relu:
    case ActivationKind::clip:
    case ActivationKind::leaky_relu:
    case ActivationKind::hard_sigmoid:
    case ActivationKind::hard_swish: return true;
    case ActivationKind::sigmoid:
    case ActivationKind::silu:
    case ActivationKind::tanh:
    case ActivationKind::gelu:
    case ActivationKind::gelu_tanh: return false;
  }
  return false;
}

int displacement(int64_t bytes) {
  HONE_ASSERT(bytes == static_cast<int32_t>(bytes), "{} bytes do not fit a displacement", bytes);
  return static_cast<int>(bytes);
}

}  // namespace

bool ends_through_memory(Isa isa, int pixels, int vectors, const Epilogue& epilogue, DType dst) {
  if (dst == DType::bf16) return false;
  const ActivationKind kind = epilogue.activation.kind;
  return !is_light(kind) || VectorMath::scratch_of(kind) > registers_of(isa) - pixels * vectors;
}

Xbyak::Address TileOutput::at(const Reg64& base, int64_t offset) const { return e_.ptr[base + displacement(offset)]; }
Xbyak::RegExp TileOutput::place(const Reg64& base, int64_t offset) const { return base + displacement(offset); }
Xbyak::Address TileOutput::broadcast_at(const Reg64& base, int64_t offset) const {
  return e_.zword_b[base + displacement(offset)];
}

void TileOutput::add(const Reg64& reg, int64_t bytes) {
  if (bytes) e_.add(reg, displacement(bytes));
}

void TileOutput::begin() {
  HONE_ASSERT(!narrow() || (!s_.blocked && spare_count() >= kNarrowSpares), "{}x{}", s_.pixels, s_.vectors);
  HONE_ASSERT(s_.epilogue.scale == 1.0f || !(s_.epilogue.bias || s_.blocked), "a scaled sum starts from zero");
  e_.mov(dst(), arg(offsetof(TileArgs, dst)));
  e_.set_tail(s_.tail);
  Xbyak::Label fresh, done;
  if (s_.blocked) {
    e_.test(e_.qword[args() + static_cast<int>(offsetof(TileArgs, flags))], kFirstBlock);
    e_.jnz(fresh, e_.T_NEAR);
    for_each_output([&](int pixel, int vector) { load(acc(pixel, vector), dst(), s_.dst_pixel, pixel, vector); });
    e_.jmp(done, e_.T_NEAR);
    e_.L(fresh);
  }
  if (s_.epilogue.bias) {
    e_.mov(e_.rax, arg(offsetof(TileArgs, bias)));
    for (int vector = 0; vector < s_.vectors; ++vector) {
      e_.load(acc(0, vector), at(e_.rax, vector_offset(vector)));  // packed: padded to whole vectors
      for (int pixel = 1; pixel < s_.pixels; ++pixel) e_.vmovaps(acc(pixel, vector), acc(0, vector));
    }
  } else {
    for_each_output([&](int pixel, int vector) { e_.zero(acc(pixel, vector)); });
  }
  e_.L(done);
}

void TileOutput::load(const Vec& x, const Reg64& base, int64_t pixel_stride, int pixel, int vector) {
  const auto from = at(base, pixel * pixel_stride + vector_offset(vector));
  if (is_tail(vector)) {
    e_.load_tail(x, from, spare(0));
  } else {
    e_.load(x, from);
  }
}

void TileOutput::store(const Vec& x, int pixel, int vector) {
  if (narrow()) {
    const auto to = place(dst(), pixel * s_.dst_pixel + tensor_offset(vector));
    if (is_tail(vector)) bf16_.store_tail(to, x, spare(0), spare(1));
    else bf16_.store(to, x, spare(0), spare(1));
    return;
  }
  const auto to = at(dst(), pixel * s_.dst_pixel + vector_offset(vector));
  if (is_tail(vector)) {
    e_.store_tail(to, x, spare(0));
  } else {
    e_.store(to, x);
  }
}

void TileOutput::end() {
  Xbyak::Label last, done;
  if (s_.blocked) {
    e_.test(e_.qword[args() + static_cast<int>(offsetof(TileArgs, flags))], kLastBlock);
    e_.jnz(last, e_.T_NEAR);
    for_each_output([&](int pixel, int vector) { store(acc(pixel, vector), pixel, vector); });
    e_.jmp(done, e_.T_NEAR);
    e_.L(last);
  }
  if (s_.epilogue.residual) e_.mov(residual(), arg(offsetof(TileArgs, residual)));
  if (s_.epilogue.scale != 1.0f) {
    e_.load_constant(spare(0), s_.epilogue.scale);
    for_each_output([&](int pixel, int vector) { e_.vmulps(acc(pixel, vector), acc(pixel, vector), spare(0)); });
  }
  if (ends_through_memory(e_.isa(), s_.pixels, s_.vectors, s_.epilogue, s_.type)) {
    end_through_memory();
  } else {
    end_in_registers();
  }
  e_.L(done);
  e_.vzeroupper();
  e_.ret();
}

void TileOutput::add_residual(const Vec& x, int pixel, int vector, const Vec& scratch, const Vec& mask) {
  if (narrow()) {
    const auto from = place(residual(), pixel * s_.residual_pixel + tensor_offset(vector));
    if (is_tail(vector)) bf16_.load_tail(scratch, from);
    else bf16_.load(scratch, from);
    return e_.vaddps(x, x, scratch);
  }
  const auto from = at(residual(), pixel * s_.residual_pixel + vector_offset(vector));
  if (!is_tail(vector)) {
    e_.vaddps(x, x, from);
  } else if (e_.avx512()) {
    e_.vaddps(x | e_.k1, x, from);
  } else {
    e_.load_tail(scratch, from, mask);
    e_.vaddps(x, x, scratch);
  }
}

void TileOutput::end_in_registers() {
  const bool before = s_.epilogue.residual && !s_.epilogue.residual_after_activation;
  const bool after = s_.epilogue.residual && s_.epilogue.residual_after_activation;
  for_each_output([&](int pixel, int vector) {
    const Vec x = acc(pixel, vector);
    // A spare register may be missing; scratch_of() has been checked, so unused arguments are harmless.
    const Vec s0 = spare(0), s1 = spare(std::min(1, spare_count() - 1)), s2 = spare(std::min(2, spare_count() - 1));
    if (before) add_residual(x, pixel, vector, s0, s0);
    math_.activation(s_.epilogue.activation, x, s0, s1, s2);
    if (after) add_residual(x, pixel, vector, s0, s0);
    store(x, pixel, vector);
  });
}

/// Activations with long formulas: store the sums, then loop over the pixels with all registers free. The tile is in L1,
/// and the loop's iterations overlap.
void TileOutput::end_through_memory() {
  const bool before = s_.epilogue.residual && !s_.epilogue.residual_after_activation;
  const bool after = s_.epilogue.residual && s_.epilogue.residual_after_activation;
  for_each_output([&](int pixel, int vector) {
    if (before) add_residual(acc(pixel, vector), pixel, vector, spare(0), spare(0));
    store(acc(pixel, vector), pixel, vector);
  });
  const Vec mask = e_.vec(15);
  Xbyak::Label loop;
  e_.mov(counter().cvt32(), s_.pixels);
  e_.L(loop);
  for (int vector = 0; vector < s_.vectors; ++vector) {
    const int base = (vector % 3) * 5;
    const Vec x = e_.vec(base), s0 = e_.vec(base + 1), s1 = e_.vec(base + 2), s2 = e_.vec(base + 3),
              s3 = e_.vec(base + 4);
    const auto where = at(dst(), vector_offset(vector));
    if (is_tail(vector)) {
      e_.load_tail(x, where, mask);
    } else {
      e_.load(x, where);
    }
    math_.activation(s_.epilogue.activation, x, s0, s1, s2);
    if (after) add_residual(x, 0, vector, s3, mask);
    if (is_tail(vector)) {
      e_.store_tail(where, x, mask);
    } else {
      e_.store(where, x);
    }
  }
  add(dst(), s_.dst_pixel);
  if (after) add(residual(), s_.residual_pixel);
  e_.dec(counter().cvt32());
  e_.jnz(loop, e_.T_NEAR);
}

}  // namespace hone::cpu
