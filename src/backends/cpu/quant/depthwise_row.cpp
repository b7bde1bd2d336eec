// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/quant/depthwise_row.h"

#include "base/error.h"

namespace hone::cpu {
namespace {

constexpr int kQuarters = 4;

class RowWriter {
 public:
  using Vec = Emitter::Vec;
  RowWriter(Emitter& emitter, const DepthwiseRowSpec& spec)
      : e_(emitter), s_(spec), math_(emitter), quotient_(spec.result.scale) {}

  size_t write() {
    e_.align(64);
    const size_t offset = e_.getSize();
    begin();
    Xbyak::Label pixel;
    e_.align(32);
    e_.L(pixel);
    for (int q = 0; q < kQuarters; ++q) e_.load(sum(q), e_.ptr[base_ + q * e_.vector_bytes()]);
    for (int64_t step = 0; step < s_.steps(); ++step) s_.dot == IntegerDot::bytes ? four_taps(step) : two_taps(step);
    end_pixel();
    e_.add(src_, static_cast<int>(s_.src_pixel));
    e_.add(dst_, static_cast<int>(s_.dst_pixel));
    e_.dec(pixels_);
    e_.jnz(pixel, e_.T_NEAR);
    e_.vzeroupper();
    e_.ret();
    return offset;
  }

 private:
  Vec sum(int q) const { return e_.vec(q); }
  Vec tap(int i) const { return e_.vec(4 + i); }
  Vec pair(int i) const { return e_.vec(8 + i); }
  Vec rounded(int q) const { return e_.vec(4 + q); }
  Vec scratch(int i) const { return e_.vec(8 + i); }
  Vec zero() const { return e_.vec(14); }
  Vec one_factor() const { return e_.vec(15); }

  void begin() {
    const auto arg = [&](size_t offset) { return e_.qword[e_.rdi + static_cast<int>(offset)]; };
    e_.mov(src_, arg(offsetof(DepthwiseRowArgs, src)));
    e_.mov(dst_, arg(offsetof(DepthwiseRowArgs, dst)));
    e_.mov(weights_, arg(offsetof(DepthwiseRowArgs, weights)));
    e_.mov(base_, arg(offsetof(DepthwiseRowArgs, base)));
    e_.mov(factor_, arg(offsetof(DepthwiseRowArgs, factor)));
    e_.mov(bias_, arg(offsetof(DepthwiseRowArgs, bias)));
    e_.mov(pixels_, arg(offsetof(DepthwiseRowArgs, pixels)));
    if (s_.factor == Factor::one) e_.broadcast(one_factor(), e_.ptr[factor_]);
    if (s_.dot == IntegerDot::words) e_.zero(zero());
    if (!e_.avx512() || s_.channels == depthwise_block(e_.isa())) return;
    e_.mov(e_.rax, (uint64_t{1} << s_.channels) - 1);
    e_.kmovq(e_.k1, e_.rax);
  }

  /// Behind the last tap its bytes again, which weights of zero are multiplied by.
  Xbyak::Address tap_at(int64_t index) const {
    const size_t last = s_.taps.size() - 1;
    return e_.ptr[src_ + static_cast<int>(s_.taps[std::min(static_cast<size_t>(index), last)])];
  }
  Xbyak::Address weights_at(int64_t step, int q) const {
    return e_.ptr[weights_ + static_cast<int>((step * kQuarters + q) * e_.vector_bytes())];
  }

