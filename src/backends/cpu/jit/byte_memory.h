// SPDX-License-Identifier: Apache-2.0
//
// Vectors of 32-bit integers that lie in memory as bytes, signed or not. What is stored is in the bytes' range.
#pragma once

#include "backends/cpu/jit/emitter.h"

namespace hone::cpu {

class ByteMemory {
 public:
  using Vec = Emitter::Vec;
  explicit ByteMemory(Emitter& emitter) : e_(emitter) {}

  void load(const Vec& x, const Xbyak::RegExp& from, bool is_signed);
  /// As many bytes as the emitter's tail; the other lanes are zero.
  void load_tail(const Vec& x, const Xbyak::RegExp& from, bool is_signed);
  /// Clobbers x and, with AVX2, `scratch`.
  void store(const Xbyak::RegExp& to, const Vec& x, const Vec& scratch, bool is_signed);
  void store_tail(const Xbyak::RegExp& to, const Vec& x, const Vec& scratch, bool is_signed);

 private:
  template <typename From>
  void widen(const Vec& x, const From& from, bool is_signed);
  void narrow(const Vec& x, const Vec& scratch, bool is_signed);

  Emitter& e_;
};

}  // namespace hone::cpu
