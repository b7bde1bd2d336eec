// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/schedule.h"

#include <algorithm>
#include <functional>

#include "device/group.h"

namespace hone::cuda {
namespace {

struct Range {
  const std::byte* begin = nullptr;
  size_t bytes = 0;
};

/// What a launch reads and writes; constants are never written and need no order.
struct Access {
  std::vector<Range> reads, writes;
  bool known = true;
  bool together = false;
};

Access access_of(const Launch& launch) {
  Access access;
  access.together = dynamic_cast<const IsTogether*>(launch.kernel.get()) != nullptr;
  access.known =
      launch.input_bytes.size() == launch.inputs.size() && launch.output_bytes.size() == launch.outputs.size();
  if (!access.known) return access;
  for (size_t i = 0; i < launch.inputs.size(); ++i)
    access.reads.push_back({static_cast<const std::byte*>(launch.inputs[i]), launch.input_bytes[i]});
  for (size_t i = 0; i < launch.outputs.size(); ++i)
    access.writes.push_back({static_cast<const std::byte*>(launch.outputs[i]), launch.output_bytes[i]});
  return access;
}

bool overlap(const std::vector<Range>& a, const std::vector<Range>& b) {
  constexpr std::less<const std::byte*> before;
  for (const Range& x : a)
    for (const Range& y : b)
      if (before(x.begin, y.begin + y.bytes) && before(y.begin, x.begin + x.bytes)) return true;
  return false;
}

bool must_wait(const Access& later, const Access& earlier) {
  if (!later.known || !earlier.known) return true;
  if (later.together && earlier.together) return true;  // in the order that all ranks have
  return overlap(later.reads, earlier.writes) || overlap(later.writes, earlier.writes) ||
         overlap(later.writes, earlier.reads);
}

}  // namespace

std::vector<Slot> schedule(std::span<const Launch> launches, int streams) {
  constexpr size_t kNone = static_cast<size_t>(-1);
  std::vector<Access> accesses;
  std::vector<Slot> slots;
  std::vector<size_t> last(static_cast<size_t>(streams), kNone);  // launch that each stream ends with
  // reached[i][s]: how far into stream s launch i is known to come after, as a count of launches of the whole list.
  std::vector<std::vector<size_t>> reached;
  for (size_t i = 0; i < launches.size(); ++i) {
    accesses.push_back(access_of(launches[i]));
    std::vector<size_t> needed;  // latest first
    for (size_t j = i; j-- > 0;)
      if (must_wait(accesses[i], accesses[j])) needed.push_back(j);

    // Go on where the latest operand was made, if nothing followed there; else begin where nothing has happened for longest.
    const auto follows = std::find_if(needed.begin(), needed.end(),
                                      [&](size_t j) { return last[static_cast<size_t>(slots[j].stream)] == j; });
    size_t stream = 0;
    if (follows != needed.end()) stream = static_cast<size_t>(slots[*follows].stream);
    else
      for (size_t s = 1; s < last.size(); ++s)
        if (last[s] == kNone || (last[stream] != kNone && last[s] < last[stream])) stream = s;

    Slot slot{static_cast<int>(stream), {}};
    std::vector<size_t> known = last[stream] == kNone ? std::vector<size_t>(last.size(), 0) : reached[last[stream]];
    for (const size_t j : needed) {
      const auto s = static_cast<size_t>(slots[j].stream);
      if (j + 1 <= known[s]) continue;  // an earlier wait covers it
      if (s != stream) slot.waits.push_back(j);
      for (size_t k = 0; k < known.size(); ++k) known[k] = std::max(known[k], reached[j][k]);
    }
    known[stream] = i + 1;
    reached.push_back(std::move(known));
    slots.push_back(std::move(slot));
    last[stream] = i;
  }
  return slots;
}

}  // namespace hone::cuda
