// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/weights/quantized_tile.h"

#include <bit>

#include "base/error.h"
#include "ops/code_tables.h"

namespace hone::cpu {
namespace {

using Vec = Emitter::Vec;
using Xbyak::Reg64;

constexpr int kUnit = static_cast<int>(QuantizedFormat::kUnit);

/// What walks through a panel: pointers, and codes to floats.
class PanelReader {
 public:
  /// `first`: the first of the registers that it may use, registers() of them.
  PanelReader(Emitter& emitter, const QuantizedFormat& format, int64_t panel, int vectors, int first)
      : e_(emitter), f_(format), panel_(panel), vectors_(vectors), first_(first) {}

  static int registers(Isa isa, const QuantizedFormat& format, int vectors) {
    if (format.bits == 8) return 0;
    if (isa == Isa::avx512) return vectors + 1;
    return vectors + (is_table(format.kind) ? kTableRegisters : 0);
  }

  const Reg64& codes() const { return codes_; }
  void begin() {
    if (!has_table()) return;
    e_.vmovups(table(), e_.ptr[e_.rip + table_]);
    if (!e_.avx512()) e_.vmovups(upper_table(), e_.ptr[e_.rip + table_ + 32]);
  }
  /// Behind the function's return.
  void end() {
    if (!has_table()) return;
    e_.align(64);
    e_.L(table_);
    for (int code = 0; code < 16; ++code) e_.dd(std::bit_cast<uint32_t>(number_of(code)));
  }

  /// `open` and `close` stand around the `units` of each block, when its scales are at head().
  template <typename Open, typename Unit, typename Close>
  void each_block(Open&& open, Unit&& unit, Close&& close) {
    const auto block = [&](int64_t units) {
      e_.mov(head_, codes_);
      add(codes_, panel_ * f_.head_bytes());
      open();
      repeat(count_, units, [&] {
        load_unit();
        unit();
        add(codes_, panel_ * f_.bits);
      });
      close();
    };
    const int64_t last = f_.units(f_.last_block()), whole = f_.units(f_.block);
    const bool even = last == whole;
    repeat(blocks_, f_.blocks() - (even ? 0 : 1), [&] { block(whole); });
    if (!even) block(last);
  }

  /// Row `row` of the unit, of one vector of columns.
  void decode(const Vec& to, int row, int vector) {
    if (f_.bits == 8)
      return decode_byte(to, e_.ptr[codes_ + displacement(row * panel_ + int64_t{vector} * e_.lanes())]);
    const int bits = static_cast<int>(f_.bits), place = static_cast<int>(QuantizedFormat::place(row));
    if (has_table()) {
      if (place > 0) e_.vpsrld(to, word(vector), place * bits);
      look_up(to, place > 0 ? to : word(vector));
    } else {
      if (place + 1 < kUnit) e_.vpslld(to, word(vector), (kUnit - 1 - place) * bits);
      e_.vpsrad(to, place + 1 < kUnit ? to : word(vector), (kUnit - 1) * bits);
      e_.vcvtdq2ps(to, to);
    }
  }
  Xbyak::Address scale(int vector) const { return e_.ptr[head_ + displacement(int64_t{vector} * e_.vector_bytes())]; }
  void load_zero(const Vec& to, int vector) {
    const int64_t size = f_.zero_bytes(), at = panel_ * 4 + int64_t{vector} * e_.lanes() * size;
    if (f_.zeros == ZeroPoints::floats) return e_.load(to, e_.ptr[head_ + displacement(at)]);
    e_.vpmovsxbd(to, e_.ptr[head_ + displacement(at)]);
    e_.vcvtdq2ps(to, to);
  }

  void add(const Reg64& reg, int64_t bytes) { e_.add(reg, displacement(bytes)); }

 private:
  static int displacement(int64_t bytes) {
    HONE_ASSERT(bytes == static_cast<int32_t>(bytes), "{} bytes do not fit a displacement", bytes);
    return static_cast<int>(bytes);
  }
  static constexpr int kTableRegisters = 4;  // of vectors with eight lanes: both halves, and what is picked from them

