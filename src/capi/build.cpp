// SPDX-License-Identifier: Apache-2.0
//
// The C interface's build side: options, models, and the build with its timing cache.
#include "builder/build.h"

#include <algorithm>
#include <filesystem>

#include "base/error_text.h"
#include "builder/events/log_lines.h"
#include "builder/refit/refit.h"
#include "capi/build_handles.h"
#include "capi/guard.h"
#include "capi/handles.h"
#include "capi/log.h"
#include "capi/operators/operators.h"
#include "capi/progress.h"
#include "capi/ranks.h"
#include "capi/tensor.h"
#include "group/process_group.h"
#include "group/work.h"
#include "onnx/importer.h"
#include "precision/choose.h"

using hone::capi::divided;
using hone::capi::guarded;
using hone::capi::logger_for;
using hone::capi::require;

namespace {

bool keeps_cache(const hone::BuildOptions& options) {
  return options.use_timing_cache && !options.timing_cache_file.empty();
}

hone::TimingCache read_cache(const hone::BuildOptions& options, const hone::Logger& log) {
  const std::string& path = options.timing_cache_file;
  if (!keeps_cache(options)) return {};
  if (!std::filesystem::exists(path)) {
    log.warning("Could not read timing cache from: {}. A new timing cache will be generated and written.", path);
    return {};
  }
  size_t bytes = 0, skipped = 0;
  try {
    hone::TimingCache cache = hone::load_timing_cache(path, &bytes, &skipped);
    log.info("Loaded {} bytes of timing cache from {}", bytes, path);
    if (skipped > 0)
      log.warning("{} lines of the timing cache {} are damaged or of another version; they are left out", skipped,
                  path);
    return cache;
  } catch (const hone::Error& error) {
    log.warning("Could not read timing cache from: {}. A new timing cache will be generated and written. ({})", path,
                error.message());
    return {};
  }
}

/// A cache that cannot be written costs time later, not the plan that was made.
void write_cache(const hone::TimingCache& cache, const hone::BuildOptions& options, const hone::Logger& log) {
  const std::string& path = options.timing_cache_file;
  if (!keeps_cache(options)) return;
  try {
    std::error_code status;
    if (const auto bytes = std::filesystem::file_size(path, status); !status)
      log.info("Loaded {} bytes of timing cache from {}", bytes, path);
    log.info("Saved {} bytes of timing cache to {}", hone::save_timing_cache(cache, path), path);
  } catch (const hone::Error& error) {
    log.warning("Could not write timing cache to: {} ({})", path, error.message());
  }
}

/// Formats by name as the builder takes them: one for each tensor.
void name_formats(const hone::Graph& graph, std::map<std::string, hone::IoFormat> named, hone::BuildOptions& options) {
  const auto fill = [&](const std::vector<hone::Value*>& values, std::vector<hone::IoFormat>& formats) {
    if (std::ranges::none_of(values, [&](const hone::Value* value) { return named.contains(value->name); })) return;
    if (formats.size() == 1) formats.resize(values.size(), formats[0]);
    if (formats.empty()) formats.resize(values.size(), {.dtype = std::nullopt, .layout = hone::Layout::linear});
    for (size_t i = 0; i < std::min(values.size(), formats.size()); ++i)
      if (const auto at = named.find(values[i]->name); at != named.end()) {
        formats[i] = at->second;
        named.erase(at);
      }
  };
  fill(graph.inputs(), options.input_formats);
  fill(graph.outputs(), options.output_formats);
  if (!named.empty())
    throw hone::Error(
        fmt::format("the model has no input or output called {}, which was given a format", named.begin()->first),
        "hone_options_set_format() takes names of inputs and outputs");
}

/// Of the ranks that the network is divided over; null where it is not, or this process is alone.
std::shared_ptr<hone::Group> group_of(const hone_model& model) {
  std::shared_ptr<hone::Group> group = divided(model) ? hone::process_group() : nullptr;
  return group && group->size() > 1 ? group : nullptr;
}

/// Rank 0 chooses by its cache and its clock; the others choose by the same times, and so the same.
hone::Plan build_together(hone::Group& group, hone::TimingCache& cache, const std::function<hone::Plan()>& build) {
  std::optional<hone::Plan> plan;
  const std::string times = hone::first_works(group, [&] {
    plan = build();
    return cache.text();
  });
  hone::all_work(group, [&] {
    if (plan) return;
    cache = hone::TimingCache::parse(times);
    plan = build();
  });
  return std::move(*plan);
}

using Notes = std::map<std::string, std::string>;

/// The plan as the caller sees it: with the program's notes; nodes that nothing depends on are dead, not folded.
hone_plan* finished(hone::Plan plan, const hone_model& model, const Notes& notes) {
  plan.meta.notes = notes;
  std::erase_if(plan.folded, [&](const hone::FoldedNode& folded) {
    return std::ranges::find(model.live, folded.node) == model.live.end();
  });
  if (plan.refit) {
    plan.refit->live = model.live;
    plan.refit->folded = model.folded;
    plan.refit->consumed = model.consumed;
  }
  return new hone_plan(std::move(plan));
}

}  // namespace

