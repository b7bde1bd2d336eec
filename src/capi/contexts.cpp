// SPDX-License-Identifier: Apache-2.0
//
// The C interface's contexts: shapes, memory, callbacks, inferences.
#include <algorithm>
#include <optional>
#include <utility>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/tensor.h"
#include "capi/use.h"

using hone::StateError;
using hone::capi::ArgumentError;
using hone::capi::copy_dims;
using hone::capi::guarded;
using hone::capi::Outcome;
using hone::capi::require;
using hone::capi::Use;

namespace {

/// Calls body() when nothing of the context's is under way.
template <typename Body>
hone_status settled(hone_context* context, Body&& body) {
  return guarded([&] {
    require(context, "context");
    const Use use(*context);
    context->flights.settle();
    body();
  });
}

hone_binding& binding_of(hone_context& context, std::string_view tensor) {
  for (hone_binding& binding : context.bindings)
    if (binding.tensor == tensor) return binding;
  bool is_input = false;
  for (const hone::IoTensor& io : context.context->engine().plan().io)
    if (io.name == tensor) is_input = io.is_input;
  context.bindings.push_back({std::string(tensor), is_input, nullptr, false, {}});
  return context.bindings.back();
}

/// Device memory for what is bound on the host, as large as the present shapes need.
void place_bindings(hone_context& context) {
  for (hone_binding& binding : context.bindings) {
    if (!binding.copied) continue;
    const auto bytes = static_cast<size_t>(std::max<int64_t>(context.context->bytes(binding.tensor), 1));
    if (binding.device.size() < bytes) binding.device = hone::Buffer(context.device(), bytes);
    context.context->bind(binding.tensor, binding.device.data());
  }
}

void copy_bindings(hone_context& context, bool inputs) {
  for (hone_binding& binding : context.bindings) {
    if (!binding.copied || binding.is_input != inputs) continue;
    const auto bytes = static_cast<size_t>(context.context->bytes(binding.tensor));
    if (inputs) context.device().copy(binding.device.data(), binding.memory, bytes, *context.stream);
    else context.device().copy(binding.memory, binding.device.data(), bytes, *context.stream);
  }
}

void make_ready(hone_context& context) {
  if (!context.changed) return;
  place_bindings(context);
  context.context->ready();
  context.changed = false;
}

void require_on_device(const hone_context& context) {
  for (const hone_binding& binding : context.bindings)
    if (binding.copied)
      throw StateError(fmt::format("{} is bound to host memory, which only hone_context_run() copies", binding.tensor),
                       "bind memory of the device, and copy with hone_stream_copy()");
}

/// Copies a value's elements to where the device reads them.
void give_contents(hone_context& context, const hone::IoTensor& io, const hone::Tensor& value) {
  HONE_CHECK(value.dtype() == io.type.dtype, "input {} holds {}, the value {}", io.name, hone::name_of(io.type.dtype),
             hone::name_of(value.dtype()));
  HONE_CHECK(io.type.layout == hone::Layout::linear, "input {} lies in the layout {}; bind its memory", io.name,
             hone::name_of(io.type.layout));
  context.context->set_shape(io.name, value.dims());
  const std::span<const std::byte> bytes = value.bytes();
  hone_binding& binding = binding_of(context, io.name);
  if (binding.device.size() < bytes.size() || binding.device.data() == nullptr)
    binding.device = hone::Buffer(context.device(), std::max<size_t>(bytes.size(), 1));
  binding.copied = false;
  binding.memory = binding.device.data();
  context.device().copy(binding.memory, bytes.data(), bytes.size(), *context.stream);
  context.stream->synchronize();
  context.context->bind(io.name, binding.memory);
}

void run_here(hone_context& context) {
  copy_bindings(context, true);
  context.execute(*context.stream);
  copy_bindings(context, false);
  context.stream->synchronize();
  context.context->wait();  // says what went wrong with other ranks
}

/// The names of debug tensors live in the plan.
std::vector<const std::string*> debug_names(const hone_context& context) {
  std::vector<const std::string*> names;
  const hone::Plan& plan = context.context->engine().plan();
  for (const hone::BufferSlot& slot : plan.profiles[static_cast<size_t>(context.context->profile())].buffers)
    if (slot.debug) names.push_back(&slot.name);
  return names;
}

}  // namespace

hone_context::hone_context(const std::shared_ptr<const hone::Engine>& engine, int profile)
    : context(engine->context(profile)), stream(engine->device().stream()) {
  context->stop_at(flights.stop());
}

hone_context::~hone_context() {
  guarded([&] { flights.settle(); });
  worker = nullptr;
}

