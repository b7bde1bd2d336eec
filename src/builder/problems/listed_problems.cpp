// SPDX-License-Identifier: Apache-2.0
#include "builder/problems/listed_problems.h"

#include <algorithm>
#include <map>

#include "builder/details.h"
#include "builder/problem.h"
#include "builder/problems/offers.h"
#include "builder/tune.h"
#include "ir/custom.h"
#include "ops/ops.h"

namespace hone {
namespace {

/// What a build does with each candidate takes about as long as so many launches, and no less than this; what must come out takes the
/// reference about so long. Guesses, never fitted to a machine: they decide how many keys make a task of a farm, nothing else.
constexpr double kLaunches = 60, kLeastSeconds = 0.01, kReferenceFlops = 2e9;

double seconds_to_time(const Problem& problem, std::span<const Candidate> candidates) {
  double seconds = work_of(problem).flops / kReferenceFlops;
  for (const Candidate& candidate : candidates)
    seconds += std::max(kLeastSeconds, kLaunches * candidate.estimate_ms / 1e3);
  return seconds;
}

/// A key tells nothing of bodies, and operators of programs are not where the key goes.
bool has_own_nodes(const Graph& region) {
  return std::ranges::any_of(region.nodes(),
                             [](const Node* node) { return !node->bodies.empty() || node->op->custom != nullptr; });
}

class List {
 public:
  void add(const Problem& problem, std::span<const Candidate> candidates) {
    if (candidates.empty() || is_timeless(problem, candidates) || has_own_nodes(problem.region)) return;
    const auto best = std::ranges::min_element(candidates, {}, &Candidate::estimate_ms);
    std::string key = problem.key();
    const auto [at, fresh] = places_.try_emplace(key, problems_.size());
    if (fresh) problems_.push_back({std::move(key), best->estimate_ms, seconds_to_time(problem, candidates)});
  }
  std::vector<ListedProblem> heaviest_first() && {
    std::ranges::stable_sort(problems_, std::greater(), &ListedProblem::estimate_ms);
    return std::move(problems_);
  }

 private:
  std::vector<ListedProblem> problems_;
  std::map<std::string, size_t> places_;
};

bool is_reformat(const Problem& problem) {
  const Node* only = problem.only();
  return only != nullptr && only->is(ops::reformat);
}

/// Who competes: the candidates of a layer with each other, kernels between layouts with those of the same two.
std::vector<std::vector<Candidate>> rivals_of(const Problem& problem, const BuildOptions& options,
                                              const Backend& backend) {
  if (!is_reformat(problem)) return {offers_for(problem, options, backend).candidates};
  std::map<std::pair<std::vector<Layout>, std::vector<Layout>>, std::vector<Candidate>> by_layouts;
  for (Candidate& candidate : reformat_offers(problem, backend))
    if (candidate.tactic.in != candidate.tactic.out)
      by_layouts[{candidate.tactic.in, candidate.tactic.out}].push_back(std::move(candidate));
  std::vector<std::vector<Candidate>> groups;
  for (auto& [layouts, candidates] : by_layouts) groups.push_back(std::move(candidates));
  return groups;
}

}  // namespace

std::vector<ListedProblem> list_problems(Graph given, const BuildOptions& options, const Backend& backend,
                                         Device& device, const Listeners& listeners) {
  TimingCache none;
  BuildSession session(std::move(given), options, backend, device, none, listeners);
  List list;
  for (const ProfilePoints& points : session.prepared.profiles) {
    const std::vector<Layer> layers = propose_layers(session, points);
    for (const Layer& layer : layers)
      if (layer.problem != nullptr) list.add(*layer.problem, layer.candidates);
    for (const Value* value : reformatted_values(session, layers)) {
      const Problem problem = make_reformat_problem(value->type, points.opt, device.info());
      list.add(problem, reformat_offers(problem, backend));
    }
  }
  return std::move(list).heaviest_first();
}

ProblemTimes time_problem(const Problem& problem, const BuildOptions& options, const Backend& backend, Device& device,
                          TimingCache& cache, const std::function<void(const std::string&)>& begin) {
  ProblemTimes times;
  const MeasureOptions how = measure_options(options, problem);
  LoadAhead ahead(backend, device);
  for (std::vector<Candidate>& rivals : rivals_of(problem, options, backend)) {
    if (is_timeless(problem, rivals)) continue;
    for (Candidate& candidate : rivals) {
      if (!begin) break;
      if (cache.find(candidate.key) == nullptr) begin(candidate.key);
      measure(problem, {&candidate, 1}, ahead, device, how, cache);
    }
    if (!begin) measure(problem, rivals, ahead, device, how, cache);
    for (const Candidate& candidate : rivals) {
      (candidate.timed_now ? times.timed : times.known) += 1;
      times.rejected += candidate.timing.ms < 0 ? 1 : 0;
    }
  }
  return times;
}

}  // namespace hone
