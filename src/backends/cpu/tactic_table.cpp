// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/tactic_table.h"

namespace hone::cpu {
namespace {

constexpr const CpuTactic* kTactics[] = {
#define FAMILY(name, file) &tactics::name,
#include "backends/cpu/families.def"
#undef FAMILY
};

}  // namespace

std::span<const CpuTactic* const> cpu_tactics() { return kTactics; }

CpuInfo cpu_info(const DeviceInfo& device) {
  const std::optional<Isa> isa = isa_from_string(device.architecture);
  HONE_CHECK(isa.has_value(), "{} is not a processor", device.name);
  return {*isa, device.workers};
}

}  // namespace hone::cpu
