// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/file.h"
#include "base/text.h"
#include "tools/compare/run_flags.h"
#include "tools/compare/script_texts.h"

namespace hone {
namespace {

bool is_own(std::string_view flag) { return flag == "--cpu" || flag == "--cuda" || flag == "--trt"; }

/// A literal of Python or C++: both read JSON's.
std::string quoted(const std::string& text) { return Json(text).dump(); }

std::string sizes_text(const Dims& dims, std::string_view open, std::string_view close) {
  std::vector<std::string> sizes;
  for (const int64_t size : dims) sizes.push_back(std::to_string(size));
  return fmt::format("{}{}{}", open, join(sizes, ", "), close);
}

std::string quoted_list(const std::vector<std::string>& texts, std::string_view open, std::string_view close) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) parts.push_back(quoted(text));
  return fmt::format("{}{}{}", open, join(parts, ", "), close);
}

/// A map of Python, or with commas of C++.
std::string tolerances(const ByName& values, std::string_view between) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : values)
    parts.push_back(between == ", " ? fmt::format("{{{}, {:g}}}", quoted(name), value)
                                    : fmt::format("{}: {:g}", quoted(name), value));
  return "{" + join(parts, ", ") + "}";
}

std::string replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& marks) {
  for (const auto& [mark, value] : marks)
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
      text.replace(at, mark.size(), value);
  return text;
}

struct Plot {
  const Arguments& arguments;
  const ModelFace& face;
  const std::vector<KnownTensor> inputs;
  const EngineRequest engine;
  const InputRequest data;
  const ComparisonRequest comparison;

  /// The profile that engines are built for, side by side.
  ShapeTriple profile() const {
    if (!engine.profiles.empty()) return engine.profiles[0];
    ShapeTriple triple;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].dims != face.inputs[i].dims)
        triple.min[inputs[i].name] = triple.opt[inputs[i].name] = triple.max[inputs[i].name] = inputs[i].dims;
    return triple;
  }
  DrawRange range_of(const KnownTensor& input) const {
    const auto named = data.ranges.find(input.name), any = data.ranges.find("");
    return named != data.ranges.end() ? named->second : any != data.ranges.end() ? any->second : DrawRange{};
  }
};

std::string python_runners(const Plot& plot) {
  std::string text;
  int own = 0, ort = 0;
  for (const std::string& flag : plot.arguments.order()) {
    if (is_own(flag)) {
      const std::string device = flag == "--cpu" ? "cpu" : flag == "--cuda" ? "cuda:0" : best_device();
      text += fmt::format("    ({}, own_engine({})),\n",
                          quoted(fmt::format("{}-{}", device == "cpu" ? "cpu" : "cuda", own++)), quoted(device));
    } else if (flag == "--onnxrt") {
      text += fmt::format("    ({}, onnx_runtime()),\n", quoted(fmt::format("onnxrt-{}", ort++)));
    } else if (flag == "--ref" || flag == "--plan") {
      throw UsageError(fmt::format("{} is not written into scripts", flag), "--cpu, --cuda, --trt and --onnxrt are");
    }
  }
  if (text.empty()) throw UsageError("a script needs a runner", "add --cpu, --cuda, --trt or --onnxrt");
  return text;
}

std::string python_script(const Plot& plot) {
  std::string inputs, ranges;
  for (const KnownTensor& input : plot.inputs) {
    const DrawRange range = plot.range_of(input);
    inputs +=
        fmt::format("    {}: ({}, np.dtype({}), {:g}, {:g}),\n", quoted(input.name), sizes_text(input.dims, "[", "]"),
                    quoted(std::string(numpy_word(input.dtype))), range.low, range.high);
  }
  const ShapeTriple profile = plot.profile();
  for (const auto& [input, opt] : profile.opt) {
    const auto side = [&input = input, &opt = opt](const std::map<std::string, Dims>& shapes) {
      return sizes_text(shapes.contains(input) ? shapes.at(input) : opt, "[", "]");
    };
    ranges += fmt::format("    {}: ({}, {}, {}),\n", quoted(input), side(profile.min), sizes_text(opt, "[", "]"),
                          side(profile.max));
  }
  std::vector<std::string> outputs;
  if (plot.face.marked) outputs = plot.face.outputs;
  return replaced(kPythonScript, {{"@COMMAND@", "hone run " + join(plot.arguments.words(), " ")},
                                  {"@MODEL@", quoted(plot.face.path)},
                                  {"@OUTPUTS@", quoted_list(outputs, "[", "]")},
                                  {"@FLAGS@", quoted_list(plot.engine.flags, "[", "]")},
                                  {"@PROFILE@", ranges},
                                  {"@INPUTS@", inputs},
                                  {"@SEED@", std::to_string(plot.data.seed)},
                                  {"@ITERATIONS@", std::to_string(plot.data.iterations)},
                                  {"@ATOL@", tolerances(plot.comparison.compare.atol, ": ")},
                                  {"@RTOL@", tolerances(plot.comparison.compare.rtol, ": ")},
                                  {"@SAVE_ENGINE@", quoted(plot.engine.save_engine)},
                                  {"@SAVE_TACTICS@", quoted(plot.engine.save_tactics)},
                                  {"@SAVE_INPUTS@", quoted(plot.arguments.value("--save-inputs"))},
                                  {"@SAVE_OUTPUTS@", quoted(plot.arguments.value("--save-outputs"))},
                                  {"@RUNNERS@", python_runners(plot)}});
}

