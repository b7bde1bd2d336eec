// SPDX-License-Identifier: Apache-2.0
//
// The problems of a model by their keys, and the timing of a problem that is known by its key alone. One machine lists what a model
// asks for, another one times it; neither needs what the other has.
#pragma once

#include "builder/build.h"

namespace hone {

/// A problem that a build would time.
struct ListedProblem {
  std::string key;
  double estimate_ms = 0;  // of its best candidate: before anything is timed
  double seconds = 0;      // that timing it may take
};

/// Each once, over all profiles, the heaviest first. Runs nothing on the device.
std::vector<ListedProblem> list_problems(Graph graph, const BuildOptions& options, const Backend& backend,
                                         Device& device, const Listeners& listeners = {});

/// How many of a problem's tactics had a time, were timed, and were rejected.
struct ProblemTimes {
  size_t known = 0, timed = 0, rejected = 0;
};

/// Times those of the problem's tactics that the cache lacks, as a build with these options would. With `begin` each by itself, after a
/// call with its key in the cache: if the process ends, it is known by which of them.
ProblemTimes time_problem(const Problem& problem, const BuildOptions& options, const Backend& backend, Device& device,
                          TimingCache& cache, const std::function<void(const std::string&)>& begin = {});

}  // namespace hone
