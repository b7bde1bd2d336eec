// SPDX-License-Identifier: Apache-2.0
//
// The echo of all options at the start of a run, labels and order as in release 8.6. Other programs parse it.
#pragma once

#include <string>
#include <vector>

#include "options/tool_options.h"

namespace hone {

/// One entry per log line; an empty entry is an empty line.
std::vector<std::string> option_blocks(const Options& options);

}  // namespace hone
