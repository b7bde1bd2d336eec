// SPDX-License-Identifier: Apache-2.0
//
// Which runs are made follows from what is asked for: one clean run; or one run with the profiler, which is not reported;
// or both, when the profile shall be separate, or times or a time line shall be written too.
#include "tools/common/inference.h"

#include <algorithm>
#include <future>
#include <latch>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "report/performance.h"
#include "report/text.h"
#include "tools/common/input_data.h"
#include "tools/common/time_line.h"
#include "tools/common/watcher.h"
#include "tools/trtexec/accuracy.h"
#include "tools/trtexec/debug_tensors.h"
#include "tools/trtexec/memory_usage.h"

namespace hone {

double queries_per_second(std::span<const Trace> timed) {
  const double seconds = timed.empty() ? 0 : (timed.back().d2h_end - timed.front().h2d_start) / 1000;
  return seconds > 0 ? static_cast<double>(timed.size()) / seconds : 0;
}

void export_text(const std::string& path, const std::string& text) {
  with_note([&] { return fmt::format("writing {}", path); }, [&] { write_file(path, text); });
}

void report_layers(const Session& session, const ReportOptions& options, const InputShapes& shapes, const Logger& log) {
  const auto text = [&](hone_layers_form form) { return layers_text(session.plan(), session.profile(), shapes, form); };
  if (options.dump_layer_info) {
    log.info("Layer Information:");
    const std::string lines = text(HONE_LAYERS_LINES);
    for (const std::string_view line : split(lines, '\n')) log.info("{}", line);
  }
  if (!options.export_layer_info.empty()) export_text(options.export_layer_info, text(HONE_LAYERS_JSON));
}

void report_optimization_profiles(const Session& session, const Logger& log) {
  log.info("Optimization Profile Information:");
  const auto dims = [](const Dims& sizes) { return sizes.empty() ? std::string("scalar") : join_dims(sizes); };
  for (size_t i = 0; i < session.profiles().size(); ++i)
    for (const InputRange& range : session.profiles()[i].ranges)
      log.info("Model input {} (profile {}): min={}, opt={}, max={}", range.input, i, dims(range.min), dims(range.opt),
               dims(range.max));
}

ProfileCeilings ceilings_of(hone_device* device) {
  const auto told = ask<hone_ceilings>(hone_device_measure, device);
  return {told.bytes_per_second, told.f16_flops, told.f32_flops, told.i8_flops};
}

Inference::Inference(const Session& session, const Options& options, const Voices& voices)
    : session_(session), options_(options), voices_(voices) {}

void Inference::set_up() {
  if (session_.profiles().size() > 1 && options_.tool.use_profile == 0)
    voices_.tool.warning(
        "{} profiles detected but not set. Running with profile 0. Use --useProfile to choose another.",
        session_.profiles().size());
  check_input_files(options_.tool.load_inputs, session_.tensors());
  shapes_ = session_.run_shapes();
  benchmark_ = make<hone_benchmark>(hone_benchmark_create, session_.engine(), session_.profile(), options_.perf.streams,
                                    int{options_.perf.data_transfers});
  for (int stream = 0; stream < options_.perf.streams; ++stream) set_up_stream(stream);
  check_debug_requests(context(), options_.tool, voices_.tool);
}

/// As much as all profiles, or this one, need at their largest shapes; else memory follows the shapes that run.
void Inference::reserve(hone_context* context) const {
  const std::vector<PlanProfile>& profiles = session_.profiles();
  if (options_.tool.allocation_strategy == "runtime") return;
  int64_t bytes = 0;
  for (size_t i = 0; i < profiles.size(); ++i)
    if (options_.tool.allocation_strategy == "static" || static_cast<int>(i) == session_.profile())
      bytes = std::max(bytes, profiles[i].memory_bytes);
  check(hone_context_reserve(context, bytes));
}

std::span<std::byte> Inference::memory(const std::string& tensor, int stream) const {
  void* memory = nullptr;
  int64_t bytes = 0;
  check(hone_benchmark_memory(benchmark_.get(), stream, tensor.c_str(), &memory, &bytes));
  return {static_cast<std::byte*>(memory), static_cast<size_t>(bytes)};
}

void Inference::set_up_stream(int stream) {
  const MemoryUsage before;
  for (const auto& [name, dims] : shapes_) {
    check(hone_context_set_shape(context(stream), name.c_str(), dims.data(), static_cast<int>(dims.size())));
    voices_.tool.info("Set shape of input tensor {} to: {}", name, join_dims(dims));
  }
  reserve(context(stream));
  check(hone_benchmark_allocate(benchmark_.get(), stream));
  const auto bytes = ask<int64_t>(hone_context_held_bytes, context(stream));
  voices_.engine.info("Allocated activation device memory of size {}", bytes);
  voices_.engine.info("{}", before.change("Hone-managed allocation in IExecutionContext creation"));
  voices_.tool.info("Setting persistentCacheLimit to 0 bytes.");
  report_allocation(bytes);
  if (options_.tool.monitor_memory) voices_.tool.info("{}", memory_after("context creation"));
  fill_inputs(stream);
}

void Inference::report_allocation(int64_t bytes) const {
  constexpr double kMiB = 1 << 20;
  const std::string& strategy = options_.tool.allocation_strategy;
  if (strategy == "static") {
    voices_.tool.info("Created execution context with device memory size: {:g} MiB", static_cast<double>(bytes) / kMiB);
    return;
  }
  int64_t largest = 0;
  for (const PlanProfile& profile : session_.profiles()) largest = std::max(largest, profile.memory_bytes);
  voices_.tool.info("Maximum device memory size across all profiles: {:g} MiB", static_cast<double>(largest) / kMiB);
  voices_.tool.info("Only allocated device memory enough for current {}: {:g} MiB",
                    strategy == "profile" ? "profile" : "input shapes", static_cast<double>(bytes) / kMiB);
}

void Inference::fill_inputs(int stream) {
  bool random = false;
  for (const NetworkTensor& io : session_.tensors()) {
    if (!io.is_input && io.by_value) {
      voices_.tool.info("The shape of output {} is data-dependent.", io.name);
      continue;
    }
    const Dims dims = shape_in(context(stream), io.name);
    if (!io.is_input) {
      voices_.tool.info("Output binding for {} with dimensions {} is created.", io.name, join_dims(dims));
      continue;
    }
    if (const std::string* file = input_file(options_.tool.load_inputs, io.name)) {
      voices_.tool.info("Using values loaded from {} for input {}", *file, io.name);
      load_values(*file, io, dims, memory(io.name, stream));
    } else {
      voices_.tool.info("Using random values for input {}", io.name);
      if (io.range)
        voices_.tool.verbose("Random values for input {} are integers from {} to {}, which its consumers accept.",
                             io.name, io.range->low, io.range->high);
      fill_random(io.random_input(), dims, memory(io.name, stream));
      random = true;
    }
    voices_.tool.info("Input binding for {} with dimensions {} is created.", io.name, join_dims(dims));
  }
  if (random)
    voices_.tool.verbose("Random values are drawn with the fixed seed {}: every run gets the same.", kRandomSeed);
}

namespace {

/// cudaProfilerStart() to cudaProfilerStop(): what `nsys profile -c cudaProfilerApi` records.
class ProfilerRange {
 public:
  explicit ProfilerRange(hone_device* device) : device_(device) { check(hone_device_profile(device_, 1)); }
  ~ProfilerRange() { hone_device_profile(device_, 0); }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  hone_device* device_;
};

}  // namespace

std::vector<Trace> Inference::measure(const PerfOptions& perf, int streams) {
  const hone_benchmark_options options{.size = sizeof(hone_benchmark_options),
                                       .iterations = perf.iterations,
                                       .warm_up_ms = perf.warm_up_ms,
                                       .duration_ms = perf.duration_s == -1 ? -1 : perf.duration_s * 1000,
                                       .sleep_ms = perf.sleep_ms,
                                       .idle_ms = perf.idle_ms,
                                       .threads = perf.threads,
                                       .one_at_a_time = perf.expose_dma,
                                       .streams = streams};
  Watcher* watcher = Watcher::of_process();
  if (watcher != nullptr) {
    const std::string& file = options_.tool.load_engine.empty() ? options_.tool.onnx : options_.tool.load_engine;
    watcher->measuring(file, perf.warm_up_ms, options.duration_ms);
    check(hone_benchmark_set_query_function(
        benchmark_.get(), [](void* user, const hone_query_times* times) { static_cast<Watcher*>(user)->query(*times); },
        watcher));
  }
  const ProfilerRange range(session_.device());
  check(hone_benchmark_run(benchmark_.get(), &options));
  if (watcher != nullptr) watcher->measured();
  std::vector<Trace> traces(hone_benchmark_queries(benchmark_.get()));
  for (size_t i = 0; i < traces.size(); ++i) {
    const auto told = ask<hone_query_times>(hone_benchmark_query, benchmark_.get(), i);
    traces[i] = {told.enqueue_start, told.enqueue_end, told.input_start,  told.input_end,
                 told.compute_start, told.compute_end, told.output_start, told.output_end};
  }
  return traces;
}

void Inference::run() {
  const ReportOptions& report = options_.report;
  voices_.tool.info("Starting inference");
  if (options_.perf.use_graph)
    for (int stream = 0; stream < options_.perf.streams; ++stream) {
      voices_.tool.info("Capturing CUDA graph for the current execution context");
      check(hone_context_prepare(context(stream)));
      voices_.tool.info(
          "Successfully captured CUDA graph for the current execution context: its launches are recorded and replayed");
    }
  const bool asked = options_.tool.separate_profile_run, alone = report.times_layers();
  const bool both = alone && (asked || !report.export_times.empty() || !report.trace.empty());
  if (both && !asked)
    voices_.tool.warning(
        "{} is given together with a profile: two runs are made, the first for times, the second for the profile",
        report.trace.empty() ? "--exportTimes" : "--trace");
  const bool profile_first = alone && !both;
  const ProfileCeilings ceilings = report.dump_profile ? ceilings_of(session_.device()) : ProfileCeilings();
  std::optional<LayerProfile> profile;
  if (profile_first) {
    profile = profile_layers(ceilings, options_.perf);
    voices_.tool.info(
        "The e2e network timing is not reported since it is inaccurate due to the profiler: layers are timed one by "
        "one.");
    voices_.tool.info(
        "To show e2e network timing report, add --separateProfileRun to profile layers in a run of their own.");
  } else {
    measure_and_report();
  }
  report_tensors();
  save_debug_tensors(context(), options_.tool, voices_.tool);
  if (options_.tool.monitor_memory) voices_.tool.info("{}", memory_after("inference"));
  if (both) profile = profile_layers(ceilings, options_.perf);
  if (profile) report_profile(*profile);
  if (time_line_) write_time_line();
}

bool Inference::validate() {
  const ToolOptions& tool = options_.tool;
  std::map<int, ReferencePair> pairs = tool.reference_pairs;
  if (pairs.empty() && !tool.reference_outputs.empty()) pairs[0] = {tool.load_inputs, tool.reference_outputs};
  bool good = true;
  for (const auto& [index, pair] : pairs) {
    if (pairs.size() > 1) voices_.tool.info("Accuracy of pair {}:", index);
    good &= validate_pair(pair);
  }
  if (!good)
    voices_.tool.error("Accuracy validation FAILED: a loss has reached --accuracyThreshold={:g}",
                       tool.accuracy.threshold);
  return good;
}

bool Inference::validate_pair(const ReferencePair& pair) {
  const AccuracyOptions& accuracy = options_.tool.accuracy;
  check_input_files(pair.inputs, session_.tensors());
  for (const NetworkTensor& io : session_.tensors())
    if (const std::string* file = io.is_input ? input_file(pair.inputs, io.name) : nullptr)
      load_values(*file, io, shape_in(context(), io.name), memory(io.name));
  run_once();
  bool good = true;
  for (const BoundTensor& tensor : tensors()) {
    const std::string* file = tensor.is_input ? nullptr : input_file(pair.outputs, tensor.name);
    if (file == nullptr) continue;
    AlignedBuffer bytes(std::max<size_t>(tensor.bytes.size(), 1));
    BoundTensor reference = tensor;
    reference.bytes = {bytes.data(), tensor.bytes.size()};
    load_values(*file, {.name = tensor.name, .is_input = false, .dtype = tensor.dtype, .layout = tensor.layout},
                tensor.dims, {bytes.data(), tensor.bytes.size()});
    const std::vector<double> expected = values_of(reference);
    voices_.tool.info("Loaded reference output for tensor {} from {} (volume={}, bytes={})", tensor.name, *file,
                      expected.size(), tensor.bytes.size());
    const double loss = accuracy_loss(accuracy, values_of(tensor), expected);
    const bool failed = loss >= accuracy.threshold;
    losses_.emplace_back(tensor.name, loss);
    voices_.tool.info("Accuracy loss for tensor {} ({}): {:.6f}{}", tensor.name, accuracy_label(accuracy.algorithm),
                      loss, failed ? fmt::format(" [FAIL: >= threshold {:g}]", accuracy.threshold) : "");
    good &= !failed;
  }
  return good;
}

std::vector<float> Inference::closed_loop(std::span<const Trace> timed) {
  if (options_.perf.streams == 1) return round_trips(timed);
  // Streams that compete say nothing about one query alone: a few more are made for that.
  PerfOptions alone = options_.perf;
  alone.warm_up_ms = alone.duration_s = alone.sleep_ms = alone.idle_ms = 0;
  return round_trips(measure(alone, 1));
}

/// On this device and on those beside it, begun together: their clocks start within the moment that a thread takes to wake.
std::vector<std::vector<Trace>> Inference::measure_everywhere() {
  std::vector<std::future<std::vector<Trace>>> others;
  std::latch begin(static_cast<std::ptrdiff_t>(beside_.size()) + 1);
  for (Inference* other : beside_)
    others.push_back(std::async(std::launch::async, [&begin, other] {
      begin.arrive_and_wait();
      return other->measure(other->options_.perf);
    }));
  begin.arrive_and_wait();
  std::vector<std::vector<Trace>> traces{measure(options_.perf)};
  for (std::future<std::vector<Trace>>& other : others) traces.push_back(other.get());
  return traces;
}

Measurement Inference::measure_all() {
  Measurement result;
  result.circumstances.machine.before = read_machine_state();
  result.by_device = measure_everywhere();
  for (const std::vector<Trace>& traces : result.by_device)
    result.traces.insert(result.traces.end(), traces.begin(), traces.end());
  std::ranges::stable_sort(result.traces, {}, &Trace::h2d_start);
  result.circumstances.machine.after = read_machine_state();
  result.warm_up = warm_up_queries(result.traces, static_cast<float>(options_.perf.warm_up_ms));
  result.circumstances.closed_loop = closed_loop(result.timed());
  return result;
}

void Inference::measure_and_report() {
  const Measurement measured = measure_all();
  if (!options_.report.trace.empty()) {
    time_line_.emplace(time_line_layers(session_.plan(), session_.profile()),
                       info_of(session_.device()).host_accessible == 0);
    time_line_->set_queries(measured.timed());
  }
  for (const Trace& trace : measured.timed())
    mean_compute_ms_ += double{trace.compute()} / static_cast<double>(measured.timed().size());
  const PerformanceContext context{.synchronous_stream = info_of(session_.device()).host_accessible != 0,
                                   .unstable_percent = options_.tool.release == Release::v11 ? 2.5f : 1.0f,
                                   .circumstances = &measured.circumstances};
  report_performance(measured.traces, options_.perf, context, voices_.tool);
  if (!options_.report.export_times.empty()) export_text(options_.report.export_times, times_json(measured.timed()));
  if (!options_.report.export_machine.empty())
    export_text(options_.report.export_machine, machine_json(measured.timed(), measured.circumstances));
}

void Inference::run_once() { check(hone_benchmark_run_once(benchmark_.get(), 0)); }

LayerProfile Inference::profile_layers(const ProfileCeilings& ceilings, const PerfOptions& perf) {
  std::vector<ProfiledLayer> layers;
  for (const PlanLayer& layer : layers_of(session_.plan(), session_.profile())) {
    const hone_layer& known = layer.known;
    layers.push_back({known.name, known.source, layer.is_view(), known.flops, known.bytes});
    if (known.inputs == 0) continue;
    const size_t index = layers.size() - 1;
    layers.back().operand = static_cast<DType>(
        ask<hone_tensor>(hone_plan_layer_tensor, session_.plan(), session_.profile(), index, size_t{0}).dtype);
  }
  struct Told {
    LayerProfile profile;
    TimeLine* line;
  } told{LayerProfile(layers, ceilings), time_line_ ? &*time_line_ : nullptr};
  const auto add = [](void* to, const char* layer, double ms) {
    auto& both = *static_cast<Told*>(to);
    both.profile.layer(layer, ms);
    if (both.line != nullptr) both.line->layer(layer, ms);
  };
  check(hone_context_set_layer_function(context(), add, &told));
  const std::vector<Trace> queries = measure(perf);
  check(hone_context_set_layer_function(context(), nullptr, nullptr));
  if (told.line != nullptr) told.line->end_layers(queries);
  return std::move(told.profile);
}

void Inference::write_time_line() {
  constexpr int kInferences = 50;  // as many as somebody looks at
  PerfOptions few = options_.perf;
  few.iterations = std::clamp(few.iterations, 1, kInferences);
  few.warm_up_ms = few.duration_s = few.sleep_ms = few.idle_ms = 0;
  const auto add = [](void* to, const hone_layer_span* spans, size_t count) {
    auto& line = *static_cast<TimeLine*>(to);
    std::vector<TimeLineSlice> slices;
    for (size_t i = 0; i < count; ++i)
      slices.push_back({line.index_of(spans[i].layer), spans[i].worker, spans[i].begin_ms, spans[i].end_ms});
    line.inference(std::move(slices));
  };
  check(hone_context_set_span_function(context(), add, &*time_line_));
  const std::vector<Trace> queries = measure(few, 1);
  check(hone_context_set_span_function(context(), nullptr, nullptr));
  time_line_->end_inferences(queries);
  export_text(options_.report.trace, time_line_->json());
}

void Inference::report_profile(const LayerProfile& profile) {
  if (options_.report.dump_profile) profile.print(voices_.tool);
  if (!options_.report.export_profile.empty()) export_text(options_.report.export_profile, profile.json());
}

std::vector<BoundTensor> Inference::tensors() {
  std::vector<BoundTensor> result;
  for (const NetworkTensor& io : session_.tensors()) {
    if (is_object(io.dtype) || !io.ranked) {
      voices_.tool.warning("Output {} holds {}: it is not reported", io.name, io.type);
      continue;
    }
    const std::span<const std::byte> bytes = memory(io.name);
    result.push_back({io.name, io.is_input, io.dtype, shape_in(context(), io.name), io.layout, bytes});
  }
  return result;
}

void Inference::report_tensors() {
  const ReportOptions& report = options_.report;
  const std::vector<BoundTensor> all = tensors();
  std::vector<BoundTensor> outputs;
  for (const BoundTensor& tensor : all)
    if (!tensor.is_input) outputs.push_back(tensor);
  if (report.dump_output) {
    voices_.tool.info("Output Tensors:");
    for (const BoundTensor& tensor : outputs) {
      voices_.tool.info("{}: ({})", tensor.name, join_dims(tensor.dims));
      voices_.tool.info("{}", values_line(tensor));
    }
  }
  if (report.dump_raw_bindings) {
    voices_.tool.info("Dumping I/O Bindings to RAW Files:");
    const std::vector<std::string> names = raw_file_names(
        all, is_at_least(options_.tool.release, Release::v10) ? RawNames::short_types : RawNames::long_types);
    for (size_t i = 0; i < all.size(); ++i) {
      voices_.tool.info("Writing file for {} binding {} (with datatype {} and dimensions {}) to {}",
                        all[i].is_input ? "input" : "output", all[i].name, type_word(all[i].dtype),
                        join_dims(all[i].dims, "."), names[i]);
      export_text(names[i], std::string(reinterpret_cast<const char*>(all[i].bytes.data()), all[i].bytes.size()));
    }
  }
  if (!report.export_output.empty()) export_text(report.export_output, outputs_json(outputs));
}

}  // namespace hone
