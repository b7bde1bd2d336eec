// SPDX-License-Identifier: Apache-2.0
//
// Debug tensors: inner tensors whose memory nothing else uses before the next inference. And what any buffer holds while a run
// goes layer by layer.
#include <algorithm>
#include <cstring>
#include <set>

#include "base/state_error.h"
#include "base/text.h"
#include "plan/turns.h"
#include "runtime/impl.h"
#include "tensor/layout.h"

namespace hone {
namespace {

/// Throws Error, naming what there is, when no debug tensor is called so.
size_t slot_of(const Profile& profile, std::string_view name) {
  std::vector<std::string_view> names;
  for (size_t id = 0; id < profile.buffers.size(); ++id) {
    if (!profile.buffers[id].debug) continue;
    if (profile.buffers[id].name == name) return id;
    names.push_back(profile.buffers[id].name);
  }
  if (names.empty())
    throw Error(fmt::format("the engine has no debug tensor '{}': it has none at all", name),
                "build it with --markDebug=<tensor> or --markUnfusedTensorsAsDebugTensors");
  throw Error(fmt::format("the engine has no debug tensor '{}'", name),
              fmt::format("the nearest of its {} is '{}'; others are marked with --markDebug when the engine is built",
                          names.size(), nearest(name, names)));
}

/// Between the device's memory and the host's.
void copy(Device& device, std::byte* target, const std::byte* source, size_t bytes) {
  if (bytes == 0) return;
  if (device.host_accessible()) {
    std::memcpy(target, source, bytes);
    return;
  }
  const std::unique_ptr<Stream> stream = device.stream();
  device.copy(target, source, bytes, *stream);
  stream->synchronize();
}

}  // namespace

std::vector<std::string> ExecutionContext::debug_tensors() const {
  std::vector<std::string> names;
  for (const BufferSlot& slot : source().buffers)
    if (slot.debug) names.push_back(slot.name);
  return names;
}

std::byte* ExecutionContext::address_in_run(BufferId root) const {
  for (const ContextStage& stage : impl_->stages) {
    if (stage.current == nullptr) continue;
    if (const int64_t offset = stage.current->instance->offsets[static_cast<size_t>(root)]; offset >= 0)
      return static_cast<std::byte*>(stage.arena.data()) + offset;
  }
  return static_cast<std::byte*>(impl_->address[static_cast<size_t>(root)]);
}

Tensor ExecutionContext::contents(const BufferSlot& slot, BufferId root, const Dims& dims) const {
  AlignedBuffer raw(static_cast<size_t>(byte_size(slot.type.dtype, dims, slot.type.layout)));
  copy(engine_->device(), raw.data(), address_in_run(root), raw.size());
  if (slot.type.layout == Layout::linear) return Tensor(slot.type.dtype, dims, Blob::own(std::move(raw)));
  AlignedBuffer linear(static_cast<size_t>(byte_size(slot.type.dtype, dims)));
  convert_layout(raw.data(), linear.data(), slot.type.dtype, dims, slot.type.layout, Layout::linear);
  return Tensor(slot.type.dtype, dims, Blob::own(std::move(linear)));
}

Tensor ExecutionContext::debug_value(std::string_view name) const {
  const size_t id = slot_of(source(), name);
  const BufferSlot& slot = source().buffers[id];
  const bool ran = impl_->has_run && std::ranges::all_of(impl_->stages, [](const ContextStage& stage) {
                     return stage.current != nullptr;
                   });
  if (!ran) throw StateError(fmt::format("{} can be read after a run at the present shapes", name), "run first");
  wait();
  const BufferId at = root(static_cast<BufferId>(id));
  if (source().buffers[static_cast<size_t>(at)].managed) {
    const Tensor& value = impl_->managed[static_cast<size_t>(at)];
    return is_object(value.dtype()) ? value : Tensor(value.dtype(), value.dims(), Blob::copy(value.bytes()));
  }
  return contents(slot, at, slot.type.shape.evaluate(impl_->learned));
}

std::optional<Tensor> ExecutionContext::buffer_value(BufferId id) const {
  // Steps that take turns are told of behind the last round: what they handed to others is whole then, the rest is of the last entry.
  if (source().buffers[static_cast<size_t>(id)].entry) id = batch_of(source(), id);
  else if (std::ranges::any_of(source().steps, [id](const Step& step) {
             return step.by_entry && std::ranges::find(step.outputs, id) != step.outputs.end();
           }))
    return std::nullopt;
  const BufferSlot& slot = source().buffers[static_cast<size_t>(id)];
  if (source().buffers[static_cast<size_t>(root(id))].managed || !slot.type.ranked || is_object(slot.type.dtype))
    return std::nullopt;
  std::set<std::string> symbols;
  for (size_t axis = 0; axis < slot.type.shape.rank(); ++axis) slot.type.shape[axis].collect_symbols(symbols);
  for (const std::string& symbol : symbols)
    if (!impl_->symbols.contains(symbol)) return std::nullopt;
  if (address_in_run(root(id)) == nullptr) return std::nullopt;
  return contents(slot, root(id), slot.type.shape.evaluate(impl_->symbols));
}

void ExecutionContext::set_buffer_value(BufferId id, const Tensor& value) {
  if (source().buffers[static_cast<size_t>(id)].entry) id = batch_of(source(), id);
  const BufferSlot& slot = source().buffers[static_cast<size_t>(id)];
  const Dims dims = slot.type.shape.evaluate(impl_->symbols);
  HONE_CHECK(value.dtype() == slot.type.dtype && value.dims() == dims, "{} is {}", slot.name, slot.type.text());
  AlignedBuffer raw(static_cast<size_t>(byte_size(slot.type.dtype, dims, slot.type.layout)));
  convert_layout(value.bytes().data(), raw.data(), slot.type.dtype, dims, Layout::linear, slot.type.layout);
  copy(engine_->device(), address_in_run(root(id)), raw.data(), raw.size());
}

}  // namespace hone
