// SPDX-License-Identifier: Apache-2.0
//
// The C interface's plans and engines.
#include <filesystem>

#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/load.h"
#include "capi/log.h"
#include "capi/operators/operators.h"
#include "capi/tensor.h"
#include "plan/json.h"

using hone::capi::guarded;
using hone::capi::require;
using hone::capi::require_index;

hone_status hone_plan_create_from_file(const char* path, hone_plan** plan) {
  return guarded([&] {
    require(path, "path");
    require(plan, "plan");
    hone::with_note([&] { return fmt::format("loading the plan {}", path); },
                    [&] {
                      std::error_code unknown;
                      const std::uintmax_t size = std::filesystem::file_size(path, unknown);
                      *plan = new hone_plan(hone::load_plan_file(path), unknown ? 0 : size);
                    });
  });
}

hone_status hone_plan_create_from_memory(const void* bytes, size_t size, hone_plan** plan) {
  return guarded([&] {
    require(bytes, "bytes");
    require(plan, "plan");
    const std::span<const std::byte> view(static_cast<const std::byte*>(bytes), size);
    const bool aligned = reinterpret_cast<uintptr_t>(bytes) % hone::kAlignment == 0;
    *plan = new hone_plan(hone::load_plan(aligned ? hone::Blob(nullptr, view) : hone::Blob::copy(view)), size);
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

hone_status hone_plan_bytes(const hone_plan* plan, const void** bytes, size_t* size) {
  return guarded([&] {
    require(plan, "plan");
    require(bytes, "bytes");
    require(size, "size");
    std::call_once(plan->bytes_made, [&] { plan->bytes = hone::Blob::copy(hone::save_plan(*plan->plan)); });
    *bytes = plan->bytes.data();
    *size = plan->bytes.size();
  });
}

hone_status hone_plan_json(const hone_plan* plan, const char** json) {
  return guarded([&] {
    require(plan, "plan");
    require(json, "json");
    std::call_once(plan->json_made, [&] {
      int64_t sections = 0;
      plan->json = hone::manifest_of(*plan->plan, [&](const hone::Blob&) {
                     return sections++;
                   }).dump(-1, ' ', false, hone::Json::error_handler_t::replace);
    });
    *json = plan->json.c_str();
  });
}

hone_status hone_plan_create_from_engine(const hone_engine* engine, hone_plan** plan) {
  return guarded([&] {
    require(engine, "engine");
    require(plan, "plan");
    *plan =
        new hone_plan(std::shared_ptr<const hone::Plan>(engine->engine, &engine->engine->plan()), engine->bytes_read);
  });
}

hone_status hone_plan_file_version(const char* path, const char** version) {
  return guarded([&] {
    require(path, "path");
    require(version, "version");
    static thread_local std::string text;
    text = hone::with_note([&] { return fmt::format("reading the plan {}", path); },
                           [&] { return hone::plan_version(path); });
    *version = text.c_str();
  });
}

size_t hone_plan_tensors(const hone_plan* plan) {
  size_t count = 0;
  guarded([&] {
    require(plan, "plan");
    count = plan->plan->io.size();
  });
  return count;
}

hone_status hone_plan_tensor(const hone_plan* plan, size_t index, hone_tensor* tensor) {
  return guarded([&] {
    require(plan, "plan");
    require_index(index, plan->plan->io.size(), "tensor");
    const hone::IoTensor& io = plan->plan->io[index];
    hone::capi::describe(io.name, io.type, io.is_input, hone::is_by_value(plan->plan->io, io.name), tensor);
  });
}

hone_status hone_plan_tensor_details(const hone_plan* plan, size_t index, hone_tensor_details* details) {
  return guarded([&] {
    require(plan, "plan");
    require_index(index, plan->plan->io.size(), "tensor");
    const hone::IoTensor& io = plan->plan->io[index];
    const char* type = plan->texts->kept(fmt::format("type {}", index), [&] { return io.type.text(); });
    const int64_t range[] = {io.range ? io.range->low : 0, io.range ? io.range->high : 0};
    hone::capi::describe_details(type, io.type, details, io.range ? range : nullptr);
  });
}

void hone_plan_destroy(hone_plan* plan) { hone::capi::destroy(plan, "plan"); }

hone_status hone_engine_create(const hone_plan* plan, const hone_device* device, const hone_log* log,
                               hone_engine** engine) {
  return guarded([&] {
    require(plan, "plan");
    require(device, "device");
    require(engine, "engine");
    const hone::Logger logger = hone::capi::logger_for(log);
    const bool as_in_file = plan->plan->weights == hone::WeightStorage::everywhere && !plan->plan->portable;
    hone::capi::on_cores(*device->device, [&] {
      *engine = new hone_engine(hone::capi::load_engine(*plan->plan, *device, logger, hone::capi::program_operators()),
                                as_in_file ? plan->bytes_read : 0);
    });
  });
}

size_t hone_engine_tensors(const hone_engine* engine) {
  size_t count = 0;
  guarded([&] {
    require(engine, "engine");
    count = engine->engine->plan().io.size();
  });
  return count;
}

hone_status hone_engine_tensor(const hone_engine* engine, size_t index, hone_tensor* tensor) {
  return guarded([&] {
    require(engine, "engine");
    const std::vector<hone::IoTensor>& io = engine->engine->plan().io;
    require_index(index, io.size(), "tensor");
    hone::capi::describe(io[index].name, io[index].type, io[index].is_input, engine->engine->by_value(io[index].name),
                         tensor);
  });
}

size_t hone_engine_profiles(const hone_engine* engine) {
  size_t count = 0;
  guarded([&] {
    require(engine, "engine");
    count = engine->engine->plan().profiles.size();
  });
  return count;
}

hone_status hone_engine_memory_bytes(const hone_engine* engine, int profile, int64_t* bytes) {
  return guarded([&] {
    require(engine, "engine");
    require(bytes, "bytes");
    const std::vector<hone::Profile>& profiles = engine->engine->plan().profiles;
    require_index(static_cast<size_t>(profile), profiles.size(), "profile");
    *bytes = profiles[static_cast<size_t>(profile)].arena_bytes;
  });
}

void hone_engine_destroy(hone_engine* engine) { hone::capi::destroy(engine, "engine"); }