hone_status hone_model_create_from_file(const char* onnx_path, const hone_log* log, hone_model** model) {
  return guarded([&] {
    require(onnx_path, "onnx_path");
    require(model, "model");
    hone::ImportedModel imported = hone::import_onnx(onnx_path, logger_for(log), hone::capi::program_operators());
    *model = new hone_model(std::move(imported));
  });
}

hone_status hone_model_create_from_memory(const void* bytes, size_t size, const char* folder, const hone_log* log,
                                          hone_model** model) {
  return guarded([&] {
    require(bytes, "bytes");
    require(model, "model");
    const hone::Blob copy = hone::Blob::copy(std::span(static_cast<const std::byte*>(bytes), size));
    hone::ImportedModel imported = hone::import_onnx_bytes(copy, logger_for(log), folder == nullptr ? "" : folder,
                                                           hone::capi::program_operators());
    *model = new hone_model(std::move(imported));
  });
}

size_t hone_model_tensors(const hone_model* model) {
  size_t count = 0;
  guarded([&] {
    require(model, "model");
    count = model->graph.inputs().size() + model->graph.outputs().size();
  });
  return count;
}

hone_status hone_model_tensor(const hone_model* model, size_t index, hone_tensor* tensor) {
  return guarded([&] {
    require(model, "model");
    hone::capi::require_index(index, hone_model_tensors(model), "tensor");
    const size_t inputs = model->graph.inputs().size();
    const hone::Value* value = index < inputs ? model->graph.inputs()[index] : model->graph.outputs()[index - inputs];
    hone::capi::describe(value->name, value->type, index < inputs, tensor);
  });
}

hone_status hone_model_tensor_details(const hone_model* model, size_t index, hone_tensor_details* details) {
  return guarded([&] {
    require(model, "model");
    hone::capi::require_index(index, hone_model_tensors(model), "tensor");
    const size_t inputs = model->graph.inputs().size();
    const hone::Value* value = index < inputs ? model->graph.inputs()[index] : model->graph.outputs()[index - inputs];
    const char* type = model->texts->kept(std::to_string(index), [&] { return value->type.text(); });
    hone::capi::describe_details(type, value->type, details);
  });
}

void hone_model_destroy(hone_model* model) { hone::capi::destroy(model, "model"); }

hone_status hone_plan_create_from_model(const hone_model* model, const hone_device* device, const hone_options* options,
                                        const hone_log* log, hone_plan** plan) {
  return guarded([&] {
    require(model, "model");
    require(device, "device");
    require(plan, "plan");
    if (options != nullptr) require(options, "options");
    model->require_whole();
    hone::BuildOptions build_options = options == nullptr ? hone::BuildOptions{} : options->build;
    build_options.folded_by_import = model->folded;
    if (options != nullptr) name_formats(model->graph, options->formats, build_options);
    const hone::Logger logger = logger_for(log);
    hone::LogLines lines(logger);
    hone::capi::ProgressTree progress(options == nullptr ? hone_progress{} : options->progress);
    if (options != nullptr && !build_options.stop) build_options.stop = [&progress] { return progress.stops(); };
    hone::capi::BestSoFar best(options == nullptr ? nullptr : options->timed,
                               options == nullptr ? nullptr : options->timed_user);
    const auto listeners = hone::Listeners{&lines}.with(&progress).with(&best);
    hone::TimingCache cache = read_cache(build_options, logger);
    if (options != nullptr && options->cache) cache.merge(*options->cache);
    const auto build = [&] {
      return build_options.best ? hone::choose_precision(model->graph, build_options, *device->backend, device->device,
                                                         cache, listeners, options->sample)
                                : hone::build(model->graph.clone(), build_options, *device->backend, *device->device,
                                              cache, listeners);
    };
    const std::shared_ptr<hone::Group> group = group_of(*model);
    hone::capi::on_cores(*device->device, [&] {
      hone::Plan built = group ? build_together(*group, cache, build) : build();
      *plan = finished(std::move(built), *model, options == nullptr ? Notes() : options->notes);
    });
    progress.finish();
    if (!group || group->rank() == 0) write_cache(cache, build_options, logger);
    if (options != nullptr && options->cache) options->cache->merge(cache);
  });
}

hone_status hone_plan_create_from_refit(const hone_plan* plan, const hone_model* model, const hone_device* device,
                                        const hone_log* log, hone_plan** refitted) {
  return guarded([&] {
    require(plan, "plan");
    require(model, "model");
    require(device, "device");
    require(refitted, "refitted");
    model->require_whole();
    const hone::Logger logger = logger_for(log);
    hone::LogLines lines(logger);
    hone::Plan other =
        hone::refit(*plan->plan, model->graph.clone(), model->folded, *device->backend, *device->device, {&lines});
    other.throughput = plan->plan->throughput;
    *refitted = finished(std::move(other), *model, plan->plan->meta.notes);
  });
}
