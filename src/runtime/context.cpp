// SPDX-License-Identifier: Apache-2.0
//
// Execution contexts: shapes in, a prepared launch list out, replayed as often as asked for. Where shapes are data-dependent,
// the list of the next stage is prepared when the sizes are there.
#include <algorithm>
#include <set>

#include "base/hash.h"
#include "base/ranges.h"
#include "base/state_error.h"
#include "base/text.h"
#include "device/work_spans.h"
#include "plan/turns.h"
#include "runtime/impl.h"
#include "runtime/ranks.h"

namespace hone {
namespace {

/// Binds the symbols of one input's shape; throws when a fixed size differs or a symbol would get two values.
void bind_symbols(const IoTensor& io, const Dims& dims, SymbolValues& symbols) {
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const Dim& declared = io.type.shape[axis];
    if (declared.is_constant()) continue;
    std::set<std::string> names;
    declared.collect_symbols(names);
    if (names.size() != 1 || Dim::symbol(*names.begin()) != declared) continue;
    const auto [at, fresh] = symbols.try_emplace(*names.begin(), dims[axis]);
    HONE_CHECK(fresh || at->second == dims[axis], "axis {} of input {} is {}, but other inputs say that {} is {}", axis,
               io.name, dims[axis], at->first, at->second);
  }
}

void check_shape(const Plan& plan, const Profile& profile, int index, const IoTensor& io, const Dims& dims) {
  if (dims.size() != io.type.shape.rank())
    throw Error(fmt::format("input {} has rank {}, the shape {} has rank {}", io.name, io.type.shape.rank(),
                            join_dims(dims), dims.size()));
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const Dim& declared = io.type.shape[axis];
    if (declared.is_constant() && declared.value() != dims[axis])
      throw Error(fmt::format("axis {} of input {} is {} in the engine, the shape {} says {}", axis, io.name,
                              declared.text(), join_dims(dims), dims[axis]));
  }
  for (const ProfileRange& range : profile.ranges)
    for (size_t axis = 0; range.tensor == io.name && axis < dims.size(); ++axis)
      if (dims[axis] < range.min[axis] || dims[axis] > range.max[axis])
        throw Error(fmt::format("shape {} of input {} lies outside profile {}: min {}, max {}", join_dims(dims),
                                io.name, index, join_dims(range.min), join_dims(range.max)),
                    plan.profiles.size() > 1
                        ? "choose a shape in the range or another profile"
                        : "choose a shape in the range or build with other --minShapes/--maxShapes");
}

/// A size that follows from other sizes has no say of its own.
void check_sizes(const IoTensor& io, const Dims& dims, const SymbolValues& symbols) {
  if (!io.is_input || !io.type.ranked || io.type.element != nullptr) return;
  const Dims declared = io.type.shape.evaluate(symbols);
  HONE_CHECK(declared == dims, "input {} is [{}], its sizes [{}] say [{}]", io.name, join_dims(dims, ","),
             io.type.shape.text(), join_dims(declared, ","));
}

/// Lists for this many sizes are kept in a stage of data-dependent sizes.
constexpr size_t kKeptSizes = 16;

/// Gives the symbols that a result decides their values, and holds the other sizes against what was planned.
void learn_sizes(const BufferSlot& slot, const Dims& dims, SymbolValues& symbols) {
  HONE_CHECK(dims.size() == slot.type.shape.rank(), "{} came out with rank {}, planned was {}", slot.name, dims.size(),
             slot.type.shape.rank());
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const Dim& planned = slot.type.shape[axis];
    std::set<std::string> names;
    planned.collect_symbols(names);
    if (names.size() == 1 && Dim::symbol(*names.begin()) == planned) symbols.try_emplace(*names.begin(), dims[axis]);
    const bool known =
        std::all_of(names.begin(), names.end(), [&](const std::string& name) { return symbols.contains(name); });
    HONE_CHECK(!known || planned.evaluate(symbols) == dims[axis], "axis {} of {} came out as {}, planned was {}", axis,
               slot.name, dims[axis], planned.text());
  }
}

