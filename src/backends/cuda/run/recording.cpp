// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/run/recording.h"

#include "backends/cuda/run/graph_edges.h"
#include "backends/cuda/run/mapped_memory.h"
#include "backends/cuda/run/schedule.h"
#include "base/error.h"

namespace hone::cuda {

CudaRecording::CudaRecording(std::vector<Launch> launches, CudaDevice& device)
    : device_(device),
      context_(device.context()),
      launches_(std::move(launches)),
      fence_(device, sizeof(uint32_t)),
      overlaps_(device.can_overlap()) {
  size_t workspace = 0;
  for (size_t i = 0; i < launches_.size(); ++i) {
    // Backend::load makes nothing but CudaKernels for this device.
    const auto* kernel = static_cast<const CudaKernel*>(launches_[i].kernel.get());
    HONE_ASSERT(kernel != nullptr, "a launch has no kernel");
    kernels_.push_back(kernel);
    const std::vector<CUfunction> functions = kernel->waiting_functions();
    waiting_.insert(functions.begin(), functions.end());
    calls_library_.push_back(functions.empty() && !kernel->on_host());
    workspace = std::max(workspace, kernel->workspace_bytes());
    const bool alone = kernel->on_host() || !kernel->capturable();
    if (runs_.empty() || runs_.back().alone || alone) runs_.push_back({i, i + 1, kernel->on_host(), alone, nullptr});
    else runs_.back().end = i + 1;
  }
  for (int i = 0; i < kStreams; ++i) capture_streams_.push_back(std::make_unique<CudaStream>(context_));
  for (int i = 1; i < kStreams; ++i) workspaces_.emplace_back(device, workspace);
}

CudaRecording::~CudaRecording() { drop_graphs(); }

std::vector<Launch>& CudaRecording::launches() {
  drop_graphs();
  replays_ = 0;
  return launches_;
}

void CudaRecording::replay(Stream& stream) {
  context_->select();
  auto& own = static_cast<CudaStream&>(stream);
  if (own.capturing()) return join_capture(own.handle());
  const bool graphs = replays_++ > 0 && capture_failure_.empty();
  for (Run& run : runs_) {
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) return;
    if (run.on_host) {
      run_on_host(run.begin, own);
      continue;
    }
    if (graphs && run.graph == nullptr && !run.alone)
      capture_failure_ = capture(run, [&](CUgraph graph) {
        check(driver().cuGraphInstantiate(&run.graph, graph, 0), "making a graph ready");
      });
    if (run.graph != nullptr) check(driver().cuGraphLaunch(run.graph, own.handle()), "launching a graph");
    else launch_all(run, own.handle());
  }
}

void CudaRecording::join_capture(CUstream stream) {
  for (const Run& run : runs_) {
    if (run.alone && !run.on_host)
      throw Error(fmt::format("step {} of {} is an operator of the program that may not be captured in a CUDA graph",
                              run.begin + 1, launches_.size()),
                  "it says HONE_OPERATOR_CAPTURABLE if it may; enqueue such a network without capturing");
    if (run.on_host)
      throw Error(fmt::format("step {} of {} runs on the host and cannot be captured in a CUDA graph", run.begin + 1,
                              launches_.size()),
                  "hone inspect lists the layers of the source reference; enqueue such a network without capturing");
  }
  const bool as_node = capture_failure_.empty() && driver().cuStreamGetCaptureInfo != nullptr;  // since 12.3
  for (const Run& run : runs_)
    if (!as_node || !capture(run, [&](CUgraph graph) { add_to_capture(stream, graph); }).empty())
      launch_all(run, stream);
}

void CudaRecording::replay(Stream& stream, const LaunchObserver& observer) {
  context_->select();
  auto& own = static_cast<CudaStream&>(stream);
  CudaEvent before(context_), after(context_);
  for (size_t i = 0; i < launches_.size(); ++i) {
    const NamedRange range(launches_[i].range);
    before.record(own);
    if (kernels_[i]->on_host()) run_on_host(i, own);
    else kernels_[i]->enqueue(own.handle(), launches_[i].bindings(), false);
    after.record(own);
    own.synchronize();
    observer(i, after.milliseconds_since(before));
  }
}

