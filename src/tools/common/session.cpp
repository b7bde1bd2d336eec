// SPDX-License-Identifier: Apache-2.0
//
// Milestones and their log lines in the order of the original; times are those of one step each.
#include "tools/common/session.h"

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/env.h"
#include "base/text.h"
#include "tools/common/interrupt.h"
#include "tools/common/model_shapes.h"
#include "tools/common/watcher.h"
#include "tools/files/rank_files.h"
#include "tools/model/prepare.h"
#include "tools/trtexec/layer_types.h"
#include "tools/trtexec/memory_usage.h"

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

}  // namespace

Owned<hone_device> make_device(const std::string& name, int workers) {
  const auto open = [](const std::string& device, int threads) {
    const hone_device_options options{.size = sizeof(hone_device_options), .workers = threads};
    return make<hone_device>(hone_device_create, device.c_str(), &options);
  };
  const hone_rank rank = this_rank();
  if (rank.local_ranks <= 1 || workers > 0) return open(name, workers);
  // Ranks beside each other: a GPU each, or a share of the cores, where nothing else is said.
  auto device = open(name, 0);
  const hone_device_info info = info_of(device.get());
  if (info.host_accessible == 0)
    return name == "0" && rank.local_rank > 0 ? open(std::to_string(rank.local_rank), 0) : std::move(device);
  const bool told = name.find_first_of("@/") != std::string::npos || env_text("HONE_THREADS");
  return told ? std::move(device) : open(name, std::max(1, info.workers / rank.local_ranks));
}

Owned<hone_device> device_for_streams(const Options& options) {
  auto device = make_device(options.tool.device);
  const hone_device_info info = info_of(device.get());
  const int streams = options.perf.streams;
  if (streams <= 1 || info.host_accessible == 0 || env_text("HONE_THREADS")) return device;
  return make_device(options.tool.device, std::max(1, info.workers / streams));
}

void Session::build() {
  auto model = import_model(of_rank(options_.tool.onnx), voices_);
  monitor_memory("the import");
  const auto options = prepare_build(*model, *device_, options_, voices_.tool);
  Progress progress;
  const Interrupt interrupt;
  BuildPhases phases(progress.of_build([](void*) { return Interrupt::requested() ? 1 : 0; }));
  const hone_progress told = phases.listener();
  check(hone_options_set_progress(options.get(), &told));
  if (Watcher* watcher = Watcher::of_process())
    check(hone_options_set_timed_function(
        options.get(), [](void* user, const hone_timed* best) { static_cast<Watcher*>(user)->timed(*best); }, watcher));
  voices_.progress = &progress;

  const hone_log log = log_of(voices_);
  const double start = now_ms();
  plan_ = make<hone_plan>(hone_plan_create_from_model, model.get(), device_.get(), options.get(), &log);
  voices_.progress = nullptr;
  progress.clear();
  build_phases_ = phases.take();
  const double built = seconds_since(start);
  interrupted_ = Interrupt::requested();
  monitor_memory("the build");
  save_plan();
  report_layer_types(plan_.get(), options_, voices_.tool);
  voices_.tool.info("Engine built in {:g} sec.", built);
  voices_.tool.info("Created engine with size: {:g} MiB", static_cast<double>(plan_bytes_) / kMiB);
  if (options_.tool.time_refit) model_ = std::move(model);
}

void Session::save_plan() {
  const std::string& asked = options_.tool.save_engine;
  const std::string path = is_divided(plan_.get()) && !asked.empty() ? for_rank(asked) : asked;
  if (path.empty()) {
    plan_bytes_ = static_cast<size_t>(info_of(plan_.get()).file_bytes);
    return;
  }
  check(hone_plan_save(plan_.get(), path.c_str()));
  plan_bytes_ = std::filesystem::file_size(path);
  if (info_of(plan_.get()).saves_weights != 0) plan_ = make<hone_plan>(hone_plan_create_from_file, path.c_str());
  else voices_.tool.info("The plan in {} has no weights; this run goes on with those of the model.", path);
  monitor_memory("saving");
}

void Session::monitor_memory(std::string_view phase) const {
  if (options_.tool.monitor_memory) voices_.tool.info("{}", memory_after(phase));
}

void Session::read() {
  const std::string path = of_rank(options_.tool.load_engine);
  try {
    if (file_.plan == nullptr) file_ = read_plan_file(path);
  } catch (const Error& error) {
    voices_.tool.error("Error opening engine file: {}", path);
    throw;
  }
  plan_ = std::move(file_.plan);
  plan_bytes_ = file_.bytes;
  voices_.tool.info("Engine loaded in {:g} sec.", file_.seconds);
}

