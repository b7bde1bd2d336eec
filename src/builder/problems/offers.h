// SPDX-License-Identifier: Apache-2.0
//
// What sources offer for a problem, as candidates that a build with these options would time, and how it would time them.
#pragma once

#include <vector>

#include "builder/options.h"
#include "tuner/measure.h"

namespace hone {

struct Offers {
  std::vector<Candidate> candidates;  // best guess first
  std::vector<Candidates::Refusal> refusals;
};

/// `host_only`: of those alone whose kernels hold tensors of the host.
Offers offers_for(const Problem& problem, const BuildOptions& options, const Backend& backend, bool host_only = false);
/// Kernels that bring a tensor into another layout: of all pairs of layouts.
std::vector<Candidate> reformat_offers(const Problem& problem, const Backend& backend);
/// Whether its candidates have no time: one that nobody competes with, or whose work depends on how many elements a run finds.
bool is_timeless(const Problem& problem, std::span<const Candidate> candidates);
MeasureOptions measure_options(const BuildOptions& options, const Problem& problem);

}  // namespace hone
