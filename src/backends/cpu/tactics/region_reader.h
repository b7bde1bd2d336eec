// SPDX-License-Identifier: Apache-2.0
//
// Small readers of single-node regions, shared by the families without an epilogue.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "backend/tactic.h"

namespace hone::cpu {

/// The contents of an integer operand as size expressions, for parameters that may depend on the input shapes.
std::optional<std::vector<std::string>> size_texts(const Value* value);
AlignedBuffer zeroed(size_t bytes);

}  // namespace hone::cpu
