// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/weights/digit_tile.h"

#include <bit>

#include "base/error.h"

namespace hone::cpu {
namespace {

using Vec = Emitter::Vec;
using Xbyak::Reg64;

constexpr int64_t kUnrolled = 8;  // units of a block
constexpr int64_t kAhead =
    8 << 10;  // bytes of weights that are asked for before they are read: pages are no border then
constexpr int kDigits = DigitFormat::kDigits;

class DigitTile {
 public:
  DigitTile(Emitter& emitter, const DigitTileSpec& spec)
      : e_(emitter),
        s_(spec),
        f_(spec.tile.format),
        rows_(spec.tile.output.pixels),
        vectors_(spec.tile.output.vectors),
        out_(emitter, spec.tile.output) {
    HONE_ASSERT(f_.bits == 4 && digit_tile_fits(e_.isa(), rows_, vectors_), "{}x{}", rows_, vectors_);
  }

  size_t write() {
    e_.align(64);
    const size_t offset = e_.getSize();
    out_.begin();
    e_.mov(x_, out_.arg(offsetof(TileArgs, src)));
    e_.mov(codes_, out_.arg(offsetof(TileArgs, weights)));
    e_.load_constant(low_bits(), std::bit_cast<float>(0x0f0f0f0fU));
    if (!s_.dots) e_.load_constant(ones(), std::bit_cast<float>(0x00010001U));
    const int64_t last = f_.units(f_.last_block()), whole = f_.units(f_.block);
    const bool even = last == whole;
    repeat(blocks_, f_.blocks() - (even ? 0 : 1), [&] { block(whole); });
    if (!even) block(last);
    out_.end();
    return offset;
  }

  static int registers(int rows, int vectors) { return (kDigits + 1) * rows * vectors + vectors + 4; }

 private:
  // Behind the accumulators: sums of each digit's products in a block, codes of a vector of columns, an element of x.
  Vec partial(int row, int digit, int vector) const { return out_.spare((row * kDigits + digit) * vectors_ + vector); }
  Vec codes(int vector) const { return out_.spare(rows_ * kDigits * vectors_ + vector); }
  Vec other(int index) const { return out_.spare(rows_ * kDigits * vectors_ + vectors_ + index); }
  Vec element() const { return other(0); }
  Vec low_bits() const { return other(1); }
  Vec product() const { return other(2); }
  Vec ones() const { return other(3); }

  Xbyak::Address place(const Reg64& base, int64_t offset) const { return out_.at(base, offset); }

  void block(int64_t units) {
    e_.mov(head_, codes_);
    e_.mov(x_head_, x_);
    out_.add(codes_, s_.tile.panel * f_.head_bytes());
    out_.add(x_, DigitFormat::kHeadBytes);
    open();
    if (units <= kUnrolled) {
      for (int64_t i = 0; i < units; ++i) unit(i);
      advance(units);
    } else {
      repeat(count_, units, [&] {
        unit(0);
        advance(1);
      });
    }
    close();
  }

  void advance(int64_t units) {
    out_.add(codes_, units * s_.tile.panel * f_.bits);
    out_.add(x_, units * DigitFormat::kUnitBytes);
  }

  void ask_ahead(const Reg64& base, int64_t offset) {
    for (int vector = 0; vector < vectors_; ++vector)
      e_.prefetcht0(place(base, offset + kAhead + out_.vector_offset(vector)));
  }

  void open() {
    ask_ahead(head_, 0);
    for (int row = 0; row < rows_; ++row)
      for (int digit = 0; digit < kDigits; ++digit)
        for (int vector = 0; vector < vectors_; ++vector)
          e_.vpbroadcastd(partial(row, digit, vector), place(x_head_, row * s_.tile.x_row + DigitFormat::start(digit)));
  }

  void unit(int64_t index) {
    const int64_t weights = index * s_.tile.panel * f_.bits, x = index * DigitFormat::kUnitBytes;
    ask_ahead(codes_, weights);
    for (int half = 0; half < 2; ++half) {
      for (int vector = 0; vector < vectors_; ++vector)
        load_codes(codes(vector), place(codes_, weights + out_.vector_offset(vector)), half);
      for (int row = 0; row < rows_; ++row)
        for (int digit = 0; digit < kDigits; ++digit) {
          e_.vpbroadcastd(element(),
                          place(x_, row * s_.tile.x_row + x + digit * DigitFormat::kUnit + int64_t{half} * 4));
          for (int vector = 0; vector < vectors_; ++vector) add_products(partial(row, digit, vector), codes(vector));
        }
    }
  }

