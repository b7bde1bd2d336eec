// SPDX-License-Identifier: Apache-2.0
//
// What in an engine costs time without need, with what to do about it: the linters of a report.
#pragma once

#include <string>
#include <vector>

#include "explore/engine_file.h"

namespace hone {

struct Hazard {
  std::string layer, kind, hazard, mitigation;
  double ms = 0;  // of the layer
};

/// The most expensive first.
std::vector<Hazard> find_hazards(const EngineRows& engine);

}  // namespace hone
