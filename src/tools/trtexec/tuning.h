// SPDX-License-Identifier: Apache-2.0
//
// The tuning loop: a child process builds and measures along each build route; results are kept line by line, so that a loop
// that was cut off goes on where it was; the fastest engine is kept.
#pragma once

#include <string>
#include <vector>

#include "options/tool_options.h"

namespace hone {

/// Runs the loop that the command line asks for and returns the exit status; `arguments` are those of the command line.
int run_tuning(const ToolOptions& options, const std::vector<std::string>& arguments);
/// What a child tells the loop: --tuningResultFile. Of several losses of an output the largest counts.
void write_tuning_result(const std::string& path, double mean_ms, bool accuracy_failed,
                         const std::vector<std::pair<std::string, double>>& losses);

}  // namespace hone
