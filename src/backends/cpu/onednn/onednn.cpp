// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/onednn/onednn.h"

#if HONE_WITH_ONEDNN
#include "backends/cpu/onednn/support.h"
#include "base/hash.h"

namespace hone::cpu {
namespace {

constexpr const onednn::Family* kFamilies[] = {&onednn::convolution, &onednn::linear, &onednn::matmul,
                                               &onednn::recurrent_layer, &onednn::attention};

const onednn::Family* find_family(std::string_view name) {
  for (const onednn::Family* family : kFamilies)
    if (family->name == name) return family;
  return nullptr;
}

/// The library brings its own threads: the team's region ends before it and begins anew behind it. That takes microseconds on
/// a quiet machine; where others use the processors, too, each end waits for whoever has been set aside.
constexpr double kBreakMs = 0.01;

class OnednnSource final : public TacticSource {
 public:
  std::string_view name() const override { return "onednn"; }
  double break_ms() const override { return kBreakMs; }

  void propose(const Problem& problem, Candidates& out) const override {
    if (cpu_info(problem.device).isa != best_isa())
      return out.refuse("onednn", "the library's instruction set is one for all devices of a process: HONE_CPU_ISA");
    const onednn::TeamSize team(problem.device.workers);
    onednn::guarded([&] {
      for (const onednn::Family* family : kFamilies) family->propose(problem, out);
    });
  }

  Compiled compile(const Problem& problem, const Tactic& tactic) const override {
    const onednn::Family* family = find_family(tactic.name);
    HONE_ASSERT(family != nullptr, "there is no tactic onednn.{}", tactic.name);
    const onednn::TeamSize team(problem.device.workers);
    return onednn::guarded([&] { return family->compile(problem, tactic); });
  }

  Cost cost(const Problem& problem, const Tactic& tactic) const override {
    const onednn::Family* family = find_family(tactic.name);
    HONE_ASSERT(family != nullptr, "there is no tactic onednn.{}", tactic.name);
    return family->cost(problem, tactic);
  }
};

}  // namespace

const TacticSource& onednn_source() {
  static const OnednnSource instance;
  return instance;
}

std::shared_ptr<const CpuKernel> load_onednn(const DeviceInfo& device, const Blob& code, const KernelShapes& shapes) {
  const KernelCode decoded = decode_code(code);
  const onednn::Family* family = find_family(decoded.family);
  require_version(decoded, "onednn", version_of(family));
  const onednn::TeamSize team(device.workers);
  return onednn::guarded([&] { return family->load(decoded.attrs, shapes); }).finish(device.workers);
}

std::string onednn_version() {
  const dnnl_version_t* version = dnnl_version();
  std::string families;
  for (const onednn::Family* family : kFamilies) families += fmt::format("{} {}, ", family->name, family->version);
  return fmt::format("onednn {}.{}.{} {}", version->major, version->minor, version->patch,
                     hash_hex(families).substr(0, 8));
}

}  // namespace hone::cpu
#endif
