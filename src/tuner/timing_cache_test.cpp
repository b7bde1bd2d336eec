// SPDX-License-Identifier: Apache-2.0
//
// Timing caches that are damaged, foreign or shared: what can be read is read, the rest is counted, nothing is lost.
#include "tuner/timing_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "base/folder_testing.h"
#include "base/limits.h"

namespace hone {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string sample() {
  TimingCache cache;
  for (int i = 0; i < 20; ++i) cache.put(fmt::format("problem {} | cpu.tile", i), {0.5, 0.01, 10, ""});
  return cache.text();
}

TEST(TimingCacheText, HalfALineCostsThatLineAlone) {
  const std::string whole = sample();
  for (size_t size = 0; size < whole.size(); ++size) {
    size_t skipped = 0;
    const TimingCache cache = TimingCache::parse(whole.substr(0, size), &skipped);
    EXPECT_LE(skipped, 1u) << "cut to " << size;
    EXPECT_LE(cache.entries(), 20u);
  }
  EXPECT_EQ(TimingCache::parse(whole.substr(0, whole.size() - 5)).entries(), 19u);
}

/// Entries of few values, so that ties of every kind come up.
Timing random_timing(std::mt19937_64& random) {
  const auto below = [&](uint64_t count) { return static_cast<int>(random() % count); };
  if (below(4) == 0) return {-1, 0, 0, below(2) == 0 ? "rejected" : "crashed"};
  return {0.5 * below(3), 0.25 * below(3), 8 + below(2), ""};
}

TimingCache random_cache(std::mt19937_64& random) {
  TimingCache cache;
  for (int i = 0; i < 30; ++i) cache.put(fmt::format("problem {} | cpu.tile", random() % 40), random_timing(random));
  return cache;
}

TimingCache merged(TimingCache a, const TimingCache& b) {
  a.merge(b);
  return a;
}

TEST(TimingCacheMerge, IsCommutativeAssociativeAndIdempotent) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    const TimingCache a = random_cache(random), b = random_cache(random), c = random_cache(random);
    ASSERT_EQ(merged(a, b).text(), merged(b, a).text());
    ASSERT_EQ(merged(merged(a, b), c).text(), merged(a, merged(b, c)).text());
    ASSERT_EQ(merged(a, a).text(), a.text());
    ASSERT_EQ(merged(merged(a, b), b).text(), merged(a, b).text());
  }
}

TEST(TimingCacheMerge, TwentyShuffledPartsGiveTheSameBytes) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  std::vector<std::string> parts;
  for (int i = 0; i < 20; ++i) parts.push_back(random_cache(random).text());
  for (std::string& part : parts) part.insert(part.find('\n') + 1, "{\"key\":\"half a li\n\xff\x01 no json\n");
  std::string first;
  for (int order = 0; order < 20; ++order) {
    std::ranges::shuffle(parts, random);
    TimingCache all;
    for (const std::string& part : parts) {
      size_t skipped = 0;
      all.merge(TimingCache::parse(part, &skipped));
      ASSERT_EQ(skipped, 2u);
    }
    if (first.empty()) first = all.text();
    ASSERT_EQ(all.text(), first);
  }
  EXPECT_GT(TimingCache::parse(first).entries(), 30u);
}

TEST(TimingCacheMerge, PrefersMeasurementsSamplesAndLittleSpreadInThisOrder) {
  const Timing rejected{-1, 0, 0, "rejected"}, rough{2, 0.5, 4, ""}, often{3, 0.5, 8, ""}, steady{4, 0.1, 8, ""};
  const Timing order[] = {rejected, rough, often, steady};
  for (size_t i = 0; i + 1 < std::size(order); ++i) {
    EXPECT_TRUE(is_preferred(order[i + 1], order[i])) << i;
    EXPECT_FALSE(is_preferred(order[i], order[i + 1])) << i;
    EXPECT_FALSE(is_preferred(order[i], order[i])) << i;
  }
}

TEST(TimingCacheText, AnotherVersionIsSkippedWhole) {
  size_t skipped = 0;
  EXPECT_EQ(
      TimingCache::parse("{\"hone_timing_cache\":2}\n" + sample().substr(sample().find('\n') + 1), &skipped).entries(),
      0u);
  EXPECT_EQ(skipped, 21u);
}

TEST(TimingCacheText, AbsurdNumbersAreSkipped) {
  const std::string header = sample().substr(0, sample().find('\n') + 1);
  for (const char* row :
       {R"({"key":"k","ms":1e999,"spread":0,"samples":1,"note":""})",
        R"({"key":"k","ms":1,"spread":0,"samples":-1,"note":""})",
        R"({"key":"k","ms":1,"spread":0,"samples":9223372036854775808,"note":""})",
        R"({"key":"k","ms":"1","spread":0,"samples":1,"note":""})",
        R"({"key":7,"ms":1,"spread":0,"samples":1,"note":""})", R"({"key":"k"})", "[[[[[[[[", "null", "\xff\xfe"}) {
    size_t skipped = 0;
    EXPECT_EQ(TimingCache::parse(header + row + "\n", &skipped).entries(), 0u) << row;
    EXPECT_EQ(skipped, 1u) << row;
  }
  EXPECT_EQ(TimingCache::parse(header + std::string(1 << 20, '[')).entries(), 0u);
}

TEST(TimingCacheFile, BeyondTheLimitIsNotRead) {
  const TestFolder folder;
  std::ofstream(folder.file("huge")).close();
  std::filesystem::resize_file(folder.file("huge"), static_cast<uintmax_t>(kMaxCacheBytes) + 1);  // sparse
  try {
    load_timing_cache(folder.file("huge"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("huge"), HasSubstr(std::to_string(kMaxCacheBytes)), HasSubstr("hint")));
  }
}

TEST(TimingCacheFile, WritersAtOnceLoseNothing) {
  const TestFolder folder;
  constexpr int kWriters = 4, kEntries = 15;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    for (int i = 0; i < kEntries; ++i) {
      TimingCache cache;
      cache.put(fmt::format("writer {} entry {}", writer, i), {1, 0, 1, ""});
      save_timing_cache(cache, folder.file("shared"));
    }
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  size_t skipped = 0;
  EXPECT_EQ(load_timing_cache(folder.file("shared"), nullptr, &skipped).entries(),
            static_cast<size_t>(kWriters * kEntries));
  EXPECT_EQ(skipped, 0u);
}

}  // namespace
}  // namespace hone
