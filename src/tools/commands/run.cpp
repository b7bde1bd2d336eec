// SPDX-License-Identifier: Apache-2.0
//
// `hone run`: one inference on values from files or on random ones; outputs are summarised, or written as .npy files.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "report/tensors.h"
#include "report/text.h"
#include "tensor/layout.h"
#include "tools/commands/commands.h"
#include "tools/common/friendly.h"
#include "tools/common/inference.h"
#include "tools/common/terminal.h"
#include "tools/compare/compare_run.h"
#include "tools/compare/run_flags.h"
#include "tools/files/npy.h"
#include "tools/files/rank_files.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "run",
      "PLAN | MODEL.onnx",
      "Runs one inference and shows its outputs.",
      {{"-i", "<name:file[,...]>", "--loadInputs", "input values: raw, .npy or .npz; other inputs get random values"},
       {"-s", "<shapes>", "--shapes", "input shapes, name:1x3x224x224[,...]"},
       {"-o", "<folder>", "", "write every output there as NAME.npy"},
       {"-n", "<count>", "", "how many values of each output to show (default 8)"}}};
  return kCommand;
}

/// What is told of an output: its size, range and first values.
Json describe(const BoundTensor& tensor, size_t shown) {
  const std::vector<double> values = values_of(tensor);
  double low = INFINITY, high = -INFINITY, sum = 0;
  size_t bad = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      ++bad;
      continue;
    }
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  Json json{{"name", tensor.name}, {"type", name_of(tensor.dtype)}, {"dims", tensor.dims}, {"notFinite", bad}};
  if (values.size() > bad)
    json.update({{"min", low}, {"max", high}, {"mean", sum / static_cast<double>(values.size() - bad)}});
  json["values"] = Json::array();
  for (size_t i = 0; i < std::min(shown, values.size()); ++i)
    json["values"].push_back(std::isfinite(values[i]) ? Json(values[i]) : Json(nullptr));
  return json;
}

void print(const Json& output, const Page& page) {
  std::vector<std::string> sizes, values;
  for (const Json& size : output["dims"]) sizes.push_back(size.dump());
  for (const Json& value : output["values"])
    values.push_back(value.is_null() ? "not finite" : fmt::format("{:g}", value.get<double>()));
  page.title(fmt::format("{}  {}[{}]", output["name"].get<std::string>(), output["type"].get<std::string>(),
                         join(sizes, ",")));
  if (output.contains("min"))
    page.pair("range", fmt::format("{:g} to {:g}, mean {:g}", output["min"].get<double>(), output["max"].get<double>(),
                                   output["mean"].get<double>()));
  if (output["notFinite"] != 0) page.warning(fmt::format("  {} values are not finite", output["notFinite"].dump()));
  page.pair("values", join(values, " "));
  if (output.contains("file")) page.pair("written to", output["file"].get<std::string>());
}

std::string write_output(const BoundTensor& tensor, const std::string& folder, FileNames& files) {
  std::string path = (std::filesystem::path(folder) / files.take(tensor.name, ".npy")).string();
  AlignedBuffer linear(static_cast<size_t>(byte_size(tensor.dtype, tensor.dims)));
  convert_layout(tensor.bytes.data(), linear.data(), tensor.dtype, tensor.dims, tensor.layout, Layout::linear);
  export_text(path, npy_text(tensor.dtype, tensor.dims, {linear.data(), linear.size()}));
  return path;
}

int run(const FriendlyLine& line) {
  const Logger log = quiet_logger();
  const Voices voices(log, "");
  for (const std::string& warning : line.warnings) log.warning("{}", warning);
  const auto shown = line.has("-n") ? parse_integer(line.value("-n")) : std::optional<int64_t>(8);
  if (!shown || *shown < 0)
    throw Error(fmt::format("-n takes a count, not '{}'", line.value("-n")), "for example -n 8");
  Session session(line.options, make_device(line.options.tool.device), voices);
  if (line.options.tool.load_engine.empty()) session.build();
  session.load();
  Inference inference(session, line.options, voices);
  inference.set_up();
  inference.run_once();
  Json outputs = Json::array();
  const std::string folder = is_divided(session.plan()) ? for_rank(line.value("-o")) : line.value("-o");
  if (line.has("-o")) std::filesystem::create_directories(folder);
  FileNames files;
  for (const BoundTensor& tensor : inference.tensors()) {
    if (tensor.is_input) continue;
    outputs.push_back(describe(tensor, static_cast<size_t>(*shown)));
    if (line.has("-o")) outputs.back()["file"] = write_output(tensor, folder, files);
  }
  if (is_divided(session.plan()) && !speaks()) return 0;
  if (line.json) fmt::print("{}\n", Json{{"outputs", outputs}}.dump(2, ' ', false, Json::error_handler_t::replace));
  const Page page;
  for (const Json& output : outputs)
    if (!line.json) print(output, page);
  return 0;
}

}  // namespace

/// One inference, and the comparison behind it.
const FriendlyCommand& describe_run() {
  static const FriendlyCommand kBoth = [] {
    FriendlyCommand both = command();
    const FriendlyCommand comparison = friendly_of(comparison_command());
    both.flags.insert(both.flags.end(), comparison.flags.begin(), comparison.flags.end());
    return both;
  }();
  return kBoth;
}

int run_comparison(Words words) {
  return run_companion(comparison_command(), words, [](const Arguments& arguments) { return compare_runs(arguments); });
}

int run_run(Words words) {
  if (asks_for_comparison(words)) return run_comparison(words);
  if (std::ranges::find(words, "--help") != words.end()) {
    fmt::print("{}\n\nAs a comparison:\n\n{}", friendly_help(command()), companion_help(comparison_command()));
    return 0;
  }
  return run_friendly(command(), words, {}, run);
}

}  // namespace hone