  bool has_table() const { return f_.bits == 4 && (e_.avx512() || is_table(f_.kind)); }
  float number_of(int code) const {
    if (!is_table(f_.kind)) return static_cast<float>(code - QuantizedFormat::kMiddle);
    return code_table(table_name(f_.kind))[static_cast<size_t>(code)];
  }

  /// By the lowest four bits of each lane.
  void look_up(const Vec& to, const Vec& codes) {
    if (e_.avx512()) return e_.vpermps(wide(to), wide(codes), table());
    const Vec low = e_.vec(first_ + vectors_ + 2), high = e_.vec(first_ + vectors_ + 3);
    e_.vpermps(ymm(low), ymm(codes), table());
    e_.vpermps(ymm(high), ymm(codes), upper_table());
    e_.vpslld(to, codes, 28);
    e_.vblendvps(ymm(to), ymm(low), ymm(high), ymm(to));
  }

  void decode_byte(const Vec& to, const Xbyak::Address& from) {
    if (f_.kind == CodeKind::integer) {
      e_.vpmovsxbd(to, from);
      return e_.vcvtdq2ps(to, to);
    }
    const Xbyak::Xmm half = e_.avx512() ? Xbyak::Xmm(ymm(to)) : Xbyak::Xmm(to.getIdx());
    if (f_.kind == CodeKind::e4m3) {
      // The sign is there twice: the lower one stands where the exponent's first bit belongs.
      const Constant all_else = e_.constant_bits(0xbf80bf80U);
      e_.vpmovsxbw(half, from);
      e_.vpsllw(half, half, 7);
      if (e_.avx512()) e_.vpandd(half, half, all_else);
      else e_.vpand(half, half, all_else);
    } else {
      e_.vpmovzxbw(half, from);
      e_.vpsllw(half, half, 8);
    }
    e_.vcvtph2ps(to, half);
  }
  Vec word(int vector) const { return e_.vec(first_ + vector); }
  Vec table() const { return e_.vec(first_ + vectors_); }
  Vec upper_table() const { return e_.vec(first_ + vectors_ + 1); }
  static Xbyak::Zmm wide(const Vec& x) { return Xbyak::Zmm(x.getIdx()); }
  static Xbyak::Ymm ymm(const Vec& x) { return Xbyak::Ymm(x.getIdx()); }

