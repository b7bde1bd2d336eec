// SPDX-License-Identifier: Apache-2.0
//
// Operators that only move elements: see strided_copy.h for how, regions/copy_plan.h for which.
#include <algorithm>
#include <limits>

#include "backends/cpu/family.h"
#include "backends/cpu/movement/strided_copy.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "regions/copy_request.h"
#include "regions/layout_offers.h"

namespace hone::cpu {
namespace {

class Copy final : public CpuKernel {
 public:
  Copy(const CopyRequest& request, const std::vector<CopyStep>& steps) {
    for (const CopyStep& step : steps) {
      const CopySource& source = request.sources[static_cast<size_t>(step.source)];
      parts_.push_back({CopyLoops(step.copy, size_of(source.type.dtype)), source.index, step.destination, items_});
      items_ += parts_.back().loops.items();
      fewest_items_ = std::min(fewest_items_, parts_.back().loops.items());
      elements_ += parts_.back().loops.elements();
    }
  }
  bool serial() const override { return elements_ < 4096; }

  void run(int, int worker, int workers, const Bindings& bindings) const override {
    const Share all = share_of(items_, worker, workers);
    // A share of every part where that is even enough: parts side by side in one row then have one writer.
    const bool of_each = fewest_items_ >= 4 * workers;
    for (const Part& part : parts_) {
      const Share own = share_of(part.loops.items(), worker, workers);
      const int64_t begin = of_each ? part.first + own.begin : std::max(all.begin, part.first),
                    end = of_each ? part.first + own.end : std::min(all.end, part.first + part.loops.items());
      if (begin >= end) continue;
      const void* source = part.source >= 0 ? bindings.inputs[static_cast<size_t>(part.source)]
                                            : bindings.constants[static_cast<size_t>(-1 - part.source)];
      part.loops.run(begin - part.first, end - part.first, source,
                     bindings.outputs[static_cast<size_t>(part.destination)]);
    }
  }

 private:
  struct Part {
    CopyLoops loops;
    int source, destination;
    int64_t first;  // number of its first item
  };
  std::vector<Part> parts_;
  int64_t items_ = 0, elements_ = 0, fewest_items_ = std::numeric_limits<int64_t>::max();
};

/// The sizes that are put in where the data decide need not fit together.
bool has_data_sizes(const Problem& problem) {
  return std::ranges::any_of(problem.symbols, [](const auto& size) { return size.first.starts_with(kDataSymbol); });
}

struct CopyFamily {
  static constexpr std::string_view kName = "copy";
  static constexpr int kVersion = 1;
  using Params = NoParams;
  using Code = CopyCode;

  static void propose(const Problem& problem, const CpuInfo&, Candidates& out) { offer_copies(problem, "cpu", out); }
  /// Rows that lie alike on both sides are moved; other elements change places one by one. What is copied from constants alone, or
  /// in sizes that data decide, is not looked into.
  static Cost cost(const Problem& problem, const Params&, const Tactic& tactic) {
    if (problem.region.inputs().empty() || has_data_sizes(problem)) return {.operands = 1.5};
    CopyCode code;
    std::vector<Tensor> constants;
    read_copy(problem, code, constants);
    double moved = 0, all = 0;
    for (const CopyStep& step : plan_copies(copy_request(code, shapes_of(problem.region, tactic, problem.symbols)))) {
      const auto count = static_cast<double>(elements(step.copy.sizes));
      all += count;
      if (moves_rows(step.copy)) moved += count;
    }
    return {.operands = moved == all ? 0.25 : 1.5 - 1.25 * moved / all};
  }
  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    Built<Code> built;
    const std::string reason = read_copy(problem, built.code, built.constants);
    HONE_ASSERT(reason.empty(), "refused after all: {}", reason);
    return built;
  }
  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes& shapes, const CpuInfo&) {
    return copy_constants(code, shapes);
  }
  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo&) {
    const CopyRequest request = copy_request(code, shapes);
    return std::make_shared<Copy>(request, plan_copies(request));
  }
};

}  // namespace

const CpuTactic tactics::copy = describe<CopyFamily>();

}  // namespace hone::cpu
