// SPDX-License-Identifier: Apache-2.0
#include "capi/progress.h"

#include <utility>

#include "builder/layers.h"

namespace hone::capi {

ProgressTree::ProgressTree(const hone_progress& told) : told_(told) {
  begin("build", 1);
  begin("prepare", 1);
}

bool ProgressTree::stops() {
  if (!stopped_ && told_.stop != nullptr) stopped_ = told_.stop(told_.user) != 0;
  return stopped_;
}

void ProgressTree::finish() { end_to(0); }

void ProgressTree::begin(std::string name, int steps) {
  const std::string parent = open_.empty() ? std::string() : open_.back().name;
  open_.push_back({std::move(name), steps, 0});
  open_.back().range = std::make_unique<NamedRange>(open_.back().name);
  if (told_.begin != nullptr)
    told_.begin(told_.user, open_.back().name.c_str(), open_.size() == 1 ? nullptr : parent.c_str(), steps);
}

void ProgressTree::step(int done) {
  Phase& phase = open_.back();
  while (phase.done < done && phase.done < phase.steps) {
    ++phase.done;
    if (told_.step != nullptr && told_.step(told_.user, phase.name.c_str(), phase.done) != 0) stopped_ = true;
  }
}

void ProgressTree::end() {
  step(open_.back().steps);
  if (told_.end != nullptr) told_.end(told_.user, open_.back().name.c_str());
  open_.pop_back();
}

void ProgressTree::end_to(size_t depth) {
  while (open_.size() > depth) end();
}

void ProgressTree::precision_begun(std::string_view types) {
  end_to(1);
  begin(std::string(types), 1);
  network_ = 2;
  begin("prepare", 1);
}

void ProgressTree::precision_timed(std::string_view, double, double) { end_to(1); }
void ProgressTree::precision_refused(std::string_view, std::string_view) { end_to(1); }

void ProgressTree::tuning_begun(bool) { end_to(network_); }

void ProgressTree::profile_begun(size_t index, size_t) {
  end_to(network_);
  begin("profile " + std::to_string(index), 3);
}

void ProgressTree::tuning_advanced(size_t done, size_t total) {
  if (open_.size() == network_ + 1 && open_.back().done == 0) begin("tune", static_cast<int>(total));
  if (open_.size() == network_ + 2) step(static_cast<int>(done));
  if (done < total || open_.size() != network_ + 2) return;
  end();
  step(1);
  begin("choose", 1);
}

void ProgressTree::tactics_chosen(const Choice&, double) {
  end_to(network_ + 1);
  if (open_.size() != network_ + 1) return;
  step(2);
  begin("write", 1);
}

void ProgressTree::lowered(const Profile&, double) { end_to(network_); }

void BestSoFar::layer_timed(const Layer& layer, const ProfilePoints&, double) {
  if (function_ == nullptr) return;
  const Candidate* best = nullptr;
  size_t timed = 0;
  for (const Candidate& candidate : layer.candidates) {
    if (candidate.timing.ms < 0) continue;
    ++timed;
    if (best == nullptr || candidate.timing.ms < best->timing.ms) best = &candidate;
  }
  if (best == nullptr) return;
  const std::string name = layer.region.name(), tactic = best->tactic.text();
  const hone_timed told{.size = sizeof told,
                        .layer = name.c_str(),
                        .fastest = tactic.c_str(),
                        .ms = best->timing.ms,
                        .candidates = timed};
  function_(user_, &told);
}

void BestSoFar::precision_timed(std::string_view types, double ms, double) {
  if (function_ == nullptr) return;
  const std::string text(types);
  const hone_timed told{.size = sizeof told, .fastest = text.c_str(), .ms = ms};
  function_(user_, &told);
}

}  // namespace hone::capi
