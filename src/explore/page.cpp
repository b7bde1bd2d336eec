// SPDX-License-Identifier: Apache-2.0
#include "explore/page.h"

#include "explore/align.h"
#include "explore/colours.h"
#include "explore/hazards.h"
#include "explore/model_view.h"
#include "explore/page_text.h"
#include "explore/sheets.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

Json tensor_json(const TensorRow& tensor) {
  return {{"name", tensor.name}, {"dims", tensor.dims}, {"element", tensor.element.name}, {"format", tensor.format}};
}

Json tensors_json(const std::vector<TensorRow>& tensors) {
  Json rows = Json::array();
  for (const TensorRow& tensor : tensors) rows.push_back(tensor_json(tensor));
  return rows;
}

Json views_json(const std::vector<ViewTensor>& tensors) {
  Json rows = Json::array();
  for (const ViewTensor& tensor : tensors)
    rows.push_back({{"name", tensor.name}, {"element", tensor.type}, {"dims", Json::array({tensor.shape})}});
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

Json engine_json(const EngineRows& engine) {
  const ViewGraph graph = view_of(engine).graphs[0];
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
          {"rounds", engine.rounds},
          {"facts", std::move(facts)},
          {"peaks",
           {{"bytes", engine.peaks.bytes_per_second},
            {"f32", engine.peaks.f32_flops},
            {"f16", engine.peaks.f16_flops},
            {"i8", engine.peaks.i8_flops}}},
          {"bindings", tensors_json(engine.bindings)},
          {"latencies", engine.latencies},
          {"queriesPerSecond", engine.queries_per_second},
          {"memory", std::move(memory)},
          {"build", std::move(build)},
          {"layers", std::move(layers)},
          {"io", {{"in", views_json(graph.inputs)}, {"out", views_json(graph.outputs)}}},
          {"graph", sheets_json(graph)[0]},
          {"hazards", std::move(hazards)}};
}

}  // namespace

Json report_json(std::span<const EngineRows> engines) {
  Json report{{"colours", colours_json()},
              {"box", {kBoxWidth, kBoxHeight}},
              {"engines", Json::array()},
              {"comparisons", Json::array()}};
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
  return page_text(page::report_html, report_json(engines), {page::graph_js, page::report_js});
}

}  // namespace hone
