// SPDX-License-Identifier: Apache-2.0
//
// Which integers the consumers of a value accept: indices, lengths and counts have limits, masks are 0 or 1. Random values for
// checks, timing and measurements are drawn from this range.
#pragma once

#include <cstdint>
#include <optional>

namespace hone {

struct Value;

struct IntegerRange {
  int64_t low = 0, high = 0;  // both included
  friend bool operator==(const IntegerRange&, const IntegerRange&) = default;
};

/// The values that every consumer accepts at every shape; nothing where any value will do. Sizes are at least 1, so a limit
/// that only the shapes of a run decide admits the smallest value alone.
std::optional<IntegerRange> accepted_range(const Value* value);

}  // namespace hone
