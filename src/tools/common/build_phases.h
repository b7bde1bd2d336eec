// SPDX-License-Identifier: Apache-2.0
//
// When each phase of a build began and ended: what a build tells of its progress goes on to who shows it, and is written down here.
#pragma once

#include <string>
#include <vector>

#include "hone/hone.h"

namespace hone {

struct TimedPhase {
  std::string name;
  int depth = 0;                     // 0: the build itself
  double begin_ms = 0, end_ms = -1;  // from the start of the build; -1: it did not end
};

class BuildPhases {
 public:
  explicit BuildPhases(const hone_progress& shown);
  BuildPhases(const BuildPhases&) = delete;
  BuildPhases& operator=(const BuildPhases&) = delete;

  /// To be told to hone_options_set_progress(); this must stay as long.
  hone_progress listener();
  std::vector<TimedPhase> take() { return std::move(phases_); }

 private:
  void begin(const char* phase, const char* parent);
  void end(const char* phase);

  hone_progress shown_;
  double start_ms_;
  std::vector<TimedPhase> phases_;
  std::vector<size_t> open_;  // indices
};

}  // namespace hone
