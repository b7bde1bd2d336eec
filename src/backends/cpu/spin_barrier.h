// SPDX-License-Identifier: Apache-2.0
//
// A barrier for the few microseconds between two kernels: workers spin on one cache line. When a worker is late for long
// (the machine is shared with others) they yield, so that the late one may run.
#pragma once

#include <immintrin.h>
#include <sched.h>

#include <atomic>

namespace hone::cpu {

class SpinBarrier {
 public:
  explicit SpinBarrier(int workers) : workers_(workers) {}

  void wait() noexcept {
    const int round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == workers_ - 1) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins) {
      if (spins < kSpins) _mm_pause();
      else sched_yield();
    }
  }

 private:
  static constexpr int kSpins = 4000;  // some 50 to 100 µs

  const int workers_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<int> round_{0};
};

}  // namespace hone::cpu
