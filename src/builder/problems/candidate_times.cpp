// SPDX-License-Identifier: Apache-2.0

#include "builder/problems/candidate_times.h"

#include <algorithm>
#include <set>
#include <thread>

#include "builder/details.h"
#include "builder/problems/offers.h"

namespace hone {
namespace {

constexpr size_t kMostPerCore = 8;
constexpr double kMostBytes = 1 << 30;

/// What a refit takes instead of timing.
void remember(BuildSession& session, std::span<const Candidate> candidates) {
  for (const Candidate& candidate : candidates) session.used.put(candidate.key, candidate.timing);
}

}  // namespace

bool is_too_late_for(const BuildSession& session, std::span<const Candidate> candidates) {
  return must_stop(session.options, session.start_ms) &&
         !std::ranges::all_of(candidates,
                              [&](const Candidate& candidate) { return session.cache.find(candidate.key) != nullptr; });
}

/// Level 0, single candidates and builds that ran out of time need no clock; what depends on how many elements a run finds, or on
/// other ranks, has no time of its own.
bool CandidateTimes::is_timed(const Rivals& problem) const {
  return session_.options.optimization_level > 0 && !is_timeless(*problem.problem, problem.candidates) &&
         !is_too_late_for(session_, problem.candidates);
}

void CandidateTimes::load(size_t problem) {
  if (problem < loaded_) return;
  const size_t most = kMostPerCore * std::max(1u, std::thread::hardware_concurrency());
  std::vector<LoadAhead::Request> requests;
  std::set<std::string> keys;
  double bytes = 0;
  for (loaded_ = problem; loaded_ < problems_.size(); ++loaded_) {
    const auto& [asked, candidates] = problems_[loaded_];
    std::vector<LoadAhead::Request> fresh;
    if (is_timed(problems_[loaded_]) && !session_.options.error_on_timing_cache_miss)
      for (const Candidate& candidate : candidates)
        if (session_.cache.find(candidate.key) == nullptr && !keys.contains(candidate.key))
          fresh.push_back({asked, &candidate});
    bytes += work_of(*asked).weights * static_cast<double>(fresh.size());
    if (loaded_ > problem && (requests.size() + fresh.size() > most || bytes > kMostBytes)) break;
    for (const LoadAhead::Request& request : fresh) keys.insert(request.candidate->key);
    requests.insert(requests.end(), fresh.begin(), fresh.end());
  }
  ahead_.load(requests, [this] { return must_stop(session_.options, session_.start_ms); });
}

void CandidateTimes::find(size_t problem) {
  const auto& [asked, candidates] = problems_[problem];
  if (!is_timed(problems_[problem])) {
    const bool timeless = is_timeless(*asked, candidates);
    for (Candidate& candidate : candidates)
      candidate.timing = {timeless ? 0 : candidate.estimate_ms, 0, 0, std::string(timeless ? "not timed" : kEstimated)};
    if (session_.options.optimization_level > 0 && !timeless) remember(session_, candidates);
    return;
  }
  if (session_.options.error_on_timing_cache_miss)
    for (const Candidate& candidate : candidates)
      if (session_.cache.find(candidate.key) == nullptr)
        throw Error("a tactic would have to be timed that the timing cache does not hold: " + candidate.tactic.text(),
                    "build once without --errorOnTimingCacheMiss");
  measure(*asked, candidates, ahead_, session_.device, measure_options(session_.options, *asked), session_.cache);
  remember(session_, candidates);
}

}  // namespace hone
