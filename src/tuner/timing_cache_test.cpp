// SPDX-License-Identifier: Apache-2.0
//
// Timing caches that are damaged, foreign or shared: what can be read is read, the rest is counted, nothing is lost.
#include "tuner/timing_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

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
