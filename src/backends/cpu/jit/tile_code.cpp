// SPDX-License-Identifier: Apache-2.0
//
// Register plan: accumulators first, then as many weight vectors as fit, then at least one register for the broadcast
// element. Weight vectors that do not fit are read as memory operands (they are in L1 by then). A tile of one vector on
// AVX-512 uses embedded broadcasts instead, a tile of one pixel reads its weights as memory operands.

#include "backends/cpu/jit/tile_code.h"

#include <algorithm>
#include <cstddef>

#include "backends/cpu/jit/vector_math.h"
#include "base/error.h"

namespace hone::cpu {
namespace {

using Xbyak::Reg64;

class TileEmitter {
 public:
  using Vec = Emitter::Vec;

  TileEmitter(Emitter& emitter, const TileSpec& spec) : e_(emitter), s_(spec), math_(emitter) {
    accumulators_ = s_.pixels * s_.vectors;
    const int spare = e_.registers() - accumulators_;
    HONE_ASSERT(tile_fits(e_.isa(), s_.pixels, s_.vectors), "{}x{}", s_.pixels, s_.vectors);
    embedded_ = e_.avx512() && s_.vectors == 1 && s_.pixels > 1;
    memory_weights_ = s_.pixels == 1 && !s_.weights_in_place;
    weight_registers_ = memory_weights_ ? 0 : std::min(s_.vectors, spare - 1);
    HONE_ASSERT(s_.epilogue.scale == 1.0f || !s_.epilogue.bias, "scaled sum with a bias");
    if (s_.weights_in_place && s_.tail) HONE_ASSERT(weight_registers_ == s_.vectors, "in-place weights need registers");
  }

  size_t emit() {
    e_.align(64);
    const size_t offset = e_.getSize();
    e_.mov(src_row_, arg(offsetof(TileArgs, src)));
    e_.mov(weights_row_, arg(offsetof(TileArgs, weights)));
    e_.mov(rows_, arg(offsetof(TileArgs, rows)));
    e_.mov(dst_, arg(offsetof(TileArgs, dst)));
    if (s_.prefetch_lines) e_.mov(prefetch_, arg(offsetof(TileArgs, prefetch)));
    e_.set_tail(s_.tail);
    initialise();
    reduce();
    finish();
    e_.vzeroupper();
    e_.ret();
    return offset;
  }

 private:
  Xbyak::Address arg(size_t offset) const { return e_.qword[args_ + static_cast<int>(offset)]; }
  Vec acc(int pixel, int vector) const { return e_.vec(pixel * s_.vectors + vector); }
  Vec weight(int vector) const { return e_.vec(accumulators_ + vector); }
  /// Registers beside the accumulators; all of them are free outside of the reduction.
  Vec spare(int index) const { return e_.vec(accumulators_ + index); }
  int spare_count() const { return e_.registers() - accumulators_; }
  bool is_tail(int vector) const { return s_.tail != 0 && vector == s_.vectors - 1; }
  int64_t vector_offset(int vector) const { return int64_t{vector} * e_.vector_bytes(); }
  Xbyak::Address at(const Reg64& base, int64_t offset) const { return e_.ptr[base + static_cast<int>(offset)]; }

  // ── start: bias, zero, or what an earlier block of the sum left in dst ──────────────────────────────────────────────