  void load_unit() {
    if (f_.bits != 4) return;
    for (int vector = 0; vector < vectors_; ++vector) {
      e_.load(word(vector), e_.ptr[codes_ + displacement(int64_t{vector} * e_.vector_bytes())]);
      // Less the middle, as signed numbers of four bits.
      if (!has_table()) e_.vxorps(word(vector), word(vector), e_.constant_bits(0x88888888U));
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
  const QuantizedFormat f_;
  const int64_t panel_;
  const int vectors_, first_;
  Xbyak::Label table_;
  // Of those that TileOutput leaves free.
  const Reg64 codes_{Xbyak::Operand::RDX}, head_{Xbyak::Operand::RCX}, count_{Xbyak::Operand::R9},
      blocks_{Xbyak::Operand::R8};
};

class TileWriter {
 public:
  TileWriter(Emitter& emitter, const QuantizedTileSpec& spec)
      : e_(emitter),
        s_(spec),
        rows_(spec.output.pixels),
        vectors_(spec.output.vectors),
        out_(emitter, spec.output),
        panel_(emitter, spec.format, spec.panel, vectors_, own_registers(rows_, vectors_, has_zeros())) {
    HONE_ASSERT(quantized_tile_fits(e_.isa(), s_.format, rows_, vectors_), "{}x{}", rows_, vectors_);
  }

  size_t write() {
    e_.align(64);
    const size_t offset = e_.getSize();
    out_.begin();
    e_.mov(x_, out_.arg(offsetof(TileArgs, src)));
    e_.mov(panel_.codes(), out_.arg(offsetof(TileArgs, weights)));
    panel_.begin();
    panel_.each_block([&] { open_block(); }, [&] { multiply_unit(); }, [&] { close_block(); });
    out_.end();
    panel_.end();
    return offset;
  }

  static int own_registers(int rows, int vectors, bool zeros) {
    return 2 * rows * vectors + 1 + rows + (zeros ? rows : 0);
  }

 private:
  bool has_zeros() const { return s_.format.zeros != ZeroPoints::none; }
  // Behind the accumulators: a block's sums, a vector of weights, an element of each row of x, the sums of these elements.
  Vec partial(int row, int vector) const { return out_.spare(row * vectors_ + vector); }
  Vec weight() const { return out_.spare(rows_ * vectors_); }
  Vec element(int row) const { return out_.spare(rows_ * vectors_ + 1 + row); }
  Vec sum(int row) const { return out_.spare(rows_ * vectors_ + 1 + rows_ + row); }

  void open_block() {
    for (int row = 0; row < rows_; ++row) {
      if (has_zeros()) e_.zero(sum(row));
      for (int vector = 0; vector < vectors_; ++vector) e_.zero(partial(row, vector));
    }
  }

  void multiply_unit() {
    for (int step = 0; step < kUnit; ++step) {
      for (int row = 0; row < rows_; ++row) {
        e_.broadcast(element(row), out_.at(x_, row * s_.x_row + step * 4));
        if (has_zeros()) e_.vaddps(sum(row), sum(row), element(row));
      }
      for (int vector = 0; vector < vectors_; ++vector) {
        panel_.decode(weight(), step, vector);
        for (int row = 0; row < rows_; ++row) e_.vfmadd231ps(partial(row, vector), weight(), element(row));
      }
    }
    panel_.add(x_, kUnit * 4);
  }

  void close_block() {
    for (int vector = 0; vector < vectors_; ++vector) {
      if (has_zeros()) panel_.load_zero(weight(), vector);
      for (int row = 0; has_zeros() && row < rows_; ++row) e_.vfnmadd231ps(partial(row, vector), weight(), sum(row));
      e_.load(weight(), panel_.scale(vector));
      for (int row = 0; row < rows_; ++row) e_.vfmadd231ps(out_.acc(row, vector), partial(row, vector), weight());
    }
  }

  Emitter& e_;
  const QuantizedTileSpec& s_;
  const int rows_, vectors_;
  TileOutput out_;
  PanelReader panel_;
  const Reg64 x_{Xbyak::Operand::RSI};
};

}  // namespace

bool quantized_tile_fits(Isa isa, const QuantizedFormat& format, int rows, int vectors) {
  if (isa == Isa::scalar || rows < 1 || vectors < 1) return false;
  const int own = TileWriter::own_registers(rows, vectors, format.zeros != ZeroPoints::none);
  return own + PanelReader::registers(isa, format, vectors) <= registers_of(isa);
}

size_t emit_quantized_tile(Emitter& emitter, const QuantizedTileSpec& spec) {
  return TileWriter(emitter, spec).write();
}

size_t emit_unpack(Emitter& e, const QuantizedFormat& format, int vectors) {
  HONE_ASSERT(vectors >= 1 && vectors <= kMostUnpacked, "{}", vectors);
  const bool has_zeros = format.zeros != ZeroPoints::none;
  const Vec weight = e.vec(0);
  const auto scale = [&](int vector) { return e.vec(1 + vector); };
  const auto zero = [&](int vector) { return e.vec(1 + vectors + vector); };
  PanelReader panel(e, format, int64_t{vectors} * e.lanes(), vectors, 1 + (has_zeros ? 2 : 1) * vectors);
  e.align(64);
  const size_t offset = e.getSize();
  e.mov(panel.codes(), e.rdi);
  panel.begin();
  panel.each_block(
      [&] {
        for (int vector = 0; vector < vectors; ++vector) {
          e.load(scale(vector), panel.scale(vector));
          if (has_zeros) panel.load_zero(zero(vector), vector);
        }
      },
      [&] {
        for (int step = 0; step < kUnit; ++step)
          for (int vector = 0; vector < vectors; ++vector) {
            panel.decode(weight, step, vector);
            if (has_zeros) e.vsubps(weight, weight, zero(vector));
            e.vmulps(weight, weight, scale(vector));
            e.store(e.ptr[e.rsi + (step * vectors + vector) * e.vector_bytes()], weight);
          }
        panel.add(e.rsi, int64_t{kUnit} * vectors * e.vector_bytes());
      },
      [] {});
  e.vzeroupper();
  e.ret();
  panel.end();
  return offset;
}

}  // namespace hone::cpu
