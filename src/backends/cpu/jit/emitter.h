// SPDX-License-Identifier: Apache-2.0
//
// A thin layer over Xbyak that hides the difference between AVX2 and AVX-512: vectors of the right width, loads and stores
// of a partial last vector, and a pool of float constants behind the code. Only generators include this header.
//
// Usage: derive or own, emit, call finish(); pages turn from writable to executable there (never both at once).
#pragma once

#include <xbyak/xbyak.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "backends/cpu/jit/isa.h"

namespace hone::cpu {

/// An operand that reads one value in every lane: memory behind the code, or the register that keeps it.
class Constant {
 public:
  explicit Constant(const Xbyak::Address& memory) : place_(memory) {}
  explicit Constant(const Xbyak::Xmm& kept) : place_(kept) {}
  // NOLINTNEXTLINE(google-explicit-constructor): instructions take it as the operand that it is
  operator const Xbyak::Operand&() const {
    return std::visit([](const auto& place) -> const Xbyak::Operand& { return place; }, place_);
  }

 private:
  std::variant<Xbyak::Address, Xbyak::Xmm> place_;
};

class Emitter : public Xbyak::CodeGenerator {
 public:
  using Vec = Xbyak::Xmm;  // carries its real width (ymm or zmm) in its kind

  static constexpr size_t kCodeBytes = 1 << 20;  // reserved; pages are only committed when written

  explicit Emitter(Isa isa);

  /// A finished emitter with what `body` emits; Xbyak's own errors (too much code, a bug in a generator) become ours.
  static std::unique_ptr<Emitter> generate(Isa isa, const std::function<void(Emitter&)>& body);

  Isa isa() const { return isa_; }
  bool avx512() const { return isa_ == Isa::avx512; }
  int lanes() const { return lanes_of(isa_); }
  int vector_bytes() const { return 4 * lanes(); }
  int registers() const { return registers_of(isa_); }
  Vec vec(int index) const { return Vec(avx512() ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, index); }

  void load(const Vec& x, const Xbyak::Address& from) { vmovups(x, from); }
  void store(const Xbyak::Address& to, const Vec& x) { vmovups(to, x); }
  void zero(const Vec& x);
  void broadcast(const Vec& x, const Xbyak::Address& from) { vbroadcastss(x, from); }
  void load_constant(const Vec& x, float value);
  void round_to_nearest(const Vec& x);

  /// Declares how many lanes the partial vectors below have; AVX-512 sets mask register k1 (clobbers eax).
  void set_tail(int lanes);
  int tail() const { return tail_; }
  /// Lanes past the tail read as zero and are not touched in memory. AVX2 uses `mask` as a scratch register.
  void load_tail(const Vec& x, const Xbyak::Address& from, const Vec& mask);
  void store_tail(const Xbyak::Address& to, const Vec& x, const Vec& mask);

  Constant constant(float value);
  Constant constant_bits(uint32_t bits);
  /// Loads a constant into a register that nothing else uses; what is emitted behind reads it there.
  void keep(uint32_t bits, const Vec& x);
  /// How often each constant was asked for.
  const std::map<uint32_t, int>& uses() const { return uses_; }
  /// Memory operand of a vector with a number of its own in each lane.
  Xbyak::Address constant_lanes(const std::vector<uint32_t>& lanes);

  /// Emits the constants and makes the code executable. Nothing may be emitted after.
  void finish();
  template <typename Function>
  Function entry(size_t offset) const {
    return reinterpret_cast<Function>(const_cast<uint8_t*>(CodeArray::getCode()) + offset);
  }

 private:
  Xbyak::Address at(size_t offset, bool broadcast);
  size_t pooled(uint32_t bits);
  size_t pooled_tail_mask();

  Isa isa_;
  int tail_ = 0;
  Xbyak::Label pool_;
  std::vector<uint32_t> words_;
  std::map<uint32_t, size_t> offsets_;  // constant bits → byte offset in the pool
  std::map<int, size_t> tail_masks_;    // tail lanes → byte offset in the pool (AVX2)
  std::map<std::vector<uint32_t>, size_t> lanes_;
  std::map<uint32_t, int> uses_;
  std::map<uint32_t, Vec> kept_;
};

}  // namespace hone::cpu
