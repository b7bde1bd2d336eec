// SPDX-License-Identifier: Apache-2.0
//
// The C interface's run side: devices, plans, engines, contexts.
#include <algorithm>

#include "base/error_text.h"
#include "base/version.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/load.h"
#include "capi/log.h"
#include "capi/tensor.h"
#include "plan/json.h"

using hone::capi::copy_dims;
using hone::capi::guarded;
using hone::capi::require;

std::string& hone::capi::last_error() {
  static thread_local std::string text;
  return text;
}

namespace {

/// The names of debug tensors live in the plan.
std::vector<const std::string*> debug_names(const hone_context& context) {
  std::vector<const std::string*> names;
  const hone::Plan& plan = context.context->engine().plan();
  for (const hone::BufferSlot& slot : plan.profiles[static_cast<size_t>(context.context->profile())].buffers)
    if (slot.debug) names.push_back(&slot.name);
  return names;
}

struct LayerCallback : hone::Profiler {
  hone_layer_fn function;
  void* user;
  void layer(const hone::Step& step, double milliseconds) override { function(user, step.name.c_str(), milliseconds); }
};

/// Remembers host memory for the copies of run(). Throws as bind() does.
void bind_host(hone_context& context, std::string_view tensor, void* memory) {
  context.context->bind(tensor, memory);
  for (hone_binding& binding : context.bindings)
    if (binding.tensor == tensor) {
      binding.host = memory;
      return;
    }
  for (const hone::IoTensor& io : context.context->engine().plan().io)
    if (io.name == tensor) context.bindings.push_back({io.name, io.is_input, memory, {}});
}

/// Device memory for what is bound, as large as the present shapes need.
void place_bindings(hone_context& context) {
  for (hone_binding& binding : context.bindings) {
    const auto bytes = static_cast<size_t>(std::max<int64_t>(context.context->bytes(binding.tensor), 1));
    if (binding.device.size() < bytes) binding.device = hone::Buffer(context.context->engine().device(), bytes);
    context.context->bind(binding.tensor, binding.device.data());
  }
}

void copy_bindings(hone_context& context, bool inputs) {
  hone::Device& device = context.context->engine().device();
  for (hone_binding& binding : context.bindings) {
    if (binding.is_input != inputs) continue;
    const auto bytes = static_cast<size_t>(context.context->bytes(binding.tensor));
    if (inputs) device.copy(binding.device.data(), binding.host, bytes, *context.stream);
    else device.copy(binding.host, binding.device.data(), bytes, *context.stream);
  }
}

}  // namespace

const char* hone_version(void) { return hone::kVersion; }
const char* hone_last_error(void) { return hone::capi::last_error().c_str(); }

hone_status hone_device_open(const char* name, hone_device** device) {
  return guarded([&] {
    require(name, "name");
    require(device, "device");
    *device = new hone_device{hone::open_device(name)};
  });
}

void hone_device_destroy(hone_device* device) { delete device; }

hone_status hone_plan_load(const char* path, hone_plan** plan) {
  return guarded([&] {
    require(path, "path");
    require(plan, "plan");
    hone::with_note([&] { return fmt::format("loading the plan {}", path); },
                    [&] {
                      *plan = new hone_plan{std::make_shared<const hone::Plan>(hone::load_plan_file(path)), {}, {}};
                    });
  });
}

hone_status hone_plan_parse(const void* bytes, size_t size, hone_plan** plan) {
  return guarded([&] {
    require(bytes, "bytes");
    require(plan, "plan");
    const std::span<const std::byte> view(static_cast<const std::byte*>(bytes), size);
    const bool aligned = reinterpret_cast<uintptr_t>(bytes) % hone::kAlignment == 0;
    *plan = new hone_plan{std::make_shared<const hone::Plan>(
                              hone::load_plan(aligned ? hone::Blob(nullptr, view) : hone::Blob::copy(view))),
                          {},
                          {}};
  });
}

hone_status hone_plan_save(const hone_plan* plan, const char* path) {
  return guarded([&] {
    require(plan, "plan");
    require(path, "path");
    hone::with_note([&] { return fmt::format("writing the plan {}", path); },
                    [&] { hone::save_plan_file(*plan->plan, path); });
  });
}

