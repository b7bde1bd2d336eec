// SPDX-License-Identifier: Apache-2.0
//
// A team of OpenMP's threads. GNU's runtime is not instrumented: the thread sanitizer is told where a team begins and ends, and
// so looks at what the team's threads do to each other.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace hone::cpu {
namespace team_detail {

#ifdef __SANITIZE_THREAD__
inline char g_edge;  // not the team's own: a thread reads what it was given only behind hear()
inline void tell() { __tsan_release(&g_edge); }
inline void hear() { __tsan_acquire(&g_edge); }
#else
inline void tell() {}
inline void hear() {}
#endif

}  // namespace team_detail

/// How many threads the parallel regions of the calling thread have, until it ends: of the reference's loops, and of libraries.
class TeamSize {
 public:
  explicit TeamSize(int workers) : saved_(omp_get_max_threads()) { omp_set_num_threads(workers); }
  ~TeamSize() { omp_set_num_threads(saved_); }
  TeamSize(const TeamSize&) = delete;
  TeamSize& operator=(const TeamSize&) = delete;

 private:
  const int saved_;
};

/// Calls work(thread) on as many threads as the runtime grants (OMP_THREAD_LIMIT, a region inside a region), at most `workers`.
template <typename Work>
void run_team(int workers, const Work& work) {
  team_detail::tell();
#pragma omp parallel num_threads(workers)
  {
    team_detail::hear();
    work(omp_get_thread_num());
    team_detail::tell();
  }
  team_detail::hear();
}

/// Calls work(i) for each i below `count`, shared out among the team that regions of the calling thread have (TeamSize). `bytes` that each
/// writes: what is over sooner than a team has met is done here.
template <typename Work>
void share_out(int64_t count, size_t bytes, const Work& work) {
  constexpr size_t kWorthATeam = size_t{1} << 20;
  const bool alone = static_cast<size_t>(count) * bytes < kWorthATeam;
  std::atomic<int64_t> next = 0;
  run_team(alone ? 1 : static_cast<int>(std::min<int64_t>(count, omp_get_max_threads())), [&](int) {
    for (int64_t i = next++; i < count; i = next++) work(i);
  });
}

}  // namespace hone::cpu
