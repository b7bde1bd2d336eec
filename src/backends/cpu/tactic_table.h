// SPDX-License-Identifier: Apache-2.0
//
// What a family of CPU tactics is: a name, a version and three functions, which family.h makes of a struct. The families stand in one explicit list (tactic_table.cpp);
// the source "cpu" walks it. A Tactic's name is the family's name, what varies inside a family goes into its params.
//
// compile() writes code = encode_code(family, attrs): everything load() needs that does not follow from KernelShapes. A family
// whose packed constants depend on the instruction set sets attrs "isa"; the source then loads it for that set, not the machine's.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backends/cpu/jit/isa.h"
#include "backends/cpu/kernel.h"
#include "device/code.h"
#include "device/fields.h"
#include "device/tactic.h"

namespace hone::cpu {

struct CpuInfo {
  Isa isa = Isa::scalar;
  int workers = 1;
};

struct CpuTactic {
  std::string_view name;
  /// Silent when the region is not about this family at all; refuses with a reason when it nearly is.
  void (*propose)(const Problem&, const CpuInfo&, Candidates&);
  Compiled (*compile)(const Problem&, const Tactic&);
  std::shared_ptr<const CpuKernel> (*load)(const Attrs&, const KernelShapes&, const CpuInfo&);
  int version = 1;                           // goes up with every change of what compile() writes or load() reads of it
  std::vector<Field> (*fields)() = nullptr;  // of its code, with bounds
  Cost (*cost)(const Problem&, const Tactic&) = nullptr;
};

/// All families, in order of preference.
std::span<const CpuTactic* const> cpu_tactics();
/// The machine that a problem is for.
CpuInfo cpu_info(const DeviceInfo& device);

namespace tactics {
#define FAMILY(name, file) extern const CpuTactic name;
#include "backends/cpu/families.def"
#undef FAMILY
}  // namespace tactics
}  // namespace hone::cpu
