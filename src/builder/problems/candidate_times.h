// SPDX-License-Identifier: Apache-2.0
//
// Candidates' times: those that are known, measured ones, or estimates where nothing is to be measured. At level 0 nothing is.
#pragma once

#include <span>

#include "builder/session.h"
#include "tuner/load_ahead.h"

namespace hone {

/// The candidates of a problem.
struct Rivals {
  const Problem* problem;
  std::span<Candidate> candidates;
};

class CandidateTimes {
 public:
  explicit CandidateTimes(BuildSession& session) : session_(session), ahead_(session.backend, session.device) {}

  /// Makes ready those at the front that have no time yet: as many as give every core work until the end, fewer where their weights
  /// in each candidate's form would fill the memory. How many problems that were; at least one.
  size_t load(std::span<const Rivals> problems);
  /// Fills in the times.
  void find(const Rivals& problem);

 private:
  bool is_timed(const Rivals& problem) const;

  BuildSession& session_;
  LoadAhead ahead_;
};

/// Whether the build has spent its budget, or was told to stop, and a time is not known.
bool is_too_late_for(const BuildSession& session, std::span<const Candidate> candidates);

}  // namespace hone