void hone_context::execute(hone::Stream& on) {
  std::optional<hone::capi::LayerSpans> spans;
  if (span != nullptr) spans.emplace(*this);
  if (layer != nullptr) {
    const hone::capi::LayerTimes times(*this);
    context->enqueue(on);
  } else {
    context->enqueue(on);
  }
  if (debug == nullptr) return;
  for (const std::string& name : context->debug_tensors()) {
    const hone_value value(context->debug_value(name));
    debug(debug_user, name.c_str(), &value);
  }
}

hone_status hone_context_create(const hone_engine* engine, int profile, hone_context** context) {
  return guarded([&] {
    require(engine, "engine");
    require(context, "context");
    hone::capi::require_index(static_cast<size_t>(profile), engine->engine->plan().profiles.size(), "profile");
    *context = new hone_context(engine->engine, profile);
  });
}

hone_status hone_context_set_profile(hone_context* context, int profile) {
  return settled(context, [&] {
    const hone::Engine& engine = context->context->engine();
    hone::capi::require_index(static_cast<size_t>(profile), engine.plan().profiles.size(), "profile");
    if (profile == context->context->profile()) return;
    if (context->reshaped) throw StateError("a benchmark's context keeps its profile", "make another benchmark");
    auto other = engine.context(profile);
    other->stop_at(context->flights.stop());
    for (const hone_binding& binding : context->bindings)
      if (!binding.copied && binding.memory != nullptr) other->bind(binding.tensor, binding.memory);
    for (const auto& [output, memory] : context->output_memory) other->set_output_memory(output, memory);
    context->context = std::move(other);
    context->changed = true;
  });
}

hone_status hone_context_set_shape(hone_context* context, const char* input, const int64_t* dims, int rank) {
  return settled(context, [&] {
    require(input, "input");
    if (rank == 0) require(dims, "dims");
    context->context->set_shape(input, hone::capi::dims_of(dims, rank));
    if (context->reshaped) context->reshaped();
    context->changed = true;
  });
}

hone_status hone_context_shape(hone_context* context, const char* tensor, int64_t* dims, int* rank) {
  return settled(context, [&] {
    require(tensor, "tensor");
    require(dims, "dims");
    require(rank, "rank");
    copy_dims(context->context->shape(tensor), dims, rank);
  });
}

hone_status hone_context_bytes(hone_context* context, const char* tensor, int64_t* bytes) {
  return settled(context, [&] {
    require(tensor, "tensor");
    require(bytes, "bytes");
    *bytes = context->context->bytes(tensor);
  });
}

hone_status hone_context_bind(hone_context* context, const char* tensor, void* memory, hone_memory kind) {
  return settled(context, [&] {
    require(tensor, "tensor");
    require(memory, "memory");
    if (kind < HONE_MEMORY_HOST || kind > HONE_MEMORY_DEVICE)
      throw ArgumentError(fmt::format("there is no kind of memory {}", static_cast<int>(kind)));
    context->context->bind(tensor, memory);
    hone_binding& binding = binding_of(*context, tensor);
    binding.memory = memory;
    binding.copied = kind != HONE_MEMORY_DEVICE && !context->device().host_accessible();
    context->changed = true;
  });
}

hone_status hone_context_set_value(hone_context* context, const char* input, const hone_value* value) {
  return settled(context, [&] {
    require(input, "input");
    require(value, "value");
    const std::vector<hone::IoTensor>& io = context->context->engine().plan().io;
    const auto at = std::ranges::find(io, std::string_view(input), &hone::IoTensor::name);
    if (at != io.end() && at->is_input && !hone::is_object(at->type.dtype) && !hone::is_object(value->tensor.dtype()))
      give_contents(*context, *at, value->tensor);
    else context->context->set_value(input, value->tensor);
    if (context->reshaped) context->reshaped();
    context->changed = true;
  });
}

hone_status hone_context_set_output_function(hone_context* context, const char* output, hone_output_fn function,
                                             void* user) {
  return settled(context, [&] {
    require(output, "output");
    hone::ExecutionContext::OutputMemory memory;
    if (function != nullptr)
      memory = [=](std::string_view name, const hone::Dims& dims, int64_t bytes) {
        return function(user, std::string(name).c_str(), dims.data(), static_cast<int>(dims.size()), bytes);
      };
    context->context->set_output_memory(output, memory);
    context->output_memory[output] = std::move(memory);
    context->changed = true;
  });
}

hone_status hone_context_set_layer_function(hone_context* context, hone_layer_fn function, void* user) {
  return settled(context, [&] {
    context->layer = function;
    context->layer_user = user;
  });
}

