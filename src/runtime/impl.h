// SPDX-License-Identifier: Apache-2.0
//
// The private parts of Engine and ExecutionContext.
#pragma once

#include <map>
#include <mutex>

#include "base/env.h"
#include "device/group.h"
#include "device/work_spans.h"
#include "runtime/engine.h"
#include "runtime/hang_watch.h"
#include "runtime/instance.h"

namespace hone {

struct Engine::Impl {
  std::vector<const void*> constants;           // device addresses, by index into Plan::constants
  std::vector<Buffer> constant_memory;          // empty where the device reads host memory
  std::vector<std::vector<StageRange>> stages;  // by profile
  std::shared_ptr<Group> group;                 // the other ranks; null where the network is not divided
  std::mutex mutex;                             // guards instances; never taken by a prepared context
  std::map<std::pair<int, SymbolValues>, std::shared_ptr<const ShapeInstance>> instances;  // of first stages
};

/// One operand of one launch whose memory lies outside the stage's arena: a network input or output, the result of an
/// earlier stage. Its pointer is put in before a replay.
struct OutsideOperand {
  size_t launch, operand;
  bool is_input;
  BufferId root;
  int64_t offset = 0;     // of an entry
  void* bound = nullptr;  // what the recording holds
};

/// A shape instance bound to a context's arena.
struct Prepared {
  std::shared_ptr<const ShapeInstance> instance;
  std::vector<Dims> input_shapes;  // by io index; empty for outputs
  std::unique_ptr<Recording> recording;
  std::vector<size_t> step_of_launch;
  std::vector<OutsideOperand> outside;
};

/// Memory of a stage: its own, its own that other ranks may reach into, or what the caller gave.
struct Arena {
  Buffer own;
  std::shared_ptr<SharedMemory> shared;
  void* given = nullptr;
  size_t given_bytes = 0;
  void drop_own() { own = Buffer(), shared = nullptr; }
  void* data() const { return given != nullptr ? given : shared ? shared->data() : own.data(); }
  size_t size() const { return given != nullptr ? given_bytes : shared ? shared->size() : own.size(); }
};

/// What a context holds for one stage.
struct ContextStage {
  Arena arena;  // outlives what is recorded
  std::map<SymbolValues, Prepared> prepared;
  Prepared* current = nullptr;
};

struct ExecutionContext::Impl {
  std::vector<Dims> shapes;  // by io index; inputs as set, outputs of the present instance or last run
  std::vector<bool> shape_known;
  std::vector<BufferId> io_buffer;  // by io index
  std::vector<bool> by_value;       // by io index: what this context owns the memory of
  std::vector<ContextStage> stages;
  std::vector<void*> bound;     // by io index: what the caller gave
  std::vector<Buffer> aligned;  // by io index: grow-only copies of bound memory that kernels cannot work on
  std::vector<void*> address;   // by BufferId: where roots lie for kernels, as far as known
  std::vector<Tensor> managed;  // by BufferId: contents of managed buffers
  std::vector<Buffer> results;  // by io index: grow-only memory of outputs sized by the data
  std::vector<Buffer> uploads;  // by BufferId: copies of managed contents where the device does not read host memory
  Buffer measured;              // on the host: the sizes of a stage's measured buffers
  SymbolValues symbols;         // what is known so far in this run
  SymbolValues learned;         // what was known at the end of the last one
  std::unique_ptr<Event>
      finished;  // behind the last inference; null where an inference has ended when enqueue() returns
  std::vector<ExecutionContext::OutputMemory> output_memory;  // by io index; empty functions: bound memory
  const std::atomic<bool>* stop = nullptr;
  SpanObserver span_observer;
  std::vector<WorkSpan> work;    // of the launches that were replayed last
  std::vector<LayerSpan> spans;  // of this inference so far
  SpanClock::time_point begun;
  std::string told;                  // what other ranks know of the shapes
  std::unique_ptr<HangWatch> watch;  // where inferences have ends, and other ranks
  bool pointers_changed = true;
  bool has_run = false;
  bool in_flight = false;  // `finished` has been recorded
  bool poison = env_flag("HONE_POISON");
};

/// Place of a network tensor in Plan::io; throws Error, naming what there is, for other names.
size_t io_index(const Plan& plan, std::string_view tensor);

}  // namespace hone
