// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/jit/bf16_memory.h"

namespace hone::cpu {
namespace {

using Vec = Emitter::Vec;

constexpr uint32_t kQuiet = 0x00400000u;  // a NaN with this bit stays one when its low half is cut off

Xbyak::Xmm xmm_of(const Vec& x) { return Xbyak::Xmm(x.getIdx()); }
Xbyak::Ymm ymm_of(const Vec& x) { return Xbyak::Ymm(x.getIdx()); }

}  // namespace

void Bf16Memory::load(const Vec& x, const Xbyak::RegExp& from) {
  e_.vpmovzxwd(x, e_.ptr[from]);
  widen(x);
}

void Bf16Memory::broadcast(const Vec& x, const Xbyak::RegExp& from) {
  e_.vpbroadcastw(x, e_.word[from]);
  widen(x);
}

void Bf16Memory::load_tail(const Vec& x, const Xbyak::RegExp& from) {
  if (e_.avx512()) {
    e_.vpmovzxwd(x | e_.k1 | e_.T_z, e_.ptr[from]);
    return widen(x);
  }
  // AVX2 has no mask for words: 4, 2 and 1 of them.
  const Xbyak::Xmm low = xmm_of(x);
  const int count = e_.tail(), fours = count & 4, pairs = count & 2;
  if (fours != 0) e_.vmovq(low, e_.qword[from]);
  else e_.vpxor(low, low, low);
  if (pairs != 0) e_.vpinsrd(low, low, e_.dword[from + 2 * fours], static_cast<uint8_t>(fours / 2));
  if ((count & 1) != 0) e_.vpinsrw(low, low, e_.word[from + 2 * (count - 1)], static_cast<uint8_t>(count - 1));
  e_.vpmovzxwd(x, low);
  widen(x);
}

/// Into the low half of `x`: with AVX-512 of every lane, else of the register.
void Bf16Memory::narrow(const Vec& x, const Vec& a, const Vec& b) {
  e_.vpsrld(a, x, 16);
  if (e_.avx512()) {
    e_.vpandd(a, a, e_.constant_bits(1));
    e_.vpaddd(a, a, e_.constant_bits(0x7fff));
    e_.vcmpps(e_.k2, x, x, 3);  // unordered
    e_.vpaddd(a, a, x);
    e_.vpord(a | e_.k2, x, e_.constant_bits(kQuiet));
    e_.vpsrld(x, a, 16);
    return;
  }
  e_.vpand(a, a, e_.constant_bits(1));
  e_.vpaddd(a, a, e_.constant_bits(0x7fff));
  e_.vpaddd(a, a, x);
  e_.vcmpps(b, x, x, 3);
  e_.vpor(x, x, e_.constant_bits(kQuiet));
  e_.vblendvps(a, a, x, b);
  e_.vpsrld(a, a, 16);
  e_.vextracti128(xmm_of(x), ymm_of(a), 1);
  e_.vpackusdw(xmm_of(x), xmm_of(a), xmm_of(x));
}

void Bf16Memory::store(const Xbyak::RegExp& to, const Vec& x, const Vec& a, const Vec& b) {
  if (converts_) {
    e_.vcvtneps2bf16(ymm_of(x), x);
    return e_.vmovdqu16(e_.ptr[to], ymm_of(x));
  }
  narrow(x, a, b);
  if (e_.avx512()) e_.vpmovdw(e_.ptr[to], x);
  else e_.vmovdqu(e_.ptr[to], xmm_of(x));
}

void Bf16Memory::store_tail(const Xbyak::RegExp& to, const Vec& x, const Vec& a, const Vec& b) {
  if (converts_) {
    e_.vcvtneps2bf16(ymm_of(x), x);
    return e_.vmovdqu16(e_.ptr[to] | e_.k1, ymm_of(x));
  }
  narrow(x, a, b);
  if (e_.avx512()) {
    e_.vpmovdw(e_.ptr[to] | e_.k1, x);
    return;
  }
  const Xbyak::Xmm low = xmm_of(x);
  const int count = e_.tail(), fours = count & 4, pairs = count & 2;
  if (fours != 0) e_.vmovq(e_.qword[to], low);
  if (pairs != 0) e_.vpextrd(e_.dword[to + 2 * fours], low, static_cast<uint8_t>(fours / 2));
  if ((count & 1) != 0) e_.vpextrw(e_.word[to + 2 * (count - 1)], low, static_cast<uint8_t>(count - 1));
}

}  // namespace hone::cpu
