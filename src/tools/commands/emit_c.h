// SPDX-License-Identifier: Apache-2.0
//
// A small C program over hone.h that runs a plan: a start for one's own, and an independent check of what trtexec measures.
#pragma once

#include <string>

#include "tools/common/api.h"

namespace hone {

/// Writes FOLDER/run_plan.c and returns its path. The program takes the plan's path and a number of queries; it uses profile 0 at
/// its opt shapes, fills inputs with random values that the network accepts, and prints the median time of one query.
std::string emit_c(const hone_plan* plan, const std::string& plan_path, const std::string& folder);

}  // namespace hone
