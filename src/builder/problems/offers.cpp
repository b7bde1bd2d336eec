// SPDX-License-Identifier: Apache-2.0
//
// Each source is asked; of what it offers, the best guesses are kept, as many as the level times.
#include "builder/problems/offers.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "builder/details.h"
#include "builder/region_nodes.h"
#include "ops/collective.h"
#include "ops/ops.h"

namespace hone {
namespace {

constexpr int kDefaultMaxTactics = 12;

/// Whether a source's kernels read and write tensors of the host whose sizes only the run decides.
bool holds_host_tensors(const TacticSource& source) { return source.name() == "host" || source.name() == "reference"; }

/// Everything that makes a time valid.
std::string cache_key(const Problem& problem, const Tactic& tactic, const Backend& backend) {
  return fmt::format("{} | {} | {} | {}", problem.key(), tactic.text(), problem.device.key(), backend.versions());
}

Candidate candidate_of(const Problem& problem, const Work& work, const TacticSource& source, const Tactic& tactic,
                       const Backend& backend) {
  return {.tactic = tactic,
          .source = &source,
          .key = cache_key(problem, tactic, backend),
          .estimate_ms = estimate_ms(work, source.cost(problem, tactic), problem.device.rates),
          .timing = {},
          .timed_now = false};
}

/// The best guess first; among equals the order of the offers decides.
void order_by_estimate(std::vector<Candidate>& candidates) {
  std::ranges::stable_sort(candidates, {}, &Candidate::estimate_ms);
}

/// Which of a source's candidates, best guess first, are worth timing at this level.
void shorten(std::vector<Candidate>& candidates, const BuildOptions& options) {
  if (options.optimization_level <= 2) {  // the first of each family and layouts
    std::set<std::string> seen;
    std::erase_if(candidates, [&](const Candidate& candidate) {
      Tactic family = candidate.tactic;
      family.params = {};
      return !seen.insert(family.text()).second;
    });
  }
  const size_t limit = options.max_tactics > 0           ? static_cast<size_t>(options.max_tactics)
                       : options.optimization_level >= 4 ? 64
                                                         : kDefaultMaxTactics;
  if (candidates.size() > limit)
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(limit), candidates.end());
}

/// What rounding to the operands' type, or of them where that is allowed, makes of a sum.
double tolerance_of(const Problem& problem) {
  double tolerance = MeasureOptions().tolerance;
  if (problem.device.tf32_matmuls && problem.allowed.tf32) tolerance = 2e-3;
  if (!problem.device.half_networks && problem.allowed.f16) tolerance = 2e-3;
  if (!problem.device.half_networks && problem.allowed.bf16) tolerance = 1e-2;
  for (const Node* node : problem.region.nodes()) {
    // Of what is computed in floats before, another order of rounding is a step of the code in one of a thousand elements.
    if (node->is(ops::quantize_linear)) tolerance = std::max(tolerance, 1e-3);
    // The same where the steps stay floats; drawn values may well be but a step or two.
    if (rounds_to_codes(*node) || node->is(ops::dynamic_fake_quantize) || node->is(ops::fake_quantize_float8))
      tolerance = std::max(tolerance, 0.1);
    for (const Value* output : node->outputs) {
      if (output->type.dtype == DType::f16) tolerance = std::max(tolerance, 5e-3);
      if (output->type.dtype == DType::bf16) tolerance = std::max(tolerance, 3e-2);
    }
  }
  return tolerance;
}

}  // namespace

Offers offers_for(const Problem& problem, const BuildOptions& options, const Backend& backend, bool host_only) {
  Offers all;
  const Work work = work_of(problem);
  for (const TacticSource* source : backend.sources) {
    const bool reference = source->name() == "reference";
    const bool disabled = std::ranges::find(options.disabled_sources, source->name()) != options.disabled_sources.end();
    if ((host_only && !holds_host_tensors(*source)) || (disabled && !reference)) continue;
    if (reference && !all.candidates.empty()) break;  // always there, never the fastest: only when nobody else can
    Candidates offers;
    source->propose(problem, offers);
    std::vector<Candidate> candidates;
    for (const Tactic& tactic : offers.offers()) {
      if (options.workspace_bytes >= 0 && tactic.workspace > options.workspace_bytes)
        all.refusals.push_back({tactic.text(), fmt::format("needs {} bytes of workspace, {} are allowed",
                                                           tactic.workspace, options.workspace_bytes)});
      else candidates.push_back(candidate_of(problem, work, *source, tactic, backend));
    }
    order_by_estimate(candidates);
    shorten(candidates, options);
    std::ranges::move(candidates, std::back_inserter(all.candidates));
    all.refusals.insert(all.refusals.end(), offers.refusals().begin(), offers.refusals().end());
  }
  order_by_estimate(all.candidates);
  return all;
}

std::vector<Candidate> reformat_offers(const Problem& problem, const Backend& backend) {
  const Work work = work_of(problem);
  std::vector<Candidate> candidates;
  for (const TacticSource* source : backend.sources) {
    if (source->name() == "reference") continue;  // others may be disabled for layers; reformats have none to spare
    Candidates offers;
    source->propose(problem, offers);
    for (const Tactic& tactic : offers.offers())
      candidates.push_back(candidate_of(problem, work, *source, tactic, backend));
  }
  return candidates;
}

bool is_timeless(const Problem& problem, std::span<const Candidate> candidates) {
  const auto is_together = [](const Node* node) { return node->is(ops::collective); };
  return (candidates.size() == 1 && holds_host_tensors(*candidates[0].source)) || decides_sizes(problem.symbolic) ||
         std::ranges::any_of(problem.region.nodes(), is_together);
}

MeasureOptions measure_options(const BuildOptions& options, const Problem& problem) {
  MeasureOptions result;
  result.repeats = std::max({options.timing_repeats, options.min_timing, 1});
  result.tolerance = tolerance_of(problem);
  result.stop = options.stop;
  return result;
}

}  // namespace hone
