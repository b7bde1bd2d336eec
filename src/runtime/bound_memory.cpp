// SPDX-License-Identifier: Apache-2.0
//
// Where kernels find the memory that a caller bound. Those of a GPU read and write whole vectors, and tensor maps begin at such: memory
// at other addresses (a row of a half tensor) has a copy of the context's own, which inputs are brought to and outputs fetched from.
#include <algorithm>

#include "base/state_error.h"
#include "runtime/impl.h"

namespace hone {
namespace {

constexpr uintptr_t kVectorBytes = 16;

bool needs_copy(const Device& device, const void* memory) {
  return !device.host_accessible() && reinterpret_cast<uintptr_t>(memory) % kVectorBytes != 0;
}

}  // namespace

size_t ExecutionContext::io_bytes(size_t io) const {
  const TensorType& type = engine_->plan().io[io].type;
  return static_cast<size_t>(byte_size(type.dtype, impl_->shapes[io], type.layout));
}

/// The context's own memory for a tensor that is bound; throws StateError where it would have to be allocated while a stream is captured.
void* ExecutionContext::aligned_memory(size_t io, bool captured) {
  Buffer& memory = impl_->aligned[io];
  const size_t bytes = std::max<size_t>(io_bytes(io), 1);
  if (memory.size() >= bytes) return memory.data();
  if (captured)
    throw StateError(fmt::format("{} is bound at {}, no multiple of {} bytes: it is copied, and no memory is there yet",
                                 engine_->plan().io[io].name, impl_->bound[io], kVectorBytes),
                     "run the context once with this memory before its inference is captured, or align it");
  wait();
  memory = Buffer(engine_->device(), bytes);
  return memory.data();
}

void ExecutionContext::place_bound(bool captured) {
  if (!impl_->pointers_changed) return;
  for (size_t io = 0; io < impl_->io_buffer.size(); ++io) {
    void* bound = impl_->bound[io];
    if (impl_->by_value[io] || (bound == nullptr && impl_->output_memory[io])) continue;
    if (bound == nullptr)
      throw StateError(fmt::format("no memory is bound for {}", engine_->plan().io[io].name),
                       "bind memory for every input and output before the run");
    impl_->address[static_cast<size_t>(impl_->io_buffer[io])] =
        needs_copy(engine_->device(), bound) ? aligned_memory(io, captured) : bound;
  }
}

void ExecutionContext::copy_bound(bool inputs, Stream& stream) {
  for (size_t io = 0; io < impl_->io_buffer.size(); ++io) {
    if (impl_->by_value[io] || engine_->plan().io[io].is_input != inputs) continue;
    void *bound = impl_->bound[io], *address = impl_->address[static_cast<size_t>(impl_->io_buffer[io])];
    if (bound == address) continue;
    engine_->device().copy(inputs ? address : bound, inputs ? bound : address, io_bytes(io), stream);
  }
}

}  // namespace hone
