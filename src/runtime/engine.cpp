// SPDX-License-Identifier: Apache-2.0
//
// The engine: constants on the device, and the cache of shape instances that all contexts share.
#include "runtime/engine.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "base/checked.h"
#include "base/code_names.h"
#include "plan/memory.h"
#include "plan/turns.h"
#include "runtime/impl.h"
#include "runtime/instance.h"
#include "runtime/ranks.h"

namespace hone {
namespace {

KernelShapes kernel_shapes(const Plan& plan, const Step& step, const ShapeInstance& instance) {
  KernelShapes shapes;
  shapes.constant_bytes.emplace();
  for (const int32_t id : step.constants)
    shapes.constant_bytes->push_back(plan.constants[static_cast<size_t>(id)].bytes().size());
  for (const BufferId id : step.inputs) shapes.inputs.push_back(instance.buffers[static_cast<size_t>(id)]);
  for (const BufferId id : step.outputs) shapes.outputs.push_back(instance.buffers[static_cast<size_t>(id)]);
  shapes.symbols = instance.symbols;
  return shapes;
}

/// Steps with the same code and shapes share one kernel.
class KernelLoader {
 public:
  KernelLoader(const Plan& plan, const Backend& backend, Device& device)
      : plan_(plan), backend_(backend), device_(device) {}

  std::shared_ptr<const Kernel> load(const Step& step, KernelShapes shapes) {
    for (const Entry& entry : entries_)
      if (entry.code == step.code && entry.source == step.source && entry.shapes.inputs == shapes.inputs &&
          entry.shapes.outputs == shapes.outputs && entry.shapes.constant_bytes == shapes.constant_bytes)
        return entry.kernel;
    std::shared_ptr<const Kernel> kernel =
        with_note([&] { return fmt::format("loading layer {} ({}.{})", step.name, step.source, step.tactic); },
                  [&] { return load_sound(step, shapes); });
    entries_.push_back({step.code, step.source, std::move(shapes), kernel});
    return kernel;
  }

 private:
  /// What a plan of this Hone's own would never bring to an assertion, an altered one may.
  std::shared_ptr<const Kernel> load_sound(const Step& step, const KernelShapes& shapes) const {
    try {
      const CodeName name(step.name);
      return backend_.load(device_, step.source, plan_.blobs[static_cast<size_t>(step.code)], shapes);
    } catch (const InternalError& error) {
      throw Error("a kernel in the plan contradicts itself: " + error.message(),
                  "build the plan again; if a new one says the same, that is a defect in Hone: please report it");
    }
  }

  struct Entry {
    int32_t code;
    std::string source;
    KernelShapes shapes;
    std::shared_ptr<const Kernel> kernel;
  };
  const Plan& plan_;
  const Backend& backend_;
  Device& device_;
  std::vector<Entry> entries_;
};

std::vector<StageRange> stages_of(const Profile& profile) {
  std::vector<StageRange> stages(1);
  for (size_t s = 0; s < profile.steps.size(); ++s) {
    if (static_cast<size_t>(profile.steps[s].stage) == stages.size()) stages.push_back({s, s});
    stages.back().end = s + 1;
  }
  return stages;
}

bool all_known(const Shape& shape, const SymbolValues& symbols) {
  std::set<std::string> names;
  for (const Dim& dim : shape) dim.collect_symbols(names);
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) { return symbols.contains(name); });
}

/// What kernels of a stage see in a buffer: until its sizes are known a managed one is an object, a measured one has the largest.
ConcreteType concrete_type(const BufferSlot& slot, const SymbolValues& symbols) {
  const bool known = !is_object(slot.type.dtype) && slot.type.ranked && all_known(slot.type.shape, symbols);
  if (slot.managed && !known) return {.dtype = slot.type.dtype, .dims = {}, .layout = Layout::linear, .managed = true};
  const Shape& shape = slot.most && !known ? *slot.most : slot.type.shape;
  ConcreteType type{.dtype = slot.type.dtype, .dims = shape.evaluate(symbols), .layout = slot.type.layout};
  with_note([&] { return fmt::format("giving {} the sizes {}", slot.name, join_dims(type.dims)); },
            [&] { require_sizes(type.dims); });
  return type;
}

void fill_buffers(const Profile& profile, ShapeInstance& instance) {
  instance.buffers.resize(profile.buffers.size());
  const auto fill = [&](BufferId id) {
    instance.buffers[static_cast<size_t>(id)] =
        concrete_type(profile.buffers[static_cast<size_t>(id)], instance.symbols);
  };
  for (size_t s = instance.steps.begin; s < instance.steps.end; ++s) {
    for (const BufferId id : profile.steps[s].inputs) fill(id);
    for (const BufferId id : profile.steps[s].outputs) fill(id);
  }
  for (const BufferId entry : entries_in(profile, instance.steps.begin, instance.steps.end))
    fill(entry), fill(batch_of(profile, entry));
  for (size_t id = 0; id < profile.buffers.size(); ++id)
    if (profile.buffers[id].kind != BufferKind::arena &&
        (profile.buffers[id].managed || all_known(profile.buffers[id].type.shape, instance.symbols)))
      fill(static_cast<BufferId>(id));
}

