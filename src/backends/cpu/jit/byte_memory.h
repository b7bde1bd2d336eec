// SPDX-License-Identifier: Apache-2.0
//
// Bytes in memory, f32 or integers of 32 bits in registers: loads widen, stores saturate and make 0 of NaN. A vector of f32 lanes is
// a quarter as many bytes here; its tail is the one that Emitter::set_tail() declared. Only generators include this header.
#pragma once

#include "backends/cpu/jit/emitter.h"

namespace hone::cpu {

class ByteMemory {
 public:
  explicit ByteMemory(Emitter& emitter) : e_(emitter) {}

  /// Lanes past the tail become numbers of no meaning, and are not touched in memory.
  void load(const Emitter::Vec& x, const Xbyak::RegExp& from, bool is_signed, bool tail);
  void load_integers(const Emitter::Vec& x, const Xbyak::RegExp& from, bool is_signed, bool tail);
  void broadcast(const Emitter::Vec& x, const Xbyak::RegExp& from, bool is_signed);

  /// Nearest bytes. `x` and `scratch` are lost, with AVX-512 mask register k2 too.
  void store(const Xbyak::RegExp& to, const Emitter::Vec& x, const Emitter::Vec& scratch, bool is_signed, bool tail);
  /// Of integers that are such bytes; `x` and `scratch` are lost.
  void store_integers(const Xbyak::RegExp& to, const Emitter::Vec& x, const Emitter::Vec& scratch, bool is_signed,
                      bool tail);

 private:
  void widen(const Emitter::Vec& x, const Xbyak::Operand& bytes, bool is_signed);
  void round(const Emitter::Vec& x, const Emitter::Vec& scratch, bool is_signed);

  Emitter& e_;
};

}  // namespace hone::cpu
