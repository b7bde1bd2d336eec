// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "device/tactic.h"
#include "tuner/timing_cache.h"

namespace hone {

/// A tactic that stands for election.
struct Candidate {
  Tactic tactic;
  const TacticSource* source = nullptr;
  std::string key;         // of the timing cache
  double estimate_ms = 0;  // before anything is timed
  Timing timing;           // ms < 0: rejected, `note` says why
  bool timed_now = false;
};

}  // namespace hone
