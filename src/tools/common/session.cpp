// SPDX-License-Identifier: Apache-2.0
//
// Milestones and their log lines in the order of the original; times are those of one step each.
#include "tools/common/session.h"

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/env.h"
#include "base/text.h"
#include "plan/size.h"
#include "report/precision.h"
#include "tools/common/calibration.h"
#include "tools/common/interrupt.h"
#include "tools/common/model_shapes.h"
#include "tools/common/operator_libraries.h"
#include "tools/trtexec/layer_flags.h"
#include "tools/trtexec/memory_usage.h"
#include "tools/trtexec/sparsity.h"

namespace hone {
namespace {

constexpr double kMiB = 1 << 20;

void write_line(void* logger, hone_severity severity, const char* text) {
  static_cast<const Logger*>(logger)->write(static_cast<Severity>(severity), text);
}

/// The engine's voice as the C interface takes it.
hone_log log_of(const Voices& voices) {
  return {.size = sizeof(hone_log),
          .threshold = static_cast<hone_severity>(voices.engine.threshold()),
          .write = write_line,
          .user = const_cast<Logger*>(&voices.engine)};
}

Owned<hone_model> import_model(const std::string& path, const Voices& voices) {
  voices.tool.info("Start parsing network model.");
  const double start = now_ms();
  const auto finished = [&] {
    voices.tool.info("Finished parsing network model. Parse time: {:g}", seconds_since(start));
  };
  try {
    const hone_log log = log_of(voices);
    auto model = make<hone_model>(hone_model_create_from_file, path.c_str(), &log);
    finished();
    return model;
  } catch (const Error& error) {
    voices.tool.error("{}", error.what());
    voices.tool.error("Failed to parse onnx file");
    finished();
    throw Error("Parsing model failed");
  }
}

/// What the device cannot compute in is said once; allowing it is no error.
void explain_precision(const BuildOptions& options, const DeviceInfo& device, std::string_view backend,
                       const Logger& log) {
  if (options.best || backend != "cpu" || !(options.fp16 || options.bf16 || options.int8)) return;
  if (options.int8 && device.byte_matmuls && !(options.fp16 || options.bf16)) return;
  if (options.bf16 && device.bf16_matmuls)
    return log.info(
        "Convolutions and what stands between them are BF16, other matmuls may round their operands to it; sums and "
        "everything else are FP32.");
  const bool halves = options.fp16 || options.bf16;
  log.warning("Reduced precision is allowed, not required: {}",
              halves ? "small-batch matmuls may keep their weights in 16 bits; this CPU computes in FP32."
                     : "the CPU device has FP32 kernels, and these are used.");
}

/// Whether any tensor or weight of the model is of such a type.
bool has_tensor(const Graph& graph, bool (*is_of)(DType)) {
  const auto fits = [&](const Value* value) { return value != nullptr && is_of(value->type.dtype); };
  return std::ranges::any_of(graph.inputs(), fits) || std::ranges::any_of(graph.nodes(), [&](const Node* node) {
           return std::ranges::any_of(node->inputs, fits) || std::ranges::any_of(node->outputs, fits);
         });
}

/// FP8 and INT4 are the model's: nothing is rounded to them here.
void explain_small_types(const Graph& graph, const ToolOptions& tool, const Logger& log) {
  const auto is_fp8 = [](DType type) { return type >= DType::f8e4m3fn && type <= DType::f8e5m2fnuz; };
  const auto is_int4 = [](DType type) { return type == DType::i4 || type == DType::u4; };
  if (tool.fp8 && has_tensor(graph, is_fp8))
    log.info("FP8: tensors of the model in float8 stay so; products of them are computed in FP32, as the model says.");
  else if (tool.fp8)
    log.warning(
        "--fp8: the model has no float8 tensors, so nothing is computed in FP8. hone quantize {} -o OUT.onnx --mode "
        "fp8 "
        "--data=... makes some.",
        tool.onnx);
  if (tool.int4 && has_tensor(graph, is_int4)) log.info("INT4: weights of the model in 4 bits stay so.");
  else if (tool.int4)
    log.warning(
        "--int4: the model has no weights in 4 bits, so none are used. hone quantize {} -o OUT.onnx --mode int4 makes "
        "them.",
        tool.onnx);
}

/// With prefer a type is given where a device gains by it; that it does not is said once.
void explain_preferences(const ToolOptions& tool, const DeviceInfo& device, const Logger& log) {
  if (tool.precision_constraints != "prefer" || device.half_networks) return;
  for (const std::string_view type : {"fp16", "bf16"}) {
    const bool asked =
        std::ranges::any_of(tool.layer_precisions, [&](const auto& entry) { return entry.second == type; });
    if (asked && !(type == "bf16" && device.bf16_matmuls))
      log.warning(
          "--layerPrecisions prefers {} for some layers, and this device has no kernels in it: they are computed in "
          "FP32. --precisionConstraints=obey rounds what they read and give to it.",
          type);
  }
}

}  // namespace

OpenDevice device_for_streams(const Options& options) {
  OpenDevice opened = open_device(options.tool.device);
  const int streams = options.perf.streams;
  if (streams <= 1 || !opened.device->host_accessible() || env_text("HONE_THREADS")) return opened;
  DeviceChoice choice;
  choice.workers = std::max(1, opened.device->info().workers / streams);
  return open_device(options.tool.device, choice);
}

void Session::build() {
  open_operator_libraries(options_.tool, voices_.tool);
  auto model = import_model(options_.tool.onnx, voices_);
  monitor_memory("the import");
  check_layer_flags(model->graph, options_, voices_.tool);
  apply_sparsity(model->graph, options_.tool.sparsity, voices_.tool);
  hone_options options;
  options.build = options_.build;
  options.build.profiles =
      model_profiles(model->graph, options_.build.profiles, options_.tool.shape_arguments, voices_.tool);
  calibrate(*model, device_, options_.tool, options.build, voices_.tool);
  if (options.build.best && !options_.tool.calibration_data.empty())
    options.sample = DataSet(options_.tool.calibration_data, model->graph).values(0);
  explain_precision(options.build, device_.device->info(), device_.backend->name, voices_.tool);
  explain_small_types(model->graph, options_.tool, voices_.tool);
  explain_preferences(options_.tool, device_.device->info(), voices_.tool);

  Progress progress;
  options.listener = &progress;
  const Interrupt interrupt;
  options.build.stop = Interrupt::requested;
  voices_.progress = &progress;

  const hone_log log = log_of(voices_);
  const double start = now_ms();
  plan_ = make<hone_plan>(hone_plan_create_from_model, model.get(), &device_, &options, &log);
  voices_.progress = nullptr;
  progress.clear();
  const double built = seconds_since(start);
  interrupted_ = Interrupt::requested();
  monitor_memory("the build");
  save_plan();
  report_layer_types(*plan_->plan, options_, voices_.tool);
  voices_.tool.info("Engine built in {:g} sec.", built);
  voices_.tool.info("Created engine with size: {:g} MiB", static_cast<double>(plan_bytes_) / kMiB);
  if (options_.tool.time_refit) model_ = std::move(model);
}

void Session::save_plan() {
  const std::string& path = options_.tool.save_engine;
  if (path.empty()) {
    plan_bytes_ = plan_file_bytes(*plan_->plan);
    return;
  }
  check(hone_plan_save(plan_.get(), path.c_str()));
  plan_bytes_ = std::filesystem::file_size(path);
  if (plan_->plan->weights == WeightStorage::everywhere)
    plan_ = make<hone_plan>(hone_plan_create_from_file, path.c_str());
  else voices_.tool.info("The plan in {} has no weights; this run goes on with those of the model.", path);
  monitor_memory("saving");
}

void Session::monitor_memory(std::string_view phase) const {
  if (options_.tool.monitor_memory) voices_.tool.info("{}", memory_after(phase));
}

void Session::read() {
  open_operator_libraries(options_.tool, voices_.tool);
  const std::string& path = options_.tool.load_engine;
  const double start = now_ms();
  try {
    plan_ = make<hone_plan>(hone_plan_create_from_file, path.c_str());
    plan_bytes_ = std::filesystem::file_size(path);
  } catch (const Error& error) {
    voices_.tool.error("Error opening engine file: {}", path);
    throw;
  }
  voices_.tool.info("Engine loaded in {:g} sec.", seconds_since(start));
}

void Session::load() {
  if (plan_ == nullptr) read();
  voices_.engine.info("Loaded engine size: {:.0f} MiB", static_cast<double>(plan_bytes_) / kMiB);
  const MemoryUsage before;
  const double start = now_ms();
  const hone_log log = log_of(voices_);
  engine_ = make<hone_engine>(hone_engine_create, plan_.get(), &device_, &log);
  const double seconds = seconds_since(start);
  voices_.engine.verbose("Deserialization required {:.0f} microseconds.", seconds * 1e6);
  voices_.engine.info("{}", before.change("Hone-managed allocation in engine deserialization"));
  voices_.tool.info("Engine deserialized in {:g} sec.", seconds);
  for (const Profile& engine_profile : plan().profiles)
    voices_.tool.info("Precision used: {}", precision_text(engine_profile));
  monitor_memory("loading");
  for (const Profile& engine_profile : plan().profiles)
    if (options_.tool.monitor_memory)
      voices_.tool.info("Activation arena at the profile's largest shapes: {} bytes", engine_profile.arena_bytes);
}

void Session::refit() {
  if (!options_.build.refit) return;
  if (options_.report.dump_refit) list_weights();
  if (!options_.tool.refit_from.empty()) refit_from_model();
  if (options_.tool.time_refit) time_refit();
}

void Session::list_weights() const {
  if (!plan_->plan->refit) throw Error("the engine was built with fixed weights", "build it with --refit");
  for (const RefitWeight& weight : plan_->plan->refit->list) voices_.tool.info("{} {}", weight.layer, weight.role);
}

void Session::refit_from_model() {
  const auto model = import_model(options_.tool.refit_from, voices_);
  const hone_log log = log_of(voices_);
  const double start = now_ms();
  plan_ = make<hone_plan>(hone_plan_create_from_refit, static_cast<const hone_plan*>(plan_.get()),
                          static_cast<const hone_model*>(model.get()), &device_, &log);
  voices_.tool.info("Engine refitted with the weights of {} in {:g} sec.", options_.tool.refit_from,
                    seconds_since(start));
}

void Session::time_refit() const {
  constexpr int kTimed = 10;
  if (model_ == nullptr) {
    voices_.tool.info("Network not available, skipped timing refit.");
    return;
  }
  const hone_log* const quiet = nullptr;
  const auto refit_once = [&] {
    const auto plan = make<hone_plan>(hone_plan_create_from_refit, static_cast<const hone_plan*>(plan_.get()),
                                      static_cast<const hone_model*>(model_.get()), &device_, quiet);
    make<hone_engine>(hone_engine_create, static_cast<const hone_plan*>(plan.get()), &device_, quiet);
  };
  refit_once();
  const double start = now_ms();
  for (int i = 0; i < kTimed; ++i) refit_once();
  voices_.tool.info("Engine refitted in {:g} ms.", (now_ms() - start) / kTimed);
}

double Session::time_load() const {
  const double start = now_ms();
  const auto& file = !options_.tool.load_engine.empty() ? options_.tool.load_engine : options_.tool.save_engine;
  if (!file.empty()) {
    const auto plan = make<hone_plan>(hone_plan_create_from_file, file.c_str());
    const auto engine =
        make<hone_engine>(hone_engine_create, plan.get(), &device_, static_cast<const hone_log*>(nullptr));
  } else {
    const void* bytes = nullptr;
    size_t size = 0;
    check(hone_plan_bytes(plan_.get(), &bytes, &size));
    const auto plan = make<hone_plan>(hone_plan_create_from_memory, bytes, size);
    const auto engine =
        make<hone_engine>(hone_engine_create, plan.get(), &device_, static_cast<const hone_log*>(nullptr));
  }
  return now_ms() - start;
}

int Session::profile() const {
  const int wanted = options_.tool.use_profile, count = static_cast<int>(plan().profiles.size());
  if (wanted < 0 || wanted >= count)
    throw Error(fmt::format("Selected profile index {} exceeds the number of profiles, {}", wanted, count),
                "--useProfile counts from 0");
  return wanted;
}

InputShapes Session::run_shapes() const {
  const ShapeMap& asked = options_.tool.shapes;
  const bool built = options_.tool.load_engine.empty();
  return engine_shapes(plan(), static_cast<size_t>(profile()), asked, options_.tool.shape_arguments, built,
                       voices_.tool);
}

}  // namespace hone
