// SPDX-License-Identifier: Apache-2.0
//
// Milestones and their log lines in the order of the original; times are those of one step each.
#include "tools/session.h"

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/text.h"
#include "plan/size.h"
#include "report/precision.h"
#include "tools/interrupt.h"
#include "tools/layer_flags.h"
#include "tools/memory_usage.h"
#include "tools/model_shapes.h"

namespace hone {
namespace {

constexpr double kMiB = 1 << 20;

void write_line(void* logger, hone_severity severity, const char* text) {
  static_cast<const Logger*>(logger)->write(static_cast<Severity>(severity), text);
}

/// The engine's voice as the C interface takes it.
hone_log log_of(const Voices& voices) {
  return {write_line, const_cast<Logger*>(&voices.engine), static_cast<hone_severity>(voices.engine.threshold())};
}

Owned<hone_model> import_model(const std::string& path, const Voices& voices) {
  voices.tool.info("Start parsing network model.");
  const double start = now_ms();
  const auto finished = [&] {
    voices.tool.info("Finished parsing network model. Parse time: {:g}", seconds_since(start));
  };
  try {
    const hone_log log = log_of(voices);
    auto model = make<hone_model>(hone_model_import, path.c_str(), &log);
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
void explain_precision(const BuildOptions& options, std::string_view backend, const Logger& log) {
  if (backend != "cpu" || !(options.fp16 || options.bf16 || options.int8)) return;
  log.warning("Reduced precision is allowed, not required: the CPU device has FP32 kernels, and these are used.");
}

}  // namespace

void Session::build() {
  const auto model = import_model(options_.tool.onnx, voices_);
  check_layer_flags(model->graph, options_.tool, voices_.tool);
  hone_options options{options_.build};
  options.build.profiles =
      model_profiles(model->graph, options_.build.profiles, options_.tool.shape_arguments, voices_.tool);
  explain_precision(options.build, device_.backend->name, voices_.tool);

  Progress progress;
  options.build.progress = [&](size_t done, size_t total) { progress.update(done, total); };
  const Interrupt interrupt;
  options.build.stop = Interrupt::requested;
  voices_.progress = &progress;

  const hone_log log = log_of(voices_);
  const double start = now_ms();
  plan_ = make<hone_plan>(hone_build, model.get(), &device_, &options, &log);
  voices_.progress = nullptr;
  progress.clear();
  const double built = seconds_since(start);
  interrupted_ = Interrupt::requested();

  if (!options_.tool.save_engine.empty()) {
    check(hone_plan_save(plan_.get(), options_.tool.save_engine.c_str()));
    plan_ = make<hone_plan>(hone_plan_load, options_.tool.save_engine.c_str());
    plan_bytes_ = std::filesystem::file_size(options_.tool.save_engine);
  } else {
    plan_bytes_ = plan_file_bytes(*plan_->plan);
  }
  voices_.tool.info("Engine built in {:g} sec.", built);
  voices_.tool.info("Created engine with size: {:g} MiB", static_cast<double>(plan_bytes_) / kMiB);
}

void Session::read_plan() {
  const std::string& path = options_.tool.load_engine;
  const double start = now_ms();
  try {
    plan_ = make<hone_plan>(hone_plan_load, path.c_str());
    plan_bytes_ = std::filesystem::file_size(path);
  } catch (const Error& error) {
    voices_.tool.error("Error opening engine file: {}", path);
    throw;
  }
  voices_.tool.info("Engine loaded in {:g} sec.", seconds_since(start));
}

void Session::load() {
  if (!options_.tool.load_engine.empty()) read_plan();
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
}

double Session::time_load() const {
  const double start = now_ms();
  const auto& file = !options_.tool.load_engine.empty() ? options_.tool.load_engine : options_.tool.save_engine;
  if (!file.empty()) {
    const auto plan = make<hone_plan>(hone_plan_load, file.c_str());
    const auto engine =
        make<hone_engine>(hone_engine_create, plan.get(), &device_, static_cast<const hone_log*>(nullptr));
  } else {
    const void* bytes = nullptr;
    size_t size = 0;
    check(hone_plan_bytes(plan_.get(), &bytes, &size));
    const auto plan = make<hone_plan>(hone_plan_parse, bytes, size);
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
