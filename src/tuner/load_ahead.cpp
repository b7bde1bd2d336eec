// SPDX-License-Identifier: Apache-2.0

#include "tuner/load_ahead.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace hone {
namespace {

constexpr std::chrono::milliseconds kPatience{20};  // between two questions whether to stop

bool is_slow(const Candidate& candidate) {
  return candidate.source->compiles_slowly() || candidate.source->loads_slowly();
}

}  // namespace

void LoadAhead::load(std::span<const Request> requests, const std::function<bool()>& stop) {
  std::vector<std::packaged_task<Loaded()>> tasks;
  std::vector<const Candidate*> candidates;
  for (const Request& request : requests) {
    if (!is_slow(*request.candidate) || ready_.contains(request.candidate)) continue;
    tasks.emplace_back([this, request] { return compiled(request, request.candidate->source->loads_slowly()); });
    candidates.push_back(request.candidate);
  }
  std::atomic<size_t> next = 0;
  std::atomic<bool> stopped = stop && stop();
  const auto work = [&] {
    while (!stopped) {
      const size_t mine = next++;
      if (mine >= tasks.size()) return;
      tasks[mine]();
    }
  };
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::future<void>> workers;
  for (size_t i = 0; i < std::min(cores, tasks.size()); ++i) workers.push_back(std::async(std::launch::async, work));
  for (const std::future<void>& worker : workers)
    while (worker.wait_for(kPatience) == std::future_status::timeout) stopped = stopped || (stop && stop());
  for (size_t i = 0; i < std::min(next.load(), tasks.size()); ++i)
    ready_.insert_or_assign(candidates[i], tasks[i].get_future());
}

Loaded LoadAhead::take(const Request& request) {
  const auto at = ready_.find(request.candidate);
  if (at == ready_.end()) return compiled(request, true);
  std::future<Loaded> result = std::move(at->second);
  ready_.erase(at);
  Loaded loaded = result.get();
  if (loaded.kernel == nullptr) load(request, loaded);
  return loaded;
}

Loaded LoadAhead::compiled(const Request& request, bool loads) const {
  const auto& [problem, candidate] = request;
  Loaded result{.compiled = candidate->source->compile(*problem, candidate->tactic),
                .shapes = shapes_of(problem->region, candidate->tactic, problem->symbols),
                .kernel = nullptr};
  if (loads) load(request, result);
  return result;
}

void LoadAhead::load(const Request& request, Loaded& result) const {
  result.kernel = backend_.load(device_, request.candidate->tactic.source, result.compiled.code, result.shapes);
}

}  // namespace hone
