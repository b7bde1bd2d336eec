// SPDX-License-Identifier: Apache-2.0
//
// `hone problems`: what a build of a model would time, as keys for `hone tune`. For this machine's device, or for one that is known
// by its description alone.
#include <algorithm>
#include <cstdio>

#include "builder/problems/listed_problems.h"
#include "tools/commands/commands.h"
#include "tools/common/friendly.h"
#include "tools/common/model_shapes.h"
#include "tools/model/handles.h"
#include "tools/model/read.h"
#include "tools/tune/described_device.h"

namespace hone {
namespace {

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "problems",
      "MODEL.onnx",
      "Lists the problems that a build of a model would time, by their keys, a line each, the heaviest first: for hone "
      "tune. Times nothing.",
      {{"--shapes", "<shapes>", "--optShapes", "input shapes to be fastest at, name:1x3x224x224[,...]"},
       {"--for", "<file>", "", "for a device that --describe told of on another machine"},
       {"--describe", "", "", "no model: the device of this machine, for --for; its kind names caches"}}};
  return kCommand;
}

OpenDevice device_of(const FriendlyLine& line) {
  return line.has("--for") ? described_device(line.value("--for")) : open_device(line.options.tool.device);
}

int problems(const FriendlyLine& line) {
  if (line.options.tool.onnx.empty())
    throw Error(fmt::format("{} is no ONNX model by its name", line.file),
                "hone problems takes a file that ends in .onnx");
  const Logger log = quiet_logger();
  const OpenDevice device = device_of(line);
  ImportedModel model = read_model(line.options.tool.onnx, log);
  BuildOptions options = line.options.build;
  options.profiles = model_profiles(tensors_of(model.graph), options.profiles, line.options.tool.shape_arguments, log);
  const std::vector<ListedProblem> listed =
      list_problems(std::move(model.graph), options, *device.backend, *device.device);
  if (!line.json) {
    for (const ListedProblem& problem : listed) fmt::print("{}\n", problem.key);
    return 0;
  }
  Json rows = Json::array();
  for (const ListedProblem& problem : listed)
    rows.push_back({{"key", problem.key}, {"estimateMs", problem.estimate_ms}, {"seconds", problem.seconds}});
  const Json all{{"kind", kind_of(device)}, {"device", timing_key(device)}, {"problems", std::move(rows)}};
  fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
  return 0;
}

/// The device of --device, in the words of --for.
int describe(const FriendlyLine& line) {
  fmt::print(
      "{}\n",
      describe_device(open_device(line.options.tool.device)).dump(2, ' ', false, Json::error_handler_t::replace));
  return 0;
}

}  // namespace

const FriendlyCommand& describe_problems() { return command(); }

int run_problems(Words words) {
  if (std::ranges::find(words, "--describe") == words.end()) return run_friendly(command(), words, {}, problems);
  std::vector<std::string> with_model(words.begin(), words.end());
  with_model.emplace_back("none.onnx");  // none is read
  return run_friendly(command(), with_model, {}, describe);
}

}  // namespace hone
