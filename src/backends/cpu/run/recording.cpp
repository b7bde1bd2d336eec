// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/run/recording.h"

#include <xmmintrin.h>

#include <algorithm>
#include <chrono>
#include <optional>

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

/// What vector code of anybody left in the upper halves of this thread's registers, older instructions drag along: the cosines of a
/// window took five times as long.
void clear_upper_halves() {
  if (__builtin_cpu_supports("avx")) asm volatile("vzeroupper" : : : "memory");
}

/// Brings memory that a kernel will read into the second-level cache, a few lines at a call.
class Ahead {
 public:
  explicit Ahead(std::span<const std::byte> bytes) : left_(bytes.first(std::min(bytes.size(), kMost))) {}
  bool step() {
    if (left_.empty()) return false;
    const std::span<const std::byte> lines = left_.first(std::min(left_.size(), kStep));
    for (size_t at = 0; at < lines.size(); at += kAlignment)
      _mm_prefetch(reinterpret_cast<const char*>(lines.data() + at), _MM_HINT_T1);
    left_ = left_.subspan(lines.size());
    return true;
  }

 private:
  static constexpr size_t kMost = 256 << 10, kStep = 4 * kAlignment;
  std::span<const std::byte> left_;
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

void CpuRecording::replay(Stream& stream, std::vector<WorkSpan>& spans) {
  std::vector<std::vector<WorkSpan>> by_worker(static_cast<size_t>(workers_));
  for (std::vector<WorkSpan>& of_one : by_worker) of_one.reserve(phases_ + launches_.size());
  spans_ = &by_worker;
  const auto stop = [this](const void*) { spans_ = nullptr; };
  const std::unique_ptr<const void, decltype(stop)> kept(this, stop);
  replay(stream);
  spans.clear();
  for (const std::vector<WorkSpan>& of_one : by_worker) spans.insert(spans.end(), of_one.begin(), of_one.end());
}

void CpuRecording::run_share(size_t launch, int phase, int share, int shares, int worker) const {
  if (stopped()) return;
  const NamedRange range(launches_[launch].range);
  if (spans_ == nullptr) return kernels_[launch]->run(phase, share, shares, launches_[launch].bindings());
  const SpanClock::time_point begin = SpanClock::now();
  kernels_[launch]->run(phase, share, shares, launches_[launch].bindings());
  (*spans_)[static_cast<size_t>(worker)].push_back({launch, worker, begin, SpanClock::now()});
}

void CpuRecording::run_chain(const Chain& chain) const {
  if (chain.self_parallel) {
    clear_upper_halves();
    for (size_t i = chain.begin; i < chain.end; ++i) run_share(i, 0, 0, 1, 0);
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

size_t CpuRecording::reader_from(size_t from, size_t end) const {
  while (from < end && kernels_[from]->read_first(0, workers_, launches_[from].constants).empty()) ++from;
  return from;
}

size_t CpuRecording::serial_until(size_t begin, size_t end) const {
  while (begin < end && kernels_[begin]->serial()) ++begin;
  return begin;
}

void CpuRecording::run_serial(size_t begin, size_t end, int worker) const {
  for (size_t i = begin; i < end; ++i)
    for (int phase = 0; phase < kernels_[i]->phases(); ++phase) run_share(i, phase, 0, 1, worker);
  // The board forgets nothing by itself: every phase of a replay is finished, the one that others wait for last.
  for (size_t phase = end < phase_of_.size() ? phase_of_[end] : phases_; phase-- > phase_of_[begin] + 1;)
    if (board_->claim(phase, 0)) board_->finish(phase, 1);
  board_->finish(phase_of_[begin], 1);
}

void CpuRecording::work(const Chain& chain, int worker) const {
  std::optional<size_t> next;  // whose constants are brought near
  Ahead ahead({});
  const auto wait = [&](size_t on_board, int shares, size_t from) {
    if (!next || *next < from) {
      next = reader_from(from, chain.end);
      if (*next != chain.end) ahead = Ahead(kernels_[*next]->read_first(worker, workers_, launches_[*next].constants));
    }
    board_->wait(on_board, shares, [&] { return ahead.step(); });
  };
  for (size_t i = chain.begin; i < chain.end; ++i) {
    // Neighbours that one worker does are one piece of work: that of the first of their phases.
    if (const size_t behind = serial_until(i, chain.end); behind != i) {
      if (board_->claim(phase_of_[i], 0)) run_serial(i, behind, worker);
      wait(phase_of_[i], 1, behind);
      i = behind - 1;
      continue;
    }
    const CpuKernel& kernel = *kernels_[i];
    for (int phase = 0; phase < kernel.phases(); ++phase) {
      const size_t on_board = phase_of_[i] + static_cast<size_t>(phase);
      for (int k = 0; k < workers_; ++k) {
        const int share = (worker + k) % workers_;
        if (!board_->claim(on_board, share)) continue;
        run_share(i, phase, share, workers_, worker);
        board_->finish(on_board, workers_);
      }
      wait(on_board, workers_, phase + 1 < kernel.phases() ? i : i + 1);
    }
  }
}

}  // namespace hone::cpu
