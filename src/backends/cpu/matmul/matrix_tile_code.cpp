// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/matmul/matrix_tile_code.h"

#include <cstring>

#include "backends/cpu/jit/bf16_memory.h"
#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/jit/vector_math.h"
#include "backends/cpu/support/tile_operands.h"

namespace hone::cpu {
namespace {

using Xbyak::Tmm;
using Vec = Emitter::Vec;

constexpr float kMostBfloat = 0x1.fep127f;
constexpr int kSumRow = static_cast<int>(kTileChannels) * 4;

size_t begin_function(Emitter& e) {
  e.align(64);
  return e.getSize();
}

/// Vectors of one pixel: 16 channels each, the last one partial or not.
struct Lanes {
  int vectors, tail;
  explicit Lanes(int channels) : vectors((channels + 15) / 16), tail(channels % 16) {}
  bool is_tail(int vector) const { return tail != 0 && vector == vectors - 1; }
};

class OutputEmitter {
 public:
  OutputEmitter(Emitter& e, const TileOutputSpec& spec)
      : e_(e), s_(spec), lanes_(spec.channels), math_(e), bf16_(e), bytes_(spec.type == DType::bf16 ? 2 : 4) {}

  size_t emit() {
    const size_t offset = begin_function(e_);
    e_.set_tail(lanes_.tail);
    e_.mov(sums_, e_.ptr[e_.rdi + int{offsetof(TileOutputArgs, sums)}]);
    e_.mov(dst_, e_.ptr[e_.rdi + int{offsetof(TileOutputArgs, dst)}]);
    e_.mov(residual_, e_.ptr[e_.rdi + int{offsetof(TileOutputArgs, residual)}]);
    e_.mov(e_.rax, e_.ptr[e_.rdi + int{offsetof(TileOutputArgs, bias)}]);
    e_.mov(count_, e_.ptr[e_.rdi + int{offsetof(TileOutputArgs, pixels)}]);
    if (s_.epilogue.bias)
      for (int v = 0; v < lanes_.vectors; ++v) e_.load(bias(v), e_.ptr[e_.rax + 64 * v]);
    Xbyak::Label loop;
    e_.align(32);
    e_.L(loop);
    for (int v = 0; v < lanes_.vectors; ++v) finish(v);
    e_.add(sums_, kSumRow);
    e_.add(dst_, static_cast<int>(s_.dst_pixel));
    if (s_.epilogue.residual) e_.add(residual_, static_cast<int>(s_.dst_pixel));
    e_.dec(count_);
    e_.jnz(loop, e_.T_NEAR);
    e_.vzeroupper();
    e_.ret();
    return offset;
  }

 private:
  Vec bias(int v) const { return e_.vec(28 + v); }

  void finish(int v) {
    const Epilogue& ep = s_.epilogue;
    const Vec x = e_.vec(6 * v), s0 = e_.vec(6 * v + 1), s1 = e_.vec(6 * v + 2), s2 = e_.vec(6 * v + 3);
    e_.load(x, e_.ptr[sums_ + 64 * v]);
    if (ep.bias) e_.vaddps(x, x, bias(v));
    if (ep.residual && !ep.residual_after_activation) add_residual(x, v, s0);
    math_.activation(ep.activation, x, s0, s1, s2);
    if (ep.residual && ep.residual_after_activation) add_residual(x, v, s0);
    const Xbyak::RegExp to = dst_ + 16 * bytes_ * v;
    if (s_.type == DType::bf16) {
      lanes_.is_tail(v) ? bf16_.store_tail(to, x, s0, s1) : bf16_.store(to, x, s0, s1);
    } else {
      lanes_.is_tail(v) ? e_.store_tail(e_.ptr[to], x, s0) : e_.store(e_.ptr[to], x);
    }
  }

  void add_residual(const Vec& x, int v, const Vec& r) {
    const Xbyak::RegExp from = residual_ + 16 * bytes_ * v;
    if (s_.type == DType::bf16) {
      lanes_.is_tail(v) ? bf16_.load_tail(r, from) : bf16_.load(r, from);
    } else {
      lanes_.is_tail(v) ? e_.load_tail(r, e_.ptr[from], r) : e_.load(r, e_.ptr[from]);
    }
    e_.vaddps(x, x, r);
  }