hone_status hone_context_set_span_function(hone_context* context, hone_span_fn function, void* user) {
  return settled(context, [&] {
    context->span = function;
    context->span_user = user;
  });
}

hone_status hone_context_set_debug_function(hone_context* context, hone_debug_fn function, void* user) {
  return settled(context, [&] {
    context->debug = function;
    context->debug_user = user;
  });
}

hone_status hone_context_memory_bytes(hone_context* context, int64_t* bytes) {
  return settled(context, [&] {
    require(bytes, "bytes");
    *bytes = context->context->activation_bytes();
  });
}

hone_status hone_context_set_memory(hone_context* context, void* memory, int64_t bytes) {
  return settled(context, [&] {
    if (bytes < 0) throw ArgumentError(fmt::format("bytes is {}", bytes));
    context->context->set_activation_memory(memory, bytes);
    context->changed = true;
  });
}

hone_status hone_context_reserve(hone_context* context, int64_t bytes) {
  return settled(context, [&] {
    if (bytes < 0) throw ArgumentError(fmt::format("bytes is {}", bytes));
    context->context->reserve(bytes);
  });
}

hone_status hone_context_held_bytes(hone_context* context, int64_t* bytes) {
  return settled(context, [&] {
    require(bytes, "bytes");
    *bytes = context->context->device_memory_bytes();
  });
}

hone_status hone_context_prepare(hone_context* context) {
  return settled(context, [&] { make_ready(*context); });
}

hone_status hone_context_run(hone_context* context) {
  return settled(context, [&] {
    make_ready(*context);
    if (context->device().has_cores() && !context->worker)
      context->worker = std::make_unique<hone::capi::Worker>(
          std::shared_ptr<hone::Device>(context->context->engine().shared_from_this(), &context->device()));
    const uint64_t number = context->flights.issue();
    if (context->worker) {
      context->worker->run(*context, number);
      Outcome outcome = context->worker->synchronize();
      context->flights.take_failure();
      if (outcome.status != HONE_OK) throw outcome;
      return;
    }
    try {
      if (!context->flights.begin(number)) throw hone::Cancelled("the inference was cancelled", "run it again");
      run_here(*context);
    } catch (...) {
      context->flights.end(number, {});
      throw;
    }
    context->flights.end(number, {});
  });
}

hone_status hone_context_enqueue(hone_context* context, hone_stream* stream) {
  return guarded([&] {
    require(context, "context");
    require(stream, "stream");
    const Use use(*context);
    if (&context->device() != stream->device.get() && !(context->device().host_accessible() && stream->worker))
      throw StateError("the stream is of another device", "make it of the device that the engine was loaded onto");
    if (context->changed) {
      context->flights.settle();
      require_on_device(*context);
      make_ready(*context);
    }
    if (!stream->worker) return context->execute(*stream->stream);
    stream->worker->run(*context, context->flights.issue());
  });
}

hone_status hone_context_wait(hone_context* context) {
  return settled(context, [&] {
    Outcome failure = context->flights.take_failure();
    if (failure.status != HONE_OK) throw failure;
    context->context->wait();
  });
}

hone_status hone_context_cancel(hone_context* context) {
  return guarded([&] {
    require(context, "context");
    context->flights.cancel();
  });
}

size_t hone_context_debug_tensors(const hone_context* context) {
  size_t count = 0;
  guarded([&] {
    require(context, "context");
    count = debug_names(*context).size();
  });
  return count;
}

const char* hone_context_debug_tensor(const hone_context* context, size_t index) {
  const char* name = nullptr;
  guarded([&] {
    require(context, "context");
    const std::vector<const std::string*> names = debug_names(*context);
    hone::capi::require_index(index, names.size(), "debug tensor");
    name = names[index]->c_str();
  });
  return name;
}

void hone_context_destroy(hone_context* context) {
  guarded([&] {
    if (context == nullptr) return;
    require(context, "context");
    if (context->reshaped) return;
    context->flights.require_other_thread();
    delete context;
  });
}

hone_status hone_value_create_from_output(hone_context* context, const char* output, hone_value** value) {
  return settled(context, [&] {
    require(output, "output");
    require(value, "value");
    *value = new hone_value(context->context->value(output));
  });
}

hone_status hone_value_create_from_debug_tensor(hone_context* context, const char* tensor, hone_value** value) {
  return settled(context, [&] {
    require(tensor, "tensor");
    require(value, "value");
    *value = new hone_value(context->context->debug_value(tensor));
  });
}
