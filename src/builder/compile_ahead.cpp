// SPDX-License-Identifier: Apache-2.0

#include "builder/compile_ahead.h"

#include <thread>

namespace hone {

CompileAhead::CompileAhead(const Choice& choice) : free_cores_(std::max(1u, std::thread::hardware_concurrency())) {
  for (const Layer& layer : choice.layers)
    if (layer.chosen >= 0) begin(*layer.problem, layer.candidates[static_cast<size_t>(layer.chosen)]);
}

void CompileAhead::begin(const Problem& problem, const Candidate& candidate) {
  if (!candidate.source->compiles_slowly()) return;
  begun_.emplace(&candidate, std::async(std::launch::async, [this, &problem, &candidate] {
    free_cores_.acquire();
    const auto leave = [](std::counting_semaphore<>* cores) { cores->release(); };
    const std::unique_ptr<std::counting_semaphore<>, decltype(leave)> core(&free_cores_, leave);
    return candidate.source->compile(problem, candidate.tactic);
  }));
}

Compiled CompileAhead::compiled(const Problem& problem, const Candidate& candidate) {
  if (const auto at = begun_.find(&candidate); at != begun_.end() && at->second.valid()) return at->second.get();
  return candidate.source->compile(problem, candidate.tactic);
}

}  // namespace hone
