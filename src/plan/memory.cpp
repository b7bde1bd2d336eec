// SPDX-License-Identifier: Apache-2.0
//
// Arena planning: largest first, each at the lowest gap among the buffers alive at the same time that wastes least.
#include "plan/memory.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "plan/turns.h"

namespace hone {

MemoryPlan plan_memory(std::span<const MemoryRequest> requests) {
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return requests[a].bytes > requests[b].bytes; });

  MemoryPlan plan;
  plan.offsets.assign(requests.size(), 0);
  struct Placed {
    int64_t begin, end;
    size_t request;
  };
  std::vector<Placed> placed;  // sorted by begin
  for (const size_t i : order) {
    const MemoryRequest& request = requests[i];
    const int64_t bytes = round_up(std::max<int64_t>(request.bytes, 1), static_cast<int64_t>(kAlignment));
    int64_t best = -1, best_waste = INT64_MAX, cursor = 0;
    for (const Placed& other : placed) {
      const MemoryRequest& theirs = requests[other.request];
      if (theirs.last < request.first || request.last < theirs.first) continue;
      if (const int64_t gap = other.begin - cursor; gap >= bytes && gap - bytes < best_waste) {
        best = cursor;
        best_waste = gap - bytes;
      }
      cursor = std::max(cursor, other.end);
    }
    const int64_t offset = best >= 0 ? best : cursor;
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, checked_add(offset, bytes));
    const Placed entry{offset, offset + bytes, i};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), entry,
                                   [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
                  entry);
  }
  return plan;
}

Lifetimes lifetimes(const Profile& profile) { return lifetimes(profile, 0, profile.steps.size()); }

Lifetimes lifetimes(const Profile& profile, size_t begin, size_t end) {
  const auto root = [&](BufferId id) {
    while (profile.buffers[static_cast<size_t>(id)].alias >= 0) id = profile.buffers[static_cast<size_t>(id)].alias;
    return static_cast<size_t>(id);
  };
  Lifetimes result;
  std::vector<int32_t> request_of_root(profile.buffers.size(), -1);
  std::vector<bool> elsewhere(profile.buffers.size(), false);  // written before `begin`
  for (size_t s = 0; s < begin; ++s)
    for (const BufferId id : profile.steps[s].outputs) elsewhere[root(id)] = true;
  const auto touch = [&](BufferId id, int32_t step) {
    const size_t at = root(id);
    if (profile.buffers[at].kind != BufferKind::arena || profile.buffers[at].managed || elsewhere[at]) return;
    int32_t& request = request_of_root[at];
    if (request < 0) {
      request = static_cast<int32_t>(result.requests.size());
      result.requests.push_back({0, step, step});
    }
    MemoryRequest& r = result.requests[static_cast<size_t>(request)];
    r.first = std::min(r.first, step);
    r.last = std::max(r.last, step);
  };
  for (size_t s = begin; s < end; ++s) {
    for (const BufferId id : profile.steps[s].inputs) touch(id, static_cast<int32_t>(s));
    for (const BufferId id : profile.steps[s].outputs) touch(id, static_cast<int32_t>(s));
  }
  // A batch whose entries steps see in turn is there from the first of them to the last.
  for (size_t s = begin, next = begin; s < end; s = next) {
    next = turns_end(profile.steps, s);
    for (const BufferId id : entries_in(profile, s, next)) {
      touch(id, static_cast<int32_t>(s));
      touch(id, static_cast<int32_t>(next) - 1);
    }
  }
  for (size_t s = end; s < profile.steps.size(); ++s)
    for (const BufferId id : profile.steps[s].inputs)
      if (request_of_root[root(id)] >= 0) touch(id, static_cast<int32_t>(end));
  const auto keep = [&](BufferId id) {
    if (request_of_root[root(id)] >= 0) touch(id, static_cast<int32_t>(end));
  };
  for (size_t id = 0; id < profile.buffers.size(); ++id) {
    if (profile.buffers[id].debug) keep(static_cast<BufferId>(id));
    if (profile.buffers[id].most) keep(profile.buffers[id].sizes);
  }
  for (size_t id = 0; id < profile.buffers.size(); ++id)
    result.request_of_buffer.push_back(request_of_root[root(static_cast<BufferId>(id))]);
  return result;
}

}  // namespace hone
