// SPDX-License-Identifier: Apache-2.0
//
// Ranks that meet, and those that do not: each says who is missing, or who says something else.
#include "group/meeting.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/file.h"
#include "group/group_testing.h"

namespace hone {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

struct Guest {
  int rank, size;
  std::string hello;
};

/// What each that could not meet said.
std::vector<std::string> meet(const std::vector<Guest>& guests, const std::string& folder, int timeout_ms) {
  std::vector<std::string> failures(guests.size());
  std::vector<std::unique_ptr<Meeting>> meetings(guests.size());  // nobody leaves before all have met
  std::vector<std::thread> threads;
  for (size_t i = 0; i < guests.size(); ++i)
    threads.emplace_back([&, i] {
      const Guest& guest = guests[i];
      try {
        meetings[i] = std::make_unique<Meeting>(rank_for_test(guest.rank, guest.size, folder), guest.hello, timeout_ms);
      } catch (const GroupError& error) {
        failures[i] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return failures;
}

constexpr int kSoon = 200, kLong = 20'000;

TEST(Meeting, RanksFindEachOtherWhoeverComesFirst) {
  const TestFolder folder;
  for (int start = 0; start < 5; ++start)
    EXPECT_THAT(meet({{2, 3, "x"}, {0, 3, "x"}, {1, 3, "x"}}, folder.path().string(), kLong), Each(IsEmpty()));
}

TEST(Meeting, AMissingRankIsNamedByTheOthers) {
  const TestFolder folder;
  const std::vector<std::string> failures = meet({{0, 3, "x"}, {2, 3, "x"}}, folder.path().string(), kSoon);
  EXPECT_THAT(failures, Each(HasSubstr("rank 1 of 3 has not come within 0.2 s")));
  EXPECT_THAT(meet({{1, 2, "x"}}, folder.path().string(), kSoon), Each(HasSubstr("rank 0 of 2 has not come")));
}

TEST(Meeting, ARankThatSaysSomethingElseIsToldOfByBoth) {
  const TestFolder folder;
  const std::vector<std::string> failures = meet({{0, 2, "Hone 1"}, {1, 2, "Hone 2"}}, folder.path().string(), kLong);
  EXPECT_THAT(failures[0], HasSubstr("rank 0 is Hone 1, rank 1 is Hone 2"));
  EXPECT_THAT(failures[1], HasSubstr("rank 1 is Hone 2, rank 0 is Hone 1"));
}

TEST(Meeting, ARankThatIsThereTwiceIsRefused) {
  const TestFolder folder;
  const std::vector<std::string> failures =
      meet({{0, 2, "x"}, {1, 2, "x"}, {1, 2, "x"}}, folder.path().string(), kLong);
  EXPECT_THAT(failures[0], IsEmpty());
  EXPECT_THAT(failures[1] + failures[2], HasSubstr("rank 1 is there twice"));
}

TEST(Meeting, WhatAnEarlierStartLeftIsNotTakenForThisOne) {
  const TestFolder folder;
  std::filesystem::create_directories(folder.path().string() + "/start-0123456789abcdef/rank0");
  write_file(folder.path().string() + "/start-0123456789abcdef/rank0/hello", "x");
  write_file(folder.path().string() + "/lock", std::string_view("        start-0123456789abcdef"));
  EXPECT_THAT(meet({{1, 2, "x"}}, folder.path().string(), kSoon), Each(HasSubstr("rank 0 of 2 has not come")));
  EXPECT_THAT(meet({{1, 2, "x"}, {0, 2, "x"}}, folder.path().string(), kLong), Each(IsEmpty()));
  EXPECT_FALSE(std::filesystem::exists(folder.path().string() + "/start-0123456789abcdef"));
}

TEST(Meeting, NothingStaysOfAStart) {
  const TestFolder folder;
  EXPECT_THAT(meet({{0, 1, "x"}}, folder.path().string(), kLong), Each(IsEmpty()));
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    left.push_back(entry.path().filename().string());
  EXPECT_EQ(left, std::vector<std::string>{"lock"});
}

}  // namespace
}  // namespace hone
