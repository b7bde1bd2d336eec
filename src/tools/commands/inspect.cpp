// SPDX-License-Identifier: Apache-2.0
//
// `hone inspect`: what a plan holds, layer by layer if asked for; --emit-c writes a C program that runs it.
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/commands/emit_c.h"
#include "tools/commands/inspect_quantisation.h"
#include "tools/common/friendly.h"
#include "tools/common/plan_summary.h"
#include "tools/common/plan_view.h"
#include "tools/common/terminal.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "inspect",
      "PLAN",
      "Shows what a plan holds. \n\nhone inspect capability MODEL.onnx: which kernels there are for a model's "
      "nodes.\nhone inspect operators: which operators of ONNX models may use.",
      {{"--layers", "", "", "every layer with its kernel, its time when it was tuned, and the model's nodes behind it"},
       {"--why", "<layer>", "", "what was tried for the layers whose name contains this, with times and refusals"},
       {"--quantisation", "", "",
        "of MODEL.onnx: which tensors are converted between floats and integers in memory, and why"},
       {"--emit-c", "<folder>", "", "write a C program there that loads the plan, runs it and measures it"}}};
  return kCommand;
}

Json layers_json(const hone_plan* plan) {
  Json layers = Json::array();
  for (const PlanLayer& layer : layers_of(plan, 0)) {
    const hone_layer& known = layer.known;
    layers.push_back({{"name", known.name},
                      {"kind", layer.is_view() ? "view" : known.kind},
                      {"kernel", layer.is_view() ? "" : fmt::format("{}.{}", known.source, known.tactic)},
                      {"tunedMs", known.tuned_ms},
                      {"nodes", layer.nodes}});
  }
  return layers;
}

void print_layers(const Json& layers, const Page& page) {
  double total = 0;
  for (const Json& layer : layers) total += layer["tunedMs"].get<double>();
  page.title(fmt::format("{:>10} {:>6}  {:<28} {}", "tuned ms", "share", "kernel", "layer"));
  for (const Json& layer : layers) {
    const double ms = layer["tunedMs"].get<double>();
    page.line(fmt::format("{:>10.4f} {:>5.1f}%  {:<28} {}", ms, total > 0 ? 100 * ms / total : 0,
                          layer["kind"] == "view" ? "(view)" : layer["kernel"].get<std::string>(),
                          layer["name"].get<std::string>()));
  }
}

int inspect(const FriendlyLine& line) {
  if (line.has("--quantisation")) return inspect_quantisation(line);
  if (line.options.tool.load_engine.empty())
    throw Error(fmt::format("{} is a model, not a plan", line.file),
                fmt::format("build it first: hone build {}", line.file));
  const auto plan = make<hone_plan>(hone_plan_create_from_file, line.file.c_str());
  Json summary = plan_summary(plan.get());
  if (line.has("--layers")) summary["layers"] = layers_json(plan.get());
  if (line.has("--emit-c")) summary["written"] = emit_c(plan.get(), line.file, line.value("--emit-c"));
  if (line.json) {
    fmt::print("{}\n", summary.dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  const Page page;
  page.title(line.file);
  print_plan_summary(summary, page);
  if (line.has("--layers")) print_layers(summary["layers"], page);
  if (line.has("--why")) {
    const std::string why = ask<const char*>(hone_plan_explain, plan.get(), line.value("--why").c_str());
    for (const std::string_view text : split(why, '\n')) page.line(text);
  }
  if (line.has("--emit-c")) page.pair("written", summary["written"].get<std::string>());
  return 0;
}

}  // namespace

const FriendlyCommand& describe_inspect() { return command(); }

int run_inspect(Words words) { return run_friendly(command(), words, {}, inspect); }

}  // namespace hone
