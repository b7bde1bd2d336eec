// SPDX-License-Identifier: Apache-2.0
//
// Register plan: accumulators first, then as many weight vectors as fit, then at least one register for the broadcast
// element. Weight vectors that do not fit are memory operands (in L1 after the first pixel). A tile of one vector on AVX-512
// uses embedded broadcasts instead, a tile of one pixel reads all its weights as memory operands. Weights of 16 bits are
// widened into registers, all of them.

#include "backends/cpu/jit/tile_code.h"

#include <algorithm>

#include "backends/cpu/jit/bf16_memory.h"
#include "base/error.h"

namespace hone::cpu {
namespace {

using Xbyak::Reg64;

constexpr size_t kUnrolledTaps = 11;

class TileEmitter {
 public:
  using Vec = Emitter::Vec;

  TileEmitter(Emitter& emitter, const TileSpec& spec) : e_(emitter), s_(spec), out_(emitter, spec) {
    HONE_ASSERT(tile_fits(e_.isa(), s_.pixels, s_.vectors), "{}x{}", s_.pixels, s_.vectors);
    embedded_ = e_.avx512() && s_.vectors == 1 && s_.pixels > 1;
    const bool memory_weights = s_.pixels == 1 && !s_.weights_in_place;
    weight_registers_ = memory_weights ? 0 : std::min(s_.vectors, out_.spare_count() - 1);
    if (narrow()) {
      HONE_ASSERT(tile_fits_narrow(e_.isa(), s_.pixels, s_.vectors), "{}x{}", s_.pixels, s_.vectors);
      weight_registers_ = s_.vectors;
    }
  }

  size_t emit() {
    e_.align(64);
    const size_t offset = e_.getSize();
    out_.begin();
    e_.mov(src_row_, out_.arg(offsetof(TileArgs, src)));
    e_.mov(weights_row_, out_.arg(offsetof(TileArgs, weights)));
    e_.mov(rows_, out_.arg(offsetof(TileArgs, rows)));
    if (s_.prefetch_lines) e_.mov(prefetch_, out_.arg(offsetof(TileArgs, prefetch)));
    reduce();
    out_.end();
    return offset;
  }

 private:
  /// The last vectors have registers: a partial one must not be a memory operand.
  bool in_register(int vector) const { return vector >= s_.vectors - weight_registers_; }
  Vec weight(int vector) const { return out_.spare(vector - (s_.vectors - weight_registers_)); }

  void reduce() {
    const bool any = std::any_of(s_.taps.begin(), s_.taps.end(), [](const Tap& tap) { return tap.begin < tap.end; });
    if (!any || s_.depth == 0) return;
    Xbyak::Label row, done;
    e_.test(rows_, rows_);
    e_.jz(done, e_.T_NEAR);
    e_.align(32);
    e_.L(row);
    if (s_.taps.size() <= kUnrolledTaps) {
      for (const Tap& tap : s_.taps)
        if (tap.begin < tap.end) reduce_tap(tap);
    } else {
      reduce_runs();
    }
    out_.add(src_row_, s_.src_row);
    out_.add(weights_row_, s_.weights_row);
    e_.dec(rows_);
    e_.jnz(row, e_.T_NEAR);
    e_.L(done);
  }

  /// Wide filters: neighbouring taps that the same pixels use become one loop. Taps are evenly spaced.
  void reduce_runs() {
    const int64_t src_step = s_.taps[1].src - s_.taps[0].src, weights_step = s_.taps[1].weights - s_.taps[0].weights;
    for (size_t first = 0; first < s_.taps.size();) {
      size_t last = first + 1;
      const auto same = [&](const Tap& a, const Tap& b) { return a.begin == b.begin && a.end == b.end; };
      while (last < s_.taps.size() && same(s_.taps[last], s_.taps[first])) ++last;
      const auto count = static_cast<int64_t>(last - first);
      if (s_.taps[first].begin < s_.taps[first].end) {
        Xbyak::Label loop;
        e_.push(e_.rbx);
        e_.mov(e_.ebx, static_cast<uint32_t>(count));
        e_.L(loop);
        reduce_tap(s_.taps[first]);
        out_.add(src_row_, src_step);
        out_.add(weights_row_, weights_step);
        e_.dec(e_.ebx);
        e_.jnz(loop, e_.T_NEAR);
        e_.pop(e_.rbx);
        out_.add(src_row_, -count * src_step);
        out_.add(weights_row_, -count * weights_step);
      }
      first = last;
    }
  }

