// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/compare_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "ir/range.h"
#include "tools/common/operator_libraries.h"
#include "tools/common/plan_view.h"
#include "tools/common/python.h"
#include "tools/companion/polygraphy_flags.h"
#include "tools/compare/run_flags.h"
#include "tools/compare/save_face.h"
#include "tools/compare/script.h"
#include "tools/model/read.h"
#include "tools/taps/taps.h"

namespace hone {
namespace {

/// What `cpu`, `onnxrt`, ... stand for on the command line.
bool is_runner(std::string_view flag) {
  return flag == "--cpu" || flag == "--cuda" || flag == "--trt" || flag == "--onnxrt" || flag == "--ref" ||
         flag == "--plan";
}

std::string date_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "-%m/%d/%y-%H:%M:%S", &parts)};
}

/// A model and what shall run it.
class ComparedRun {
 public:
  ComparedRun(const Arguments& arguments, const std::vector<TensorList>* given)
      : arguments_(arguments), given_(given), narrator_(arguments), inputs_(input_request(arguments)) {}

  ExitStatus run() {
    narrator_.info("RUNNING | Command: hone run {}", join(arguments_.words(), " "));
    refuse_python(arguments_);
    read_model();
    if (arguments_.has("--gen-script")) {
      find_accepted();
      return write_script(arguments_, face_, is_plan_ ? plan_device_ : "", inputs_, narrator_);
    }
    check_something_to_do();
    if (arguments_.has("--tap")) return compare_taps(arguments_, model_face("--tap"), feeds().front(), narrator_);
    make_runners();
    const std::vector<TensorList> iterations = feeds();
    const bool good = compare(iterations);
    narrator_.write(
        good ? Narrator::Level::info : Narrator::Level::error,
        fmt::format("{} | Command: hone run {}", good ? "PASSED" : "FAILED", join(arguments_.words(), " ")));
    write_json_result(arguments_, verdict_.dump(2, ' ', false, Json::error_handler_t::replace));
    return good ? ExitStatus::passed : ExitStatus::failed;
  }

 private:
  void read_model() {
    const std::string& path = arguments_.file();
    need_file(path);
    const std::string type = arguments_.value("--model-type");
    is_plan_ = type.empty() ? !is_onnx_file(path) : type == "engine";
    if (!is_plan_) {
      face_ = face_of(arguments_, path, narrator_);
      if (const std::string save = arguments_.value("--save-onnx"); !save.empty()) {
        narrator_.info("Saving ONNX model to: {}", save);
        save_face(arguments_, face_, save);
      }
      return;
    }
    if (output_marks(arguments_).any())
      throw UsageError(fmt::format("{} is a plan: its outputs cannot be changed", path),
                       "--tap '*' shows the tensors inside of it");
    Owned<hone_plan> plan;
    try {
      plan = make<hone_plan>(hone_plan_create_from_file, path.c_str());
    } catch (const Error& error) {
      throw StatusError(ExitStatus::no_file, fmt::format("{} cannot be loaded: {}", path, error.message()),
                        error.hint());
    }
    face_.path = path;
    const hone_plan_info info = info_of(plan.get());
    plan_device_ = std::string_view(info.device_kind) == "cuda" ? "cuda:0" : "cpu";
    model_of_plan_ = info.model;
    for (const NetworkTensor& io : tensors_of(plan.get())) {
      if (io.is_input) {
        face_.inputs.push_back({io.name, io.dtype, io.dims});
        face_.symbols.emplace_back(io.dims.size());
        if (io.range)
          inputs_.accepted[io.name] = {static_cast<double>(io.range->low), static_cast<double>(io.range->high)};
      } else {
        face_.outputs.push_back(io.name);
      }
    }
  }

  void check_something_to_do() const {
    const bool any = std::ranges::any_of(arguments_.order(), is_runner);
    if (any || arguments_.count("--load-outputs") > 0) return;
    throw UsageError(
        "no runner is selected, so that nothing would run",
        "add --cpu, --cuda, --trt, --onnxrt, --ref or --plan FILE; hone run MODEL alone runs once and shows outputs");
  }

  std::string unique(const std::string& kind) {
    return fmt::format("{}-{}{}", kind, ordinals_[kind]++, arguments_.has("--stamp") ? date_text() : "");
  }

  /// The model behind a plan, for runners that need one.
  const ModelFace& model_face(std::string_view runner) {
    if (!is_plan_) return face_;
    if (!plan_model_) {
      const std::optional<std::string> found = model_of_plan();
      if (!found)
        throw UsageError(
            fmt::format("{} needs the model, and {} is a plan", runner, face_.path),
            fmt::format("put the model beside it as {}, or hone run MODEL.onnx --plan {} {}",
                        std::filesystem::path(face_.path).replace_extension(".onnx").string(), face_.path, runner));
      plan_model_ = read_face(*found);
    }
    return *plan_model_;
  }