void learn_sizes(const BufferSlot& slot, const Tensor& result, SymbolValues& symbols) {
  HONE_CHECK(result.dtype() == slot.type.dtype, "{} came out as {}, planned was {}", slot.name, name_of(result.dtype()),
             name_of(slot.type.dtype));
  if (slot.type.ranked && slot.type.element == nullptr) learn_sizes(slot, result.dims(), symbols);
}

/// How often the steps [begin, end), which take turns, do: once where they do not go by entry.
int64_t rounds_of(const Profile& profile, const ShapeInstance& instance, size_t begin, size_t end) {
  if (!profile.steps[begin].by_entry) return 1;
  const BufferId batch = batch_of(profile, entries_in(profile, begin, end).front());
  const int64_t rounds = instance.buffers[static_cast<size_t>(batch)].dims[0];
  HONE_CHECK(rounds <= kMostRounds, "step {} is to go entry by entry over a batch of {}", profile.steps[begin].name,
             rounds);
  return rounds;
}

/// What profilers are told of a layer.
RangeLabel range_of(const Plan& plan, const Step& step) {
  const std::string& verbosity = plan.meta.profiling_verbosity;
  if (verbosity == "none") return {};
  if (verbosity != "detailed") return RangeLabel(step.name);
  return RangeLabel(step.name, RangePayload{.bytes = static_cast<uint64_t>(step.details.integer_or("Bytes", 0)),
                                            .flops = static_cast<uint64_t>(step.details.integer_or("Flops", 0)),
                                            .tactic = hash64(tactic_text(plan, step))});
}

}  // namespace

const Profile& ExecutionContext::source() const { return engine_->plan().profiles[static_cast<size_t>(profile_)]; }

BufferId ExecutionContext::root(BufferId id) const {
  while (source().buffers[static_cast<size_t>(id)].alias >= 0) id = source().buffers[static_cast<size_t>(id)].alias;
  return id;
}

ExecutionContext::ExecutionContext(std::shared_ptr<const Engine> engine, int profile)
    : engine_(std::move(engine)), profile_(profile), impl_(std::make_unique<Impl>()) {
  const Plan& plan = engine_->plan();
  for (const IoTensor& io : plan.io) {
    const bool known = io.type.shape.is_static();
    impl_->shapes.push_back(known ? io.type.shape.values() : Dims());
    impl_->shape_known.push_back(known);
    const BufferKind kind = io.is_input ? BufferKind::input : BufferKind::output;
    for (size_t id = 0; id < source().buffers.size(); ++id)
      if (source().buffers[id].kind == kind && source().buffers[id].alias < 0 && source().buffers[id].name == io.name)
        impl_->io_buffer.push_back(static_cast<BufferId>(id));
    impl_->by_value.push_back(engine_->by_value(io.name));
  }
  impl_->stages.resize(engine_->impl_->stages[static_cast<size_t>(profile_)].size());
  impl_->address.assign(source().buffers.size(), nullptr);
  impl_->bound.assign(plan.io.size(), nullptr);
  impl_->aligned.resize(plan.io.size());
  impl_->managed.resize(source().buffers.size());
  impl_->results.resize(plan.io.size());
  impl_->output_memory.resize(plan.io.size());
  impl_->uploads.resize(source().buffers.size());
  impl_->finished = engine_->device().event();
}

/// Memory is given back when nothing works on it any more.
ExecutionContext::~ExecutionContext() {
  try {
    wait();
  } catch (const Error&) {  // a device that fails works on nothing
  }
}

void ExecutionContext::set_poison(bool on) { impl_->poison = on; }

void ExecutionContext::set_shape(std::string_view input, const Dims& dims) {
  const Plan& plan = engine_->plan();
  const size_t index = io_index(plan, input);
  HONE_CHECK(plan.io[index].is_input, "{} is an output; only shapes of inputs can be set", input);
  check_shape(plan, source(), profile_, plan.io[index], dims);
  if (impl_->shape_known[index] && impl_->shapes[index] == dims) return;
  impl_->shapes[index] = dims;
  impl_->shape_known[index] = true;
  impl_->stages[0].current = nullptr;
}

