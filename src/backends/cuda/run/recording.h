// SPDX-License-Identifier: Apache-2.0
//
// Replays launches as CUDA graphs. The idea: at batch 1 most kernels take as long as it takes to launch them, so a run of
// device kernels becomes one graph, with branches where memory allows (schedule.h). Kernels that the host has to run stand
// between two graphs, with copies around them.
//
// The first replay after the pointers changed launches one by one, so that whatever a library sets up lazily is set up; the
// second captures. In a graph, kernels of ours that follow each other in a branch overlap where the GPU can: the later one's
// blocks are placed and fetch constants while the earlier one ends. A capture that fails is tried once more without that; where
// it fails again, launches stay single, and capture_failure() says which one could not be captured.
//
// Libraries launch kernels that may begin early, too, and some of them read an operand without waiting for the kernel ahead. In
// a graph their edges are made to wait (graph_edges.h); single launches have a fill of a few bytes before them, which begins
// when all before it has ended, and ends before anything behind it begins.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/run/device.h"
#include "backends/cuda/run/kernel.h"
#include "device/work_spans.h"

namespace hone::cuda {

class CudaRecording final : public Recording, public TellsSpans, public ReachesAcross {
 public:
  CudaRecording(std::vector<Launch> launches, CudaDevice& device);
  ~CudaRecording() override;

  std::vector<Launch>& launches() override;
  void replay(Stream& stream) override;
  void replay(Stream& stream, const LaunchObserver& observer) override;
  void replay(Stream& stream, std::vector<WorkSpan>& spans) override;
  void stop_at(const std::atomic<bool>* flag) override { stop_ = flag; }
  void poison(Stream& stream) override;
  std::string places_in(const SharedMemory& memory) const override;
  void reach_across(SharedMemory& memory) override;
  const std::string& capture_failure() const { return capture_failure_; }
  /// How many launches of the graphs may begin before the one ahead has ended.
  size_t early_launches() const { return early_launches_; }

 private:
  struct Run {
    size_t begin = 0, end = 0;
    bool on_host = false, alone = false;  // alone: no graph is made of it
    CUgraphExec graph = nullptr;
  };
  static constexpr int kStreams = 4;  // branches of a graph

  using GraphUser = std::function<void(CUgraph)>;

  /// Into a graph that somebody captures: our own as one node of it, or, where that fails, one launch after the other.
  void join_capture(CUstream stream);
  static void add_to_capture(CUstream stream, CUgraph graph);
  void launch_all(const Run& run, CUstream stream) const;
  void run_on_host(size_t index, CudaStream& stream) const;
  /// Makes a graph, which lives as long as `use` has it. Why it did not work; empty when it did.
  std::string capture(const Run& run, const GraphUser& use);
  std::string try_capture(const Run& run, const GraphUser& use);
  /// Before and after each launch, which goes into the stream of that branch.
  using Stamp = std::function<void(size_t launch, size_t branch, bool ended)>;
  void launch_branches(const Run& run, const Stamp& stamp);
  void launch(size_t index, CUstream stream, void* workspace, bool early) const;
  void wait_for_all(CUstream stream) const;
  void drop_graphs();

  CudaDevice& device_;
  std::shared_ptr<const Context> context_;
  std::vector<std::unique_ptr<CudaStream>> capture_streams_;
  std::vector<Buffer> workspaces_;  // of the branches but the first, which has the launches' own
  std::vector<Launch> launches_;
  std::vector<const CudaKernel*> kernels_;                 // of the launches
  std::vector<std::shared_ptr<const CudaKernel>> across_;  // what reach_across() put in their place
  std::vector<bool> calls_library_;                        // by launch
  std::set<CUfunction> waiting_;                           // functions that wait for their operands
  Buffer fence_;                                           // what wait_for_all() fills
  std::vector<Run> runs_;
  int replays_ = 0;  // since the pointers changed
  bool overlaps_;    // kernels in graphs
  size_t early_launches_ = 0;
  std::string capture_failure_;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace hone::cuda
