// SPDX-License-Identifier: Apache-2.0
//
// Who does what, and what is done: each phase of each kernel has as many shares as the team has workers. A worker
// takes its own share first, then those that nobody has taken yet, then waits until all are finished. So the caches stay
// warm on a quiet machine, and on a busy one a worker that the system has set aside delays nobody unless it holds a share.
//
// Nothing is reset between replays: claims and counts carry the number of the replay.
#pragma once

#include <immintrin.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace hone::cpu {

class ShareBoard {
 public:
  ShareBoard(size_t phases, int workers)
      : row_((static_cast<size_t>(workers) + kWordsPerLine - 1) / kWordsPerLine * kWordsPerLine),
        claims_(new std::atomic<uint32_t>[phases * row_]()),
        done_(new Done[phases]()) {}

  /// Before any worker of a replay starts. Every phase has to be finished in every replay.
  void begin() { round_ = (round_ + 1) & 0xffff; }

  bool claim(size_t phase, int share) noexcept {
    std::atomic<uint32_t>& word = claims_[phase * row_ + static_cast<size_t>(share)];
    uint32_t seen = word.load(std::memory_order_relaxed);
    return seen != round_ &&
           word.compare_exchange_strong(seen, round_, std::memory_order_acquire, std::memory_order_relaxed);
  }

  void finish(size_t phase, int shares) noexcept {
    std::atomic<uint32_t>& count = done_[phase].count;
    uint32_t seen = count.load(std::memory_order_relaxed), next;
    do next = seen >> 16 == round_ ? seen + 1 : round_ << 16 | 1;
    while (!count.compare_exchange_weak(seen, next));
    if (next == complete(shares) && sleepers_.load() > 0) count.notify_all();
  }

  /// `idle` is called while the others work; false: it has nothing more to do.
  template <typename Idle>
  void wait(size_t phase, int shares, const Idle& idle) noexcept {
    std::atomic<uint32_t>& count = done_[phase].count;
    const uint32_t wanted = complete(shares);
    for (int spins = 0; spins < kSpins; ++spins) {
      if (count.load(std::memory_order_acquire) == wanted) return;
      if (!idle()) _mm_pause();
    }
    ++sleepers_;  // sequentially consistent: either this is seen, or wait() sees the new count
    for (uint32_t seen = count.load(); seen != wanted; seen = count.load()) count.wait(seen);
    --sleepers_;
  }

 private:
  static constexpr int kSpins = 4000;  // some 50 to 100 µs
  static constexpr size_t kWordsPerLine = 64 / sizeof(uint32_t);
  struct alignas(64) Done {
    std::atomic<uint32_t> count;  // replay << 16 | finished shares
  };

  uint32_t complete(int shares) const { return round_ << 16 | static_cast<uint32_t>(shares); }

  const size_t row_;
  std::unique_ptr<std::atomic<uint32_t>[]> claims_;  // per phase and share: the replay that took it last
  std::unique_ptr<Done[]> done_;
  uint32_t round_ = 0;
  alignas(64) std::atomic<int> sleepers_{0};
};

}  // namespace hone::cpu
