// SPDX-License-Identifier: Apache-2.0
//
// Engine: a loaded plan on a device; immutable apart from its cache of shapes; shared by any number of contexts.
// ExecutionContext: one inference at a time, with its own memory. Different contexts may run in different threads.
// After the first run at a shape, binding and running allocate nothing and take no lock. Where shapes are data-dependent, a
// run goes by stages: memory for them grows until it suffices, and kernels for the last few sizes are kept.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "plan/plan.h"

namespace hone {

/// Receives the duration of every step of a run, in order.
class Profiler {
 public:
  virtual ~Profiler() = default;
  virtual void layer(const Step& step, double milliseconds) = 0;
};

/// One worker at one step, in ms from the beginning of the inference. On a device whose workers cannot be told apart: worker 0, steps
/// one behind the other.
struct LayerSpan {
  const Step* step = nullptr;
  int worker = 0;
  double begin = 0, end = 0;
};
/// Receives the spans of a whole inference behind it.
using SpanObserver = std::function<void(std::span<const LayerSpan>)>;

/// Whether a network tensor cannot be bound: its shape is data-dependent, or its elements are objects of the host.
bool is_by_value(std::span<const IoTensor> io, std::string_view tensor);

struct ShapeInstance;  // kernels, concrete sizes and memory layout of a stage for one set of sizes
struct ContextStage;
struct Prepared;
class ExecutionContext;

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  /// Throws Error when the plan does not fit the device, with what to do. `operators` are those of the program that its steps may
  /// call.
  static std::shared_ptr<const Engine> load(Plan plan, const Backend& backend, std::shared_ptr<Device> device,
                                            OperatorList operators = {});
  ~Engine();

  const Plan& plan() const { return plan_; }
  Device& device() const { return *device_; }
  bool by_value(std::string_view tensor) const { return is_by_value(plan_.io, tensor); }
  /// Throws Error when there is no such profile.
  std::unique_ptr<ExecutionContext> context(int profile = 0) const;

 private:
  friend class ExecutionContext;
  struct Impl;
  Engine(Plan plan, const Backend& backend, std::shared_ptr<Device> device, OperatorList operators);
  std::shared_ptr<const ShapeInstance> instance(int profile, const SymbolValues& symbols) const;
  std::shared_ptr<const ShapeInstance> make_instance(int profile, size_t stage, const SymbolValues& symbols) const;

  Plan plan_;
  const Backend& backend_;
  std::shared_ptr<Device> device_;
  OperatorList operators_;
  std::unique_ptr<Impl> impl_;
};

class ExecutionContext {
 public:
  ~ExecutionContext();
  const Engine& engine() const { return *engine_; }
  int profile() const { return profile_; }

