// SPDX-License-Identifier: Apache-2.0
#include "tools/common/build_phases.h"

#include "base/clock.h"

namespace hone {

BuildPhases::BuildPhases(const hone_progress& shown) : shown_(shown), start_ms_(now_ms()) {}

hone_progress BuildPhases::listener() {
  hone_progress told{.size = sizeof(hone_progress), .user = this};
  told.begin = [](void* user, const char* phase, const char* parent, int steps) {
    auto& self = *static_cast<BuildPhases*>(user);
    self.begin(phase, parent);
    if (self.shown_.begin != nullptr) self.shown_.begin(self.shown_.user, phase, parent, steps);
  };
  told.step = [](void* user, const char* phase, int done) {
    const hone_progress& shown = static_cast<BuildPhases*>(user)->shown_;
    return shown.step == nullptr ? 0 : shown.step(shown.user, phase, done);
  };
  told.end = [](void* user, const char* phase) {
    auto& self = *static_cast<BuildPhases*>(user);
    self.end(phase);
    if (self.shown_.end != nullptr) self.shown_.end(self.shown_.user, phase);
  };
  told.stop = [](void* user) {
    const hone_progress& shown = static_cast<BuildPhases*>(user)->shown_;
    return shown.stop == nullptr ? 0 : shown.stop(shown.user);
  };
  return told;
}

/// Phases of one parent follow each other: those that are deeper have ended, told or not.
void BuildPhases::begin(const char* phase, const char* parent) {
  while (!open_.empty() && (parent == nullptr || phases_[open_.back()].name != parent)) open_.pop_back();
  open_.push_back(phases_.size());
  phases_.push_back({phase, static_cast<int>(open_.size()) - 1, now_ms() - start_ms_, -1});
}

void BuildPhases::end(const char* phase) {
  for (size_t i = phases_.size(); i-- > 0;)
    if (phases_[i].name == phase && phases_[i].end_ms < 0) {
      phases_[i].end_ms = now_ms() - start_ms_;
      return;
    }
}

}  // namespace hone
