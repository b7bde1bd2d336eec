// SPDX-License-Identifier: Apache-2.0
//
// bf16 in memory, f32 in registers: loads widen, stores round to nearest even and keep NaN a quiet NaN, on every instruction
// set; where the processor has an instruction for it, that one rounds, and takes what is below the normal numbers for zero.
// A vector of f32 lanes is half as many bytes here. Only generators include this header.
#pragma once

#include "backends/cpu/jit/emitter.h"

namespace hone::cpu {

class Bf16Memory {
 public:
  explicit Bf16Memory(Emitter& emitter) : e_(emitter), converts_(has_bf16_instructions(emitter.isa())) {}

  void load(const Emitter::Vec& x, const Xbyak::RegExp& from);
  void broadcast(const Emitter::Vec& x, const Xbyak::RegExp& from);
  /// The partial vector that Emitter::set_tail() declared; lanes past it read as zero.
  void load_tail(const Emitter::Vec& x, const Xbyak::RegExp& from);

  /// `x` and both scratch registers are lost, with AVX-512 mask register k2 too.
  void store(const Xbyak::RegExp& to, const Emitter::Vec& x, const Emitter::Vec& a, const Emitter::Vec& b);
  void store_tail(const Xbyak::RegExp& to, const Emitter::Vec& x, const Emitter::Vec& a, const Emitter::Vec& b);

 private:
  void narrow(const Emitter::Vec& x, const Emitter::Vec& a, const Emitter::Vec& b);
  void widen(const Emitter::Vec& x) { e_.vpslld(x, x, 16); }

  Emitter& e_;
  const bool converts_;  // VCVTNEPS2BF16
};

}  // namespace hone::cpu
