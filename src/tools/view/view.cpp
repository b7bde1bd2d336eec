// SPDX-License-Identifier: Apache-2.0
//
// `hone view`: what a model or an engine is, node by node, to be looked at. A model and the plan that was made of it stand beside each
// other, and each says what the other one made of it.
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "explore/view_drawing.h"
#include "explore/view_page.h"
#include "tools/commands/commands.h"
#include "tools/common/plan_view.h"
#include "tools/companion/narrator.h"
#include "tools/surgeon/model_line.h"
#include "tools/view/model_rows.h"

namespace hone {
namespace {

const CompanionCommand& command() {
  static const CompanionCommand kCommand{
      "view",
      "MODEL.onnx | PLAN | GRAPH.json [PLAN | GRAPH.json]",
      "Shows a model or an engine as a page that needs no network: every node with its attributes, tensors and "
      "weights, folded by the "
      "scopes in names, with a search. A model with the plan that was made of it stands beside it, and both say what "
      "became of what. "
      "GRAPH.json is what trtexec writes with --exportLayerInfo and --profilingVerbosity=detailed.",
      with_load_flags(
          {{"--output", Takes::one, "<file>", "the page (default view.html); of a name in .svg or .dot, a picture",
            "-o"},
           {"--svg", Takes::one, "<file>", "the graph as SVG, all of it unfolded"},
           {"--dot", Takes::one, "<file>", "and for Graphviz"},
           {"--color", Takes::one, "<what>", "type (default), precision, time or source", "--colour"},
           {"--beam", Takes::one, "<node,radius>", "only what is within so many steps of a node, which is marked",
            "-b"},
           {"--query", Takes::one, "<regex>", "only what it finds in names, operators and tensors, and its neighbours"},
           {"--profiling_json", Takes::one, "<file>", "times of the engine's layers: what --exportProfile wrote",
            "-pj"}}),
      1,
      2};
  return kCommand;
}

ViewPart part_of(const Arguments& arguments) {
  ViewPart part{.query = arguments.value("--query")};
  const std::string beam = arguments.value("--beam");
  if (beam.empty()) return part;
  const size_t comma = beam.rfind(',');
  const auto radius = comma == std::string::npos ? std::nullopt : parse_integer(beam.substr(comma + 1));
  if (!radius || *radius < 0) throw UsageError(fmt::format("--beam={} is no node and radius", beam), "--beam conv1,2");
  part.beam = beam.substr(0, comma);
  part.radius = static_cast<int>(std::min<int64_t>(*radius, 1 << 20));
  return part;
}

/// Without a profile a plan's layers have the times that tuning saw.
void add_tuned_times(const hone_plan* plan, EngineRows& engine) {
  std::map<std::string_view, double> tuned;
  const std::vector<PlanLayer> layers = layers_of(plan, 0);
  for (const PlanLayer& layer : layers) tuned[layer.known.name] = layer.known.tuned_ms;
  for (LayerRow& row : engine.layers)
    if (const auto found = tuned.find(row.name); found != tuned.end()) row.average_ms = found->second;
}

ViewedModel read_engine_view(const Arguments& arguments, const std::string& file) {
  const std::string title = std::filesystem::path(file).filename(), times = arguments.value("--profiling_json");
  const std::string profile = times.empty() ? "" : read_file(times);
  if (file.ends_with(".json")) return view_of(read_engine(title, read_file(file), profile, {}));
  const auto plan = make<hone_plan>(hone_plan_create_from_file, file.c_str());
  EngineRows engine = read_engine(title, layers_text(plan.get(), 0, {}, HONE_LAYERS_JSON_DETAILED), profile, {});
  if (profile.empty()) add_tuned_times(plan.get(), engine);
  const hone_plan_info known = info_of(plan.get());
  engine.facts = {{"device", known.device},
                  {"model", known.model},
                  {"precision", known.precision},
                  {"build options", known.options}};
  return view_of(engine);
}

ViewedModel read(const Arguments& arguments, const std::string& file) {
  need_file(file);
  return with_note([&] { return "reading " + file; },
                   [&] {
                     return file.ends_with(".onnx")
                                ? view_of(load_model(arguments, file), std::filesystem::path(file).filename())
                                : read_engine_view(arguments, file);
                   });
}

void write(const Narrator& narrator, const std::string& path, const std::string& text, const ViewedModel& view) {
  write_file(path, text);
  narrator.info("{}: {} nodes, {:.2f} MB", path, view.graphs[0].nodes.size(), static_cast<double>(text.size()) / 1e6);
}

ExitStatus view(const Arguments& arguments) {
  const Narrator narrator(arguments);
  const ViewColour colour = parse_view_colour(arguments.value("--color", "type"));
  const ViewPart part = part_of(arguments);
  std::vector<ViewedModel> views;
  for (const std::string& file : arguments.files()) views.push_back(read(arguments, file));
  if (views.size() == 2 && views[0].is_engine == views[1].is_engine)
    throw UsageError("two files stand beside each other where one is a model and the other the engine made of it",
                     views[0].is_engine ? "hone report compares engines" : "hone surgeon diff compares models");
  if (views.size() == 2)
    tell_of_layers(views[0].is_engine ? views[1] : views[0], views[0].is_engine ? views[0] : views[1]);
  keep_part(views[0], part);
  std::string svg = arguments.value("--svg"), dot = arguments.value("--dot"), page = arguments.value("--output");
  if (page.ends_with(".svg")) svg = std::exchange(page, "");
  else if (page.ends_with(".dot")) dot = std::exchange(page, "");
  else if (page.empty() && svg.empty() && dot.empty()) page = "view.html";
  if (!svg.empty()) write(narrator, svg, drawing_svg(draw_view(views[0], colour), views[0].title), views[0]);
  if (!dot.empty()) write(narrator, dot, drawing_dot(draw_view(views[0], colour), views[0].title), views[0]);
  if (!page.empty()) write(narrator, page, view_page(views, colour), views[0]);
  if (arguments.has("--json"))
    write_json_result(arguments,
                      view_json(views, colour).dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
  return ExitStatus::passed;
}

}  // namespace

const FriendlyCommand& describe_view() { return friendly<command>(); }

int run_view(Words words) { return run_companion(command(), words, view); }

}  // namespace hone
