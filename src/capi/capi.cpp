// SPDX-License-Identifier: Apache-2.0
//
// The C interface over everything else: the only place where exceptions become status codes.
#include <algorithm>
#include <cstring>

#include "backends/all.h"
#include "base/file.h"
#include "base/version.h"
#include "builder/build.h"
#include "hone/hone.h"
#include "onnx/importer.h"
#include "options/parse.h"
#include "plan/json.h"
#include "runtime/engine.h"

struct hone_plan {
  std::shared_ptr<const hone::Plan> plan;
  std::string json;
};
struct hone_engine {
  std::shared_ptr<const hone::Engine> engine;
};
struct hone_context {
  std::unique_ptr<hone::ExecutionContext> context;
  std::unique_ptr<hone::Stream> stream;
};

namespace {

thread_local std::string last_error;

template <typename Body>
hone_status guarded(Body&& body) {
  try {
    body();
    return HONE_OK;
  } catch (const hone::InternalError& error) {
    last_error = error.what();
    return HONE_INTERNAL;
  } catch (const hone::Error& error) {
    last_error = error.what();
    return HONE_ERROR;
  } catch (const std::bad_alloc&) {
    last_error = "out of memory\n  hint: a smaller batch or --memPoolSize=workspace:<MiB> needs less";
    return HONE_ERROR;
  } catch (const std::exception& error) {
    last_error = std::string("internal error: ") + error.what();
    return HONE_INTERNAL;
  } catch (...) {
    last_error = "internal error of an unknown kind";
    return HONE_INTERNAL;
  }
}

void require(const void* pointer, const char* what) { HONE_CHECK(pointer != nullptr, "{} is NULL", what); }

struct OpenedDevice {
  const hone::Backend* backend;
  std::shared_ptr<hone::Device> device;
};

OpenedDevice open_device(std::string_view name) {
  const hone::Backend* backend = hone::find_backend(name);
  if (backend == nullptr) throw hone::Error(fmt::format("there is no device called '{}'", name), "this build has 'cpu'");
  return {backend, std::shared_ptr<hone::Device>(backend->open(0))};
}

hone::Logger logger_for(hone_log_fn log, void* user) {
  if (log == nullptr) return hone::Logger([](hone::Severity, std::string_view) {});
  hone::Logger logger([log, user](hone::Severity severity, std::string_view text) { log(user, static_cast<hone_severity>(severity), std::string(text).c_str()); });
  logger.set_threshold(hone::Severity::verbose);
  return logger;
}

hone::BuildOptions build_options(const char* const* arguments, size_t count) {
  std::vector<std::string> texts{"--onnx=model"};
  for (size_t i = 0; i < count; ++i) texts.emplace_back(arguments[i]);
  hone::CommandLine line = hone::parse_command_line(texts);
  if (!line.errors.empty()) throw hone::Error(line.errors.front(), "arguments are those of trtexec, see --help");
  return std::move(line.options.build);
}

/// Reads and writes the timing cache around a build, as the command line does.
hone::Plan build_with_cache(hone::Graph graph, const hone::BuildOptions& options, const OpenedDevice& device, const hone::Logger& log) {
  hone::TimingCache cache;
  const bool stored = options.use_timing_cache && !options.timing_cache_file.empty();
  try {
    if (stored) cache = hone::load_timing_cache(options.timing_cache_file);
  } catch (const hone::Error& error) {
    log.warning("Could not read timing cache from: {} ({})", options.timing_cache_file, error.message());
  }
  hone::Plan plan = hone::build(std::move(graph), options, *device.backend, *device.device, cache, log);
  if (stored) hone::save_timing_cache(cache, options.timing_cache_file);
  return plan;
}

void copy_dims(const hone::Dims& dims, int64_t* out, int* rank) {
  HONE_CHECK(dims.size() <= HONE_MAX_RANK, "a tensor has rank {}", dims.size());
  std::copy(dims.begin(), dims.end(), out);
  *rank = static_cast<int>(dims.size());
}

struct LayerCallback : hone::Profiler {
  hone_layer_fn function;
  void* user;
  void layer(const hone::Step& step, double milliseconds) override { function(user, step.name.c_str(), milliseconds); }
};

}  // namespace

const char* hone_version(void) { return hone::kVersion; }
const char* hone_last_error(void) { return last_error.c_str(); }

hone_status hone_build(const char* onnx_path, const char* const* arguments, size_t count, hone_log_fn log, void* user, hone_plan** plan) {
  return guarded([&] {
    require(onnx_path, "onnx_path");
    require(plan, "plan");
    const hone::BuildOptions options = build_options(arguments, count);
    const hone::Logger logger = logger_for(log, user);
    const OpenedDevice device = open_device("cpu");
    hone::Graph graph = hone::import_onnx(onnx_path, logger).graph;
    *plan = new hone_plan{std::make_shared<const hone::Plan>(build_with_cache(std::move(graph), options, device, logger)), {}};
  });
}

hone_status hone_plan_load(const char* path, hone_plan** plan) {
  return guarded([&] {
    require(path, "path");
    require(plan, "plan");
    *plan = new hone_plan{std::make_shared<const hone::Plan>(hone::load_plan_file(path)), {}};
  });
}

hone_status hone_plan_save(const hone_plan* plan, const char* path) {
  return guarded([&] {
    require(plan, "plan");
    require(path, "path");
    hone::save_plan_file(*plan->plan, path);
  });
}

hone_status hone_plan_json(hone_plan* plan, const char** json) {
  return guarded([&] {
    require(plan, "plan");
    require(json, "json");
    if (plan->json.empty()) {
      int64_t sections = 0;
      plan->json = hone::manifest_of(*plan->plan, [&](const hone::Blob&) { return sections++; }).dump(-1, ' ', false, hone::Json::error_handler_t::replace);
    }
    *json = plan->json.c_str();
  });
}

void hone_plan_destroy(hone_plan* plan) { delete plan; }

hone_status hone_engine_create(const hone_plan* plan, const char* device, hone_engine** engine) {
  return guarded([&] {
    require(plan, "plan");
    require(engine, "engine");
    OpenedDevice opened = open_device(device == nullptr ? "cpu" : device);
    *engine = new hone_engine{hone::Engine::load(*plan->plan, *opened.backend, std::move(opened.device))};
  });
}

size_t hone_engine_tensors(const hone_engine* engine) { return engine == nullptr ? 0 : engine->engine->plan().io.size(); }

hone_status hone_engine_tensor(const hone_engine* engine, size_t index, hone_tensor* tensor) {
  return guarded([&] {
    require(engine, "engine");
    require(tensor, "tensor");
    const std::vector<hone::IoTensor>& io = engine->engine->plan().io;
    HONE_CHECK(index < io.size(), "tensor {} is asked for, the engine has {}", index, io.size());
    const hone::IoTensor& source = io[index];
    hone::Dims dims;
    for (const hone::Dim& dim : source.type.shape) dims.push_back(dim.is_constant() ? dim.value() : -1);
    *tensor = {.name = source.name.c_str(), .dtype = static_cast<hone_dtype>(source.type.dtype), .is_input = source.is_input, .rank = 0, .dims = {}};
    copy_dims(dims, tensor->dims, &tensor->rank);
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
    context->context->bind(tensor, memory);
  });
}

hone_status hone_context_run(hone_context* context) {
  return guarded([&] {
    require(context, "context");
    context->context->enqueue(*context->stream);
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
    if (status != HONE_OK) throw hone::Error(last_error);
  });
}

void hone_context_destroy(hone_context* context) { delete context; }
