// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/run/recording.h"

#include <xmmintrin.h>

#include <algorithm>
#include <chrono>

#include "backends/cpu/run/team.h"
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

CpuRecording::CpuRecording(std::vector<Launch> launches, int workers)
    : launches_(std::move(launches)), workers_(workers) {
  for (size_t i = 0; i < launches_.size(); ++i) {
    // Backend::load makes nothing but CpuKernels for this device.
    const auto* kernel = static_cast<const CpuKernel*>(launches_[i].kernel.get());
    HONE_ASSERT(kernel != nullptr, "a launch has no kernel");
    kernels_.push_back(kernel);
    if (const size_t bytes = kernel->prepared_bytes(); bytes != 0) {
      prepared_.emplace_back(bytes);
      kernel->prepare(launches_[i].constants, prepared_.back().data());
      launches_[i].constants.push_back(prepared_.back().data());
    }
    phase_of_.push_back(phases_);
    phases_ += static_cast<size_t>(kernel->phases());
    if (chains_.empty() || chains_.back().self_parallel || kernel->self_parallel())
      chains_.push_back({i, i + 1, kernel->self_parallel()});
    else chains_.back().end = i + 1;
  }
  board_ = std::make_unique<ShareBoard>(phases_, workers_);
}

void CpuRecording::replay(Stream&) {
  board_->begin();
  for (const Chain& chain : chains_) run_chain(chain);
}

void CpuRecording::replay(Stream&, const LaunchObserver& observer) {
  using Clock = std::chrono::steady_clock;
  board_->begin();
  for (size_t i = 0; i < launches_.size(); ++i) {
    const Clock::time_point start = Clock::now();
    run_chain({i, i + 1, kernels_[i]->self_parallel()});
    observer(i, std::chrono::duration<double, std::milli>(Clock::now() - start).count());
  }
}

void CpuRecording::run_chain(const Chain& chain) const {
  if (chain.self_parallel) {
    for (size_t i = chain.begin; i < chain.end; ++i)
      if (!stopped()) kernels_[i]->run(0, 0, 1, launches_[i].bindings());
    return;
  }
  bool alone = workers_ == 1;
  if (!alone)
    alone = std::all_of(kernels_.begin() + static_cast<ptrdiff_t>(chain.begin),
                        kernels_.begin() + static_cast<ptrdiff_t>(chain.end),
                        [](const CpuKernel* kernel) { return kernel->serial(); });
  if (alone) {
    const FlushDenormals guard;
    return work(chain, 0);
  }
  // However many threads there are: they share all the work.
  run_team(workers_, [&](int worker) {
    const FlushDenormals guard;
    work(chain, worker);
  });
}

void CpuRecording::work(const Chain& chain, int worker) const {
  for (size_t i = chain.begin; i < chain.end; ++i) {
    const CpuKernel& kernel = *kernels_[i];
    const Bindings bindings = launches_[i].bindings();
    const int shares = kernel.serial() ? 1 : workers_;
    for (int phase = 0; phase < kernel.phases(); ++phase) {
      const size_t on_board = phase_of_[i] + static_cast<size_t>(phase);
      for (int k = 0; k < shares; ++k) {
        const int share = (worker + k) % shares;
        if (!board_->claim(on_board, share)) continue;
        if (!stopped()) kernel.run(phase, share, shares, bindings);
        board_->finish(on_board, shares);
      }
      board_->wait(on_board, shares);
    }
  }
}

}  // namespace hone::cpu
