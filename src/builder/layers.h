// SPDX-License-Identifier: Apache-2.0
//
// A layer on its way through the builder: a region, its problem, what sources offered, and what was chosen.
#pragma once

#include <memory>

#include "builder/options.h"
#include "builder/regions.h"
#include "plan/plan.h"
#include "tuner/candidate.h"

namespace hone {

struct Layer {
  Region region;
  std::unique_ptr<Problem> problem;  // null for views
  std::vector<Candidate> candidates;
  std::vector<Candidates::Refusal> refusals;
  int chosen = -1;     // index into candidates
  size_t instead = 0;  // so many layers behind it do the same together; times decide, before anything is chosen
};

/// Smallest, usual and largest values of all symbols of one profile.
struct ProfilePoints {
  SymbolValues min, opt, max;
  std::vector<ProfileRange> ranges;  // inputs with symbolic sizes
};

}  // namespace hone