/// What was prepared before for the shapes that are set now: found without allocating, so that inferences of changing shapes
/// cost no more than others.
bool ExecutionContext::find_prepared() {
  const Plan& plan = engine_->plan();
  for (auto& [symbols, prepared] : impl_->stages[0].prepared) {
    bool same = prepared.instance != nullptr;
    for (size_t i = 0; same && i < plan.io.size(); ++i)
      same = !plan.io[i].is_input || (impl_->shape_known[i] && prepared.input_shapes[i] == impl_->shapes[i]);
    if (!same) continue;
    impl_->stages[0].current = &prepared;
    impl_->pointers_changed = true;
    if (impl_->symbols != symbols) impl_->symbols = symbols;
    return true;
  }
  return false;
}

void ExecutionContext::require_instance() {
  ContextStage& stage = impl_->stages[0];
  if (stage.current != nullptr) return;
  const Plan& plan = engine_->plan();
  impl_->has_run = false;
  if (!find_prepared()) make_first_stage();
  for (size_t i = 0; i < plan.io.size(); ++i)
    if (!plan.io[i].is_input && !impl_->by_value[i])
      impl_->shapes[i] = stage.current->instance->buffers[static_cast<size_t>(impl_->io_buffer[i])].dims;
}

void ExecutionContext::make_first_stage() {
  const Plan& plan = engine_->plan();
  SymbolValues symbols;
  for (size_t i = 0; i < plan.io.size(); ++i) {
    if (!plan.io[i].is_input) continue;
    if (!impl_->shape_known[i])
      throw StateError(fmt::format("the shape of input {} is not set", plan.io[i].name),
                       "it has dynamic sizes: give one, for example with --shapes");
    bind_symbols(plan.io[i], impl_->shapes[i], symbols);
  }
  for (size_t i = 0; i < plan.io.size(); ++i) check_sizes(plan.io[i], impl_->shapes[i], symbols);
  impl_->symbols = std::move(symbols);
  require_stage(0);
  impl_->stages[0].current->input_shapes = impl_->shapes;
}

/// The stage at the sizes known now, with memory for it.
void ExecutionContext::require_stage(size_t number) {
  ContextStage& stage = impl_->stages[number];
  if (number > 0 && stage.prepared.size() >= kKeptSizes && !stage.prepared.contains(impl_->symbols))
    stage.prepared.clear();
  Prepared& prepared = stage.prepared[impl_->symbols];
  if (!prepared.instance)
    prepared.instance = number == 0 ? engine_->instance(profile_, impl_->symbols)
                                    : engine_->make_instance(profile_, number, impl_->symbols);
  stage.current = &prepared;
  impl_->pointers_changed = true;
}

void ExecutionContext::grow_arena(ContextStage& stage, int64_t bytes) {
  if (bytes <= static_cast<int64_t>(stage.arena.size())) return;
  if (stage.arena.given != nullptr)
    throw StateError(fmt::format("activations need {} bytes, the memory that the context was given for them has {}",
                                 bytes, stage.arena.given_bytes),
                     "ask for the bytes behind setting the shapes");
  wait();
  for (auto& [key, prepared] : stage.prepared) prepared.recording = nullptr;  // they point into the old arena
  stage.arena.drop_own();
  if (auto* member = engine_->impl_->group ? dynamic_cast<HasGroup*>(&engine_->device()) : nullptr)
    stage.arena.shared = member->shared_memory(static_cast<size_t>(bytes));
  if (!stage.arena.shared) stage.arena.own = Buffer(engine_->device(), static_cast<size_t>(bytes));
}

void ExecutionContext::reserve(int64_t bytes) { grow_arena(impl_->stages[0], bytes); }

Dims ExecutionContext::shape(std::string_view tensor) {
  const size_t index = io_index(engine_->plan(), tensor);
  if (engine_->plan().io[index].is_input && impl_->shape_known[index]) return impl_->shapes[index];
  require_instance();
  if (impl_->by_value[index] && !impl_->has_run)
    throw StateError(fmt::format("the shape of output {} is data-dependent: it is known after a run", tensor),
                     "ask for its shape and its memory behind the run");
  return impl_->shapes[index];
}

