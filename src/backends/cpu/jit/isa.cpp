// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/jit/isa.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <xbyak/xbyak_util.h>

#include <algorithm>

#include "base/env.h"
#include "base/error.h"

namespace hone::cpu {
namespace {

constexpr std::string_view kEverything = "amx";

bool tiles_are_allowed() { return env_text("HONE_CPU_ISA").value_or(std::string(kEverything)) == kEverything; }

}  // namespace

Isa machine_isa() {
  // __builtin_cpu_supports also asks the operating system whether it saves the registers.
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  return avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::scalar;
}

bool has_bf16_instructions(Isa isa) { return isa == Isa::avx512 && __builtin_cpu_supports("avx512bf16"); }

bool has_bf16_matmuls(Isa isa) {
  return has_bf16_instructions(isa) || (isa == Isa::avx512 && env_text("HONE_CPU_BF16") == "emulated");
}

bool has_byte_dots(Isa isa) {
  static const Xbyak::util::Cpu cpu;
  if (isa == Isa::avx512) return cpu.has(Xbyak::util::Cpu::tAVX512_VNNI);
  return isa == Isa::avx2 && cpu.has(Xbyak::util::Cpu::tAVX_VNNI);
}

bool has_matrix_tile_instructions() {
  static const bool given = [] {
    using Xbyak::util::Cpu;
    const Cpu cpu;
    // Linux saves the tiles' 8 KiB for a process only once it has asked (ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA).
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return cpu.has(Cpu::tAMX_TILE) && cpu.has(Cpu::tAMX_BF16) &&
           syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return given;
}

bool has_matrix_tiles(Isa isa) {
  return tiles_are_allowed() && isa == Isa::avx512 &&
         (has_matrix_tile_instructions() || env_text("HONE_CPU_BF16") == "emulated");
}

bool has_byte_tile_instructions() {
  static const bool given = has_matrix_tile_instructions() && Xbyak::util::Cpu().has(Xbyak::util::Cpu::tAMX_INT8);
  return given;
}

bool has_byte_tiles(Isa isa) {
  return tiles_are_allowed() && isa == Isa::avx512 &&
         (has_byte_tile_instructions() || env_text("HONE_CPU_BF16") == "emulated");
}

bool has_half_loads(Isa isa) {
  static const bool f16c = Xbyak::util::Cpu().has(Xbyak::util::Cpu::tF16C);
  return isa == Isa::avx512 || (isa == Isa::avx2 && f16c);
}

Isa best_isa() {
  const auto cap = env_text("HONE_CPU_ISA");
  if (!cap || *cap == kEverything) return machine_isa();
  const auto isa = isa_from_string(*cap);
  if (!isa) throw Error("HONE_CPU_ISA=" + *cap + " is no instruction set", "use scalar, avx2, avx512 or amx");
  return std::min(*isa, machine_isa());
}

std::string_view to_string(Isa isa) {
  switch (isa) {
    case Isa::scalar: return "scalar";
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
  }
  return "?";
}

std::optional<Isa> isa_from_string(std::string_view text) {
  for (Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512})
    if (text == to_string(isa)) return isa;
  return std::nullopt;
}

}  // namespace hone::cpu