  /// Shape of an input; checked against the profile's range. Inputs without symbols need not be set.
  void set_shape(std::string_view input, const Dims& dims);
  /// Concrete sizes at the present input shapes; throws Error naming the input whose shape is missing. Of an output that is
  /// sized by the data: those of the last run.
  Dims shape(std::string_view tensor);
  int64_t bytes(std::string_view tensor);
  /// Memory of a network input or output: device memory, linear unless an I/O format was asked for, 64-byte aligned preferred. On a
  /// GPU each inference copies what lies at no multiple of 16 bytes.
  void bind(std::string_view tensor, void* memory);
  /// Contents of an input of strings, or of a sequence or optional.
  void set_value(std::string_view input, Tensor value);
  /// An output of the last run, which is waited for. Its bytes, unless they are objects, are those of this context until the
  /// next run.
  Tensor value(std::string_view output) const;
  /// Prepares kernels and memory for the present shapes (else done by the first run). Not counted as an inference.
  void prepare();
  /// The same, and puts the bound memory in; throws StateError where some is missing. The next enqueue() has nothing left to do but
  /// to launch.
  void ready();
  /// Runs once on the stream. Every input and output must be bound. Inferences that are in flight at a time follow each other
  /// in one stream. Into a stream that is captured go the launches of an inference that has run before.
  void enqueue(Stream& stream);
  /// From now on an inference whose flag is set leaves out what it has not begun and throws Cancelled. Null: no flag.
  void stop_at(const std::atomic<bool>* flag);
  /// What the memory of an output is asked of, with its sizes: before the run, or behind it where the run decides them; the result is
  /// then copied there. Null where there is none.
  using OutputMemory = std::function<void*(std::string_view tensor, const Dims& dims, int64_t bytes)>;
  /// Outputs of objects have none. An empty function: bound memory again.
  void set_output_memory(std::string_view output, OutputMemory memory);
  /// Bytes for activations at the present shapes. What follows data-dependent sizes comes beside them.
  int64_t activation_bytes();
  /// Device memory of the caller's for activations, 256-byte aligned, until it is called again; null: the context's own.
  void set_activation_memory(void* memory, int64_t bytes);
  /// Until the last inference has ended.
  void wait() const;
  /// Before each inference activations, workspaces and outputs are overwritten with kPoison: results may not change. For tests;
  /// HONE_POISON=1 has it on from the start.
  void set_poison(bool on);
  /// A profiler makes enqueue run layer by layer; null removes it.
  void set_profiler(Profiler* profiler) { profiler_ = profiler; }
  /// An empty function: no more.
  void set_span_observer(SpanObserver observer);
  /// Names of the tensors that can be read after a run beside the outputs.
  std::vector<std::string> debug_tensors() const;
  /// What a debug tensor held at the end of the last run, which is waited for, in host memory of its own, linear. Throws Error
  /// for other names.
  Tensor debug_value(std::string_view name) const;
  /// While Profiler::layer() is told of a step: what a buffer that is in use holds, in host memory of its own, linear. None where
  /// its sizes are not known before the stage has ended.
  std::optional<Tensor> buffer_value(BufferId id) const;
  /// While Profiler::layer() is told of a step: puts other contents, of the buffer's type and present sizes, before the steps that follow.
  void set_buffer_value(BufferId id, const Tensor& value);
  /// Takes this much memory for activations at once, so that larger shapes need no more later.
  void reserve(int64_t bytes);
  /// Bytes of device memory that this context holds for activations.
  int64_t device_memory_bytes() const;

 private:
  friend class Engine;
  ExecutionContext(std::shared_ptr<const Engine> engine, int profile);
  void require_instance();
  bool find_prepared();
  void make_first_stage();
  void require_stage(size_t stage);
  void prepare_stage(size_t stage);
  void meet();
  bool stopped() const;
  void begin_inference();
  void end_inference(Stream& stream);
  void try_to_end_inference(Stream& stream);
  void run_stages(Stream& stream);
  void grow_arena(ContextStage& stage, int64_t bytes);
  void record(size_t stage);
  void own_results(const ShapeInstance& instance);
  size_t io_bytes(size_t io) const;
  void* aligned_memory(size_t io, bool captured);
  void place_bound(bool captured);
  void copy_bound(bool inputs, Stream& stream);
  void patch_pointers(size_t stage);
  void replay(size_t stage, Stream& stream);
  void replay_with_spans(const Prepared& prepared, Stream& stream);
  void tell_spans();
  void poison_outputs(Stream& stream);
  void ask_for_outputs();
  void deliver_outputs(Stream& stream);
  void require_capturable() const;
  std::map<size_t, Dims> read_measured(size_t stage, Stream& stream);
  void collect(size_t stage, Stream& stream);
  void* on_device(size_t id, const Tensor& contents, Stream& stream);
  BufferId root(BufferId id) const;
  std::byte* address_in_run(BufferId root) const;
  Tensor contents(const BufferSlot& slot, BufferId root, const Dims& dims) const;
  const Profile& source() const;

  struct Impl;
  std::shared_ptr<const Engine> engine_;
  int profile_;
  Profiler* profiler_ = nullptr;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hone
