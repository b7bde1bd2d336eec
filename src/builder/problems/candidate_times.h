// SPDX-License-Identifier: Apache-2.0
//
// Candidates' times: those that are known, measured ones, or estimates where nothing is to be measured. At level 0 nothing is.
#pragma once

#include <span>
#include <utility>
#include <vector>

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
  /// `problems` are those that are to be asked about, in order.
  CandidateTimes(BuildSession& session, std::vector<Rivals> problems)
      : session_(session), problems_(std::move(problems)), ahead_(session.backend, session.device) {}

  /// Makes a problem's candidates ready that have no time yet, where they are not, and those behind it: as many as give every core work
  /// until the end, fewer where their weights in each candidate's form would fill the memory.
  void load(size_t problem);
  /// Fills in a problem's times.
  void find(size_t problem);

 private:
  bool is_timed(const Rivals& problem) const;

  BuildSession& session_;
  const std::vector<Rivals> problems_;
  size_t loaded_ = 0;  // so many of them
  LoadAhead ahead_;
};

/// Whether the build has spent its budget, or was told to stop, and a time is not known.
bool is_too_late_for(const BuildSession& session, std::span<const Candidate> candidates);

}  // namespace hone
