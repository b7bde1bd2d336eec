// SPDX-License-Identifier: Apache-2.0
//
// `hone draw`: an engine's graph as SVG or DOT, from the files that trtexec exports or from a plan.
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "explore/drawing.h"
#include "tools/commands/commands.h"
#include "tools/common/plan_view.h"
#include "tools/companion/narrator.h"

namespace hone {
namespace {

const CompanionCommand& command() {
  static const CompanionCommand kCommand{
      "draw",
      "GRAPH.json | PLAN",
      "Draws an engine: layers coloured by what they are, tensors by their type. GRAPH.json is what trtexec writes "
      "with "
      "--exportLayerInfo and --profilingVerbosity=detailed, Hone's or NVIDIA's. The picture is GRAPH.json.svg.",
      {{"--output", Takes::one, "<file>", "the picture; of a name that ends in .dot, for Graphviz", "-o"},
       {"--profiling_json", Takes::one, "<file>", "the layers' times: what --exportProfile wrote", "-pj"},
       {"--output_format", Takes::one, "<format>", "svg or dot", "-of"},
       {"--display_regions", Takes::nothing, "", "a box for every tensor", "-dr"},
       {"--display_constant", Takes::nothing, "", "and for constants", "-dc"},
       {"--no_layer_names", Takes::nothing, "", "what layers are, not what they are called", "-no_ln"},
       {"--display_metadata", Takes::nothing, "", "nodes of the model in the boxes", "-dm"},
       {"--display_region_names", Takes::nothing, "", "names of tensors in their boxes", "-drn"},
       {"--beam", Takes::one, "<layer,radius>", "only what is within so many steps of a layer, which is marked", "-b"},
       {"--query", Takes::one, "<regex>", "only what it finds in names and nodes, and its neighbours"}},
      1,
      1};
  return kCommand;
}

void read_beam(const Arguments& arguments, DrawingOptions& options) {
  const std::string beam = arguments.value("--beam");
  if (beam.empty()) return;
  const size_t comma = beam.rfind(',');
  const auto radius = comma == std::string::npos ? std::nullopt : parse_integer(beam.substr(comma + 1));
  if (!radius || *radius < 0) throw UsageError(fmt::format("--beam={} is no layer and radius", beam), "--beam conv1,2");
  options.beam = beam.substr(0, comma);
  options.radius = static_cast<int>(std::min<int64_t>(*radius, 1 << 20));
}

EngineRows read(const std::string& file, const Arguments& arguments) {
  const std::string title = std::filesystem::path(file).filename(), profile = arguments.value("--profiling_json");
  const std::string times = profile.empty() ? "" : read_file(profile);
  if (file.ends_with(".json")) return read_engine(title, read_file(file), times, {});
  const auto plan = make<hone_plan>(hone_plan_create_from_file, file.c_str());
  return read_engine(title, layers_text(plan.get(), 0, {}, HONE_LAYERS_JSON_DETAILED), times, {});
}

ExitStatus draw(const Arguments& arguments) {
  const Narrator narrator(arguments);
  DrawingOptions options{.regions = arguments.has("--display_regions"),
                         .constants = arguments.has("--display_constant"),
                         .layer_names = !arguments.has("--no_layer_names"),
                         .metadata = arguments.has("--display_metadata"),
                         .region_names = arguments.has("--display_region_names")};
  options.query = arguments.value("--query");
  read_beam(arguments, options);
  std::string output = arguments.value("--output");
  const std::string format = arguments.value("--output_format", output.ends_with(".dot") ? "dot" : "svg");
  if (format != "svg" && format != "dot")
    throw UsageError(fmt::format("--output_format={} is not written", format),
                     format == "png" ? "svg; browsers and rsvg-convert make PNG of it" : "svg or dot");
  if (output.empty()) output = arguments.file() + "." + format;
  need_file(arguments.file());
  const EngineRows engine =
      with_note([&] { return "reading " + arguments.file(); }, [&] { return read(arguments.file(), arguments); });
  const Drawing drawing = draw_engine(engine, options);
  write_file(output, format == "dot" ? drawing_dot(drawing, engine.title) : drawing_svg(drawing, engine.title));
  narrator.info("{}: {} boxes, {} arrows", output, drawing.boxes.size(), drawing.arrows.size());
  return ExitStatus::passed;
}

}  // namespace

const FriendlyCommand& describe_draw() { return friendly<command>(); }

int run_draw(Words words) { return run_companion(command(), words, draw); }

}  // namespace hone
