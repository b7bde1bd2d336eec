// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/collective/collective.h"

#include "regions/together/collective_region.h"

namespace hone::cpu {
namespace {

constexpr std::string_view kSource = "gloo";
constexpr int64_t kVersion = 1;

/// Between two chains, on the calling thread: what goes wrong with other ranks reaches the caller.
class CollectiveKernel final : public CpuKernel, public IsTogether {
 public:
  CollectiveKernel(CollectiveForm form, std::shared_ptr<Group> group)
      : form_(std::move(form)), group_(std::move(group)) {}
  bool self_parallel() const override { return true; }
  void run(int, int, int, const Bindings& bindings) const override {
    group_->run(form_, bindings.inputs[0], bindings.outputs[0]);
  }

 private:
  CollectiveForm form_;
  std::shared_ptr<Group> group_;
};

class CollectiveSource final : public TacticSource {
 public:
  std::string_view name() const override { return kSource; }
  void propose(const Problem& problem, Candidates& out) const override { offer_collective(problem, kSource, out); }
  Compiled compile(const Problem& problem, const Tactic&) const override {
    return compile_collective(problem, kVersion);
  }
};

}  // namespace

const TacticSource& collective_source() {
  static const CollectiveSource instance;
  return instance;
}

std::shared_ptr<const CpuKernel> load_collective(std::shared_ptr<Group> group, const Blob& code,
                                                 const KernelShapes& shapes) {
  CollectiveForm form = collective_form(code, shapes, group.get(), kSource, kVersion);
  return std::make_shared<CollectiveKernel>(std::move(form), std::move(group));
}

}  // namespace hone::cpu
