// SPDX-License-Identifier: Apache-2.0
//
// The instruction sets that Hone generates code for, and which of them this machine has.
#pragma once

#include <optional>
#include <string_view>

namespace hone::cpu {

enum class Isa { scalar, avx2, avx512 };  // avx2 includes FMA; avx512 is F, VL, BW, DQ

/// What the processor and the operating system offer, ignoring HONE_CPU_ISA.
Isa machine_isa();
/// Whether `isa` and the processor have the instructions of AVX512-BF16.
bool has_bf16_instructions(Isa isa);
/// The same, for matmuls of bf16 into sums of f32; or HONE_CPU_BF16=emulated pretends so: right and slow, for tests.
bool has_bf16_matmuls(Isa isa);
/// Whether the processor has AMX tiles of bf16 and the system gives them to this process.
bool has_matrix_tile_instructions();
/// The same, under `isa`; or HONE_CPU_BF16=emulated pretends so.
bool has_matrix_tiles(Isa isa);
/// The same, of tiles of bytes; or HONE_CPU_BF16=emulated pretends so.
bool has_byte_tile_instructions();
bool has_byte_tiles(Isa isa);
/// Whether the processor adds up four products of bytes at once (VNNI) under `isa`.
bool has_byte_dots(Isa isa);
/// Whether vectors of f16 can be widened to f32 as they are loaded.
bool has_half_loads(Isa isa);
/// machine_isa(), capped by HONE_CPU_ISA=scalar|avx2|avx512|amx; below amx there are no matrix tiles.
Isa best_isa();

std::string_view to_string(Isa isa);
std::optional<Isa> isa_from_string(std::string_view text);

/// f32 lanes of one vector register.
constexpr int lanes_of(Isa isa) { return isa == Isa::avx512 ? 16 : isa == Isa::avx2 ? 8 : 1; }
/// Architectural vector registers.
constexpr int registers_of(Isa isa) { return isa == Isa::avx512 ? 32 : 16; }

}  // namespace hone::cpu
