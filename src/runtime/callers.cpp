// SPDX-License-Identifier: Apache-2.0
//
// What a caller may give a context beside memory for inputs and outputs: names, memory for activations, a source of memory for
// outputs, a flag that ends an inference, a stream that is captured.
#include <algorithm>

#include "base/state_error.h"
#include "base/text.h"
#include "runtime/impl.h"

namespace hone {

size_t io_index(const Plan& plan, std::string_view tensor) {
  for (size_t i = 0; i < plan.io.size(); ++i)
    if (plan.io[i].name == tensor) return i;
  std::vector<std::string_view> names;
  for (const IoTensor& io : plan.io) names.push_back(io.name);
  throw Error(fmt::format("the engine has no tensor called '{}'", tensor),
              fmt::format("its tensors are {}; the nearest is '{}'", join(names, ", "), nearest(tensor, names)));
}

void ExecutionContext::stop_at(const std::atomic<bool>* flag) {
  impl_->stop = flag;
  for (ContextStage& stage : impl_->stages)
    for (auto& [symbols, prepared] : stage.prepared)
      if (prepared.recording) prepared.recording->stop_at(flag);
}

bool ExecutionContext::stopped() const {
  return impl_->stop != nullptr && impl_->stop->load(std::memory_order_relaxed);
}

int64_t ExecutionContext::device_memory_bytes() const {
  int64_t bytes = 0;
  for (const ContextStage& stage : impl_->stages) bytes += static_cast<int64_t>(stage.arena.size());
  return bytes;
}

int64_t ExecutionContext::activation_bytes() {
  require_instance();
  return impl_->stages[0].current->instance->arena_bytes;
}

void ExecutionContext::set_activation_memory(void* memory, int64_t bytes) {
  HONE_CHECK(bytes >= 0, "{} bytes of memory are given", bytes);
  HONE_CHECK(reinterpret_cast<uintptr_t>(memory) % 256 == 0,
             "memory for activations begins at a multiple of 256 bytes; this is at {}", memory);
  wait();
  ContextStage& stage = impl_->stages[0];
  for (auto& [symbols, prepared] : stage.prepared) prepared.recording = nullptr;
  stage.arena.drop_own();
  stage.arena.given = memory;
  stage.arena.given_bytes = static_cast<size_t>(bytes);
}

void ExecutionContext::set_output_memory(std::string_view output, OutputMemory memory) {
  const size_t index = io_index(engine_->plan(), output);
  const IoTensor& io = engine_->plan().io[index];
  HONE_CHECK(!io.is_input && !is_object(io.type.dtype) && io.type.ranked, "{} is no output that has memory", output);
  impl_->output_memory[index] = std::move(memory);
}

namespace {

void* memory_from(const ExecutionContext::OutputMemory& source, const std::string& output, const Dims& dims,
                  int64_t bytes) {
  void* memory = source(output, dims, bytes);
  if (memory == nullptr && bytes > 0)
    throw Error(fmt::format("the output {} got no memory for its {} bytes", output, bytes),
                "the function that gives memory for it returned NULL");
  return memory;
}

}  // namespace

/// Of outputs whose sizes are known before the run.
void ExecutionContext::ask_for_outputs() {
  const std::vector<IoTensor>& io = engine_->plan().io;
  for (size_t i = 0; i < io.size(); ++i) {
    if (!impl_->output_memory[i] || impl_->by_value[i]) continue;
    const auto bytes = static_cast<int64_t>(io_bytes(i));
    void* memory = memory_from(impl_->output_memory[i], io[i].name, impl_->shapes[i], bytes);
    static std::byte nothing;  // to point at where there is nothing to write
    bind(io[i].name, memory != nullptr ? memory : &nothing);
  }
}

/// Of the others: results are copied.
void ExecutionContext::deliver_outputs(Stream& stream) {
  const std::vector<IoTensor>& io = engine_->plan().io;
  for (size_t i = 0; i < io.size(); ++i) {
    if (!impl_->output_memory[i] || !impl_->by_value[i]) continue;
    const auto id = static_cast<size_t>(impl_->io_buffer[i]);
    const auto bytes = static_cast<int64_t>(io_bytes(i));
    void* memory = memory_from(impl_->output_memory[i], io[i].name, impl_->shapes[i], bytes);
    engine_->device().copy(memory, impl_->address[id], static_cast<size_t>(bytes), stream);
  }
}

void ExecutionContext::require_capturable() const {
  const ContextStage& first = impl_->stages[0];
  if (first.current == nullptr || !first.current->recording || !impl_->has_run)
    throw StateError("the context has not run at these shapes",
                     "run it once before its inference is captured: kernels are made ready by the first run");
  if (impl_->stages.size() > 1 || std::ranges::find(impl_->by_value, true) != impl_->by_value.end())
    throw StateError("sizes of this network depend on the data: its inference cannot be captured",
                     "enqueue it without capturing");
}

}  // namespace hone