hone_status hone_plan_bytes(hone_plan* plan, const void** bytes, size_t* size) {
  return guarded([&] {
    require(plan, "plan");
    require(bytes, "bytes");
    require(size, "size");
    if (plan->bytes.size() == 0) plan->bytes = hone::Blob::copy(hone::save_plan(*plan->plan));
    *bytes = plan->bytes.data();
    *size = plan->bytes.size();
  });
}

hone_status hone_plan_json(hone_plan* plan, const char** json) {
  return guarded([&] {
    require(plan, "plan");
    require(json, "json");
    if (plan->json.empty()) {
      int64_t sections = 0;
      plan->json = hone::manifest_of(*plan->plan, [&](const hone::Blob&) {
                     return sections++;
                   }).dump(-1, ' ', false, hone::Json::error_handler_t::replace);
    }
    *json = plan->json.c_str();
  });
}

void hone_plan_destroy(hone_plan* plan) { delete plan; }

hone_status hone_engine_create(const hone_plan* plan, const hone_device* device, const hone_log* log,
                               hone_engine** engine) {
  return guarded([&] {
    require(plan, "plan");
    require(device, "device");
    require(engine, "engine");
    *engine = new hone_engine{hone::capi::load_engine(*plan->plan, *device, hone::capi::logger_for(log))};
  });
}

size_t hone_engine_tensors(const hone_engine* engine) {
  return engine == nullptr ? 0 : engine->engine->plan().io.size();
}

hone_status hone_engine_tensor(const hone_engine* engine, size_t index, hone_tensor* tensor) {
  return guarded([&] {
    require(engine, "engine");
    require(tensor, "tensor");
    const std::vector<hone::IoTensor>& io = engine->engine->plan().io;
    HONE_CHECK(index < io.size(), "tensor {} is asked for, the engine has {}", index, io.size());
    hone::capi::describe(io[index].name, io[index].type, io[index].is_input, tensor);
    tensor->by_value = engine->engine->by_value(io[index].name);
  });
}

void hone_engine_destroy(hone_engine* engine) { delete engine; }

hone_status hone_context_create(const hone_engine* engine, int profile, hone_context** context) {
  return guarded([&] {
    require(engine, "engine");
    require(context, "context");
    *context = new hone_context{engine->engine->context(profile), engine->engine->device().stream()};
  });
}

hone_status hone_context_set_shape(hone_context* context, const char* input, const int64_t* dims, int rank) {
  return guarded([&] {
    require(context, "context");
    require(input, "input");
    HONE_CHECK(rank >= 0 && rank <= HONE_MAX_RANK, "rank {} is out of range", rank);
    context->context->set_shape(input, hone::Dims(dims, dims + rank));
  });
}

hone_status hone_context_shape(hone_context* context, const char* tensor, int64_t* dims, int* rank) {
  return guarded([&] {
    require(context, "context");
    copy_dims(context->context->shape(tensor), dims, rank);
  });
}

hone_status hone_context_bytes(hone_context* context, const char* tensor, int64_t* bytes) {
  return guarded([&] {
    require(context, "context");
    *bytes = context->context->bytes(tensor);
  });
}

hone_status hone_context_bind(hone_context* context, const char* tensor, void* memory) {
  return guarded([&] {
    require(context, "context");
    require(memory, "memory");
    if (context->context->engine().device().host_accessible()) context->context->bind(tensor, memory);
    else bind_host(*context, tensor, memory);
  });
}

hone_status hone_context_run(hone_context* context) {
  return guarded([&] {
    require(context, "context");
    place_bindings(*context);
    copy_bindings(*context, true);
    context->context->enqueue(*context->stream);
    copy_bindings(*context, false);
    context->stream->synchronize();
  });
}

hone_status hone_context_profile(hone_context* context, hone_layer_fn layer, void* user) {
  return guarded([&] {
    require(context, "context");
    LayerCallback callback;
    callback.function = layer;
    callback.user = user;
    context->context->set_profiler(&callback);
    const hone_status status = hone_context_run(context);
    context->context->set_profiler(nullptr);
    if (status != HONE_OK) throw hone::parse_error(hone::capi::last_error());
  });
}

size_t hone_context_debug_tensors(const hone_context* context) {
  return context == nullptr ? 0 : debug_names(*context).size();
}

const char* hone_context_debug_tensor(const hone_context* context, size_t index) {
  return index < hone_context_debug_tensors(context) ? debug_names(*context)[index]->c_str() : nullptr;
}

void hone_context_destroy(hone_context* context) { delete context; }