  void reduce_tap(const Tap& tap) {
    const int unroll = tile_unroll(s_.pixels, s_.vectors, s_.taps.size());
    int64_t steps = s_.depth / unroll;
    int64_t rest = s_.depth % unroll;
    const bool straight = s_.depth <= std::max(unroll, s_.taps.size() > 5 ? 3 : 4);
    if (straight) {
      steps = 0;
      rest = s_.depth;
    }
    e_.lea(src_, out_.at(src_row_, tap.src));
    e_.lea(weights_, out_.at(weights_row_, tap.weights));
    if (steps > 0) {
      Xbyak::Label loop;
      e_.mov(counter_.cvt32(), static_cast<uint32_t>(steps));
      e_.align(32);
      e_.L(loop);
      for (int k = 0; k < unroll; ++k) multiply(tap, k);
      prefetch();
      out_.add(src_, unroll * s_.src_channel);
      out_.add(weights_, unroll * s_.weights_channel);
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

  Xbyak::Address element(int pixel, int k) const { return out_.at(src_, pixel * s_.src_pixel + k * s_.src_channel); }
  Xbyak::Address weight_at(int vector, int k) const { return out_.at(weights_, weight_offset(vector, k)); }
  int64_t weight_offset(int vector, int k) const {
    return k * s_.weights_channel + out_.vector_offset(vector) / (narrow() ? 2 : 1);
  }
  bool narrow() const { return s_.weights != DType::f32; }

  void load_weight(int vector, int k) {
    if (s_.weights == DType::bf16) {
      Bf16Memory(e_).load(weight(vector), weights_ + weight_offset(vector, k));
    } else if (s_.weights == DType::f16) {
      e_.vcvtph2ps(weight(vector), weight_at(vector, k));
    } else if (s_.weights_in_place && out_.is_tail(vector)) {
      e_.load_tail(weight(vector), weight_at(vector, k), weight(vector));
    } else {
      e_.load(weight(vector), weight_at(vector, k));
    }
  }

  /// One input channel: every pixel's element times every weight vector.
  void multiply(const Tap& tap, int k) {
    for (int vector = s_.vectors - weight_registers_; vector < s_.vectors; ++vector) load_weight(vector, k);
    if (embedded_) {
      for (int pixel = tap.begin; pixel < tap.end; ++pixel)
        e_.vfmadd231ps(out_.acc(pixel, 0), weight(0),
                       out_.broadcast_at(src_, pixel * s_.src_pixel + k * s_.src_channel));
      return;
    }
    const int elements = e_.registers() - out_.accumulators() - weight_registers_;  // registers to rotate through
    for (int pixel = tap.begin; pixel < tap.end; ++pixel) {
      const Vec x = e_.vec(out_.accumulators() + weight_registers_ + pixel % elements);
      e_.broadcast(x, element(pixel, k));
      for (int vector = 0; vector < s_.vectors; ++vector) {
        if (in_register(vector)) {
          e_.vfmadd231ps(out_.acc(pixel, vector), x, weight(vector));
        } else {
          e_.vfmadd231ps(out_.acc(pixel, vector), x, weight_at(vector, k));
        }
      }
    }
  }

  Emitter& e_;
  const TileSpec& s_;
  TileOutput out_;
  int weight_registers_ = 0;
  bool embedded_ = false;

  const Reg64 src_row_{Xbyak::Operand::RSI}, weights_row_{Xbyak::Operand::RDX}, rows_{Xbyak::Operand::RCX},
      src_{Xbyak::Operand::RAX}, weights_{Xbyak::Operand::R8}, counter_{Xbyak::Operand::R9},
      prefetch_{Xbyak::Operand::R11};
};

}  // namespace

bool tile_fits(Isa isa, int pixels, int vectors) {
  if (pixels < 1 || vectors < 1) return false;
  const int spare = registers_of(isa) - pixels * vectors;
  if (pixels == 1) return spare >= 3;
  return spare >= (vectors == 1 && isa == Isa::avx512 ? 1 : 2);
}

bool tile_fits_narrow(Isa isa, int pixels, int vectors) {
  return tile_fits(isa, pixels, vectors) && pixels * vectors + vectors < registers_of(isa);
}

int tile_unroll(int pixels, int vectors, size_t taps) {
  // About 200 instructions per pass keep the loop small against the instruction cache; filters with many taps use less.
  const int cost = pixels * (vectors + 1) + vectors;
  return std::clamp((taps > 5 ? 100 : 200) / cost, 1, 8);
}

int prefetch_lines(const TileSpec& spec, int64_t rows, int64_t calls, int64_t bytes) {
  const int64_t passes = std::max<int64_t>(1, spec.depth / tile_unroll(spec.pixels, spec.vectors, spec.taps.size()));
  const int64_t steps = std::max<int64_t>(1, calls * rows * static_cast<int64_t>(spec.taps.size()) * passes);
  return static_cast<int>(std::clamp<int64_t>((bytes / 64 + steps - 1) / steps, 1, 8));
}

size_t emit_tile(Emitter& emitter, const TileSpec& spec) { return TileEmitter(emitter, spec).emit(); }

}  // namespace hone::cpu
