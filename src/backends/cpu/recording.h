// SPDX-License-Identifier: Apache-2.0
//
// Replays launches with a team of workers. The idea: waking a team costs more than most layers take, so a whole chain of
// kernels runs inside one parallel region, with spin barriers between the kernels. A kernel that brings its own parallelism
// runs between two chains, on the calling thread.
//
// Different recordings may replay at once in different host threads: each has its own barrier and its own OpenMP team.
#pragma once

#include <vector>

#include "backend/device.h"
#include "backends/cpu/kernel.h"

namespace hone::cpu {

class SpinBarrier;

class CpuRecording final : public Recording {
 public:
  CpuRecording(std::vector<Launch> launches, int workers);

  std::vector<Launch>& launches() override { return launches_; }
  void replay(Stream& stream) override;
  void replay(Stream& stream, const LaunchObserver& observer) override;

 private:
  struct Chain { size_t begin, end; bool self_parallel; };

  void run_chain(const Chain& chain) const;
  void run_launch(size_t index, int worker, int workers, SpinBarrier* barrier) const;

  std::vector<Launch> launches_;
  std::vector<const CpuKernel*> kernels_;  // of the launches
  std::vector<Chain> chains_;
  int workers_;
};

}  // namespace hone::cpu