  Emitter& e_;
  const TileOutputSpec& s_;
  const Lanes lanes_;
  VectorMath math_;
  Bf16Memory bf16_;
  const int bytes_;
  const Xbyak::Reg64 sums_{Xbyak::Operand::RSI}, dst_{Xbyak::Operand::RDX}, residual_{Xbyak::Operand::RCX},
      count_{Xbyak::Operand::R8};
};

float bf16_at(const std::byte* from) {
  uint16_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return bfloat_to_float(bits);
}

/// A row of pixels times a column of weights, each a tile's row of 64 bytes.
float add_bf16(float sum, const std::byte* pixel, const std::byte* weights) {
  for (int k = 0; k < kTileDepth; ++k) sum += bf16_at(pixel + 2 * k) * bf16_at(weights + k / 2 * kTileRow + k % 2 * 2);
  return sum;
}
int32_t add_bytes(int32_t sum, const std::byte* pixel, const std::byte* weights) {
  auto total = static_cast<uint32_t>(sum);
  for (int k = 0; k < kTileRow; ++k)
    total += static_cast<uint32_t>(std::to_integer<int>(pixel[k]) *
                                   static_cast<int8_t>(std::to_integer<int>(weights[k / 4 * kTileRow + k % 4])));
  return static_cast<int32_t>(total);
}

/// The largest part first, each of what the ones before left. What is infinite or no number is left to the last part, which meets only
/// the other operand's largest one: infinity times the rest of a weight would be no number.
void store_parts(Emitter& e, Bf16Memory& bf16, const TilePackSpec& s, const Xbyak::RegExp& to, const Vec& x) {
  const Vec part = e.vec(x.getIdx() + 1), a = e.vec(x.getIdx() + 2), b = e.vec(x.getIdx() + 3);
  for (int p = 0; p + 1 < s.parts; ++p) {
    const Xbyak::RegExp at = to + static_cast<int>(p * s.dst_part);
    e.vminps(part, x, e.constant(kMostBfloat));
    e.vmaxps(part, part, e.constant(-kMostBfloat));
    bf16.store(at, part, a, b);
    bf16.load(part, at);
    e.vsubps(x, x, part);
  }
  bf16.store(to + static_cast<int>((s.parts - 1) * s.dst_part), x, a, b);
}

template <typename Sum>
void multiply_steps(const TileMatmulSpec& s, const TileMatmulArgs& args,
                    Sum (*add)(Sum, const std::byte*, const std::byte*)) {
  const std::span<const PartProduct> products = products_of(s.parts);
  for (int row = 0; row < s.pixels; ++row)
    for (int column = 0; column < s.channels; ++column) {
      const std::byte* weights = args.weights + column / 16 * kTileBytes + column % 16 * 4;
      Sum& total = reinterpret_cast<Sum*>(args.sums)[row * s.sum_row / 4 + column];
      Sum sum = s.accumulates ? total : s.begins ? reinterpret_cast<const Sum*>(args.begin)[column] : 0;
      for (int64_t tap = 0; tap < s.taps; ++tap)
        for (int64_t block = 0; block < s.channel_blocks; ++block, weights += s.parts * kStepWeights) {
          const std::byte* pixel = args.src + args.taps[tap] + block * s.src_block + row * s.src_pixel;
          for (const PartProduct& product : products)
            sum = add(sum, pixel + product.left * s.src_part, weights + product.right * kStepWeights);
        }
      total = sum;
    }
}

}  // namespace

size_t emit_tile_matmul(Emitter& e, const TileMatmulSpec& s) {
  const Xbyak::Reg64 src = e.r8, weights = e.r9, sums = e.r10, taps = e.r11, tap_count = e.rcx, block_count = e.rdx,
                     pixel = e.rax, row = e.rdi, at = e.rsi, prefetch = e.rbx;
  const int row_tiles = s.pixels / 16, column_tiles = s.channels / 16;
  const auto sum = [&](int r, int c) { return Tmm(2 * r + c); };
  const auto pixels = [](int r) { return Tmm(4 + r); };
  const auto channels = [](int c) { return Tmm(6 + c); };
  const size_t offset = begin_function(e);
  e.push(prefetch);
  e.mov(src, e.ptr[e.rdi + int{offsetof(TileMatmulArgs, src)}]);
  e.mov(weights, e.ptr[e.rdi + int{offsetof(TileMatmulArgs, weights)}]);
  e.mov(sums, e.ptr[e.rdi + int{offsetof(TileMatmulArgs, sums)}]);
  e.mov(taps, e.ptr[e.rdi + int{offsetof(TileMatmulArgs, taps)}]);
  e.mov(prefetch, e.ptr[e.rdi + int{offsetof(TileMatmulArgs, prefetch)}]);
  e.mov(pixel, s.src_pixel);
  const auto for_each_sum = [&](const auto& body) {
    e.mov(row, s.sum_row);
    for (int r = 0; r < row_tiles; ++r)
      for (int c = 0; c < column_tiles; ++c)
        body(sum(r, c), e.ptr[sums + row + static_cast<int>(r * 16 * s.sum_row + c * 64)]);
  };
  if (s.begins) {  // the same row sixteen times
    e.mov(at, e.ptr[e.rdi + int{offsetof(TileMatmulArgs, begin)}]);
    e.xor_(row.cvt32(), row.cvt32());
    for (int r = 0; r < row_tiles; ++r)
      for (int c = 0; c < column_tiles; ++c) e.tileloadd(sum(r, c), e.ptr[at + row + c * 64]);
  } else {
    for_each_sum([&](const Tmm& tile, const Xbyak::Address& from) {
      if (s.accumulates) e.tileloadd(tile, from);
      else e.tilezero(tile);
    });
  }
  e.mov(row.cvt32(), static_cast<uint32_t>(kTileRow));
  Xbyak::Label tap, block;
  e.mov(tap_count.cvt32(), static_cast<uint32_t>(s.taps));
  e.L(tap);
  e.mov(at, e.ptr[taps]);
  e.add(at, src);
  e.mov(block_count.cvt32(), static_cast<uint32_t>(s.channel_blocks));
  e.align(32);
  e.L(block);
  PartProduct loaded{-1, -1};
  for (const PartProduct& product : products_of(s.parts)) {
    for (int r = 0; r < row_tiles; ++r) {
      if (product.left != loaded.left)
        e.tileloadd(pixels(r), e.ptr[at + pixel + static_cast<int>(product.left * s.src_part + r * 16 * s.src_pixel)]);
      for (int c = 0; c < column_tiles; ++c) {
        if (r == 0 && product.right != loaded.right)
          e.tileloadd(channels(c),
                      e.ptr[weights + row + static_cast<int>(product.right * kStepWeights + c * kTileBytes)]);
        if (s.bytes) e.tdpbusd(sum(r, c), pixels(r), channels(c));
        else e.tdpbf16ps(sum(r, c), pixels(r), channels(c));
      }
    }
    loaded = product;
  }
  for (int line = 0; line < s.prefetch_lines; ++line) e.prefetcht1(e.ptr[prefetch + 64 * line]);
  if (s.prefetch_lines > 0) e.add(prefetch, 64 * s.prefetch_lines);
  e.add(at, static_cast<int>(s.src_block));
  e.add(weights, static_cast<int>(s.parts * kStepWeights));
  e.dec(block_count.cvt32());
  e.jnz(block, e.T_NEAR);
  e.add(taps, 8);
  e.dec(tap_count.cvt32());
  e.jnz(tap, e.T_NEAR);
  for_each_sum([&](const Tmm& tile, const Xbyak::Address& to) { e.tilestored(to, tile); });
  e.pop(prefetch);
  e.ret();
  return offset;
}

size_t emit_tile_output(Emitter& emitter, const TileOutputSpec& spec) { return OutputEmitter(emitter, spec).emit(); }

size_t emit_tile_pack(Emitter& e, const TilePackSpec& s) {
  const Xbyak::Reg64 src = e.rsi, dst = e.rdx, count = e.rcx;
  const Lanes lanes(s.channels);
  Bf16Memory bf16(e);
  const size_t offset = begin_function(e);
  e.set_tail(lanes.tail);
  e.mov(e.rax, ~uint64_t{0} >> (64 - s.channels));
  e.kmovd(e.k3, e.eax);
  e.mov(src, e.ptr[e.rdi + int{offsetof(TilePackArgs, src)}]);
  e.mov(dst, e.ptr[e.rdi + int{offsetof(TilePackArgs, dst)}]);
  e.mov(count, e.ptr[e.rdi + int{offsetof(TilePackArgs, pixels)}]);
  Xbyak::Label loop;
  e.align(32);
  e.L(loop);
  if (s.type == DType::bf16) {
    e.vmovdqu16(Xbyak::Zmm(0) | e.k3 | e.T_z, e.ptr[src]);
    e.vmovdqu16(e.ptr[dst], Xbyak::Zmm(0));
  } else {
    for (int v = 0; v < 2; ++v) {
      const Vec x = e.vec(4 * v);
      if (v >= lanes.vectors) e.zero(x);
      else if (lanes.is_tail(v)) e.load_tail(x, e.ptr[src + 64 * v], x);
      else e.load(x, e.ptr[src + 64 * v]);
      if (s.scale != 1) e.vmulps(x, x, e.constant(s.scale));
      store_parts(e, bf16, s, dst + 32 * v, x);
    }
  }
  e.add(src, static_cast<int>(s.src_pixel));
  e.add(dst, static_cast<int>(kTileRow));
  e.dec(count);
  e.jnz(loop, e.T_NEAR);
  e.vzeroupper();
  e.ret();
  return offset;
}

size_t emit_tiles_on(Emitter& e) {
  const size_t offset = begin_function(e);
  e.ldtilecfg(e.ptr[e.rdi]);
  e.ret();
  return offset;
}

size_t emit_tiles_off(Emitter& e) {
  const size_t offset = begin_function(e);
  e.tilerelease();
  e.ret();
  return offset;
}

void multiply_without_tiles(const TileMatmulSpec& s, const TileMatmulArgs& args) {
  if (s.bytes) multiply_steps<int32_t>(s, args, add_bytes);
  else multiply_steps<float>(s, args, add_bf16);
}

}  // namespace hone::cpu
