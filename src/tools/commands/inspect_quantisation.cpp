// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/inspect_quantisation.h"

#include <nlohmann/json.hpp>

#include "backends/all.h"
#include "base/text.h"
#include "builder/conversions.h"
#include "builder/events/log_lines.h"
#include "tools/commands/commands.h"
#include "tools/common/model_shapes.h"
#include "tools/common/terminal.h"
#include "tools/model/handles.h"
#include "tools/model/read.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const ConversionSurvey& survey) {
  Json alone = Json::array();
  for (const LoneConversion& conversion : survey.alone)
    alone.push_back({{"node", conversion.node},
                     {"operator", conversion.quantises ? "QuantizeLinear" : "DequantizeLinear"},
                     {"tensor", conversion.tensor},
                     {"reason", conversion.reason}});
  return {{"conversions", survey.conversions}, {"alone", alone}};
}

void print(const Json& json, const std::string& title) {
  const Page page;
  page.title(title);
  const size_t alone = json["alone"].size(), all = json["conversions"].get<size_t>();
  if (all == 0) return page.line("  no tensor is quantised in this model");
  page.line(fmt::format("  {} conversions of tensors; {} are layers of their own", all, alone));
  for (const Json& row : json["alone"])
    page.line(fmt::format("  {:<16} of {}: {}", row["operator"].get<std::string>(), row["tensor"].get<std::string>(),
                          row["reason"].get<std::string>()));
}

}  // namespace

int inspect_quantisation(const FriendlyLine& line) {
  if (line.options.tool.onnx.empty())
    throw Error(fmt::format("{} is no ONNX model by its name", line.file),
                "--quantisation takes a file that ends in .onnx; hone inspect PLAN --layers shows what a plan uses");
  const Logger log = quiet_logger();
  ImportedModel model = read_model(line.options.tool.onnx, log);
  const OpenDevice device = open_device(line.options.tool.device);
  BuildOptions options = line.options.build;
  options.profiles = model_profiles(tensors_of(model.graph), options.profiles, line.options.tool.shape_arguments, log);
  LogLines lines(log);
  const Json json =
      to_json(survey_conversions(std::move(model.graph), options, *device.backend, *device.device, {&lines}));
  if (line.json) fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  else print(json, fmt::format("{} on {}", line.file, device.device->info().name));
  return 0;
}

}  // namespace hone