  void four_taps(int64_t step) {
    for (int i = 0; i < 4; ++i) e_.load(tap(i), tap_at(step * 4 + i));
    e_.vpunpcklbw(pair(0), tap(0), tap(1));
    e_.vpunpcklbw(pair(1), tap(2), tap(3));
    e_.vpunpckhbw(pair(2), tap(0), tap(1));
    e_.vpunpckhbw(pair(3), tap(2), tap(3));
    join_pairs();
    for (int q = 0; q < kQuarters; ++q)
      e_.vpdpbusd(sum(q), tap(q), weights_at(step, q), e_.avx512() ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
  }

  void two_taps(int64_t step) {
    for (int i = 0; i < 2; ++i) e_.load(tap(i), tap_at(step * 2 + i));
    for (int i = 0; i < 2; ++i) {
      e_.vpunpcklbw(pair(i), tap(i), zero());
      e_.vpunpckhbw(pair(2 + i), tap(i), zero());
    }
    join_pairs();
    for (int q = 0; q < kQuarters; ++q) {
      e_.vpmaddwd(tap(q), tap(q), weights_at(step, q));
      e_.vpaddd(sum(q), sum(q), tap(q));
    }
  }

  /// The words of pairs 0 and 1, then 2 and 3, side by side, in the registers of the taps.
  void join_pairs() {
    for (int half = 0; half < 2; ++half) {
      e_.vpunpcklwd(tap(2 * half), pair(2 * half), pair(2 * half + 1));
      e_.vpunpckhwd(tap(2 * half + 1), pair(2 * half), pair(2 * half + 1));
    }
  }

  void end_pixel() {
    for (int q = 0; q < kQuarters; ++q) {
      if (s_.factor != Factor::none) scale(q);
      if (!s_.result) store_quarter(q);
      else round(q);
    }
    if (s_.result) store_bytes();
  }

  void scale(int q) {
    const int offset = q * e_.vector_bytes();
    const Vec x = sum(q);
    e_.vcvtdq2ps(x, x);
    if (s_.factor == Factor::one) e_.vmulps(x, x, one_factor());
    else e_.vmulps(x, x, e_.ptr[factor_ + offset]);
    if (s_.bias) e_.vaddps(x, x, e_.ptr[bias_ + offset]);
    if (!s_.result || !are_bounds(s_.activation.kind))
      math_.activation(s_.activation, x, scratch(0), scratch(1), scratch(2));
  }

  void round(int q) {
    const StepBounds bounds =
        are_bounds(s_.activation.kind) ? step_bounds_behind(s_.activation, s_.result) : step_bounds(s_.result);
    emit_clamped_steps(e_, rounded(q), sum(q), scratch(0), quotient_, saturating(bounds, s_.result));
    e_.vcvtps2dq(rounded(q), rounded(q));
  }

  void store_bytes() {
    e_.vpackssdw(scratch(0), rounded(0), rounded(1));
    e_.vpackssdw(scratch(1), rounded(2), rounded(3));
    if (s_.result.zero != 0)
      for (int half = 0; half < 2; ++half) e_.vpaddsw(scratch(half), scratch(half), e_.constant_lanes(zero_words()));
    const Vec bytes = scratch(0);
    if (is_signed(s_.result)) e_.vpacksswb(bytes, bytes, scratch(1));
    else e_.vpackuswb(bytes, bytes, scratch(1));
    if (s_.channels == depthwise_block(e_.isa())) e_.store(e_.ptr[dst_], bytes);
    else if (e_.avx512()) e_.vmovdqu8(e_.ptr[dst_] | e_.k1, bytes);
    else store_some(bytes);
  }

  std::vector<uint32_t> zero_words() const {
    const uint32_t zero = static_cast<uint32_t>(s_.result.zero) & 0xffff;
    return std::vector<uint32_t>(static_cast<size_t>(e_.lanes()), zero * 0x10001);
  }

  /// The first of 32 bytes, in ever smaller pieces.
  void store_some(const Vec& bytes) {
    const Xbyak::Xmm low(bytes.getIdx());
    int done = 0, left = s_.channels;
    if (left >= 16) {
      e_.vmovups(e_.ptr[dst_], low);
      e_.vextracti128(low, Xbyak::Ymm(bytes.getIdx()), 1);
      done = 16, left -= 16;
    }
    const auto store_piece = [&](int size, auto&& store) {
      if (left < size) return;
      store(dst_ + done);
      e_.vpsrldq(low, low, static_cast<uint8_t>(size));
      done += size, left -= size;
    };
    store_piece(8, [&](const Xbyak::RegExp& to) { e_.vmovq(e_.qword[to], low); });
    store_piece(4, [&](const Xbyak::RegExp& to) { e_.vmovd(e_.dword[to], low); });
    store_piece(2, [&](const Xbyak::RegExp& to) { e_.vpextrw(e_.word[to], low, 0); });
    store_piece(1, [&](const Xbyak::RegExp& to) { e_.vpextrb(e_.byte[to], low, 0); });
  }

  /// Sums or floats: four channels of each 128 bits follow each other.
  void store_quarter(int q) {
    const Vec x = sum(q);
    const Xbyak::Xmm part(scratch(0).getIdx());
    for (int l = 0; l < e_.lanes() / 4; ++l) {
      const int first = 16 * l + 4 * q, count = std::min(4, s_.channels - first);
      if (count <= 0) continue;
      if (e_.avx512()) e_.vextractf32x4(part, Xbyak::Zmm(x.getIdx()), static_cast<uint8_t>(l));
      else e_.vextractf128(part, Xbyak::Ymm(x.getIdx()), static_cast<uint8_t>(l));
      if (count == 4) e_.vmovups(e_.ptr[dst_ + first * 4], part);
      else
        for (int i = 0; i < count; ++i) e_.vpextrd(e_.dword[dst_ + (first + i) * 4], part, static_cast<uint8_t>(i));
    }
  }

  Emitter& e_;
  const DepthwiseRowSpec& s_;
  VectorMath math_;
  StepQuotient quotient_;
  const Xbyak::Reg64 src_{Xbyak::Operand::RSI}, dst_{Xbyak::Operand::R10}, weights_{Xbyak::Operand::RDX},
      base_{Xbyak::Operand::R8}, factor_{Xbyak::Operand::R9}, bias_{Xbyak::Operand::R11}, pixels_{Xbyak::Operand::RCX};
};

}  // namespace

size_t emit_depthwise_row(Emitter& emitter, const DepthwiseRowSpec& spec) { return RowWriter(emitter, spec).write(); }

}  // namespace hone::cpu
