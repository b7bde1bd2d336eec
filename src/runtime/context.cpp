// SPDX-License-Identifier: Apache-2.0
//
// Execution contexts: shapes in, a prepared launch list out, replayed as often as asked for.
#include <algorithm>

#include "base/text.h"
#include "runtime/impl.h"

namespace hone {
namespace {

size_t io_index(const Plan& plan, std::string_view tensor) {
  for (size_t i = 0; i < plan.io.size(); ++i)
    if (plan.io[i].name == tensor) return i;
  std::vector<std::string_view> names;
  for (const IoTensor& io : plan.io) names.push_back(io.name);
  throw Error(fmt::format("the engine has no tensor called '{}'", tensor), fmt::format("its tensors are {}; the nearest is '{}'", join(names, ", "), nearest(tensor, names)));
}

/// Binds the symbols of one input's shape; throws when a fixed size differs or a symbol would get two values.
void bind_symbols(const IoTensor& io, const Dims& dims, SymbolValues& symbols) {
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const Dim& declared = io.type.shape[axis];
    if (declared.is_constant()) continue;
    std::set<std::string> names;
    declared.collect_symbols(names);
    if (names.size() != 1 || Dim::symbol(*names.begin()) != declared) continue;
    const auto [at, fresh] = symbols.try_emplace(*names.begin(), dims[axis]);
    HONE_CHECK(fresh || at->second == dims[axis], "axis {} of input {} is {}, but other inputs say that {} is {}", axis, io.name, dims[axis], at->first, at->second);
  }
}

void check_shape(const Plan& plan, const Profile& profile, int index, const IoTensor& io, const Dims& dims) {
  if (dims.size() != io.type.shape.rank())
    throw Error(fmt::format("input {} has rank {}, the shape {} has rank {}", io.name, io.type.shape.rank(), join_dims(dims), dims.size()));
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const Dim& declared = io.type.shape[axis];
    if (declared.is_constant() && declared.value() != dims[axis])
      throw Error(fmt::format("axis {} of input {} is {} in the engine, the shape {} says {}", axis, io.name, declared.text(), join_dims(dims), dims[axis]));
  }
  for (const ProfileRange& range : profile.ranges)
    for (size_t axis = 0; range.tensor == io.name && axis < dims.size(); ++axis)
      if (dims[axis] < range.min[axis] || dims[axis] > range.max[axis])
        throw Error(fmt::format("shape {} of input {} lies outside profile {}: min {}, max {}", join_dims(dims), io.name, index, join_dims(range.min), join_dims(range.max)),
                    plan.profiles.size() > 1 ? "choose a shape in the range or another profile" : "choose a shape in the range or build with other --minShapes/--maxShapes");
}

}  // namespace

ExecutionContext::ExecutionContext(std::shared_ptr<const Engine> engine, int profile) : engine_(std::move(engine)), profile_(profile), impl_(std::make_unique<Impl>()) {
  const Plan& plan = engine_->plan();
  const Profile& source = plan.profiles[static_cast<size_t>(profile_)];
  for (const IoTensor& io : plan.io) {
    const bool known = io.type.shape.is_static();
    impl_->shapes.push_back(known ? io.type.shape.values() : Dims());
    impl_->shape_known.push_back(known);
    impl_->bound.push_back(nullptr);
    const BufferKind kind = io.is_input ? BufferKind::input : BufferKind::output;
    for (size_t id = 0; id < source.buffers.size(); ++id)
      if (source.buffers[id].kind == kind && source.buffers[id].alias < 0 && source.buffers[id].name == io.name) impl_->io_buffer.push_back(static_cast<BufferId>(id));
  }
}

ExecutionContext::~ExecutionContext() = default;

void ExecutionContext::set_shape(std::string_view input, const Dims& dims) {
  const Plan& plan = engine_->plan();
  const size_t index = io_index(plan, input);
  HONE_CHECK(plan.io[index].is_input, "{} is an output; only shapes of inputs can be set", input);
  check_shape(plan, plan.profiles[static_cast<size_t>(profile_)], profile_, plan.io[index], dims);
  if (impl_->shape_known[index] && impl_->shapes[index] == dims) return;
  impl_->shapes[index] = dims;
  impl_->shape_known[index] = true;
  impl_->current = nullptr;
}

/// What was prepared before for the shapes that are set now: found without allocating, so that inferences of changing shapes
/// cost no more than others.
Prepared* ExecutionContext::find_prepared() const {
  const Plan& plan = engine_->plan();
  for (auto& [symbols, prepared] : impl_->prepared) {
    bool same = true;
    for (size_t i = 0; same && i < plan.io.size(); ++i) same = !plan.io[i].is_input || (impl_->shape_known[i] && prepared.input_shapes[i] == impl_->shapes[i]);
    if (same) return &prepared;
  }
  return nullptr;
}

Prepared& ExecutionContext::make_prepared() {
  const Plan& plan = engine_->plan();
  SymbolValues symbols;
  std::vector<Dims> input_shapes(plan.io.size());
  for (size_t i = 0; i < plan.io.size(); ++i) {
    if (!plan.io[i].is_input) continue;
    if (!impl_->shape_known[i]) throw Error(fmt::format("the shape of input {} is not set", plan.io[i].name), "it has dynamic sizes: give one, for example with --shapes");
    bind_symbols(plan.io[i], impl_->shapes[i], symbols);
    input_shapes[i] = impl_->shapes[i];
  }
  std::shared_ptr<const ShapeInstance> instance = engine_->instance(profile_, symbols);
  if (instance->arena_bytes > static_cast<int64_t>(impl_->arena.size())) {
    for (auto& [key, other] : impl_->prepared) other.recording = nullptr;      // they point into the old arena
    impl_->arena = Buffer(engine_->device(), static_cast<size_t>(instance->arena_bytes));
  }
  Prepared& prepared = impl_->prepared[symbols];
  prepared.instance = std::move(instance);
  prepared.input_shapes = std::move(input_shapes);
  return prepared;
}