  /// The file that the plan names, or one of its own name beside it; its inputs have to be those of the plan.
  std::optional<std::string> model_of_plan() const {
    const std::filesystem::path plan(face_.path), named(model_of_plan_);
    for (const std::filesystem::path& path :
         {named, plan.parent_path() / named.filename(), std::filesystem::path(plan).replace_extension(".onnx")}) {
      std::error_code none;
      if (path.empty() || !std::filesystem::is_regular_file(path, none) || !is_onnx_file(path.string())) continue;
      const ModelFace model = read_face(path.string());
      const bool fits = std::ranges::all_of(face_.inputs, [&](const KnownTensor& input) {
        return std::ranges::find(model.inputs, input.name, &KnownTensor::name) != model.inputs.end();
      });
      if (fits) return path.string();
    }
    return std::nullopt;
  }

  void make_runners() {
    const EngineRequest request = engine_request(arguments_, narrator_);
    open_libraries();
    bool saved = false;
    std::vector<std::string> plans;
    for (const auto& words : arguments_.all("--plan")) plans.push_back(words.front());
    size_t plan = 0;
    for (const std::string& flag : arguments_.order()) {
      if (flag == "--onnxrt") {
        runners_.push_back(
            make_onnxruntime_runner(unique("onnxrt"), model_face(flag), onnxruntime_request(arguments_), narrator_));
      } else if (flag == "--ref") {
        runners_.push_back(make_reference_runner(unique("ref"), model_face(flag), narrator_));
      } else if (flag == "--plan") {
        runners_.push_back(make_plan_runner(unique("plan"), plans[plan++], arguments_.value("--device", "cpu"),
                                            request.profile, narrator_));
      } else if (is_runner(flag)) {
        EngineRequest own = request;
        own.device = flag == "--cpu" ? "cpu" : flag == "--cuda" ? "cuda:0" : is_plan_ ? plan_device_ : best_device();
        if (saved) own.save_engine = own.save_cache = own.save_tactics = "";  // the first one's
        saved = true;
        const std::string name = unique(own.device == "cpu" ? "cpu" : "cuda");
        if (is_plan_) runners_.push_back(make_plan_runner(name, face_.path, own.device, own.profile, narrator_));
        else runners_.push_back(make_engine_runner(name, face_, std::move(own), narrator_));
      }
    }
  }

  void open_libraries() const {
    ToolOptions tool;
    tool.plugins = arguments_.values("--plugins");
    for (const std::string& flag : arguments_.trtexec_flags())
      if (flag.starts_with("--staticPlugins=")) tool.plugins.push_back(flag.substr(16));
    open_operator_libraries(tool, narrator_.engine_log());
  }

  /// Integers that index something are drawn within what they index.
  void find_accepted() {
    if (is_plan_ || inputs_.ranges.contains("")) return;
    if (std::ranges::none_of(face_.inputs, [](const KnownTensor& input) { return is_integer(input.dtype); })) return;
    try {
      const ImportedModel model = hone::read_model(face_.path, narrator_.engine_log());
      for (const Value* input : model.graph.inputs())
        if (const std::optional<IntegerRange> range = accepted_range(input))
          inputs_.accepted[input->name] = {static_cast<double>(range->low), static_cast<double>(range->high)};
    } catch (const Error&) {
      return;  // the runners say what is wrong with the model
    }
  }

  std::vector<TensorList> feeds() {
    if (given_ != nullptr) return *given_;
    std::vector<KnownTensor> known = face_.inputs;
    for (KnownTensor& input : known)
      if (const auto given = inputs_.shapes.find(input.name);
          given != inputs_.shapes.end() && given->second.size() == input.dims.size())
        input.dims = given->second;
    std::vector<TensorList> iterations;
    if (arguments_.has("--load-inputs")) iterations = load_inputs(arguments_.values("--load-inputs"), known);
    if (arguments_.has("--data-loader-cmd")) iterations = from_program(arguments_.value("--data-loader-cmd"), known);
    if (arguments_.has("--data-loader-script")) iterations = from_script(known);
    for (const TensorList& iteration : iterations)
      for (const KnownTensor& input : known) input_for(iteration, input.name);
    if (iterations.empty()) {
      find_accepted();
      const std::vector<KnownTensor> resolved = resolved_inputs(face_, inputs_, narrator_);
      for (int64_t i = 0; i < inputs_.iterations; ++i)
        iterations.push_back(draw_inputs(resolved, inputs_, i, narrator_, i == 0));
    }
    return iterations;
  }

