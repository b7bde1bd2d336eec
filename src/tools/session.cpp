// SPDX-License-Identifier: Apache-2.0
//
// Milestones and their log lines in the order of the original; times are those of one step each.
#include "tools/session.h"

#include <algorithm>
#include <filesystem>

#include "backends/all.h"
#include "base/file.h"
#include "base/text.h"
#include "builder/build.h"
#include "onnx/importer.h"
#include "perf/benchmark.h"
#include "tools/memory_usage.h"
#include "tools/model_shapes.h"

namespace hone {
namespace {

constexpr double kMiB = 1 << 20;

double seconds_since(double start_ms) { return (now_ms() - start_ms) / 1000; }

Graph import_model(const std::string& path, const Voices& voices) {
  voices.tool.info("Start parsing network model.");
  const double start = now_ms();
  const auto finished = [&] { voices.tool.info("Finished parsing network model. Parse time: {:g}", seconds_since(start)); };
  try {
    ImportedModel model = import_onnx(path, voices.engine);
    finished();
    return std::move(model.graph);
  } catch (const Error& error) {
    voices.tool.error("{}", error.what());
    voices.tool.error("Failed to parse onnx file");
    finished();
    throw Error("Parsing model failed");
  }
}

TimingCache read_cache(const BuildOptions& options, const Voices& voices) {
  const std::string& path = options.timing_cache_file;
  if (path.empty() || !options.use_timing_cache) return {};
  if (!std::filesystem::exists(path)) {
    voices.engine.warning("Could not read timing cache from: {}. A new timing cache will be generated and written.", path);
    return {};
  }
  size_t bytes = 0, skipped = 0;
  try {
    TimingCache cache = load_timing_cache(path, &bytes, &skipped);
    voices.engine.info("Loaded {} bytes of timing cache from {}", bytes, path);
    if (skipped > 0) voices.engine.warning("{} lines of the timing cache {} are damaged or of another version; they are left out", skipped, path);
    return cache;
  } catch (const Error& error) {
    voices.engine.warning("Could not read timing cache from: {}. A new timing cache will be generated and written. ({})", path, error.message());
    return {};
  }
}

void write_cache(const TimingCache& cache, const BuildOptions& options, const Voices& voices) {
  const std::string& path = options.timing_cache_file;
  if (path.empty() || !options.use_timing_cache) return;
  try {
    std::error_code status;
    if (const auto bytes = std::filesystem::file_size(path, status); !status) voices.engine.info("Loaded {} bytes of timing cache from {}", bytes, path);
    voices.engine.info("Saved {} bytes of timing cache to {}", save_timing_cache(cache, path), path);
  } catch (const Error& error) {
    voices.engine.warning("Could not write timing cache to: {} ({})", path, error.message());
  }
}

/// What the device cannot compute in is said once; allowing it is no error.
void explain_precision(const BuildOptions& options, std::string_view backend, const Logger& log) {
  if (backend != "cpu" || !(options.fp16 || options.bf16 || options.int8)) return;
  log.warning("Reduced precision is allowed, not required: the CPU device has FP32 kernels, and these are used.");
}

}  // namespace

OpenDevice open_device(const std::string& name) {
  const size_t colon = name.find(':');
  const bool named = !name.empty() && std::isalpha(static_cast<unsigned char>(name[0]));
  const std::string_view backend_name = named ? std::string_view(name).substr(0, colon) : find_backend("cuda") != nullptr ? "cuda" : "cpu";
  const std::string_view number = named ? (colon == std::string::npos ? "0" : std::string_view(name).substr(colon + 1)) : std::string_view(name);
  const std::optional<int64_t> ordinal = parse_integer(trim(number));
  const Backend* backend = find_backend(backend_name);
  if (backend == nullptr || !ordinal)
    throw Error(fmt::format("Cannot find device ID {}!", name), "this build has the CPU alone: leave --device out, or write --device=cpu");
  try {
    return {backend, std::shared_ptr<Device>(backend->open(static_cast<int>(*ordinal)))};
  } catch (const Error& error) {
    throw Error(fmt::format("Cannot find device ID {}! {}", name, error.message()), error.hint());
  }
}

void Session::build() {
  Graph graph = import_model(options_.tool.onnx, voices_);
  BuildOptions build_options = options_.build;
  build_options.profiles = model_profiles(graph, options_.build.profiles, voices_.tool);
  build_options.input_formats = model_formats(options_.tool.input_formats, graph.inputs().size(), "input", voices_.tool);
  build_options.output_formats = model_formats(options_.tool.output_formats, graph.outputs().size(), "output", voices_.tool);

  explain_precision(build_options, device_.backend->name, voices_.tool);

  TimingCache cache = read_cache(build_options, voices_);
  const double start = now_ms();
  const Plan plan = hone::build(std::move(graph), build_options, *device_.backend, *device_.device, cache, voices_.engine);
  const double built = seconds_since(start);
  write_cache(cache, build_options, voices_);

  if (!options_.tool.save_engine.empty()) {
    with_note([&] { return fmt::format("writing the plan {}", options_.tool.save_engine); }, [&] { save_plan_file(plan, options_.tool.save_engine); });
    load_plan_bytes();
  } else {
    bytes_ = Blob::copy(save_plan(plan));
  }
  voices_.tool.info("Engine built in {:g} sec.", built);
  voices_.tool.info("Created engine with size: {:g} MiB", static_cast<double>(bytes_.size()) / kMiB);
}

void Session::load_plan_bytes() {
  const std::string& path = options_.tool.load_engine.empty() ? options_.tool.save_engine : options_.tool.load_engine;
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  bytes_ = Blob(file, file->bytes());
}

std::shared_ptr<const Engine> Session::make_engine() const {
  const std::string source = !options_.tool.load_engine.empty() ? options_.tool.load_engine : "built from " + options_.tool.onnx;
  return with_note([&] { return fmt::format("loading the plan {}", source); },
                   [&] { return Engine::load(load_plan(bytes_), *device_.backend, device_.device); });
}

void Session::load() {
  if (!options_.tool.load_engine.empty()) {
    const double start = now_ms();
    try {
      load_plan_bytes();
    } catch (const Error& error) {
      voices_.tool.error("Error opening engine file: {}", options_.tool.load_engine);
      throw;
    }
    voices_.tool.info("Engine loaded in {:g} sec.", seconds_since(start));
  }
  voices_.engine.info("Loaded engine size: {:.0f} MiB", static_cast<double>(bytes_.size()) / kMiB);
  const MemoryUsage before;
  const double start = now_ms();
  engine_ = make_engine();
  const double seconds = seconds_since(start);
  voices_.engine.verbose("Deserialization required {:.0f} microseconds.", seconds * 1e6);
  voices_.engine.info("{}", before.change("Hone-managed allocation in engine deserialization"));
  voices_.tool.info("Engine deserialized in {:g} sec.", seconds);
}

double Session::time_load() const {
  const double start = now_ms();
  const auto engine = make_engine();
  return now_ms() - start;
}

int Session::profile() const {
  const int wanted = options_.tool.use_profile, count = static_cast<int>(plan().profiles.size());
  if (wanted < 0 || wanted >= count)
    throw Error(fmt::format("Selected profile index {} exceeds the number of profiles, {}", wanted, count), "--useProfile counts from 0");
  return wanted;
}

InputShapes Session::run_shapes() const {
  const ShapeMap& asked = options_.tool.shapes;
  const bool built = options_.tool.load_engine.empty();
  return engine_shapes(plan(), static_cast<size_t>(profile()), asked, built, voices_.tool);
}

}  // namespace hone