int64_t ExecutionContext::bytes(std::string_view tensor) {
  const size_t index = io_index(engine_->plan(), tensor);
  const TensorType& type = engine_->plan().io[index].type;
  return byte_size(type.dtype, shape(tensor), type.layout);
}

void ExecutionContext::bind(std::string_view tensor, void* memory) {
  const size_t index = io_index(engine_->plan(), tensor);
  if (impl_->by_value[index])
    throw Error(fmt::format("{} cannot be bound: its elements are objects or its shape is data-dependent", tensor),
                "set inputs by value, and read such outputs after the run");
  impl_->pointers_changed |= impl_->bound[index] != memory;
  impl_->bound[index] = memory;
}

void ExecutionContext::set_value(std::string_view input, Tensor value) {
  const size_t index = io_index(engine_->plan(), input);
  const IoTensor& io = engine_->plan().io[index];
  HONE_CHECK(io.is_input && is_object(io.type.dtype), "{} is no input of objects; bind its memory", input);
  HONE_CHECK(holds_elements_of(io.type, value), "input {} holds {}, the value {}", input, io.type.text(),
             value.type().text());
  if (io.type.element == nullptr) set_shape(input, value.dims());
  impl_->managed[static_cast<size_t>(impl_->io_buffer[index])] = std::move(value);
}

Tensor ExecutionContext::value(std::string_view output) const {
  const size_t index = io_index(engine_->plan(), output);
  const auto id = static_cast<size_t>(impl_->io_buffer[index]);
  const IoTensor& io = engine_->plan().io[index];
  HONE_CHECK(!io.is_input, "{} is an input", output);
  if (!impl_->has_run) throw StateError(fmt::format("{} is read before a run", output), "run first, then read outputs");
  wait();
  if (source().buffers[id].managed) return impl_->managed[id];
  HONE_CHECK(io.type.layout == Layout::linear, "output {} lies in another layout", output);
  const auto bytes = static_cast<size_t>(byte_size(io.type.dtype, impl_->shapes[index]));
  if (!engine_->device().host_accessible()) {
    AlignedBuffer copy(bytes);
    const std::unique_ptr<Stream> stream = engine_->device().stream();
    engine_->device().copy(copy.data(), impl_->address[id], bytes, *stream);
    stream->synchronize();
    return Tensor(io.type.dtype, impl_->shapes[index], Blob::own(std::move(copy)));
  }
  return Tensor(io.type.dtype, impl_->shapes[index],
                Blob(nullptr, {static_cast<const std::byte*>(impl_->address[id]), bytes}));
}

void ExecutionContext::prepare() {
  require_instance();
  prepare_stage(0);
}

void ExecutionContext::ready() {
  prepare();
  place_bound(false);
  patch_pointers(0);
}

void ExecutionContext::prepare_stage(size_t stage) {
  grow_arena(impl_->stages[stage], impl_->stages[stage].current->instance->arena_bytes);
  if (!impl_->stages[stage].current->recording) record(stage);
  own_results(*impl_->stages[stage].current->instance);
}

