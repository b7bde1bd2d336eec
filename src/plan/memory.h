// SPDX-License-Identifier: Apache-2.0
//
// Arena planning: gives every buffer of a profile an offset so that buffers alive at the same time never overlap.
// A pure function of sizes and lifetimes; the builder uses it for the max point, the runtime for each concrete shape.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace hone {

struct MemoryRequest {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;  // first and last step that touches it, inclusive
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // multiples of kAlignment
  int64_t bytes = 0;
};

/// Greedy by size, first gap that fits best; offsets are deterministic.
MemoryPlan plan_memory(std::span<const MemoryRequest> requests);

/// Lifetimes of the arena buffers of a profile, aliases merged into their root; -1 entries are buffers outside the arena.
/// What a debug buffer shares lives until the end.
struct Lifetimes {
  std::vector<int32_t> request_of_buffer;
  std::vector<MemoryRequest> requests;  // bytes still 0
};
Lifetimes lifetimes(const Profile& profile);
/// The same for the buffers that the steps [begin, end) write first; what later steps read lives until `end`.
Lifetimes lifetimes(const Profile& profile, size_t begin, size_t end);

}  // namespace hone