/// The branches of the graphs, on streams of their own and stamped by the device's clock: a graph tells nothing of its inside.
void CudaRecording::replay(Stream& stream, std::vector<WorkSpan>& spans) {
  context_->select();
  auto& own = static_cast<CudaStream&>(stream);
  spans.clear();
  CudaEvent origin(context_);
  origin.record(own);
  own.synchronize();
  const SpanClock::time_point start = SpanClock::now();
  struct Stamped {
    size_t launch, branch;
    std::unique_ptr<CudaEvent> begin, end;
  };
  std::vector<Stamped> stamped;
  for (const Run& run : runs_) {
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) return;
    if (run.on_host) {
      const SpanClock::time_point begin = SpanClock::now();
      run_on_host(run.begin, own);
      spans.push_back({run.begin, 0, begin, SpanClock::now()});
      continue;
    }
    launch_branches(run, [&](size_t launch, size_t branch, bool ended) {
      if (!ended) stamped.push_back({launch, branch, std::make_unique<CudaEvent>(context_), nullptr});
      else stamped.back().end = std::make_unique<CudaEvent>(context_);
      (ended ? stamped.back().end : stamped.back().begin)->record(*capture_streams_[branch]);
    });
    for (const auto& branch : capture_streams_) branch->synchronize();
  }
  const auto at = [&](const CudaEvent& event) {
    const std::chrono::duration<double, std::milli> since(event.milliseconds_since(origin));
    return start + std::chrono::duration_cast<SpanClock::duration>(since);
  };
  for (const Stamped& each : stamped)
    spans.push_back({each.launch, static_cast<int>(each.branch), at(*each.begin), at(*each.end)});
}

void CudaRecording::poison(Stream& stream) {
  for (const Buffer& workspace : workspaces_) device_.fill(workspace.data(), kPoison, workspace.size(), stream);
}

std::string CudaRecording::places_in(const SharedMemory& memory) const {
  const auto& mapped = static_cast<const MappedMemory&>(memory);
  std::string text;
  for (size_t i = 0; i < launches_.size(); ++i) {
    if (dynamic_cast<const GainsByMapping*>(launches_[i].kernel.get()) == nullptr) continue;
    const auto place = [&](const void* operand) {
      return mapped.has(operand) ? static_cast<const std::byte*>(operand) - static_cast<const std::byte*>(mapped.data())
                                 : -1;
    };
    const auto from = place(launches_[i].inputs[0]), to = place(launches_[i].outputs[0]);
    text += from < 0 || to < 0 ? "-;" : fmt::format("{}>{};", from, to);
  }
  if (text.find('>') == std::string::npos) return {};
  return fmt::format("{} bytes, held {} times: {}", mapped.size(), mapped.held(), text);
}

void CudaRecording::reach_across(SharedMemory& memory) {
  if (!across_.empty()) return;
  auto& mapped = static_cast<MappedMemory&>(memory);
  context_->select();
  drop_graphs();
  replays_ = 0;
  for (size_t i = 0; i < launches_.size(); ++i) {
    const auto* gains = dynamic_cast<const GainsByMapping*>(launches_[i].kernel.get());
    if (gains == nullptr || !mapped.has(launches_[i].inputs[0]) || !mapped.has(launches_[i].outputs[0])) continue;
    across_.push_back(gains->across(mapped));
    kernels_[i] = across_.back().get();
  }
}

void CudaRecording::launch_all(const Run& run, CUstream stream) const {
  for (size_t i = run.begin; i < run.end; ++i) {
    if (calls_library_[i]) wait_for_all(stream);
    launch(i, stream, launches_[i].workspace, false);
  }
}

void CudaRecording::wait_for_all(CUstream stream) const {
  check(driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(fence_.data()), 0, fence_.size(), stream),
        "waiting for the kernels ahead");
}

void CudaRecording::launch(size_t index, CUstream stream, void* workspace, bool early) const {
  const NamedRange range(launches_[index].range);
  Bindings bindings = launches_[index].bindings();
  bindings.workspace = workspace;
  with_note([&] { return fmt::format("launching step {} of {}", index + 1, launches_.size()); },
            [&] { kernels_[index]->enqueue(stream, bindings, early); });
}

/// While the first stream is captured, waiting for an event of it draws the others into the capture. Stamps between launches keep
/// them from overlapping.
void CudaRecording::launch_branches(const Run& run, const Stamp& stamp) {
  const Driver& cuda = driver();
  const std::vector<Slot> slots = schedule(std::span(launches_).subspan(run.begin, run.end - run.begin), kStreams);
  std::vector<std::unique_ptr<CudaEvent>> events(slots.size());
  std::vector<bool> waited(slots.size(), false), joined(kStreams, false), follows(kStreams, false);
  for (const Slot& slot : slots)
    for (const size_t earlier : slot.waits) waited[earlier] = true;
  CudaEvent begin(context_);
  begin.record(*capture_streams_[0]);
  joined[0] = true;
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto branch = static_cast<size_t>(slots[i].stream);
    CudaStream& stream = *capture_streams_[branch];
    if (!joined[branch]) check(cuda.cuStreamWaitEvent(stream.handle(), begin.handle(), 0), "beginning a branch");
    joined[branch] = true;
    for (const size_t earlier : slots[i].waits)
      check(cuda.cuStreamWaitEvent(stream.handle(), events[earlier]->handle(), 0), "joining branches");
    // Only behind a kernel of the same branch, and waiting for nothing else.
    const bool early = !stamp && overlaps_ && follows[branch] && slots[i].waits.empty();
    follows[branch] = kernels_[run.begin + i]->ends_with_kernel();
    if (stamp) stamp(run.begin + i, branch, false);
    launch(run.begin + i, stream.handle(),
           branch == 0 ? launches_[run.begin + i].workspace : workspaces_[branch - 1].data(), early);
    if (stamp) stamp(run.begin + i, branch, true);
    if (!waited[i]) continue;
    events[i] = std::make_unique<CudaEvent>(context_);
    events[i]->record(stream);
  }
  for (size_t branch = 1; branch < joined.size(); ++branch) {
    if (!joined[branch]) continue;
    CudaEvent end(context_);
    end.record(*capture_streams_[branch]);
    check(cuda.cuStreamWaitEvent(capture_streams_[0]->handle(), end.handle(), 0), "joining branches");
  }
}

