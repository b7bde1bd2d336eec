// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/jit/byte_memory.h"

namespace hone::cpu {
namespace {

using Vec = Emitter::Vec;
enum Predicate { kOrdered = 7 };

Xbyak::Xmm xmm_of(const Vec& x) { return Xbyak::Xmm(x.getIdx()); }
Xbyak::Ymm ymm_of(const Vec& x) { return Xbyak::Ymm(x.getIdx()); }

}  // namespace

void ByteMemory::widen(const Vec& x, const Xbyak::Operand& bytes, bool is_signed) {
  if (is_signed) e_.vpmovsxbd(x, bytes);
  else e_.vpmovzxbd(x, bytes);
}

void ByteMemory::load(const Vec& x, const Xbyak::RegExp& from, bool is_signed, bool tail) {
  load_integers(x, from, is_signed, tail);
  e_.vcvtdq2ps(x, x);
}

void ByteMemory::load_integers(const Vec& x, const Xbyak::RegExp& from, bool is_signed, bool tail) {
  if (!tail) {
    widen(x, e_.ptr[from], is_signed);
  } else if (e_.avx512()) {
    widen(x | e_.k1 | e_.T_z, e_.ptr[from], is_signed);
  } else {
    // AVX2 has no mask for bytes: 4, 2 and 1 of them.
    const Xbyak::Xmm low = xmm_of(x);
    const int count = e_.tail(), fours = count & 4, pairs = count & 2;
    if (fours != 0) e_.vmovd(low, e_.dword[from]);
    else e_.vpxor(low, low, low);
    if (pairs != 0) e_.vpinsrw(low, low, e_.word[from + fours], static_cast<uint8_t>(fours / 2));
    if ((count & 1) != 0) e_.vpinsrb(low, low, e_.byte[from + (count - 1)], static_cast<uint8_t>(count - 1));
    widen(x, low, is_signed);
  }
}

void ByteMemory::broadcast(const Vec& x, const Xbyak::RegExp& from, bool is_signed) {
  const Xbyak::Xmm low = xmm_of(x);
  e_.vpbroadcastb(low, e_.byte[from]);
  widen(x, low, is_signed);
  e_.vcvtdq2ps(x, x);
}

/// To integers of 32 bits. What does not fit becomes 0x80000000, which AVX-512 then narrows to the largest unsigned or the least
/// signed byte; AVX2 narrows by way of 16 bits, where nothing may be that large.
void ByteMemory::round(const Vec& x, const Vec& scratch, bool is_signed) {
  if (!is_signed) {
    e_.vmaxps(x, x, e_.constant(0.0F));  // of NaN the second
    if (!e_.avx512()) e_.vminps(x, x, e_.constant(255.0F));
  } else if (e_.avx512()) {
    e_.vcmpps(e_.k2, x, x, kOrdered);
    e_.vminps(x | e_.k2 | e_.T_z, x, e_.constant(127.0F));
  } else {
    e_.vcmpps(scratch, x, x, kOrdered);
    e_.vandps(x, x, scratch);
    e_.vminps(x, x, e_.constant(127.0F));
    e_.vmaxps(x, x, e_.constant(-128.0F));
  }
  e_.vcvtps2dq(x, x);
}

void ByteMemory::store(const Xbyak::RegExp& to, const Vec& x, const Vec& scratch, bool is_signed, bool tail) {
  round(x, scratch, is_signed);
  store_integers(to, x, scratch, is_signed, tail);
}

void ByteMemory::store_integers(const Xbyak::RegExp& to, const Vec& x, const Vec& scratch, bool is_signed, bool tail) {
  if (e_.avx512()) {
    const Xbyak::Address place = tail ? e_.ptr[to] | e_.k1 : e_.ptr[to];
    return is_signed ? e_.vpmovsdb(place, x) : e_.vpmovusdb(place, x);
  }
  const Xbyak::Xmm low = xmm_of(x), high = xmm_of(scratch);
  e_.vextracti128(high, ymm_of(x), 1);
  e_.vpackssdw(low, low, high);
  if (is_signed) e_.vpacksswb(low, low, low);
  else e_.vpackuswb(low, low, low);
  if (!tail) return e_.vmovq(e_.qword[to], low);
  const int count = e_.tail(), fours = count & 4, pairs = count & 2;
  if (fours != 0) e_.vmovd(e_.dword[to], low);
  if (pairs != 0) e_.vpextrw(e_.word[to + fours], low, static_cast<uint8_t>(fours / 2));
  if ((count & 1) != 0) e_.vpextrb(e_.byte[to + (count - 1)], low, static_cast<uint8_t>(count - 1));
}

}  // namespace hone::cpu
