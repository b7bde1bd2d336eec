// SPDX-License-Identifier: Apache-2.0
//
// The answers of a search of `hone debug` in a file, iteration by iteration, in Polygraphy's form.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hone {

/// What was asked about, and whether it passed. Polygraphy's files say what in words of their own: "" stands for those.
using DebugAnswers = std::vector<std::pair<std::string, bool>>;

/// Throws StatusError for what is no such file.
DebugAnswers read_debug_replay(const std::string& path);
std::string debug_replay_text(const DebugAnswers& answers);

}  // namespace hone
