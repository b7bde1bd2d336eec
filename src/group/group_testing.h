// SPDX-License-Identifier: Apache-2.0
//
// For tests: the ranks of a group as threads of one process.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/folder_testing.h"
#include "group/gloo_group.h"

namespace hone {

inline Rank rank_for_test(int rank, int size, const std::string& folder) {
  return {.rank = rank,
          .size = size,
          .local = rank,
          .local_size = size,
          .launcher = "a test",
          .job = "a test",
          .folder = folder};
}

/// Calls work(group) in each rank at the same time; what each that failed said, by rank.
inline std::vector<std::string> in_ranks(int size, const std::function<void(Group&)>& work, int timeout_ms = 30'000) {
  const TestFolder folder;
  std::vector<std::string> failures(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        GlooGroup group(rank_for_test(rank, size, folder.path().string()),
                        {.program = "test", .timeout_ms = timeout_ms});
        work(group);
      } catch (const Error& error) {
        failures[static_cast<size_t>(rank)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return failures;
}

}  // namespace hone
