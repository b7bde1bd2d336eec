// SPDX-License-Identifier: Apache-2.0
//
// A barrier for the few microseconds between two kernels: workers spin on one cache line. When a worker is late for long
// (the machine is shared with others) the rest sleep, so that the late one gets a core.
#pragma once

#include <immintrin.h>

#include <atomic>

namespace hone::cpu {

class SpinBarrier {
 public:
  explicit SpinBarrier(int workers) : workers_(workers) {}

  void wait() noexcept {
    const int round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == workers_ - 1) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1);
      if (sleepers_.load() > 0) round_.notify_all();
      return;
    }
    for (int spins = 0; spins < kSpins; ++spins) {
      if (round_.load(std::memory_order_acquire) != round) return;
      _mm_pause();
    }
    ++sleepers_;                       // sequentially consistent: either this is seen, or wait() sees the new round
    round_.wait(round);
    --sleepers_;
  }

 private:
  static constexpr int kSpins = 4000;  // some 50 to 100 µs

  const int workers_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<int> round_{0};
  std::atomic<int> sleepers_{0};
};

}  // namespace hone::cpu