  /// The script's function is called, and each dict that it yields goes through a file.
  std::vector<TensorList> from_script(const std::vector<KnownTensor>& known) const {
    const std::string word = arguments_.value("--data-loader-script");
    const size_t colon = word.rfind(':');
    const std::string path = word.substr(0, colon),
                      function = colon == std::string::npos ? "load_data" : word.substr(colon + 1);
    need_file(path);
    const ScratchFolder folder;
    const std::string program =
        "import importlib.util as u, sys, numpy as np\n"
        "s = u.spec_from_file_location('script', sys.argv[1]); m = u.module_from_spec(s); s.loader.exec_module(m)\n"
        "for i, feed in enumerate(getattr(m, sys.argv[2])()):\n"
        "  path = f'{sys.argv[3]}/{i:010}.npz'; np.savez(path, **{n: np.asarray(v) for n, v in feed.items()}); "
        "print(path)\n";
    return from_program(python_command(program, {path, function, folder.path()}), known);
  }

  static std::vector<TensorList> from_program(const std::string& program, const std::vector<KnownTensor>& known) {
    std::FILE* pipe = popen(program.c_str(), "r");
    if (pipe == nullptr) throw StatusError(ExitStatus::no_file, fmt::format("{} cannot be started", program));
    std::vector<TensorList> iterations;
    std::string text;
    char part[4096];
    while (const size_t got = std::fread(part, 1, sizeof part, pipe)) text.append(part, got);
    if (pclose(pipe) != 0)
      throw StatusError(ExitStatus::no_file,
                        fmt::format("what makes the inputs failed: {}", program.substr(0, program.find('\n'))),
                        "the program of --data-loader-cmd, or the function of --data-loader-script, has to end well");
    for (const std::string_view line : split(text, '\n'))
      if (!trim(line).empty())
        for (TensorList& each : load_inputs({std::string(trim(line))}, known)) iterations.push_back(std::move(each));
    return iterations;
  }

  TensorList postprocessed(TensorList outputs) const {
    for (const TopPlaces& places : postprocess_request(arguments_))
      for (NamedTensor& each : outputs)
        if (places.output.empty() || each.name == places.output)
          each.tensor = top_places(each.tensor, places.count, places.axis);
    return outputs;
  }

  bool validate(const std::string& runner, const TensorList& outputs) {
    bool good = true;
    for (const NamedTensor& each : outputs) {
      narrator_.info("Validating output: {} (check_inf=True, check_nan=True)", each.name);
      const auto indent = narrator_.indented();
      const Finiteness found = finiteness_of(each.tensor);
      if (found.infinities > 0)
        narrator_.error("Inf Detected | One or more non-finite values were encountered in this output: {} of {}",
                        found.infinities, each.tensor.size());
      if (found.nans > 0)
        narrator_.error("NaN Detected | One or more NaNs were encountered in this output: {} of {}", found.nans,
                        each.tensor.size());
      const bool fine = found.infinities + found.nans == 0;
      if (fine) narrator_.info("PASSED | Output: {} is valid", each.name);
      else narrator_.error("FAILED | Errors detected in output: {}", each.name);
      verdict_["validation"].push_back({{"runner", runner},
                                        {"name", each.name},
                                        {"passed", fine},
                                        {"infinities", found.infinities},
                                        {"nans", found.nans}});
      good &= fine;
    }
    return good;
  }

  TensorList infer(Runner& runner, const TensorList& feed, std::vector<double>& times) {
    for (int64_t i = arguments_.integer("--warm-up", 0); i > 0 && times.empty(); --i) runner.infer(feed);
    const double start = now_ms();
    TensorList outputs = runner.infer(feed);
    times.push_back(now_ms() - start);
    return outputs;
  }

  void tell_times(const std::string& runner, const std::vector<double>& times) {
    const Statistics s = statistics_of(times);
    narrator_.info(
        "{} | Latency over {} iterations: mean {:.4g} ms, median {:.4g} ms, p90 {:.4g} ms, p95 {:.4g} ms, p99 {:.4g} "
        "ms",
        runner, times.size(), s.mean, s.median, s.p90, s.p95, s.p99);
    verdict_["latency"][runner] = {{"mean", s.mean}, {"median", s.median}, {"p90", s.p90},
                                   {"p95", s.p95},   {"p99", s.p99},       {"iterations", times.size()}};
  }

  bool compare(const std::vector<TensorList>& iterations);

  const Arguments& arguments_;
  const std::vector<TensorList>* const given_;
  const Narrator narrator_;
  InputRequest inputs_;
  ModelFace face_;
  bool is_plan_ = false;
  std::string plan_device_, model_of_plan_;
  std::optional<ModelFace> plan_model_;
  std::map<std::string, int> ordinals_;
  std::vector<std::unique_ptr<Runner>> runners_;
  Json verdict_{{"passed", false}};
};

