// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/run/sources.h"

#include "backends/cpu/run/team.h"
#include "backends/cpu/tactic_table.h"
#include "base/hash.h"

namespace hone::cpu {
namespace {

const CpuTactic* find_family(std::string_view name) {
  for (const CpuTactic* family : cpu_tactics())
    if (family->name == name) return family;
  return nullptr;
}

class CpuSource final : public TacticSource {
 public:
  std::string_view name() const override { return "cpu"; }

  void propose(const Problem& problem, Candidates& out) const override {
    const CpuInfo info = cpu_info(problem.device);
    for (const CpuTactic* family : cpu_tactics()) family->propose(problem, info, out);
  }

  Compiled compile(const Problem& problem, const Tactic& tactic) const override {
    const CpuTactic* family = find_family(tactic.name);
    HONE_ASSERT(family != nullptr, "there is no tactic cpu.{}", tactic.name);
    const TeamSize team(problem.device.workers);  // that packs weights
    return family->compile(problem, tactic);
  }

  Cost cost(const Problem& problem, const Tactic& tactic) const override {
    const CpuTactic* family = find_family(tactic.name);
    HONE_ASSERT(family != nullptr, "there is no tactic cpu.{}", tactic.name);
    return family->cost(problem, tactic);
  }
};

/// The instruction set that the constants were packed for; the device's when they depend on none.
Isa isa_of(const KernelCode& code, const DeviceInfo& device) {
  const Isa available = cpu_info(device).isa;
  if (!code.attrs.has("isa")) return available;
  const std::string& name = code.attrs.text("isa");
  const std::optional<Isa> needed = isa_from_string(name);
  HONE_CHECK(needed.has_value(), "a kernel in the plan needs the unknown instruction set {}", name);
  if (*needed > available)
    throw Error(fmt::format("this plan was tuned for {}, this processor has {}", name, to_string(available)),
                "rebuild it from the ONNX model on this machine; plans built with --versionCompatible choose their "
                "tactics anew instead");
  return *needed;
}

}  // namespace

const TacticSource& source() {
  static const CpuSource instance;
  return instance;
}

std::shared_ptr<const CpuKernel> load(const DeviceInfo& device, const Blob& code, const KernelShapes& shapes) {
  KernelCode decoded = decode_code(code);
  const CpuTactic* family = find_family(decoded.family);
  require_version(decoded, "cpu", version_of(family));
  const Isa isa = isa_of(decoded, device);
  decoded.attrs.erase("isa");
  return family->load(decoded.attrs, shapes, {isa, device.workers});
}

std::string versions() {
  std::string families;
  for (const CpuTactic* family : cpu_tactics()) families += fmt::format("{} {}, ", family->name, family->version);
  return fmt::format("cpu {}", hash_hex(families).substr(0, 8));
}

}  // namespace hone::cpu
