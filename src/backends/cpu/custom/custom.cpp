// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/custom/custom.h"

#include "backends/cpu/run/team.h"
#include "regions/custom_region.h"

namespace hone::cpu {
namespace {

/// Between two chains, on the calling thread: what the function throws reaches the caller, and its own parallel loops have all
/// threads of the device.
class CustomKernel final : public CpuKernel {
 public:
  CustomKernel(const Blob& code, const KernelShapes& shapes, int workers) : launch_(code, shapes), workers_(workers) {}
  size_t workspace_bytes() const override { return launch_.workspace_bytes(); }
  bool self_parallel() const override { return true; }
  void run(int, int, int, const Bindings& bindings) const override {
    const TeamSize team(workers_);
    CustomCall call = launch_.call(bindings);
    call.workers = workers_;
    with_note([&] { return fmt::format("running node {} ({})", call.node, launch_.op().full_name); },
              [&] { launch_.op().on_host(call); });
  }
  const CustomOperator& op() const { return launch_.op(); }

 private:
  CustomLaunch launch_;
  int workers_;
};

class CustomSource final : public TacticSource {
 public:
  std::string_view name() const override { return "custom"; }

  void propose(const Problem& problem, Candidates& out) const override {
    const Node* node = custom_node(problem.region);
    if (node == nullptr) return;
    if (!node->op->custom->on_host) out.refuse("custom.host", "it has no function for memory of the host");
    else offer_custom(problem, "host", out);
  }
  Compiled compile(const Problem& problem, const Tactic&) const override { return compile_custom(problem); }
};

}  // namespace

const TacticSource& custom_source() {
  static const CustomSource instance;
  return instance;
}

std::shared_ptr<const CpuKernel> load_custom(const DeviceInfo& device, const Blob& code, const KernelShapes& shapes) {
  auto kernel = std::make_shared<CustomKernel>(code, shapes, device.workers);
  if (!kernel->op().on_host)
    throw Error(fmt::format("{} has no function for memory of the host", kernel->op().text()),
                "give it one, or run the network on the device that it is for");
  return kernel;
}

}  // namespace hone::cpu