/// Sizes of a buffer, where they are known and lie in plain memory.
std::optional<ConcreteType> plain_type(const BufferSlot& slot, const SymbolValues& symbols) {
  if (is_object(slot.type.dtype) || !slot.type.ranked || !all_known(slot.type.shape, symbols)) return std::nullopt;
  return concrete_type(slot, symbols);
}

/// Views lie in the memory of what they view: they may not be larger. What a view of an entry lies in is that entry.
void check_views(const Profile& profile, const SymbolValues& symbols) {
  for (const BufferSlot& slot : profile.buffers) {
    if (slot.alias < 0) continue;
    const auto viewed = [&](const BufferSlot& from) { return &profile.buffers[static_cast<size_t>(from.alias)]; };
    const BufferSlot* memory = viewed(slot);
    while (memory->alias >= 0 && !memory->entry) memory = viewed(*memory);
    const auto view = plain_type(slot, symbols), whole = plain_type(*memory, symbols);
    if (!view || !whole) continue;
    int64_t bytes = view->bytes();
    if (slot.entry) {
      const auto batch = plain_type(*viewed(slot), symbols);
      bytes = batch ? checked_multiply(bytes, batch->dims[0]) : bytes;
    }
    HONE_CHECK(bytes <= whole->bytes(), "{} needs {} bytes but shares the {} bytes of {}", slot.name, bytes,
               whole->bytes(), memory->name);
  }
}

/// Users bind memory of the declared sizes: what is read and written there may not have others.
void check_interface(const Plan& plan, const Profile& profile, const SymbolValues& symbols) {
  for (const IoTensor& io : plan.io) {
    if (!io.type.ranked || !all_known(io.type.shape, symbols)) continue;
    const Dims declared = io.type.shape.evaluate(symbols);
    for (const BufferSlot& slot : profile.buffers) {
      if (slot.kind == BufferKind::arena || slot.alias >= 0 || slot.name != io.name) continue;
      const auto type = plain_type(slot, symbols);
      HONE_CHECK(slot.managed || (type && type->dims == declared), "{} is declared as [{}] but is [{}] inside", io.name,
                 join_dims(declared, ","), type ? join_dims(type->dims, ",") : "?");
    }
  }
}

/// Steps without elements to write have nothing to do, and kernels need not cope with them.
bool writes_nothing(const Profile& profile, const Step& step, const ShapeInstance& instance) {
  const auto is_sizes = [&](BufferId id) {
    return std::ranges::any_of(step.outputs,
                               [&](BufferId other) { return profile.buffers[static_cast<size_t>(other)].sizes == id; });
  };
  return std::all_of(step.outputs.begin(), step.outputs.end(), [&](BufferId id) {
    const ConcreteType& type = instance.buffers[static_cast<size_t>(id)];
    return is_sizes(id) || (!type.managed && type.bytes() == 0);
  });
}

constexpr size_t kMostWorkspace = size_t{1} << 46;
constexpr int64_t kWorkspaceAlignment = 256;  // libraries on GPUs ask for more than a cache line

void place_buffers(const Profile& profile, ShapeInstance& instance) {
  Lifetimes live = lifetimes(profile, instance.steps.begin, instance.steps.end);
  for (size_t id = 0; id < profile.buffers.size(); ++id)
    if (const int32_t request = live.request_of_buffer[id]; request >= 0) {
      int64_t& bytes = live.requests[static_cast<size_t>(request)].bytes;
      bytes = std::max(bytes, instance.buffers[id].bytes());
    }
  const MemoryPlan memory = plan_memory(live.requests);
  for (const int32_t request : live.request_of_buffer)
    instance.offsets.push_back(request < 0 ? -1 : memory.offsets[static_cast<size_t>(request)]);
  instance.workspace_offset = round_up(memory.bytes, kWorkspaceAlignment);
  size_t workspace = 0;
  for (const auto& kernel : instance.kernels)
    if (kernel) workspace = std::max(workspace, kernel->workspace_bytes());
  HONE_CHECK(workspace <= kMostWorkspace, "a kernel asks for {} bytes to work in", workspace);
  instance.arena_bytes = checked_add(instance.workspace_offset, round_up(static_cast<int64_t>(workspace), kAlignment));
}

