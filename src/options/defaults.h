// SPDX-License-Identifier: Apache-2.0
//
// What follows from several flags together: implied flags, combinations that exclude each other, and the shapes that were
// left out. Called once, after every flag has been read.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "options/tool_options.h"

namespace hone {

/// Whether a flag stood on the command line, by its main name.
using Given = std::function<bool(std::string_view flag)>;

/// Throws Error for combinations that cannot be; adds what the user should know to `warnings`.
void apply_implied_flags(Options& options, const Given& given, std::vector<std::string>& warnings);
void refuse_combinations(const Options& options, const Given& given);

/// Fills the members of min/opt/max that were not given and the shapes of inference; writes BuildOptions::profiles.
void complete_shapes(Options& options, std::vector<std::string>& warnings);

}  // namespace hone
