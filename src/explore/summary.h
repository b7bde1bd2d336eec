// SPDX-License-Identifier: Apache-2.0
//
// The report for a terminal: a summary, and tactics or layers by what they take.
#pragma once

#include <string>
#include <vector>

#include "explore/engine_file.h"

namespace hone {

enum class SortKey { latency, count, name };

struct SummaryOptions {
  bool by_tactic = false;  // else a line a layer
  SortKey key = SortKey::latency;
};

std::vector<std::string> summary_lines(const EngineRows& engine, const SummaryOptions& options);

}  // namespace hone
