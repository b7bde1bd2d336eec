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
    if (s_.sum_row == 0) taps();
    if (s_.factor != Factor::none) scale();
    if (s_.bytes.result) ByteOutput(e_, s_.output, s_.bytes, out_).end();
    else out_.end();
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
    if (s_.sum_row != 0) return begin_with_sums();
    e_.mov(e_.rax, arg(offsetof(IntegerTileArgs, base)));
    for (int vector = 0; vector < vectors_; ++vector) {
      e_.load(out_.acc(0, vector), column(e_.rax, vector));
      for (int row = 1; row < rows_; ++row) e_.vmovaps(out_.acc(row, vector), out_.acc(0, vector));
    }
    if (s_.column_zeros) take_off_zeros();
    e_.mov(b_, arg(offsetof(IntegerTileArgs, tile) + offsetof(TileArgs, weights)));
  }

  /// Those that are only scaled are loaded as they become floats.
  bool scales_from_memory() const { return s_.sum_row != 0 && !s_.column_zeros && s_.factor != Factor::none; }
  Xbyak::Address sum(int row, int vector) const {
    return out_.at(sums_, row * s_.sum_row + out_.vector_offset(vector));
  }
  void begin_with_sums() {
    e_.mov(sums_, arg(offsetof(IntegerTileArgs, sums)));
    if (scales_from_memory()) return;
    for (int vector = 0; vector < vectors_; ++vector)
      for (int row = 0; row < rows_; ++row) e_.load(out_.acc(row, vector), sum(row, vector));
    if (s_.column_zeros) take_off_zeros();
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

  void taps() {
    e_.mov(row_, arg(offsetof(IntegerTileArgs, tile) + offsetof(TileArgs, src)));
    e_.mov(tap_, arg(offsetof(IntegerTileArgs, taps)));
    if (s_.taps > 1) e_.mov(left_, s_.taps);
    Xbyak::Label again;
    e_.L(again);
    e_.mov(a_, e_.ptr[tap_]);
    e_.add(a_, row_);
    steps();
    if (s_.taps == 1) return;
    e_.add(tap_, sizeof(int64_t));
    e_.dec(left_);
    e_.jnz(again, e_.T_NEAR);
  }

  void steps() {
    const int64_t rounds = s_.steps / kUnroll;
    Xbyak::Label again;
    if (rounds > 1) {
      e_.mov(rounds_, rounds);
      e_.align(32);
      e_.L(again);
    }
    if (rounds > 0) pass(kUnroll);
    if (rounds > 1) {
      e_.dec(rounds_);
      e_.jnz(again, e_.T_NEAR);
    }
    pass(static_cast<int>(s_.steps % kUnroll));
  }

  void pass(int count) {
    for (int step = 0; step < count; ++step) multiply(step);
    out_.add(a_, count * kStepBytes);
    out_.add(b_, count * s_.b_step);
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
        if (scales_from_memory()) e_.vcvtdq2ps(x, sum(row, vector));
        else e_.vcvtdq2ps(x, x);
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
  const Reg64 a_{Xbyak::Operand::RSI}, b_{Xbyak::Operand::RDX}, rounds_{Xbyak::Operand::R8}, row_{Xbyak::Operand::R9},
      tap_{Xbyak::Operand::R11}, left_{Xbyak::Operand::RCX}, sums_{Xbyak::Operand::RDX};
};

}  // namespace

bool integer_tile_fits(Isa isa, IntegerDot dot, int rows, int vectors) {
  if (isa == Isa::scalar || rows < 1 || vectors < 1) return false;
  return (rows + 1) * vectors + (dot == IntegerDot::bytes ? 1 : 2) <= registers_of(isa);
}

size_t emit_integer_tile(Emitter& emitter, const IntegerTileSpec& spec) { return TileWriter(emitter, spec).write(); }

}  // namespace hone::cpu
