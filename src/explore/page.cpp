// SPDX-License-Identifier: Apache-2.0
#include "explore/page.h"

#include <fmt/format.h>
#include <cmath>
#include <map>

#include "base/text.h"
#include "explore/align.h"
#include "explore/embedded_page.h"
#include "explore/hazards.h"
#include "explore/layout.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr BoxSizes kBoxes{.width = 240, .height = 38, .gap_x = 24, .gap_y = 34};

std::string join_sizes(const std::vector<int64_t>& dims) {
  std::string text;
  for (const int64_t size : dims) text += fmt::format("{}{}", text.empty() ? "" : "×", size);
  return text;
}

Json tensor_json(const TensorRow& tensor) {
  return {{"name", tensor.name}, {"dims", tensor.dims}, {"element", tensor.element.name}, {"format", tensor.format}};
}

Json tensors_json(const std::vector<TensorRow>& tensors) {
  Json rows = Json::array();
  for (const TensorRow& tensor : tensors) rows.push_back(tensor_json(tensor));
  return rows;
}

Json layer_json(const LayerRow& row) {
  Json attributes = Json::parse(row.attributes);
  for (const char* told : {"Name", "Inputs", "Outputs", "TacticName", "Metadata"}) attributes.erase(told);
  Json tried = Json::array();
  for (const TriedTactic& each : row.tried)
    tried.push_back({{"tactic", each.tactic}, {"ms", each.ms}, {"note", each.note}});
  return {{"name", row.name},
          {"type", row.type},
          {"precision", row.precision},
          {"tactic", row.tactic},
          {"origin", row.origin},
          {"nodes", row.nodes},
          {"inputs", tensors_json(row.inputs)},
          {"outputs", tensors_json(row.outputs)},
          {"flops", row.flops},
          {"bytes", row.bytes()},
          {"weights", row.weight_bytes},
          {"activations", row.activation_bytes},
          {"average", row.average_ms},
          {"median", row.median_ms},
          {"share", row.share},
          {"candidates", std::move(tried)},
          {"attributes", std::move(attributes)}};
}

/// The tensor that a view of views shows.
std::string_view seen_through(const std::map<std::string, std::string>& views, const std::string& name) {
  const std::string* seen = &name;
  for (size_t hops = 0; hops <= views.size(); ++hops) {
    const auto found = views.find(*seen);
    if (found == views.end()) break;
    seen = &found->second;
  }
  return *seen;
}

/// An edge for each tensor that a layer reads of an earlier one. A name that is written anew is read from its latest writer.
Json graph_json(const EngineRows& engine) {
  const std::vector<LayerRow>& layers = engine.layers;
  std::map<std::string_view, size_t> writer;
  std::vector<std::pair<size_t, size_t>> pairs;
  Json edges = Json::array();
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const TensorRow& tensor : layers[i].inputs)
      if (const auto from = writer.find(seen_through(engine.views, tensor.name)); from != writer.end()) {
        pairs.emplace_back(from->second, i);
        edges.push_back({{"from", from->second},
                         {"to", i},
                         {"tensor", tensor.name},
                         {"bytes", tensor.bytes()},
                         {"shape", fmt::format("[{}] {}", join_sizes(tensor.dims), tensor.element.name)}});
      }
    for (const TensorRow& tensor : layers[i].outputs) writer[tensor.name] = i;
  }
  const GraphLayout layout = place_graph(layers.size(), pairs, kBoxes);
  Json nodes = Json::array();
  for (const PlacedNode& node : layout.nodes) nodes.push_back({{"x", std::round(node.x)}, {"y", std::round(node.y)}});
  return {{"box", {kBoxes.width, kBoxes.height}},
          {"width", layout.width},
          {"height", layout.height},
          {"nodes", std::move(nodes)},
          {"edges", std::move(edges)}};
}

Json engine_json(const EngineRows& engine) {
  Json layers = Json::array(), hazards = Json::array(), facts = Json::array();
  for (const LayerRow& row : engine.layers) layers.push_back(layer_json(row));
  for (const Hazard& each : find_hazards(engine))
    hazards.push_back({{"layer", each.layer},
                       {"kind", each.kind},
                       {"hazard", each.hazard},
                       {"mitigation", each.mitigation},
                       {"ms", each.ms}});
  for (const auto& [what, value] : engine.facts) facts.push_back({what, value});
  Json memory = Json::array(), build = Json::array();
  for (const MemoryPlace& place : engine.memory)
    memory.push_back({{"tensor", place.tensor},
                      {"offset", place.offset},
                      {"bytes", place.bytes},
                      {"first", place.first},
                      {"last", place.last}});
  for (const BuildPhase& phase : engine.build)
    build.push_back({{"name", phase.name}, {"depth", phase.depth}, {"begin", phase.begin_ms}, {"end", phase.end_ms}});
  return {{"title", engine.title},
          {"profiled", engine.profiled},
          {"facts", std::move(facts)},
          {"peaks",
           {{"bytes", engine.peaks.bytes_per_second},
            {"f32", engine.peaks.f32_flops},
            {"f16", engine.peaks.f16_flops},
            {"i8", engine.peaks.i8_flops}}},
          {"bindings", tensors_json(engine.bindings)},
          {"latencies", engine.latencies},
          {"memory", std::move(memory)},
          {"build", std::move(build)},
          {"layers", std::move(layers)},
          {"graph", graph_json(engine)},
          {"hazards", std::move(hazards)}};
}

/// "<" is written as an escape, so that nothing in the data ends the script element that holds them.
std::string for_script(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace))
    if (c == '<') text += "\\u003c";
    else text += c;
  return text;
}

}  // namespace

Json report_json(std::span<const EngineRows> engines) {
  Json report{{"engines", Json::array()}, {"comparisons", Json::array()}};
  for (const EngineRows& engine : engines) report["engines"].push_back(engine_json(engine));
  for (size_t i = 1; i < engines.size(); ++i) {
    Json pairs = Json::array();
    for (const LayerPair& pair : align_layers(engines[0].layers, engines[i].layers))
      pairs.push_back({pair.first, pair.second});
    report["comparisons"].push_back({{"second", i}, {"pairs", std::move(pairs)}});
  }
  return report;
}

std::string report_page(std::span<const EngineRows> engines) {
  const std::string data = for_script(report_json(engines));
  const std::map<std::string_view, std::string_view> parts{
      {"STYLE", page::report_css}, {"DATA", data}, {"LIBRARY", page::d3}, {"SCRIPT", page::report_js}};
  std::string html;
  const std::vector<std::string_view> pieces = split(page::report_html, '@');  // every other one is the name of a part
  for (size_t i = 0; i < pieces.size(); ++i) html += i % 2 == 0 ? pieces[i] : parts.at(pieces[i]);
  return html;
}

}  // namespace hone
