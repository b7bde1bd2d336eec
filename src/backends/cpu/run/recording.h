// SPDX-License-Identifier: Apache-2.0
//
// Replays launches with a team of workers. The idea: waking a team costs more than most layers take, so a whole chain of
// kernels runs inside one parallel region; who computes what, and when the next kernel may start, stands on a ShareBoard.
// A kernel that brings its own parallelism runs between two chains, on the calling thread.
//
// Different recordings may replay at once in different host threads: each has its own board and its own OpenMP team.
#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/kernel.h"
#include "backends/cpu/run/share_board.h"
#include "device/work_spans.h"

namespace hone::cpu {

class CpuRecording final : public Recording, public TellsSpans {
 public:
  CpuRecording(std::vector<Launch> launches, int workers);

  std::vector<Launch>& launches() override { return launches_; }
  void replay(Stream& stream) override;
  void replay(Stream& stream, const LaunchObserver& observer) override;
  void replay(Stream& stream, std::vector<WorkSpan>& spans) override;
  void stop_at(const std::atomic<bool>* flag) override { stop_ = flag; }

 private:
  struct Chain {
    size_t begin, end;
    bool self_parallel;
  };

  void run_chain(const Chain& chain) const;
  bool stopped() const { return stop_ != nullptr && stop_->load(std::memory_order_relaxed); }
  /// One worker's part of a chain.
  void work(const Chain& chain, int worker) const;
  /// Where a run of launches that one worker does ends.
  size_t serial_until(size_t begin, size_t end) const;
  /// Of the claimed first phase and all behind it.
  void run_serial(size_t begin, size_t end, int worker) const;
  /// A kernel's share of a phase, on the calling thread, which is `worker` of the team.
  void run_share(size_t launch, int phase, int share, int shares, int worker) const;
  /// The launch at or behind `from` whose constants are worth bringing near; that of the end where there is none.
  size_t reader_from(size_t from, size_t end) const;

  std::vector<AlignedBuffer> prepared_;  // constants of launches in other forms
  std::vector<Launch> launches_;
  std::vector<const CpuKernel*> kernels_;  // of the launches
  std::vector<Chain> chains_;
  int workers_;
  const std::atomic<bool>* stop_ = nullptr;
  size_t phases_ = 0;             // of all kernels
  std::vector<size_t> phase_of_;  // the first phase of each launch
  std::unique_ptr<ShareBoard> board_;
  std::vector<std::vector<WorkSpan>>* spans_ = nullptr;  // by worker, while a time line is kept
};

}  // namespace hone::cpu