bool ComparedRun::compare(const std::vector<TensorList>& iterations) {
  std::vector<RunResult> loaded;
  std::vector<std::string> names, precisions;
  for (const auto& runner : runners_) {
    narrator_.info("{} | Activating and starting inference", runner->name());
    runner->prepare(iterations);
    names.push_back(runner->name());
    precisions.push_back(runner->precision());
  }
  if (arguments_.has("--load-outputs")) {
    narrator_.info("Loading inference results from {}", join(arguments_.values("--load-outputs"), ", "));
    loaded = load_results(arguments_.values("--load-outputs"));
  }
  for (const RunResult& result : loaded) names.push_back(result.runner);
  if (runners_.empty() && names.size() < 2 && !arguments_.has("--validate"))
    throw UsageError(names.empty()
                         ? "the files of --load-outputs hold no run, so that nothing would be compared"
                         : fmt::format("{} is the only run, so that there is nothing to compare it with", names[0]),
                     "add a runner (--cpu, --ref, --onnxrt), another file to --load-outputs, or --validate");
  verdict_["model"] = face_.path;
  verdict_["runners"] = names;
  const bool live = !runners_.empty();
  size_t count = live ? iterations.size() : loaded.empty() ? 0 : loaded[0].iterations.size();
  bool good = true;
  for (const RunResult& result : loaded) {
    if (result.iterations.size() == count) continue;
    const std::string text =
        fmt::format("{} has {} iterations, {} has {}", result.runner, result.iterations.size(), names[0], count);
    if (arguments_.has("--allow-prefix")) {
      narrator_.warning("{}; as many are compared as both have", text);
    } else {
      narrator_.error("FAILED | {} (--allow-prefix compares as many as both have)", text);
      good = false;
    }
  }
  for (const RunResult& result : loaded) count = std::min(count, result.iterations.size());
  Comparison comparison(comparison_request(arguments_, precisions, narrator_), names, face_.produced, narrator_);
  std::vector<RunResult> kept(runners_.size());
  std::vector<std::vector<double>> times(runners_.size());
  const bool keeps = arguments_.has("--save-outputs"), compares = names.size() > 1;
  for (size_t r = 0; r < runners_.size(); ++r) kept[r].runner = runners_[r]->name();
  for (size_t i = 0; i < std::max(count, live ? iterations.size() : count); ++i) {
    narrator_.info("Streaming iteration {}", i);
    if (live)
      narrator_.info("    ---- Inference Input(s) ----\n    {}",
                     join(split(metadata_text(iterations[i]), '\n'), "\n    "));
    std::vector<TensorList> outputs;
    for (size_t r = 0; r < runners_.size(); ++r) {
      outputs.push_back(infer(*runners_[r], iterations[i], times[r]));
      narrator_.info("{}\n    ---- Inference Output(s) ----\n    {}", names[r],
                     join(split(metadata_text(outputs[r]), '\n'), "\n    "));
      if (arguments_.has("--validate")) good &= validate(names[r], outputs[r]);
      if (keeps) kept[r].iterations.push_back(outputs[r]);
    }
    if (arguments_.has("--validate"))
      for (const RunResult& result : loaded)
        if (i < result.iterations.size()) good &= validate(result.runner, result.iterations[i]);
    if (!compares || i >= count) continue;
    for (const RunResult& result : loaded) outputs.push_back(result.iterations[i]);
    for (TensorList& list : outputs) list = postprocessed(std::move(list));
    if (!comparison.add(outputs)) break;
  }
  if (compares) good &= comparison.finish();
  verdict_["pairs"] = comparison.json();
  if (!comparison.first_divergence().empty()) verdict_["firstDivergence"] = comparison.first_divergence();
  if (arguments_.has("--time"))
    for (size_t r = 0; r < runners_.size(); ++r) tell_times(names[r], times[r]);
  if (const std::string path = arguments_.value("--save-inputs"); !path.empty() && live) {
    narrator_.info("Saving inference input data to {}", path);
    save_inputs(path, iterations);
  }
  if (arguments_.has("--save-input-blob") && live) save_blobs(arguments_.value("--save-input-blob", "."), iterations);
  if (keeps) {
    narrator_.info("Saving inference results to {}", arguments_.value("--save-outputs"));
    save_results(arguments_.value("--save-outputs"), kept);
  }
  if (const std::string path = arguments_.value("--save-accuracy-results"); !path.empty()) {
    narrator_.info("Saving accuracy results to {}", path);
    write_file(path, comparison.kept_accuracy());
  }
  verdict_["passed"] = good;
  return good;
}

}  // namespace

ExitStatus compare_runs(const Arguments& arguments, const std::vector<TensorList>* given) {
  return ComparedRun(arguments, given).run();
}

}  // namespace hone
