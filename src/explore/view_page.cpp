// SPDX-License-Identifier: Apache-2.0
#include "explore/view_page.h"

#include <cmath>
#include <unordered_map>

#include "explore/colours.h"
#include "explore/page_text.h"
#include "explore/sheets.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

/// Names, types and shapes once for a graph; nodes name them by their numbers.
class TensorTable {
 public:
  Json numbers(const std::vector<ViewTensor>& tensors) {
    Json list = Json::array();
    for (const ViewTensor& tensor : tensors) list.push_back(tensor.name.empty() ? -1 : number(tensor));
    return list;
  }
  Json take() { return std::move(rows_); }

 private:
  int64_t number(const ViewTensor& tensor) {
    const auto [found, fresh] = known_.try_emplace(tensor.name, rows_.size());
    if (fresh) rows_.push_back({tensor.name, tensor.type, tensor.shape});
    return static_cast<int64_t>(found->second);
  }

  std::unordered_map<std::string, size_t> known_;
  Json rows_ = Json::array();
};

/// JSON has no infinities; what no number is left out of the statistics anyway.
Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json weight_json(const ViewWeight& weight) {
  Json json{{"type", weight.type}, {"shape", weight.shape}, {"count", weight.count}, {"bytes", weight.bytes}};
  if (weight.looked_at == 0) return json;
  json["of"] = weight.looked_at;
  json["least"] = number_json(weight.least);
  json["most"] = number_json(weight.most);
  json["mean"] = number_json(weight.mean);
  json["deviation"] = number_json(weight.deviation);
  json["zeros"] = weight.zeros;
  json["notFinite"] = weight.not_finite;
  json["bins"] = weight.bins;
  json["values"] = weight.values;
  return json;
}

Json node_json(const ViewNode& node, TensorTable& tensors) {
  Json json{{"name", node.name}, {"op", node.op}};
  if (!node.domain.empty()) json["domain"] = node.domain;
  if (!node.precision.empty()) json["precision"] = node.precision;
  if (!node.source.empty()) json["source"] = node.source;
  if (node.ms > 0) json["ms"] = node.ms;
  if (node.marked) json["marked"] = true;
  if (!node.attributes.empty()) json["attributes"] = node.attributes;
  json["in"] = tensors.numbers(node.inputs);
  json["out"] = tensors.numbers(node.outputs);
  if (!node.bodies.empty()) json["bodies"] = node.bodies;
  if (!node.origin.empty()) json["origin"] = node.origin;
  return json;
}

Json graph_json(const ViewGraph& graph) {
  TensorTable tensors;
  Json inputs = tensors.numbers(graph.inputs), nodes = Json::array(), weights = Json::object();
  for (const ViewNode& node : graph.nodes) nodes.push_back(node_json(node, tensors));
  Json outputs = tensors.numbers(graph.outputs);
  for (const ViewWeight& weight : graph.weights) weights[weight.name] = weight_json(weight);
  return {{"title", graph.title},        {"inputs", std::move(inputs)},   {"outputs", std::move(outputs)},
          {"tensors", tensors.take()},   {"weights", std::move(weights)}, {"nodes", std::move(nodes)},
          {"sheets", sheets_json(graph)}};
}

/// A colour for each node and colouring, by the one rule that pictures have, too.
Json paints_json(const ViewGraph& graph) {
  static constexpr std::pair<const char*, ViewColour> kColourings[] = {{"type", ViewColour::type},
                                                                       {"precision", ViewColour::precision},
                                                                       {"time", ViewColour::time},
                                                                       {"source", ViewColour::source}};
  const double longest = longest_of(graph);
  Json paints = Json::object();
  for (const auto& [name, by] : kColourings) {
    std::unordered_map<std::string, size_t> known;
    Json palette = Json::array(), of_node = Json::array();
    for (const ViewNode& node : graph.nodes) {
      const std::string colour = colour_of(node, by, longest);
      const auto [found, fresh] = known.try_emplace(colour, palette.size());
      if (fresh) palette.push_back(colour);
      of_node.push_back(found->second);
    }
    paints[name] = {{"palette", std::move(palette)}, {"nodes", std::move(of_node)}};
  }
  return paints;
}

const char* word_of(ViewColour colour) {
  switch (colour) {
    case ViewColour::type: return "type";
    case ViewColour::precision: return "precision";
    case ViewColour::time: return "time";
    case ViewColour::source: return "source";
  }
  return "";
}

}  // namespace

Json view_json(std::span<const ViewedModel> views, ViewColour colour) {
  Json list = Json::array();
  for (const ViewedModel& view : views) {
    Json graphs = Json::array();
    for (const ViewGraph& graph : view.graphs) {
      graphs.push_back(graph_json(graph));
      graphs.back()["paints"] = paints_json(graph);
    }
    list.push_back(
        {{"title", view.title}, {"engine", view.is_engine}, {"facts", view.facts}, {"graphs", std::move(graphs)}});
  }
  return {{"colour", word_of(colour)},
          {"colours", colours_json()},
          {"box", {kBoxWidth, kBoxHeight}},
          {"views", std::move(list)}};
}

std::string view_page(std::span<const ViewedModel> views, ViewColour colour) {
  return page_text(page::view_html, view_json(views, colour), {page::graph_js, page::view_js});
}

}  // namespace hone
