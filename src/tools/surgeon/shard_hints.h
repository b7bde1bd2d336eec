// SPDX-License-Identifier: Apache-2.0
//
// Hints for the rewriting of a model for several devices, as Polygraphy's files have them.
#pragma once

#include <string>

#include "edit/changes/context_parallel.h"

namespace hone {

std::string hints_text(const edit::ShardHints& hints);
/// Throws StatusError for what is none, and UsageError for hints about tensor parallelism.
edit::ShardHints read_hints(const std::string& path);

/// What a reduction may be called; throws UsageError for anything else.
void check_reduction(const std::string& word);

}  // namespace hone