void ExecutionContext::require_instance() {
  if (impl_->current != nullptr) return;
  Prepared* known = find_prepared();
  impl_->current = known != nullptr ? known : &make_prepared();
  impl_->pointers_changed = true;
  const Plan& plan = engine_->plan();
  for (size_t i = 0; i < plan.io.size(); ++i)
    if (!plan.io[i].is_input) impl_->shapes[i] = impl_->current->instance->buffers[static_cast<size_t>(impl_->io_buffer[i])].dims;
}

Dims ExecutionContext::shape(std::string_view tensor) {
  const size_t index = io_index(engine_->plan(), tensor);
  if (engine_->plan().io[index].is_input && impl_->shape_known[index]) return impl_->shapes[index];
  require_instance();
  return impl_->shapes[index];
}

int64_t ExecutionContext::bytes(std::string_view tensor) {
  const size_t index = io_index(engine_->plan(), tensor);
  const TensorType& type = engine_->plan().io[index].type;
  return byte_size(type.dtype, shape(tensor), type.layout);
}

void ExecutionContext::bind(std::string_view tensor, void* memory) {
  const size_t index = io_index(engine_->plan(), tensor);
  impl_->pointers_changed |= impl_->bound[index] != memory;
  impl_->bound[index] = memory;
}

void ExecutionContext::prepare() {
  require_instance();
  Prepared& prepared = *impl_->current;
  if (prepared.recording) return;
  const Profile& profile = engine_->plan().profiles[static_cast<size_t>(profile_)];
  const ShapeInstance& instance = *prepared.instance;
  auto* arena = static_cast<std::byte*>(impl_->arena.data());
  prepared.step_of_launch.clear();
  prepared.io_operands.assign(engine_->plan().io.size(), {});
  std::vector<Launch> launches;
  const auto address = [&](BufferId id, bool is_input, size_t operand) -> void* {
    BufferId root = id;
    while (profile.buffers[static_cast<size_t>(root)].alias >= 0) root = profile.buffers[static_cast<size_t>(root)].alias;
    if (const int64_t offset = instance.offsets[static_cast<size_t>(root)]; offset >= 0) return arena + offset;
    const auto io = std::find(impl_->io_buffer.begin(), impl_->io_buffer.end(), root);
    HONE_ASSERT(io != impl_->io_buffer.end(), "buffer {} has no memory", id);
    prepared.io_operands[static_cast<size_t>(io - impl_->io_buffer.begin())].push_back({launches.size(), operand, is_input});
    return nullptr;
  };
  for (size_t s = 0; s < profile.steps.size(); ++s) {
    if (!instance.kernels[s]) continue;
    const Step& step = profile.steps[s];
    Launch launch;
    launch.kernel = instance.kernels[s];
    for (size_t i = 0; i < step.inputs.size(); ++i) launch.inputs.push_back(address(step.inputs[i], true, i));
    for (size_t i = 0; i < step.outputs.size(); ++i) launch.outputs.push_back(address(step.outputs[i], false, i));
    for (const int32_t id : step.constants) launch.constants.push_back(engine_->impl_->constants[static_cast<size_t>(id)]);
    launch.workspace = arena + instance.workspace_offset;
    prepared.step_of_launch.push_back(s);
    launches.push_back(std::move(launch));
  }
  prepared.recording = engine_->device().record(std::move(launches));
  impl_->pointers_changed = true;
}

void ExecutionContext::patch_pointers() {
  if (!impl_->pointers_changed) return;
  std::vector<Launch>& launches = impl_->current->recording->launches();
  for (size_t io = 0; io < impl_->bound.size(); ++io) {
    HONE_CHECK(impl_->bound[io] != nullptr, "no memory is bound for {}", engine_->plan().io[io].name);
    for (const IoOperand& use : impl_->current->io_operands[io]) {
      if (use.is_input) launches[use.launch].inputs[use.operand] = impl_->bound[io];
      else launches[use.launch].outputs[use.operand] = impl_->bound[io];
    }
  }
  impl_->pointers_changed = false;
}

void ExecutionContext::enqueue(Stream& stream) {
  prepare();
  patch_pointers();
  Recording& recording = *impl_->current->recording;
  if (profiler_ == nullptr) return recording.replay(stream);
  const Profile& profile = engine_->plan().profiles[static_cast<size_t>(profile_)];
  size_t next = 0;
  recording.replay(stream, [&](size_t launch, double milliseconds) {
    const size_t step = impl_->current->step_of_launch[launch];
    for (; next < step; ++next) profiler_->layer(profile.steps[next], 0);       // views take no time
    profiler_->layer(profile.steps[step], milliseconds);
    next = step + 1;
  });
  for (; next < profile.steps.size(); ++next) profiler_->layer(profile.steps[next], 0);
}

int64_t ExecutionContext::device_memory_bytes() const { return static_cast<int64_t>(impl_->arena.size()); }

}  // namespace hone