void Session::take(const Session& other) {
  const void* bytes = nullptr;
  size_t size = 0;
  check(hone_plan_bytes(other.plan_.get(), &bytes, &size));
  plan_ = make<hone_plan>(hone_plan_create_from_memory, bytes, size);
  plan_bytes_ = other.plan_bytes_;
}

void Session::load() {
  if (plan_ == nullptr) read();
  voices_.engine.info("Loaded engine size: {:.0f} MiB", static_cast<double>(plan_bytes_) / kMiB);
  const MemoryUsage before;
  const double start = now_ms();
  const hone_log log = log_of(voices_);
  engine_ = make<hone_engine>(hone_engine_create, plan_.get(), device_.get(), &log);
  running_plan_ = make<hone_plan>(hone_plan_create_from_engine, engine_.get());
  tensors_ = tensors_of(plan());
  profiles_ = profiles_of(plan());
  const double seconds = seconds_since(start);
  voices_.engine.verbose("Deserialization required {:.0f} microseconds.", seconds * 1e6);
  voices_.engine.info("{}", before.change("Hone-managed allocation in engine deserialization"));
  voices_.tool.info("Engine deserialized in {:g} sec.", seconds);
  for (const PlanProfile& each : profiles_) voices_.tool.info("Precision used: {}", each.precision);
  monitor_memory("loading");
  for (const PlanProfile& each : profiles_)
    if (options_.tool.monitor_memory)
      voices_.tool.info("Activation arena at the profile's largest shapes: {} bytes", each.memory_bytes);
}

void Session::refit() {
  if (!options_.build.refit) return;
  if (options_.report.dump_refit) list_weights();
  if (!options_.tool.refit_from.empty()) refit_from_model();
  if (options_.tool.time_refit) time_refit();
}

void Session::list_weights() const {
  if (info_of(plan_.get()).refittable == 0)
    throw Error("the engine was built with fixed weights", "build it with --refit");
  for (size_t i = 0; i < hone_plan_weights(plan_.get()); ++i) {
    const char *node = nullptr, *role = nullptr;
    check(hone_plan_weight(plan_.get(), i, &node, &role));
    voices_.tool.info("{} {}", node, role);
  }
}

void Session::refit_from_model() {
  const auto model = import_model(options_.tool.refit_from, voices_);
  const hone_log log = log_of(voices_);
  const double start = now_ms();
  plan_ = make<hone_plan>(hone_plan_create_from_refit, plan_.get(), model.get(), device_.get(), &log);
  voices_.tool.info("Engine refitted with the weights of {} in {:g} sec.", options_.tool.refit_from,
                    seconds_since(start));
}

void Session::time_refit() const {
  constexpr int kTimed = 10;
  if (model_ == nullptr) {
    voices_.tool.info("Network not available, skipped timing refit.");
    return;
  }
  const auto refit_once = [&] {
    const auto plan = make<hone_plan>(hone_plan_create_from_refit, plan_.get(), model_.get(), device_.get(), nullptr);
    make<hone_engine>(hone_engine_create, plan.get(), device_.get(), nullptr);
  };
  refit_once();
  const double start = now_ms();
  for (int i = 0; i < kTimed; ++i) refit_once();
  voices_.tool.info("Engine refitted in {:g} ms.", (now_ms() - start) / kTimed);
}

double Session::time_load() const {
  const double start = now_ms();
  const std::string file =
      of_rank(!options_.tool.load_engine.empty() ? options_.tool.load_engine : options_.tool.save_engine);
  if (!file.empty()) {
    const auto plan = make<hone_plan>(hone_plan_create_from_file, file.c_str());
    const auto engine = make<hone_engine>(hone_engine_create, plan.get(), device_.get(), nullptr);
  } else {
    const void* bytes = nullptr;
    size_t size = 0;
    check(hone_plan_bytes(plan_.get(), &bytes, &size));
    const auto plan = make<hone_plan>(hone_plan_create_from_memory, bytes, size);
    const auto engine = make<hone_engine>(hone_engine_create, plan.get(), device_.get(), nullptr);
  }
  return now_ms() - start;
}

int Session::profile() const {
  const int wanted = options_.tool.use_profile, count = static_cast<int>(profiles_.size());
  if (wanted < 0 || wanted >= count)
    throw Error(fmt::format("Selected profile index {} exceeds the number of profiles, {}", wanted, count),
                "--useProfile counts from 0");
  return wanted;
}

InputShapes Session::run_shapes() const {
  return engine_shapes(tensors_, profiles_[static_cast<size_t>(profile())], options_.tool.shapes,
                       options_.tool.shape_arguments, options_.tool.load_engine.empty(), voices_.tool);
}

}  // namespace hone