void ExecutionContext::record(size_t number) {
  ContextStage& stage = impl_->stages[number];
  Prepared& prepared = *stage.current;
  const Profile& profile = source();
  const ShapeInstance& instance = *prepared.instance;
  auto* arena = static_cast<std::byte*>(stage.arena.data());
  prepared.step_of_launch.clear();
  prepared.outside.clear();
  std::vector<Launch> launches;
  int64_t round = 0;
  const auto address = [&](BufferId id, bool is_input, size_t operand) -> void* {
    const BufferId at = root(id), entry = entry_of(profile, id);
    if (instance.buffers[static_cast<size_t>(id)].managed) return &impl_->managed[static_cast<size_t>(at)];
    const int64_t moved = entry < 0 ? 0 : round * instance.buffers[static_cast<size_t>(entry)].bytes();
    if (const int64_t offset = instance.offsets[static_cast<size_t>(at)]; offset >= 0) return arena + offset + moved;
    prepared.outside.push_back({launches.size(), operand, is_input, at, moved});
    return nullptr;
  };
  const auto add = [&](size_t s) {
    const std::shared_ptr<const Kernel>& kernel = instance.kernels[s - instance.steps.begin];
    if (!kernel) return;
    const Step& step = profile.steps[s];
    Launch launch;
    launch.kernel = kernel;
    launch.range = range_of(engine_->plan(), step);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      launch.inputs.push_back(address(step.inputs[i], true, i));
      launch.input_bytes.push_back(static_cast<size_t>(instance.buffers[static_cast<size_t>(step.inputs[i])].bytes()));
    }
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      launch.outputs.push_back(address(step.outputs[i], false, i));
      launch.output_bytes.push_back(
          static_cast<size_t>(instance.buffers[static_cast<size_t>(step.outputs[i])].bytes()));
    }
    for (const int32_t id : step.constants)
      launch.constants.push_back(engine_->impl_->constants[static_cast<size_t>(id)]);
    launch.workspace = arena + instance.workspace_offset;
    prepared.step_of_launch.push_back(s);
    launches.push_back(std::move(launch));
  };
  for (size_t s = instance.steps.begin, next = s; s < instance.steps.end; s = next) {
    next = turns_end(profile.steps, s);
    const int64_t rounds = rounds_of(profile, instance, s, next);
    for (round = 0; round < rounds; ++round)
      for (size_t turn = s; turn < next; ++turn) add(turn);
  }
  prepared.recording = engine_->device().record(std::move(launches));
  prepared.recording->stop_at(impl_->stop);
  impl_->pointers_changed = true;
}

/// Memory for outputs whose sizes are known only now.
void ExecutionContext::own_results(const ShapeInstance& instance) {
  for (size_t io = 0; io < impl_->io_buffer.size(); ++io) {
    const auto id = static_cast<size_t>(impl_->io_buffer[io]);
    const ConcreteType& type = instance.buffers[id];
    const bool own = impl_->by_value[io] && !engine_->plan().io[io].is_input && !source().buffers[id].managed;
    if (!own || (type.dims.empty() && engine_->plan().io[io].type.shape.rank() > 0)) continue;
    const auto bytes = static_cast<size_t>(std::max<int64_t>(type.bytes(), 1));
    if (impl_->results[io].size() < bytes) {
      wait();
      impl_->results[io] = Buffer(engine_->device(), bytes);
    }
    impl_->address[id] = impl_->results[io].data();
    if (!source().buffers[id].most) impl_->shapes[io] = type.dims;
  }
}

void ExecutionContext::patch_pointers(size_t number) {
  if (!impl_->pointers_changed && impl_->stages.size() == 1) return;
  impl_->pointers_changed = false;
  Prepared& prepared = *impl_->stages[number].current;
  const auto address = [&](const OutsideOperand& use) -> void* {
    return static_cast<std::byte*>(impl_->address[static_cast<size_t>(use.root)]) + use.offset;
  };
  // Asking for the launches makes a device forget what it has captured.
  if (std::all_of(prepared.outside.begin(), prepared.outside.end(),
                  [&](const OutsideOperand& use) { return use.bound == address(use); }))
    return;
  std::vector<Launch>& launches = prepared.recording->launches();
  for (OutsideOperand& use : prepared.outside) {
    use.bound = address(use);
    if (use.is_input) launches[use.launch].inputs[use.operand] = use.bound;
    else launches[use.launch].outputs[use.operand] = use.bound;
  }
}

void ExecutionContext::replay(size_t number, Stream& stream) {
  const Prepared& prepared = *impl_->stages[number].current;
  if (impl_->poison) {
    const Arena& arena = impl_->stages[number].arena;
    engine_->device().fill(arena.data(), kPoison, arena.size(), stream);
    prepared.recording->poison(stream);
  }
  if (impl_->span_observer) return replay_with_spans(prepared, stream);
  if (profiler_ == nullptr) return prepared.recording->replay(stream);
  const StageRange range = prepared.instance->steps;
  const std::vector<size_t>& steps = prepared.step_of_launch;
  std::vector<double> taken(range.end - range.begin);  // nothing by views
  size_t next = range.begin;
  const auto tell = [&](size_t end) {
    for (; next < end; ++next) profiler_->layer(source().steps[next], taken[next - range.begin]);
  };
  tell(steps.empty() ? range.end : steps.front());
  prepared.recording->replay(stream, [&](size_t launch, double milliseconds) {
    taken[steps[launch] - range.begin] += milliseconds;
    // Steps that take turns have taken their time when the last of them has had its last.
    const size_t following = launch + 1 < steps.size() ? steps[launch + 1] : range.end;
    const bool last_turn = turns_end(source().steps, next) <= following;
    if (last_turn) tell(following);
  });
}

