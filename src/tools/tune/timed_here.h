// SPDX-License-Identifier: Apache-2.0
//
// Keys timed in this process, one after the other as they come in: `hone tune --in-process`. What becomes of each is told at once, a
// JSON object a line, to whoever started the process, because the next key may end it.
//   {"device": "... | versions", "kind": "...", "probeMs": 0.5}   first
//   {"begun": "<key in the cache>"}                               --singly: before each tactic
//   {"done": "<problem>", "known": 3, "timed": 9, "rejected": 0, "entries": "<lines of a cache>"}
//   {"refused": "<line>", "why": "..."}                           instead, where a line is no key
#pragma once

#include <iosfwd>

#include "tools/common/friendly.h"

namespace hone {

struct TimedHere {
  bool singly = false, probe = false;
};

/// Until the lines end. Adds what was timed to the file of --timingCacheFile, if there is one.
void time_here(const FriendlyLine& line, const TimedHere& how, std::istream& keys);

}  // namespace hone