  void initialise() {
    Xbyak::Label fresh, done;
    if (s_.blocked) {
      e_.test(e_.qword[args_ + static_cast<int>(offsetof(TileArgs, flags))], kFirstBlock);
      e_.jnz(fresh, e_.T_NEAR);
      for_each_output([&](int pixel, int vector) { load(acc(pixel, vector), dst_, s_.dst_pixel, pixel, vector); });
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

  template <typename Body>
  void for_each_output(Body&& body) {
    for (int pixel = 0; pixel < s_.pixels; ++pixel)
      for (int vector = 0; vector < s_.vectors; ++vector) body(pixel, vector);
  }

  void load(const Vec& x, const Reg64& base, int64_t pixel_stride, int pixel, int vector) {
    const auto from = at(base, pixel * pixel_stride + vector_offset(vector));
    if (is_tail(vector)) {
      e_.load_tail(x, from, spare(0));
    } else {
      e_.load(x, from);
    }
  }

  void store(const Vec& x, int pixel, int vector) {
    const auto to = at(dst_, pixel * s_.dst_pixel + vector_offset(vector));
    if (is_tail(vector)) {
      e_.store_tail(to, x, spare(0));
    } else {
      e_.store(to, x);
    }
  }

  // ── the sum ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  void reduce() {
    const bool any = std::any_of(s_.taps.begin(), s_.taps.end(), [](const Tap& tap) { return tap.begin < tap.end; });
    if (!any || s_.depth == 0) return;
    Xbyak::Label row, done;
    e_.test(rows_, rows_);
    e_.jz(done, e_.T_NEAR);
    e_.align(32);
    e_.L(row);
    for (const Tap& tap : s_.taps)
      if (tap.begin < tap.end) reduce_tap(tap);
    add(src_row_, s_.src_row);
    add(weights_row_, s_.weights_row);
    e_.dec(rows_);
    e_.jnz(row, e_.T_NEAR);
    e_.L(done);
  }

  void add(const Reg64& reg, int64_t bytes) {
    HONE_ASSERT(bytes == static_cast<int32_t>(bytes), "{} bytes do not fit a displacement", bytes);
    if (bytes) e_.add(reg, static_cast<int32_t>(bytes));
  }

  void reduce_tap(const Tap& tap) {
    // About 200 instructions per step keep the loop small against the instruction cache; filters with many taps use less.
    const int step_cost = s_.pixels * (s_.vectors + 1) + s_.vectors;
    const int budget = s_.taps.size() > 5 ? 100 : 200;
    const int unroll = static_cast<int>(std::clamp<int64_t>(budget / step_cost, 1, 8));
    int64_t steps = s_.depth / unroll;
    int64_t rest = s_.depth % unroll;
    const bool straight = s_.depth <= std::max(unroll, s_.taps.size() > 5 ? 3 : 4);
    if (straight) {
      steps = 0;
      rest = s_.depth;
    }
    e_.lea(src_, at(src_row_, tap.src));
    e_.lea(weights_, at(weights_row_, tap.weights));
    if (steps > 0) {
      Xbyak::Label loop;
      e_.mov(counter_.cvt32(), static_cast<uint32_t>(steps));
      e_.align(32);
      e_.L(loop);
      for (int k = 0; k < unroll; ++k) multiply(tap, k);
      prefetch();
      add(src_, unroll * s_.src_channel);
      add(weights_, unroll * s_.weights_channel);
      e_.dec(counter_.cvt32());
      e_.jnz(loop, e_.T_NEAR);
    }
    for (int k = 0; k < rest; ++k) multiply(tap, k);
    if (straight) prefetch();
  }

  void prefetch() {
    for (int line = 0; line < s_.prefetch_lines; ++line) e_.prefetcht1(e_.ptr[prefetch_ + 64 * line]);
    if (s_.prefetch_lines) e_.add(prefetch_, 64 * s_.prefetch_lines);
  }

  Xbyak::Address element(int pixel, int k) const { return at(src_, pixel * s_.src_pixel + k * s_.src_channel); }
  Xbyak::Address weight_at(int vector, int k) const {
    return at(weights_, k * s_.weights_channel + vector_offset(vector));
  }

  void load_weight(int vector, int k) {
    if (s_.weights_in_place && is_tail(vector)) {
      e_.load_tail(weight(vector), weight_at(vector, k), weight(vector));
    } else {
      e_.load(weight(vector), weight_at(vector, k));
    }
  }

  /// One input channel: every pixel's element times every weight vector.
  void multiply(const Tap& tap, int k) {
    for (int vector = 0; vector < weight_registers_; ++vector) load_weight(vector, k);
    if (embedded_) {
      for (int pixel = tap.begin; pixel < tap.end; ++pixel)
        e_.vfmadd231ps(acc(pixel, 0), weight(0), e_.zword_b[src_ + static_cast<int>(pixel * s_.src_pixel + k * s_.src_channel)]);
      return;
    }
    const int elements = e_.registers() - accumulators_ - weight_registers_;  // registers to rotate through
    for (int pixel = tap.begin; pixel < tap.end; ++pixel) {
      const Vec x = e_.vec(accumulators_ + weight_registers_ + pixel % elements);
      e_.broadcast(x, element(pixel, k));
      for (int vector = 0; vector < s_.vectors; ++vector) {
        if (vector < weight_registers_) {
          e_.vfmadd231ps(acc(pixel, vector), x, weight(vector));
        } else {
          e_.vfmadd231ps(acc(pixel, vector), x, weight_at(vector, k));
        }
      }
    }
  }

  // ── end: residual, activation, store ────────────────────────────────────────────────────────────────────────────────

  void finish() {
    Xbyak::Label last, done;
    if (s_.blocked) {
      e_.test(e_.qword[args_ + static_cast<int>(offsetof(TileArgs, flags))], kLastBlock);
      e_.jnz(last, e_.T_NEAR);
      for_each_output([&](int pixel, int vector) { store(acc(pixel, vector), pixel, vector); });
      e_.jmp(done, e_.T_NEAR);
      e_.L(last);
    }
    if (s_.epilogue.residual) e_.mov(residual_, arg(offsetof(TileArgs, residual)));
    if (s_.epilogue.scale != 1.0f) {
      e_.load_constant(spare(0), s_.epilogue.scale);
      for_each_output([&](int pixel, int vector) { e_.vmulps(acc(pixel, vector), acc(pixel, vector), spare(0)); });
    }
    const ActivationKind kind = s_.epilogue.activation.kind;
    if (is_light(kind) && VectorMath::scratch_of(kind) <= spare_count()) {
      finish_in_registers();
    } else {
      finish_through_memory();
    }
    e_.L(done);
  }

  static bool is_light(ActivationKind kind) {
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

  void add_residual(const Vec& x, int pixel, int vector, const Vec& scratch, const Vec& mask) {
    const auto from = at(residual_, pixel * s_.residual_pixel + vector_offset(vector));
    if (!is_tail(vector)) {
      e_.vaddps(x, x, from);
    } else if (e_.avx512()) {
      e_.vaddps(x | e_.k1, x, from);
    } else {
      e_.load_tail(scratch, from, mask);
      e_.vaddps(x, x, scratch);
    }
  }

  void finish_in_registers() {
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
  void finish_through_memory() {
    const bool before = s_.epilogue.residual && !s_.epilogue.residual_after_activation;
    const bool after = s_.epilogue.residual && s_.epilogue.residual_after_activation;
    for_each_output([&](int pixel, int vector) {
      if (before) add_residual(acc(pixel, vector), pixel, vector, spare(0), spare(0));
      store(acc(pixel, vector), pixel, vector);
    });
    const Vec mask = e_.vec(15);
    Xbyak::Label loop;
    e_.mov(counter_.cvt32(), s_.pixels);
    e_.L(loop);
    for (int vector = 0; vector < s_.vectors; ++vector) {
      const int base = (vector % 3) * 5;
      const Vec x = e_.vec(base), s0 = e_.vec(base + 1), s1 = e_.vec(base + 2), s2 = e_.vec(base + 3), s3 = e_.vec(base + 4);
      const auto where = at(dst_, vector_offset(vector));
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
    add(dst_, s_.dst_pixel);
    if (after) add(residual_, s_.residual_pixel);
    e_.dec(counter_.cvt32());
    e_.jnz(loop, e_.T_NEAR);
  }

  Emitter& e_;
  const TileSpec& s_;
  VectorMath math_;
  int accumulators_ = 0, weight_registers_ = 0;
  bool embedded_ = false, memory_weights_ = false;

  // All caller-saved in the System V convention, so that nothing needs to be pushed.
  const Reg64 args_{Xbyak::Operand::RDI}, src_row_{Xbyak::Operand::RSI}, weights_row_{Xbyak::Operand::RDX},
      rows_{Xbyak::Operand::RCX}, src_{Xbyak::Operand::RAX}, weights_{Xbyak::Operand::R8}, counter_{Xbyak::Operand::R9},
      dst_{Xbyak::Operand::R10}, prefetch_{Xbyak::Operand::R11}, residual_{Xbyak::Operand::RSI};
};

}  // namespace

bool tile_fits(Isa isa, int pixels, int vectors) {
  if (pixels < 1 || vectors < 1) return false;
  const int spare = registers_of(isa) - pixels * vectors;
  if (pixels == 1) return spare >= 3;
  return spare >= (vectors == 1 && isa == Isa::avx512 ? 1 : 2);
}

size_t emit_tile(Emitter& emitter, const TileSpec& spec) { return TileEmitter(emitter, spec).emit(); }

}  // namespace hone::cpu
