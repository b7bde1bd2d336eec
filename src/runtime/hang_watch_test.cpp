// SPDX-License-Identifier: Apache-2.0
//
// An inference that does not end ends the group, and one that ends does not.
#include "runtime/hang_watch.h"

#include <gmock/gmock.h>

#include <atomic>

namespace hone {
namespace {

class FakeEvent final : public Event {
 public:
  void record(Stream&) override {}
  void wait() const override {}
  bool passed() const override {
    ++asked;
    return has_passed;
  }
  double milliseconds_since(const Event&) const override { return 0; }
  std::atomic<bool> has_passed = false;
  mutable std::atomic<int> asked = 0;
};

class FakeGroup final : public Group {
 public:
  explicit FakeGroup(int timeout) : timeout_(timeout) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  int timeout_ms() const override { return timeout_; }
  void run(const CollectiveForm&, const void*, void*) override {}
  std::vector<std::string> exchange(std::string_view) override { return {}; }
  std::vector<uint64_t> exchange(uint64_t) override { return {}; }
  void fail(const GroupError& error) override {
    said = error.what();
    failed = true;
    failed.notify_all();
  }
  void on_failure(std::function<void()>) override {}
  void require_sound() const override {
    if (failed) throw GroupError(said);
  }
  std::string said;
  std::atomic<bool> failed = false;
  std::atomic<int> stuck = 0;

 private:
  int timeout_;
};

TEST(HangWatch, AnInferenceThatDoesNotEndInTimeEndsTheGroup) {
  FakeGroup group(10);
  const FakeEvent end;
  HangWatch watch(group, [&] { ++group.stuck; });
  watch.begin();
  watch.end(end);
  group.failed.wait(false);
  EXPECT_THAT(group.said, testing::HasSubstr("rank 0 of 2 has waited 0.01 s for an inference to end"));
}

TEST(HangWatch, InferencesThatEndAreForgotten) {
  constexpr int kLong = 60'000;
  FakeGroup group(kLong);
  FakeEvent end;
  HangWatch watch(group, [&] { ++group.stuck; });
  for (int i = 0; i < 3; ++i) {
    end.has_passed = false;
    watch.begin();
    watch.end(end);
    while (end.asked == 0) std::this_thread::yield();
    const int asked = end.asked;
    end.has_passed = true;
    while (end.asked == asked) std::this_thread::yield();
    end.asked = 0;
  }
  EXPECT_FALSE(group.failed);
}

TEST(HangWatch, AnInferenceThatIsNeverEnqueuedWholeEndsTheGroup) {
  FakeGroup group(10);
  HangWatch watch(group, [&] {
    ++group.stuck;
    group.stuck.notify_all();
  });
  watch.begin();
  group.failed.wait(false);
  group.stuck.wait(0);
  EXPECT_EQ(group.stuck, 1);
}

TEST(HangWatch, WhatDoesNotEndWithItsGroupIsStuck) {
  constexpr int kLong = 60'000;
  FakeGroup group(kLong);
  const FakeEvent end;
  HangWatch watch(group, [&] {
    ++group.stuck;
    group.stuck.notify_all();
  });
  watch.begin();
  watch.end(end);
  group.fail(GroupError("rank 1 has ended"));  // by somebody else
  group.stuck.wait(0);
  EXPECT_EQ(group.stuck, 1);
}

TEST(HangWatch, WhatEndsWithItsGroupIsNot) {
  FakeGroup group(1);
  FakeEvent end;
  {
    HangWatch watch(group, [&] { ++group.stuck; });
    watch.begin();
    watch.end(end);
    group.failed.wait(false);
    const int asked = end.asked;
    end.has_passed = true;
    while (end.asked == asked) std::this_thread::yield();
  }
  EXPECT_EQ(group.stuck, 0);
}

}  // namespace
}  // namespace hone
