// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/script.h"

#include <cstdio>
#include <map>

#include "base/file.h"

namespace hone {
namespace {

void refuse_flags(const Arguments& arguments) {
  constexpr std::pair<const char*, const char*> kLeft[] = {
      {"--tap", "it looks into the engine's plan, which `hone run` alone does"},
      {"--isolate", "it looks into the engine's plan, which `hone run` alone does"},
      {"--save-heatmaps", "`hone run` draws them of what the script keeps: --load-outputs"},
      {"--save-error-metrics-plot", "`hone run` draws them of what the script keeps: --load-outputs"},
      {"--save-accuracy-results", "`hone run` writes them of what the script keeps: --load-outputs"},
      {"--json", "a script's exit status is its verdict"},
      {"--stamp", "a script's runs have the names that stand in it"},
      {"--load-tactics", "--load-timing-cache is"},
      {"--fp-to-fp16", "hone surgeon sanitize --fp-to-fp16 makes a model to start from"}};
  for (const auto& [flag, way] : kLeft)
    if (arguments.has(flag)) throw UsageError(fmt::format("{} is not written into scripts", flag), way);
}

std::vector<ScriptRun> runs_of(const Arguments& arguments, const ModelFace& face, const std::string& plan_device) {
  using Kind = ScriptRun::Kind;
  std::vector<ScriptRun> runs;
  std::map<std::string, int> ordinals;
  std::vector<std::string> plans;
  for (const auto& words : arguments.all("--plan")) plans.push_back(words.front());
  size_t plan = 0;
  const auto add = [&](Kind kind, const std::string& name, const std::string& path = {},
                       const std::string& device = {}) {
    if (!plan_device.empty() && (kind == Kind::reference || kind == Kind::onnxruntime))
      throw UsageError(fmt::format("a script with {} starts from a model, not from a plan", name),
                       fmt::format("hone run MODEL.onnx --plan {} ... --gen-script FILE", face.path));
    runs.push_back({kind, fmt::format("{}-{}", name, ordinals[name]++), path, device});
  };
  for (const std::string& flag : arguments.order()) {
    if (flag == "--onnxrt") add(Kind::onnxruntime, "onnxrt");
    else if (flag == "--ref") add(Kind::reference, "ref");
    else if (flag == "--plan") add(Kind::plan, "plan", plans[plan++], arguments.value("--device", "cpu"));
    else if (flag == "--cpu" || flag == "--cuda" || flag == "--trt") {
      const bool of_plan = !plan_device.empty();
      const std::string device = flag == "--cpu"    ? "cpu"
                                 : flag == "--cuda" ? "cuda:0"
                                 : of_plan          ? plan_device
                                                    : best_device();
      add(of_plan ? Kind::plan : Kind::engine, device == "cpu" ? "cpu" : "cuda", of_plan ? face.path : "", device);
    }
  }
  if (runs.empty() && arguments.count("--load-outputs") == 0)
    throw UsageError("a script needs a runner", "add --cpu, --cuda, --trt, --ref, --onnxrt or --plan FILE");
  return runs;
}

/// As --load-inputs takes them: sizes that nobody gave are the files'.
std::vector<KnownTensor> known_inputs(const ModelFace& face, const InputRequest& data) {
  std::vector<KnownTensor> known = face.inputs;
  for (KnownTensor& input : known)
    if (const auto given = data.shapes.find(input.name);
        given != data.shapes.end() && given->second.size() == input.dims.size())
      input.dims = given->second;
  return known;
}

}  // namespace

ExitStatus write_script(const Arguments& arguments, const ModelFace& face, const std::string& plan_device,
                        const InputRequest& data, const Narrator& narrator) {
  refuse_flags(arguments);
  const EngineRequest engine = engine_request(arguments, narrator);
  ScriptPlot plot{.arguments = arguments,
                  .model = face.path,
                  .marked = face.marked ? face.outputs : std::vector<std::string>(),
                  .inputs = {},
                  .data = data,
                  .engine = engine,
                  .comparison = comparison_request(arguments, {engine.precision}, narrator),
                  .runs = runs_of(arguments, face, plan_device)};
  plot.inputs = plot.draws() ? resolved_inputs(face, data, narrator) : known_inputs(face, data);
  const std::string path = arguments.value("--gen-script");
  const bool cpp = path.ends_with(".cpp") || path.ends_with(".cc");
  const std::string text = cpp ? cpp_script(plot) : python_script(plot);
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return ExitStatus::passed;
  }
  write_file(path, text);
  narrator.info("Writing script to: {}{}", path,
                cpp ? " (g++ -std=c++20 FILE $(pkg-config --cflags --libs hone))" : "");
  return ExitStatus::passed;
}

}  // namespace hone
