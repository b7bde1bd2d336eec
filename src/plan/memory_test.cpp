// SPDX-License-Identifier: Apache-2.0
#include "plan/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace hone {
namespace {

TEST(Memory, LiveBuffersNeverOverlap) {
  const uint64_t seed = 20;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<MemoryRequest> requests(random() % 60 + 1);
    for (MemoryRequest& r : requests) {
      r.bytes = static_cast<int64_t>(random() % 5000);
      r.first = static_cast<int32_t>(random() % 40);
      r.last = r.first + static_cast<int32_t>(random() % 10);
    }
    const MemoryPlan plan = plan_memory(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      ASSERT_EQ(plan.offsets[i] % static_cast<int64_t>(kAlignment), 0);
      ASSERT_LE(plan.offsets[i] + requests[i].bytes, plan.bytes);
      for (size_t j = 0; j < i; ++j) {
        const bool both_alive = requests[i].first <= requests[j].last && requests[j].first <= requests[i].last;
        const bool overlap = plan.offsets[i] < plan.offsets[j] + requests[j].bytes &&
                             plan.offsets[j] < plan.offsets[i] + requests[i].bytes;
        ASSERT_FALSE(both_alive && overlap && requests[i].bytes > 0 && requests[j].bytes > 0)
            << "seed " << seed << " round " << round;
      }
    }
  }
}

TEST(Memory, AChainNeedsTwoBuffers) {
  std::vector<MemoryRequest> requests;
  for (int32_t i = 0; i < 10; ++i) requests.push_back({1024, i, i + 1});
  EXPECT_EQ(plan_memory(requests).bytes, 2048);
}

TEST(Memory, ADebugBufferLivesUntilTheEnd) {
  Profile profile;
  const TensorType type{DType::f32, {4}, Layout::linear};
  for (int i = 0; i < 4; ++i) profile.buffers.push_back({"t", type, BufferKind::arena, -1});
  profile.buffers.push_back({"view", type, BufferKind::arena, 0, false, true});
  profile.steps.resize(3);  // 0 -> 1 -> 2 -> 3
  for (BufferId i = 0; i < 3; ++i) {
    profile.steps[static_cast<size_t>(i)].inputs = {i};
    profile.steps[static_cast<size_t>(i)].outputs = {i + 1};
  }
  const Lifetimes live = lifetimes(profile);
  const auto last = [&](size_t buffer) {
    return live.requests[static_cast<size_t>(live.request_of_buffer[buffer])].last;
  };
  EXPECT_EQ(last(0), 3) << "its view is a debug tensor";
  EXPECT_EQ(last(4), 3);
  EXPECT_EQ(last(2), 2);
}

}  // namespace
}  // namespace hone