/// Allocates, like the reference itself: such steps are there to be right, and the report shows them. Managed operands are
/// tensors of the host already.
void CudaRecording::run_on_host(size_t index, CudaStream& stream) const {
  const Launch& launch = launches_[index];
  const KernelShapes shapes = kernels_[index]->host_shapes();
  std::vector<AlignedBuffer> memory;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  const auto host = [&memory](const ConcreteType& type) -> void* {
    return memory.emplace_back(static_cast<size_t>(std::max<int64_t>(type.bytes(), 1))).data();
  };
  const auto copy = [&](void* to, const void* from, int64_t bytes) {
    if (bytes != 0)
      check(driver().cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from),
                                   static_cast<size_t>(bytes), stream.handle()),
            "copying");
  };
  for (size_t i = 0; i < shapes.inputs.size(); ++i) {
    inputs.push_back(shapes.inputs[i].managed ? launch.inputs[i] : host(shapes.inputs[i]));
    if (!shapes.inputs[i].managed) copy(const_cast<void*>(inputs.back()), launch.inputs[i], shapes.inputs[i].bytes());
  }
  for (size_t i = 0; i < shapes.outputs.size(); ++i)
    outputs.push_back(shapes.outputs[i].managed ? launch.outputs[i] : host(shapes.outputs[i]));
  stream.synchronize();
  with_note([&] { return fmt::format("running step {} of {} on the host", index + 1, launches_.size()); },
            [&] {
              kernels_[index]->run_on_host({inputs, outputs, {}, nullptr});
            });
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!shapes.outputs[i].managed) copy(launch.outputs[i], outputs[i], shapes.outputs[i].bytes());
  stream.synchronize();
}

std::string CudaRecording::capture(const Run& run, const GraphUser& use) {
  std::string failure = try_capture(run, use);
  if (!failure.empty() && std::exchange(overlaps_, false)) failure = try_capture(run, use);
  return failure;
}

std::string CudaRecording::try_capture(const Run& run, const GraphUser& use) {
  const Driver& cuda = driver();
  CUgraph graph = nullptr;
  std::string failure;
  // Relaxed: libraries may load code while they are captured.
  check(cuda.cuStreamBeginCapture(capture_streams_[0]->handle(), CU_STREAM_CAPTURE_MODE_RELAXED),
        "beginning a capture");
  const auto attempt = [&failure](const auto& step) {
    if (!failure.empty()) return;
    try {
      step();
    } catch (const Error& error) {
      failure = error.what();
    }
  };
  attempt([&] { launch_branches(run, {}); });
  const CUresult ended = cuda.cuStreamEndCapture(capture_streams_[0]->handle(), &graph);
  attempt([&] {
    check(ended, "a step cannot be captured");
    early_launches_ += keep_early_edges(graph, waiting_);
    use(graph);
  });
  if (graph != nullptr) cuda.cuGraphDestroy(graph);
  return failure;
}

/// As one node behind all that the stream holds so far: edges inside the graph stay as they are.
void CudaRecording::add_to_capture(CUstream stream, CUgraph graph) {
  const Driver& cuda = driver();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUgraph whole = nullptr;
  const CUgraphNode* ahead = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  check(cuda.cuStreamGetCaptureInfo(stream, &status, nullptr, &whole, &ahead, &edges, &count), "reading a capture");
  CUgraphNode node = nullptr;
  check(cuda.cuGraphAddChildGraphNode(&node, whole, ahead, count, graph), "joining a capture");
  check(cuda.cuStreamUpdateCaptureDependencies(stream, &node, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
        "joining a capture");
}

void CudaRecording::drop_graphs() {
  driver().cuCtxSetCurrent(context_->handle());
  early_launches_ = 0;
  for (Run& run : runs_)
    if (run.graph != nullptr) driver().cuGraphExecDestroy(std::exchange(run.graph, nullptr));
}

}  // namespace hone::cuda
