// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/jit/emitter.h"

#include <bit>

#include "base/code_names.h"
#include "base/error.h"

namespace hone::cpu {

Emitter::Emitter(Isa isa) : CodeGenerator(kCodeBytes, Xbyak::DontSetProtectRWE), isa_(isa) {
  HONE_ASSERT(isa != Isa::scalar, "no code is generated for the scalar instruction set");
}

std::unique_ptr<Emitter> Emitter::generate(Isa isa, const std::function<void(Emitter&)>& body) {
  try {
    auto emitter = std::make_unique<Emitter>(isa);
    body(*emitter);
    emitter->finish();
    return emitter;
  } catch (const Xbyak::Error& error) {
    throw InternalError(fmt::format("code generation for {}: {}", to_string(isa), error.what()));
  }
}

void Emitter::zero(const Vec& x) {
  if (avx512()) {
    vpxord(x, x, x);
  } else {
    vxorps(x, x, x);
  }
}

void Emitter::set_tail(int lanes) {
  tail_ = lanes;
  if (!avx512() || lanes == 0) return;
  mov(eax, (1u << lanes) - 1);
  kmovw(k1, eax);
}

void Emitter::load_constant(const Vec& x, float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  ++uses_[bits];
  if (const auto kept = kept_.find(bits); kept != kept_.end()) return vmovaps(x, kept->second);
  const size_t offset = pooled(bits);
  if (avx512()) {
    vbroadcastss(x, dword[rip + pool_ + static_cast<int>(offset)]);
  } else {
    vmovups(x, at(offset, false));
  }
}

void Emitter::round_to_nearest(const Vec& x) {
  if (avx512()) {
    vrndscaleps(x, x, 0);
  } else {
    vroundps(x, x, 0);
  }
}

Xbyak::Address Emitter::at(size_t offset, bool broadcast) {
  const auto where = rip + pool_ + static_cast<int>(offset);
  if (avx512()) return broadcast ? zword_b[where] : zword[where];
  return yword[where];
}

size_t Emitter::pooled(uint32_t bits) {
  const auto [entry, fresh] = offsets_.try_emplace(bits, words_.size() * 4);
  // AVX-512 broadcasts from one word; AVX2 has no such operand, so its pool holds whole vectors.
  if (fresh) words_.insert(words_.end(), avx512() ? 1 : 8, bits);
  return entry->second;
}

size_t Emitter::pooled_tail_mask() {
  const auto [entry, fresh] = tail_masks_.try_emplace(tail_, words_.size() * 4);
  if (fresh)
    for (int lane = 0; lane < 8; ++lane) words_.push_back(lane < tail_ ? 0xffffffffu : 0u);
  return entry->second;
}

void Emitter::load_tail(const Vec& x, const Xbyak::Address& from, const Vec& mask) {
  if (avx512()) {
    vmovups(x | k1 | T_z, from);
    return;
  }
  vmovups(mask, at(pooled_tail_mask(), false));
  vmaskmovps(x, mask, from);
}

void Emitter::store_tail(const Xbyak::Address& to, const Vec& x, const Vec& mask) {
  if (avx512()) {
    vmovups(to | k1, x);
    return;
  }
  vmovups(mask, at(pooled_tail_mask(), false));
  vmaskmovps(to, mask, x);
}

Constant Emitter::constant(float value) { return constant_bits(std::bit_cast<uint32_t>(value)); }

Constant Emitter::constant_bits(uint32_t bits) {
  ++uses_[bits];
  const auto kept = kept_.find(bits);
  return kept != kept_.end() ? Constant(kept->second) : Constant(at(pooled(bits), true));
}

void Emitter::keep(uint32_t bits, const Vec& x) {
  load_constant(x, std::bit_cast<float>(bits));
  kept_.insert_or_assign(bits, x);
}

Xbyak::Address Emitter::constant_lanes(const std::vector<uint32_t>& lanes) {
  HONE_ASSERT(static_cast<int>(lanes.size()) == this->lanes(), "{} lanes", lanes.size());
  const auto [entry, fresh] = lanes_.try_emplace(lanes, words_.size() * 4);
  if (fresh) words_.insert(words_.end(), lanes.begin(), lanes.end());
  return at(entry->second, false);
}

void Emitter::finish() {
  align(32);
  L(pool_);
  for (uint32_t bits : words_) dd(bits);
  setProtectModeRE();
  announce_code(getCode(), getSize());
}

}  // namespace hone::cpu
