// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/schedule.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace hone::cuda {
namespace {

std::byte memory[1024];

/// Reads and writes 16 bytes each at these places.
Launch at(const std::vector<int>& reads, const std::vector<int>& writes) {
  Launch launch;
  for (const int place : reads) launch.inputs.push_back(memory + 16 * place), launch.input_bytes.push_back(16);
  for (const int place : writes) launch.outputs.push_back(memory + 16 * place), launch.output_bytes.push_back(16);
  return launch;
}

TEST(Schedule, KeepsAChainInOneStream) {
  const std::vector<Launch> chain{at({0}, {1}), at({1}, {2}), at({2}, {3})};
  const std::vector<Slot> slots = schedule(chain, 4);
  for (const Slot& slot : slots) {
    EXPECT_EQ(slot.stream, slots[0].stream);
    EXPECT_TRUE(slot.waits.empty());
  }
}

TEST(Schedule, PutsBranchesBesideEachOtherAndJoinsThem) {
  const std::vector<Launch> fork{at({0}, {1}), at({1}, {2}), at({1}, {3}), at({2, 3}, {4})};
  const std::vector<Slot> slots = schedule(fork, 4);
  EXPECT_EQ(slots[1].stream, slots[0].stream);
  EXPECT_NE(slots[2].stream, slots[1].stream);
  EXPECT_EQ(slots[2].waits, std::vector<size_t>{0});
  EXPECT_EQ(slots[3].waits.size(), 1u);
}

TEST(Schedule, WaitsBeforeMemoryIsUsedAgain) {
  const std::vector<Launch> reuse{at({0}, {1}), at({5}, {6}), at({7}, {1})};
  const std::vector<Slot> slots = schedule(reuse, 4);
  EXPECT_TRUE(slots[2].stream == slots[0].stream || slots[2].waits == std::vector<size_t>{0});
}

TEST(Schedule, LetsNothingPassALaunchWithoutSizes) {
  std::vector<Launch> launches{at({0}, {1}), at({2}, {3}), at({4}, {5})};
  launches[1].input_bytes.clear();
  const std::vector<Slot> slots = schedule(launches, 4);
  EXPECT_EQ(slots[1].stream, slots[0].stream);
  EXPECT_EQ(slots[2].stream, slots[1].stream);
}

/// Whether `later` comes after `earlier` in every order that streams and waits allow.
bool ordered(const std::vector<Slot>& slots, size_t earlier, size_t later) {
  if (earlier == later) return true;
  for (size_t before = later; before-- > earlier;) {
    const bool direct =
        slots[before].stream == slots[later].stream ||
        std::find(slots[later].waits.begin(), slots[later].waits.end(), before) != slots[later].waits.end();
    if (direct && ordered(slots, earlier, before)) return true;
  }
  return false;
}

TEST(Schedule, OrdersEveryConflictOfRandomPrograms) {
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE(kSeed);
  std::mt19937 random(kSeed);
  for (int program = 0; program < 50; ++program) {
    std::vector<Launch> launches;
    std::vector<std::pair<std::set<int>, std::set<int>>> places;
    for (int i = 0; i < 12; ++i) {
      std::set<int> reads{static_cast<int>(random() % 9)}, writes{static_cast<int>(random() % 9)};
      if (random() % 2 == 0) reads.insert(static_cast<int>(random() % 9));
      launches.push_back(at({reads.begin(), reads.end()}, {writes.begin(), writes.end()}));
      places.emplace_back(std::move(reads), std::move(writes));
    }
    const std::vector<Slot> slots = schedule(launches, 3);
    for (size_t i = 0; i < launches.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const auto meet = [](const std::set<int>& a, const std::set<int>& b) {
          return std::any_of(a.begin(), a.end(), [&](int x) { return b.contains(x); });
        };
        const bool conflict = meet(places[i].first, places[j].second) || meet(places[i].second, places[j].second) ||
                              meet(places[i].second, places[j].first);
        EXPECT_TRUE(!conflict || ordered(slots, j, i)) << "program " << program << ": " << i << " may pass " << j;
      }
  }
}

}  // namespace
}  // namespace hone::cuda
