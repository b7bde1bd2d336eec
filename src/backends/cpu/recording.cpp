// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/recording.h"

#include <omp.h>
#include <xmmintrin.h>

#include <chrono>

#include "backends/cpu/spin_barrier.h"
#include "base/error.h"

namespace hone::cpu {
namespace {

/// Numbers too small to matter are zero: a denormal costs a hundred cycles on many processors.
class FlushDenormals {
 public:
  FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero); }
  ~FlushDenormals() { _mm_setcsr(saved_); }

 private:
  static constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  const unsigned saved_;
};

}  // namespace

CpuRecording::CpuRecording(std::vector<Launch> launches, int workers) : launches_(std::move(launches)), workers_(workers) {
  for (size_t i = 0; i < launches_.size(); ++i) {
    // Backend::load makes nothing but CpuKernels for this device.
    const auto* kernel = static_cast<const CpuKernel*>(launches_[i].kernel.get());
    HONE_ASSERT(kernel != nullptr, "a launch has no kernel");
    kernels_.push_back(kernel);
    if (chains_.empty() || chains_.back().self_parallel || kernel->self_parallel()) chains_.push_back({i, i + 1, kernel->self_parallel()});
    else chains_.back().end = i + 1;
  }
}

void CpuRecording::replay(Stream&) {
  for (const Chain& chain : chains_) run_chain(chain);
}

void CpuRecording::replay(Stream&, const LaunchObserver& observer) {
  using Clock = std::chrono::steady_clock;
  for (size_t i = 0; i < launches_.size(); ++i) {
    const Clock::time_point start = Clock::now();
    run_chain({i, i + 1, kernels_[i]->self_parallel()});
    observer(i, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
}

void CpuRecording::run_chain(const Chain& chain) const {
  if (chain.self_parallel) {
    for (size_t i = chain.begin; i < chain.end; ++i) run_launch(i, 0, 1, nullptr);
    return;
  }
  bool all_serial = true;
  for (size_t i = chain.begin; i < chain.end; ++i) all_serial &= kernels_[i]->serial();
  if (workers_ == 1 || all_serial) {
    const FlushDenormals guard;
    for (size_t i = chain.begin; i < chain.end; ++i) run_launch(i, 0, 1, nullptr);
    return;
  }
  SpinBarrier barrier(workers_);
  int team = 0;
#pragma omp parallel num_threads(workers_)
  {
    // The runtime may grant fewer threads than asked for (OMP_THREAD_LIMIT, a region inside a region).
#pragma omp single
    team = omp_get_num_threads();
    const int worker = omp_get_thread_num();
    const FlushDenormals guard;
    if (team == workers_) {
      for (size_t i = chain.begin; i < chain.end; ++i) run_launch(i, worker, team, &barrier);
    } else if (worker == 0) {
      for (size_t i = chain.begin; i < chain.end; ++i) run_launch(i, 0, 1, nullptr);
    }
  }
}

void CpuRecording::run_launch(size_t index, int worker, int workers, SpinBarrier* barrier) const {
  const CpuKernel& kernel = *kernels_[index];
  const Bindings bindings = launches_[index].bindings();
  const bool serial = kernel.serial();
  for (int phase = 0; phase < kernel.phases(); ++phase) {
    if (!serial) kernel.run(phase, worker, workers, bindings);
    else if (worker == 0) kernel.run(phase, 0, 1, bindings);
    if (barrier != nullptr && (!serial || phase + 1 == kernel.phases())) barrier->wait();
  }
}

}  // namespace hone::cpu