  void load_codes(const Vec& to, const Xbyak::Address& from, int half) {
    if (e_.avx512()) {
      if (half == 1) e_.vpsrld(to, from, 4);
      if (half == 1) e_.vpandd(to, to, low_bits());
      else e_.vpandd(to, low_bits(), from);
    } else {
      if (half == 1) e_.load(to, from);
      if (half == 1) e_.vpsrld(to, to, 4);
      if (half == 1) e_.vpand(to, to, low_bits());
      else e_.vpand(to, low_bits(), from);
    }
  }

  void add_products(const Vec& sum, const Vec& weights) {
    if (s_.dots) return e_.vpdpbusd(sum, weights, element(), e_.avx512() ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
    // Two products of at most 15 and 128 stay far below 16 bits.
    e_.vpmaddubsw(product(), weights, element());
    e_.vpmaddwd(product(), product(), ones());
    e_.vpaddd(sum, sum, product());
  }

  void close() {
    for (int row = 0; row < rows_; ++row) {
      for (int vector = 0; vector < vectors_; ++vector) join_digits(row, vector);
      e_.broadcast(element(), place(x_head_, row * s_.tile.x_row + DigitFormat::kStep));
      for (int vector = 0; vector < vectors_; ++vector) {
        const Vec sum = partial(row, 0, vector);
        e_.vmulps(sum, sum, element());
      }
      if (f_.zeros != ZeroPoints::none) take_off_zeros(row);
      for (int vector = 0; vector < vectors_; ++vector)
        e_.vfmadd231ps(out_.acc(row, vector), partial(row, 0, vector), place(head_, out_.vector_offset(vector)));
    }
  }

  void join_digits(int row, int vector) {
    const Vec sum = partial(row, 0, vector);
    e_.vcvtdq2ps(sum, sum);
    for (int digit = 1; digit < kDigits; ++digit) {
      const Vec next = partial(row, digit, vector);
      e_.vcvtdq2ps(next, next);
      e_.vfmadd132ps(sum, next, e_.constant(256));
    }
  }

  void take_off_zeros(int row) {
    e_.broadcast(element(), place(x_head_, row * s_.tile.x_row + DigitFormat::kSum));
    for (int vector = 0; vector < vectors_; ++vector) {
      const int64_t size = f_.zero_bytes(), at = s_.tile.panel * 4 + int64_t{vector} * e_.lanes() * size;
      if (f_.zeros == ZeroPoints::floats) {
        e_.load(codes(vector), place(head_, at));
      } else {
        e_.vpmovsxbd(codes(vector), place(head_, at));
        e_.vcvtdq2ps(codes(vector), codes(vector));
      }
      e_.vfnmadd231ps(partial(row, 0, vector), codes(vector), element());
    }
  }

  template <typename Body>
  void repeat(const Reg64& counter, int64_t times, Body&& body) {
    if (times <= 0) return;
    Xbyak::Label again;
    e_.mov(counter, times);
    e_.align(32);
    e_.L(again);
    body();
    e_.dec(counter);
    e_.jnz(again, e_.T_NEAR);
  }

  Emitter& e_;
  const DigitTileSpec& s_;
  const QuantizedFormat& f_;
  const int rows_, vectors_;
  TileOutput out_;
  // Of those that TileOutput leaves free.
  const Reg64 codes_{Xbyak::Operand::RDX}, head_{Xbyak::Operand::RCX}, count_{Xbyak::Operand::R9},
      blocks_{Xbyak::Operand::R8}, x_{Xbyak::Operand::RSI}, x_head_{Xbyak::Operand::R11};
};

}  // namespace

bool digit_tile_fits(Isa isa, int rows, int vectors) {
  return isa != Isa::scalar && rows >= 1 && vectors >= 1 && DigitTile::registers(rows, vectors) <= registers_of(isa);
}

size_t emit_digit_tile(Emitter& emitter, const DigitTileSpec& spec) { return DigitTile(emitter, spec).write(); }

}  // namespace hone::cpu