void ExecutionContext::set_span_observer(SpanObserver observer) { impl_->span_observer = std::move(observer); }

void ExecutionContext::replay_with_spans(const Prepared& prepared, Stream& stream) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const auto since = [this](SpanClock::time_point at) { return Milliseconds(at - impl_->begun).count(); };
  const auto step_of = [&](size_t launch) { return &source().steps[prepared.step_of_launch[launch]]; };
  if (auto* recording = dynamic_cast<TellsSpans*>(prepared.recording.get())) {
    recording->replay(stream, impl_->work);
    for (const WorkSpan& span : impl_->work)
      impl_->spans.push_back({step_of(span.launch), span.worker, since(span.begin), since(span.end)});
    return;
  }
  double at = since(SpanClock::now());
  prepared.recording->replay(stream, [&](size_t launch, double milliseconds) {
    impl_->spans.push_back({step_of(launch), 0, at, at + milliseconds});
    at += milliseconds;
  });
}

/// Behind an inference, or what there was of one that was cancelled.
void ExecutionContext::tell_spans() {
  if (!impl_->span_observer) return;
  impl_->span_observer(impl_->spans);
  impl_->spans.clear();
}

/// Those whose sizes are known before the run.
void ExecutionContext::poison_outputs(Stream& stream) {
  const std::vector<IoTensor>& io = engine_->plan().io;
  for (size_t i = 0; i < io.size(); ++i) {
    const auto id = static_cast<size_t>(impl_->io_buffer[i]);
    if (io[i].is_input || impl_->by_value[i]) continue;
    const auto bytes = static_cast<size_t>(impl_->stages[0].current->instance->buffers[id].bytes());
    engine_->device().fill(impl_->address[id], kPoison, bytes, stream);
  }
}

/// Where kernels find the contents of a managed buffer.
void* ExecutionContext::on_device(size_t id, const Tensor& contents, Stream& stream) {
  const std::span<const std::byte> bytes = contents.bytes();
  if (engine_->device().host_accessible()) return const_cast<std::byte*>(bytes.data());
  Buffer& memory = impl_->uploads[id];
  if (memory.size() < bytes.size()) memory = Buffer(engine_->device(), bytes.size());
  engine_->device().copy(memory.data(), bytes.data(), bytes.size(), stream);
  return memory.data();
}

/// The sizes that a stage's kernels measured, read off the device; the stage has ended then. By measured buffer.
std::map<size_t, Dims> ExecutionContext::read_measured(size_t number, Stream& stream) {
  const ContextStage& stage = impl_->stages[number];
  const ShapeInstance& instance = *stage.current->instance;
  const auto* arena = static_cast<const std::byte*>(stage.arena.data());
  std::map<size_t, Dims> measured;
  size_t count = 0;
  for (size_t s = instance.steps.begin; s < instance.steps.end; ++s)
    for (const BufferId id : source().steps[s].outputs)
      if (source().buffers[static_cast<size_t>(id)].most) {
        Dims& most = measured[static_cast<size_t>(id)] = instance.buffers[static_cast<size_t>(id)].dims;
        count += most.size();
      }
  const size_t bytes = count * sizeof(int64_t);
  if (impl_->measured.size() < bytes) impl_->measured = Buffer(engine_->device(), bytes, MemoryKind::host);
  auto* to = static_cast<int64_t*>(impl_->measured.data());
  for (const auto& [id, most] : measured) {
    if (elements(most) == 0) continue;  // its step had nothing to do
    const auto at = static_cast<size_t>(source().buffers[id].sizes);
    engine_->device().copy(to, arena + instance.offsets[at], most.size() * sizeof(int64_t), stream);
    to += most.size();
  }
  stream.synchronize();
  to = static_cast<int64_t*>(impl_->measured.data());
  for (auto& [id, dims] : measured) {
    if (elements(dims) == 0) continue;
    for (int64_t& size : dims) {
      HONE_CHECK(*to >= 0 && *to <= size, "a size of {} came out as {}, the largest is {}", source().buffers[id].name,
                 *to, size);
      size = *to++;
    }
  }
  return measured;
}

