// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/quant/integer_tile.h"

#include "base/error.h"

namespace hone::cpu {
namespace {

using Vec = Emitter::Vec;
using Xbyak::Reg64;

constexpr int kUnroll = 4;

class TileWriter {
 public:
  TileWriter(Emitter& emitter, const IntegerTileSpec& spec)
      : e_(emitter), s_(spec), rows_(spec.output.pixels), vectors_(spec.output.vectors), out_(emitter, spec.output) {
    HONE_ASSERT(integer_tile_fits(e_.isa(), s_.dot, rows_, vectors_), "{}x{}", rows_, vectors_);
  }

  size_t write() {
    e_.align(64);
    const size_t offset = e_.getSize();
    begin();
    loop(kUnroll);
    loop(1);
    if (s_.factor != Factor::none) scale();
    out_.end();
    return offset;
  }

 private:
  Vec weights(int vector) const { return out_.spare(vector); }
  Vec element() const { return out_.spare(vectors_); }
  Vec product() const { return out_.spare(vectors_ + 1); }
  Xbyak::Address arg(size_t offset) const { return out_.arg(offset); }
  Xbyak::Address column(const Reg64& base, int vector) const { return out_.at(base, out_.vector_offset(vector)); }

  void begin() {
    e_.mov(TileOutput::dst(), arg(offsetof(IntegerTileArgs, tile) + offsetof(TileArgs, dst)));
    e_.set_tail(s_.output.tail);
    e_.mov(e_.rax, arg(offsetof(IntegerTileArgs, base)));
    for (int vector = 0; vector < vectors_; ++vector) {
      e_.load(out_.acc(0, vector), column(e_.rax, vector));
      for (int row = 1; row < rows_; ++row) e_.vmovaps(out_.acc(row, vector), out_.acc(0, vector));
    }
    if (s_.column_zeros) take_off_zeros();
    e_.mov(a_, arg(offsetof(IntegerTileArgs, tile) + offsetof(TileArgs, src)));
    e_.mov(b_, arg(offsetof(IntegerTileArgs, tile) + offsetof(TileArgs, weights)));
    e_.mov(steps_, arg(offsetof(IntegerTileArgs, steps)));
  }

  void take_off_zeros() {
    const Vec zeros = out_.spare(0), term = out_.spare(1);
    e_.mov(e_.rax, arg(offsetof(IntegerTileArgs, zeros)));
    e_.mov(a_, arg(offsetof(IntegerTileArgs, row_sums)));
    for (int vector = 0; vector < vectors_; ++vector) {
      e_.load(zeros, column(e_.rax, vector));
      for (int row = 0; row < rows_; ++row) {
        e_.vpbroadcastd(term, out_.at(a_, row * 4));
        e_.vpmulld(term, term, zeros);
        e_.vpsubd(out_.acc(row, vector), out_.acc(row, vector), term);
      }
    }
  }

  /// As many passes of `unroll` steps as there are left.
  void loop(int unroll) {
    Xbyak::Label again, done;
    e_.cmp(steps_, unroll);
    e_.jl(done, e_.T_NEAR);
    e_.align(32);
    e_.L(again);
    for (int step = 0; step < unroll; ++step) multiply(step);
    out_.add(a_, unroll * kStepBytes);
    out_.add(b_, unroll * s_.b_step);
    e_.sub(steps_, unroll);
    e_.cmp(steps_, unroll);
    e_.jge(again, e_.T_NEAR);
    e_.L(done);
  }

  void multiply(int step) {
    for (int vector = 0; vector < vectors_; ++vector)
      e_.load(weights(vector), out_.at(b_, step * s_.b_step + out_.vector_offset(vector)));
    for (int row = 0; row < rows_; ++row) {
      e_.vpbroadcastd(element(), out_.at(a_, row * s_.a_row + step * kStepBytes));
      for (int vector = 0; vector < vectors_; ++vector) add_products(out_.acc(row, vector), weights(vector));
    }
  }

  void add_products(const Vec& sum, const Vec& weights) {
    if (s_.dot == IntegerDot::bytes) {
      e_.vpdpbusd(sum, element(), weights, e_.avx512() ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
    } else {
      e_.vpmaddwd(product(), element(), weights);
      e_.vpaddd(sum, sum, product());
    }
  }

  /// Rounded after each operation, as the meaning is.
  void scale() {
    const Vec factor = out_.spare(0), bias = out_.spare(1);
    e_.mov(e_.rax, arg(offsetof(IntegerTileArgs, factor)));
    if (s_.output.epilogue.bias) e_.mov(a_, arg(offsetof(IntegerTileArgs, tile) + offsetof(TileArgs, bias)));
    if (s_.factor == Factor::one) e_.broadcast(factor, e_.ptr[e_.rax]);
    for (int vector = 0; vector < vectors_; ++vector) {
      if (s_.factor == Factor::columns && out_.is_tail(vector)) e_.load_tail(factor, column(e_.rax, vector), bias);
      else if (s_.factor == Factor::columns) e_.load(factor, column(e_.rax, vector));
      if (s_.output.epilogue.bias) e_.load(bias, column(a_, vector));
      for (int row = 0; row < rows_; ++row) {
        const Vec x = out_.acc(row, vector);
        e_.vcvtdq2ps(x, x);
        e_.vmulps(x, x, factor);
        if (s_.output.epilogue.bias) e_.vaddps(x, x, bias);
      }
    }
  }

  Emitter& e_;
  const IntegerTileSpec& s_;
  int rows_, vectors_;
  TileOutput out_;
  // Of those that TileOutput leaves free.
  const Reg64 a_{Xbyak::Operand::RSI}, b_{Xbyak::Operand::RDX}, steps_{Xbyak::Operand::R8};
};

}  // namespace

bool integer_tile_fits(Isa isa, IntegerDot dot, int rows, int vectors) {
  if (isa == Isa::scalar || rows < 1 || vectors < 1) return false;
  return (rows + 1) * vectors + (dot == IntegerDot::bytes ? 1 : 2) <= registers_of(isa);
}

size_t emit_integer_tile(Emitter& emitter, const IntegerTileSpec& spec) { return TileWriter(emitter, spec).write(); }

}  // namespace hone::cpu
