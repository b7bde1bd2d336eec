// SPDX-License-Identifier: Apache-2.0
//
// `hone bench --throughput`: how many queries at a time, by how many workers each, of how many rows, give the most rows a second.
#pragma once

#include "tools/common/friendly.h"

namespace hone {

/// The whole tool: searches, prints what was measured as text or JSON, and writes the plan where -o names a file.
int run_throughput_search(const FriendlyLine& line);

}  // namespace hone