std::string cpp_script(const Plot& plot) {
  std::vector<std::string> devices;
  for (const std::string& flag : plot.arguments.order()) {
    if (is_own(flag)) devices.push_back(flag == "--cpu" ? "cpu" : flag == "--cuda" ? "cuda:0" : best_device());
    else if (flag == "--onnxrt" || flag == "--ref" || flag == "--plan")
      throw UsageError(fmt::format("{} is not written into a program in C++: it has Hone's engines alone", flag),
                       "--gen-script run.py has ONNX Runtime, too");
  }
  if (devices.empty()) throw UsageError("a program needs a runner", "add --cpu, --cuda or --trt");
  if (plot.face.marked)
    throw UsageError("--onnx-outputs is not written into a program in C++",
                     "hone run MODEL --save-onnx MARKED.onnx --onnx-outputs ... makes a model to start from");
  std::string inputs, ranges;
  for (const KnownTensor& input : plot.inputs) {
    if (input.dtype != DType::f32)
      throw UsageError(
          fmt::format("input {} is {}: programs in C++ draw floats alone", input.name, numpy_word(input.dtype)),
          "--gen-script run.py draws all types");
    const DrawRange range = plot.range_of(input);
    inputs += fmt::format("    {{{}, {}, {:g}, {:g}}},\n", quoted(input.name), sizes_text(input.dims, "{", "}"),
                          range.low, range.high);
  }
  const ShapeTriple profile = plot.profile();
  for (const auto& [input, opt] : profile.opt) {
    const auto side = [&input = input, &opt = opt](const std::map<std::string, Dims>& shapes) {
      return sizes_text(shapes.contains(input) ? shapes.at(input) : opt, "{", "}");
    };
    ranges += fmt::format("    {{{}, {}, {}, {}}},\n", quoted(input), side(profile.min), sizes_text(opt, "{", "}"),
                          side(profile.max));
  }
  return replaced(kCppScript, {{"@COMMAND@", "hone run " + join(plot.arguments.words(), " ")},
                               {"@MODEL@", quoted(plot.face.path)},
                               {"@FLAGS@", quoted_list(plot.engine.flags, "{", "}")},
                               {"@PROFILE@", ranges},
                               {"@INPUTS@", inputs},
                               {"@DEVICES@", quoted_list(devices, "{", "}")},
                               {"@SEED@", std::to_string(plot.data.seed)},
                               {"@ITERATIONS@", std::to_string(plot.data.iterations)},
                               {"@ATOL@", tolerances(plot.comparison.compare.atol, ", ")},
                               {"@RTOL@", tolerances(plot.comparison.compare.rtol, ", ")},
                               {"@SAVE_ENGINE@", quoted(plot.engine.save_engine)}});
}

}  // namespace

ExitStatus write_script(const Arguments& arguments, const ModelFace& face, const Narrator& narrator) {
  if (!is_onnx_file(arguments.file())) throw UsageError("a script starts from a model, not from a plan");
  for (const char* flag : {"--load-outputs", "--load-inputs", "--data-loader-cmd", "--compare", "--check-error-stat",
                           "--check-average", "--validate", "--postprocess", "--tap"})
    if (arguments.has(flag))
      throw UsageError(fmt::format("{} is not written into scripts: their verdict would be another", flag),
                       "scripts draw their inputs and compare element by element");
  const EngineRequest engine = engine_request(arguments, narrator);
  const InputRequest data = input_request(arguments);
  const Plot plot{arguments, face, resolved_inputs(face, data, narrator),
                  engine,    data, comparison_request(arguments, {engine.precision}, narrator)};
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