/// Behind a stage: where its results lie, and the data-dependent sizes that it made known.
void ExecutionContext::collect(size_t number, Stream& stream) {
  const ContextStage& stage = impl_->stages[number];
  const ShapeInstance& instance = *stage.current->instance;
  auto* arena = static_cast<std::byte*>(stage.arena.data());
  const std::map<size_t, Dims> measured = read_measured(number, stream);
  const auto learn = [&](size_t at, const Dims& dims) {
    for (size_t io = 0; io < impl_->io_buffer.size(); ++io)
      if (static_cast<size_t>(impl_->io_buffer[io]) == at) impl_->shapes[io] = dims;
  };
  for (size_t s = instance.steps.begin; s < instance.steps.end; ++s)
    for (const BufferId id : source().steps[s].outputs) {
      const auto at = static_cast<size_t>(root(id));
      if (instance.offsets[at] >= 0) impl_->address[at] = arena + instance.offsets[at];
      const BufferSlot& slot = source().buffers[at];
      if (static_cast<size_t>(id) != at) continue;
      if (slot.most) {
        learn_sizes(slot, measured.at(at), impl_->symbols);
        learn(at, measured.at(at));
      }
      if (!slot.managed) continue;
      const Tensor& result = impl_->managed[at];
      learn_sizes(slot, result, impl_->symbols);
      impl_->address[at] = is_object(result.dtype()) ? nullptr : on_device(at, result, stream);
      learn(at, result.dims());
    }
}

void ExecutionContext::enqueue(Stream& stream) try {
  const bool captured = stream.capturing();
  if (captured) require_capturable();
  prepare();
  ask_for_outputs();
  place_bound(captured);
  patch_pointers(0);
  if (engine_->impl_->group) engine_->impl_->group->require_sound();
  if (engine_->impl_->group && !captured) meet();
  if (impl_->poison) poison_outputs(stream);
  if (impl_->span_observer) {
    impl_->spans.clear();
    impl_->begun = SpanClock::now();
  }
  const bool followed = impl_->finished && !captured;
  if (followed) begin_inference();
  try {
    copy_bound(true, stream);
    run_stages(stream);
    copy_bound(false, stream);
  } catch (...) {  // what is in the stream is still to be waited for
    if (followed) try_to_end_inference(stream);
    throw;
  }
  if (followed) end_inference(stream);
  tell_spans();
  if (stopped()) throw Cancelled("the inference was cancelled", "its outputs are undefined");
} catch (const GroupError&) {
  // What is under way ends when it is given up, or with the process; who frees memory before that would wait in between.
  try {
    wait();
  } catch (const Error&) {}
  throw;
}

void ExecutionContext::run_stages(Stream& stream) {
  replay(0, stream);
  impl_->has_run = true;
  const bool decides = impl_->stages.size() > 1 ||
                       std::find(impl_->by_value.begin(), impl_->by_value.end(), true) != impl_->by_value.end();
  if (!decides) {
    if (impl_->learned != impl_->symbols) impl_->learned = impl_->symbols;
    return;
  }
  const SymbolValues given = impl_->symbols;
  for (size_t stage = 0; stage < impl_->stages.size(); ++stage) {
    if (stage > 0) {
      require_stage(stage);
      prepare_stage(stage);
      patch_pointers(stage);
      replay(stage, stream);
    }
    if (stopped()) {
      impl_->symbols = given;
      impl_->has_run = false;
      return;
    }
    collect(stage, stream);
  }
  impl_->learned = std::exchange(impl_->symbols, given);
  deliver_outputs(stream);
}

}  // namespace hone
