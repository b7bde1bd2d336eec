// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/jit/byte_memory.h"

namespace hone::cpu {
namespace {

Xbyak::Xmm low(const Emitter::Vec& x) { return Xbyak::Xmm(x.getIdx()); }

}  // namespace

template <typename From>
void ByteMemory::widen(const Vec& x, const From& from, bool is_signed) {
  if (is_signed) e_.vpmovsxbd(x, from);
  else e_.vpmovzxbd(x, from);
}

void ByteMemory::load(const Vec& x, const Xbyak::RegExp& from, bool is_signed) { widen(x, e_.ptr[from], is_signed); }

void ByteMemory::load_tail(const Vec& x, const Xbyak::RegExp& from, bool is_signed) {
  if (e_.avx512()) return widen(x | e_.k1 | e_.T_z, e_.ptr[from], is_signed);
  const int count = e_.tail(), words = count % 4 / 2;
  const Xbyak::Xmm bytes = low(x);
  if (count >= 4) e_.vmovd(bytes, e_.dword[from]);
  else e_.vpxor(bytes, bytes, bytes);
  if (words != 0) e_.vpinsrw(bytes, bytes, e_.word[from + count / 4 * 4], static_cast<uint8_t>(count / 4 * 2));
  if (count % 2 != 0) e_.vpinsrb(bytes, bytes, e_.byte[from + (count - 1)], static_cast<uint8_t>(count - 1));
  widen(x, bytes, is_signed);
}

/// With AVX2: the bytes of all lanes at the beginning of x.
void ByteMemory::narrow(const Vec& x, const Vec& scratch, bool is_signed) {
  e_.vextracti128(low(scratch), Xbyak::Ymm(x.getIdx()), 1);
  e_.vpackssdw(low(x), low(x), low(scratch));
  if (is_signed) e_.vpacksswb(low(x), low(x), low(x));
  else e_.vpackuswb(low(x), low(x), low(x));
}

void ByteMemory::store(const Xbyak::RegExp& to, const Vec& x, const Vec& scratch, bool is_signed) {
  if (e_.avx512()) return e_.vpmovdb(e_.ptr[to], x);
  narrow(x, scratch, is_signed);
  e_.vmovq(e_.qword[to], low(x));
}

void ByteMemory::store_tail(const Xbyak::RegExp& to, const Vec& x, const Vec& scratch, bool is_signed) {
  if (e_.avx512()) return e_.vpmovdb(e_.ptr[to] | e_.k1, x);
  narrow(x, scratch, is_signed);
  const int count = e_.tail(), words = count % 4 / 2;
  if (count >= 4) e_.vmovd(e_.dword[to], low(x));
  if (words != 0) e_.vpextrw(e_.word[to + count / 4 * 4], low(x), static_cast<uint8_t>(count / 4 * 2));
  if (count % 2 != 0) e_.vpextrb(e_.byte[to + (count - 1)], low(x), static_cast<uint8_t>(count - 1));
}

}  // namespace hone::cpu