/// Where kernels read constants in place: those in bytes, which are weights of few bits, move to memory that the device chose. A
/// product of a few rows waits for them, and its pages are larger than a file's (the next token of llama_160m_int4: 2.54 ms to 2.34).
void gather_bytes(Plan& plan, const std::shared_ptr<Device>& device) {
  struct Memory {
    std::shared_ptr<Device> device;  // lives as long as its memory
    Buffer buffer;
  };
  constexpr int64_t kLeast = 2 << 20;
  const auto taken = [](const Tensor& constant) { return constant.dtype() == DType::u8; };
  const auto room = [](const Tensor& constant) {
    return round_up(static_cast<int64_t>(constant.bytes().size()), int64_t{kAlignment});
  };
  int64_t total = 0;
  for (const Tensor& constant : plan.constants)
    if (taken(constant)) total = checked_add(total, room(constant));
  if (total < kLeast) return;
  const auto memory = std::make_shared<const Memory>(Memory{device, Buffer(*device, static_cast<size_t>(total))});
  const std::unique_ptr<Stream> stream = device->stream();
  auto* to = static_cast<std::byte*>(memory->buffer.data());
  for (Tensor& constant : plan.constants) {
    if (!taken(constant)) continue;
    const std::span<const std::byte> bytes = constant.bytes();
    device->copy(to, bytes.data(), bytes.size(), *stream);
    constant = Tensor(constant.dtype(), constant.dims(), Blob(memory, {to, bytes.size()}));
    to += room(constant);
  }
  stream->synchronize();
}

}  // namespace

std::shared_ptr<const Engine> Engine::load(Plan plan, const Backend& backend, std::shared_ptr<Device> device,
                                           OperatorList operators) {
  verify(plan);
  if (plan.weights == WeightStorage::nowhere)
    throw Error("the plan was written without weights", "load it with --refit --refitFromOnnx=<its model>");
  if (plan.meta.backend != backend.name)
    throw Error(fmt::format("the plan was built for the backend '{}', not '{}'", plan.meta.backend, backend.name),
                "build it again for this backend");
  return std::shared_ptr<const Engine>(new Engine(std::move(plan), backend, std::move(device), std::move(operators)));
}

Engine::Engine(Plan plan, const Backend& backend, std::shared_ptr<Device> device, OperatorList operators)
    : plan_(std::move(plan)),
      backend_(backend),
      device_(std::move(device)),
      operators_(std::move(operators)),
      impl_(std::make_unique<Impl>()) {
  impl_->group = group_of(plan_, *device_);
  if (impl_->group) require_same(plan_, *impl_->group);
  if (device_->host_accessible()) gather_bytes(plan_, device_);
  std::unique_ptr<Stream> stream;
  for (const Tensor& constant : plan_.constants) {
    if (device_->host_accessible()) {
      impl_->constants.push_back(constant.bytes().data());
      continue;
    }
    if (!stream) stream = device_->stream();
    impl_->constant_memory.emplace_back(*device_, constant.bytes().size());
    device_->copy(impl_->constant_memory.back().data(), constant.bytes().data(), constant.bytes().size(), *stream);
    impl_->constants.push_back(impl_->constant_memory.back().data());
  }
  if (stream) stream->synchronize();
  for (const Profile& profile : plan_.profiles) impl_->stages.push_back(stages_of(profile));
}

Engine::~Engine() = default;

bool is_by_value(std::span<const IoTensor> io, std::string_view tensor) {
  std::set<std::string> given, used;
  const TensorType* type = nullptr;
  bool is_input = false;
  for (const IoTensor& each : io) {
    for (const Dim& dim : each.type.shape)
      if (each.is_input) dim.collect_symbols(given);
    if (each.name == tensor) type = &each.type, is_input = each.is_input;
  }
  HONE_CHECK(type != nullptr, "the engine has no tensor called '{}'", tensor);
  if (is_object(type->dtype) || !type->ranked) return true;
  for (const Dim& dim : type->shape) dim.collect_symbols(used);
  return !is_input && !std::includes(given.begin(), given.end(), used.begin(), used.end());
}

std::unique_ptr<ExecutionContext> Engine::context(int profile) const {
  HONE_CHECK(profile >= 0 && profile < static_cast<int>(plan_.profiles.size()),
             "profile {} is asked for, the plan has {}", profile, plan_.profiles.size());
  return std::unique_ptr<ExecutionContext>(new ExecutionContext(shared_from_this(), profile));
}

std::shared_ptr<const ShapeInstance> Engine::instance(int profile, const SymbolValues& symbols) const {
  const std::lock_guard lock(impl_->mutex);
  auto& known = impl_->instances[{profile, symbols}];
  if (!known) known = make_instance(profile, 0, symbols);
  return known;
}

std::shared_ptr<const ShapeInstance> Engine::make_instance(int profile, size_t stage,
                                                           const SymbolValues& symbols) const {
  auto made = std::make_shared<ShapeInstance>();
  made->symbols = symbols;
  const Profile& source = plan_.profiles[static_cast<size_t>(profile)];
  made->steps = impl_->stages[static_cast<size_t>(profile)][stage];
  fill_buffers(source, *made);
  check_views(source, symbols);
  check_interface(plan_, source, symbols);
  KernelLoader loader(plan_, backend_, *device_);
  for (size_t s = made->steps.begin; s < made->steps.end; ++s) {
    const Step& step = source.steps[s];
    const bool idle = step.code < 0 || writes_nothing(source, step, *made);
    if (idle) {
      made->kernels.push_back(nullptr);
      continue;
    }
    KernelShapes shapes = kernel_shapes(plan_, step, *made);
    shapes.operators = operators_;
    made->kernels.push_back(loader.load(step, std::move(shapes)));
  }
  place_buffers(source, *made);
  return made;
}

}  // namespace hone
