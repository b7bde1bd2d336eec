// SPDX-License-Identifier: Apache-2.0
//
// The engine: constants on the device, and the cache of shape instances that all contexts share.
#include "runtime/engine.h"

#include <algorithm>
#include <mutex>

#include "base/checked.h"
#include "plan/memory.h"
#include "runtime/impl.h"
#include "runtime/instance.h"

namespace hone {
namespace {

KernelShapes kernel_shapes(const Step& step, const ShapeInstance& instance) {
  KernelShapes shapes;
  for (const BufferId id : step.inputs) shapes.inputs.push_back(instance.buffers[static_cast<size_t>(id)]);
  for (const BufferId id : step.outputs) shapes.outputs.push_back(instance.buffers[static_cast<size_t>(id)]);
  shapes.symbols = instance.symbols;
  return shapes;
}

/// Steps with the same code and shapes share one kernel.
class KernelLoader {
 public:
  KernelLoader(const Plan& plan, const Backend& backend, Device& device) : plan_(plan), backend_(backend), device_(device) {}

  std::shared_ptr<const Kernel> load(const Step& step, KernelShapes shapes) {
    for (const Entry& entry : entries_)
      if (entry.code == step.code && entry.source == step.source && entry.shapes.inputs == shapes.inputs && entry.shapes.outputs == shapes.outputs) return entry.kernel;
    std::shared_ptr<const Kernel> kernel = with_note([&] { return fmt::format("loading layer {} ({}.{})", step.name, step.source, step.tactic); }, [&] {
      return backend_.load(device_, step.source, plan_.blobs[static_cast<size_t>(step.code)], shapes);
    });
    entries_.push_back({step.code, step.source, std::move(shapes), kernel});
    return kernel;
  }

 private:
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

void place_buffers(const Profile& profile, ShapeInstance& instance) {
  Lifetimes live = lifetimes(profile);
  for (size_t id = 0; id < profile.buffers.size(); ++id)
    if (const int32_t request = live.request_of_buffer[id]; request >= 0) {
      int64_t& bytes = live.requests[static_cast<size_t>(request)].bytes;
      bytes = std::max(bytes, instance.buffers[id].bytes());
    }
  const MemoryPlan memory = plan_memory(live.requests);
  for (const int32_t request : live.request_of_buffer) instance.offsets.push_back(request < 0 ? -1 : memory.offsets[static_cast<size_t>(request)]);
  instance.workspace_offset = memory.bytes;
  size_t workspace = 0;
  for (const auto& kernel : instance.kernels)
    if (kernel) workspace = std::max(workspace, kernel->workspace_bytes());
  instance.arena_bytes = checked_add(memory.bytes, round_up(static_cast<int64_t>(workspace), kAlignment));
}

}  // namespace

std::shared_ptr<const Engine> Engine::load(Plan plan, const Backend& backend, std::shared_ptr<Device> device) {
  verify(plan);
  if (plan.meta.backend != backend.name)
    throw Error(fmt::format("the plan was built for the backend '{}', not '{}'", plan.meta.backend, backend.name), "build it again for this backend");
  return std::shared_ptr<const Engine>(new Engine(std::move(plan), backend, std::move(device)));
}

Engine::Engine(Plan plan, const Backend& backend, std::shared_ptr<Device> device)
    : plan_(std::move(plan)), backend_(backend), device_(std::move(device)), impl_(std::make_unique<Impl>()) {
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
}

Engine::~Engine() = default;

std::unique_ptr<ExecutionContext> Engine::context(int profile) const {
  HONE_CHECK(profile >= 0 && profile < static_cast<int>(plan_.profiles.size()), "profile {} is asked for, the plan has {}", profile, plan_.profiles.size());
  return std::unique_ptr<ExecutionContext>(new ExecutionContext(shared_from_this(), profile));
}

std::shared_ptr<const ShapeInstance> Engine::instance(int profile, const SymbolValues& symbols) const {
  const std::lock_guard lock(impl_->mutex);
  auto& known = impl_->instances[{profile, symbols}];
  if (known) return known;
  auto made = std::make_shared<ShapeInstance>();
  made->symbols = symbols;
  const Profile& source = plan_.profiles[static_cast<size_t>(profile)];
  for (const BufferSlot& slot : source.buffers) {
    made->buffers.push_back({slot.type.dtype, slot.type.shape.evaluate(symbols), slot.type.layout});
    for (const int64_t dim : made->buffers.back().dims) HONE_CHECK(dim >= 0, "{} gets the size {} at these input shapes", slot.name, dim);
  }
  KernelLoader loader(plan_, backend_, *device_);
  for (const Step& step : source.steps) made->kernels.push_back(step.code < 0 ? nullptr : loader.load(step, kernel_shapes(step, *made)));
  place_buffers(source, *made);
  return known = std::move(made);
}

}  // namespace hone
