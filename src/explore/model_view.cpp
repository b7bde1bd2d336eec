// SPDX-License-Identifier: Apache-2.0
#include "explore/model_view.h"

#include <fmt/format.h>

#include <re2/re2.h>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "explore/colours.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

ViewTensor view_of(const TensorRow& tensor) {
  std::vector<std::string> sizes;
  for (const int64_t size : tensor.dims) sizes.push_back(size < 0 ? "?" : std::to_string(size));
  return {tensor.name, tensor.element.name, join(sizes, "×"), false};
}

ViewNode view_of(const LayerRow& layer) {
  ViewNode node{.name = layer.name,
                .op = layer.type,
                .domain = {},
                .precision = layer.precision,
                .source = layer.tactic.substr(0, layer.tactic.find('.')),
                .attributes = {{"Tactic", layer.tactic}},
                .origin = layer.nodes,
                .ms = layer.average_ms};
  const Json attributes = Json::parse(layer.attributes, nullptr, false);
  static const std::set<std::string> kTold{"Name", "Inputs", "Outputs", "TacticName", "Metadata"};
  for (const auto& [key, value] : attributes.items())
    if (!kTold.contains(key))
      node.attributes.emplace_back(key, value.is_string() ? value.get<std::string>()
                                                          : value.dump(-1, ' ', false, Json::error_handler_t::replace));
  for (const TensorRow& tensor : layer.inputs) node.inputs.push_back(view_of(tensor));
  for (const TensorRow& tensor : layer.outputs) node.outputs.push_back(view_of(tensor));
  return node;
}

/// From light to dark, as heat is shown.
std::string heat(double part) {
  static constexpr std::array<std::array<double, 3>, 3> kStops{{{255, 245, 200}, {250, 165, 70}, {205, 60, 40}}};
  const double at = std::clamp(part, 0.0, 1.0) * 2;
  const size_t low = at >= 1 ? 1 : 0;
  const double over = at - static_cast<double>(low);
  std::string colour = "#";
  for (size_t c = 0; c < 3; ++c)
    colour += fmt::format("{:02x}", static_cast<int>(kStops[low][c] + over * (kStops[low + 1][c] - kStops[low][c])));
  return colour;
}

std::string colour_of_source(std::string_view source) {
  static constexpr std::string_view kColours[] = {"#8dd3c7", "#fdb462", "#bebada", "#fb8072",
                                                  "#80b1d3", "#b3de69", "#fccde5", "#ffed6f"};
  static constexpr std::string_view kKnown[] = {"cpu",      "onednn", "cuda",   "reference",
                                                "cublaslt", "cudnn",  "custom", "host"};
  const auto known = std::ranges::find(kKnown, source);
  const size_t at = known == std::end(kKnown) ? hash64(source) % std::size(kColours)
                                              : static_cast<size_t>(known - std::begin(kKnown));
  return std::string(source.empty() ? "#c3c8cf" : kColours[at]);
}

std::set<size_t> matching(const ViewGraph& graph, const std::string& query) {
  const re2::RE2 wanted(query, re2::RE2::Quiet);
  if (!wanted.ok())
    throw Error(fmt::format("--query={} is no regular expression: {}", query, wanted.error()),
                "for example conv|pool, a dot as \\.");
  const auto finds = [&](const std::string& text) { return re2::RE2::PartialMatch(text, wanted); };
  std::set<size_t> found;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const ViewNode& node = graph.nodes[i];
    bool hit = finds(node.name) || finds(node.op) || std::ranges::any_of(node.origin, finds);
    for (const std::vector<ViewTensor>* side : {&node.inputs, &node.outputs})
      hit = hit || std::ranges::any_of(*side, finds, &ViewTensor::name);
    if (hit) found.insert(i);
  }
  if (found.empty()) throw Error(fmt::format("--query={} finds nothing", query));
  return found;
}

size_t find_node(const ViewGraph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.nodes, name, &ViewNode::name);
  if (found != graph.nodes.end()) return static_cast<size_t>(found - graph.nodes.begin());
  std::vector<std::string_view> names;
  for (const ViewNode& node : graph.nodes) names.push_back(node.name);
  throw Error(fmt::format("--beam: there is no node {}", name), fmt::format("did you mean {}?", nearest(name, names)));
}

/// With what is within so many steps.
void widen(std::set<size_t>& kept, const std::vector<ViewEdge>& edges, int radius) {
  for (int step = 0; step < radius; ++step) {
    const std::set<size_t> inner = kept;
    for (const ViewEdge& edge : edges) {
      if (inner.contains(edge.from)) kept.insert(edge.to);
      if (inner.contains(edge.to)) kept.insert(edge.from);
    }
    if (kept.size() == inner.size()) return;
  }
}

/// What the nodes that are left read and nobody left makes is given; what somebody outside read is a result.
void leave_only(ViewGraph& graph, const std::set<size_t>& kept) {
  std::set<std::string> made, read, weights;
  ViewGraph part{.title = graph.title};
  for (const size_t i : kept) {
    for (const ViewTensor& tensor : graph.nodes[i].outputs) made.insert(tensor.name);
    for (const ViewTensor& tensor : graph.nodes[i].inputs) read.insert(tensor.name);
  }
  std::set<std::string> given;
  for (const size_t i : kept)
    for (const ViewTensor& tensor : graph.nodes[i].inputs)
      if (!tensor.name.empty() && !tensor.is_weight && !made.contains(tensor.name) && given.insert(tensor.name).second)
        part.inputs.push_back(tensor);
  for (const size_t i : kept)
    for (const ViewTensor& tensor : graph.nodes[i].outputs)
      if (!tensor.name.empty() && !read.contains(tensor.name)) part.outputs.push_back(tensor);
  for (ViewWeight& weight : graph.weights)
    if (read.contains(weight.name)) part.weights.push_back(std::move(weight));
  for (const size_t i : kept) part.nodes.push_back(std::move(graph.nodes[i]));
  graph = std::move(part);
}

}  // namespace

ViewColour parse_view_colour(std::string_view word) {
  static constexpr std::pair<std::string_view, ViewColour> kWords[] = {{"type", ViewColour::type},
                                                                       {"precision", ViewColour::precision},
                                                                       {"time", ViewColour::time},
                                                                       {"source", ViewColour::source}};
  for (const auto& [name, colour] : kWords)
    if (name == word) return colour;
  throw Error(fmt::format("--color={} is none of the colourings", word), "type, precision, time or source");
}

ViewedModel view_of(const EngineRows& engine) {
  ViewedModel view{.title = engine.title, .is_engine = true, .facts = engine.facts};
  ViewGraph graph{.title = engine.title};
  for (const LayerRow& layer : engine.layers) {
    ViewNode node = view_of(layer);
    // A view of a tensor is read as what it shows.
    for (ViewTensor& tensor : node.inputs)
      for (size_t hops = 0; hops <= engine.views.size(); ++hops) {
        const auto seen = engine.views.find(tensor.name);
        if (seen == engine.views.end()) break;
        tensor.name = seen->second;
      }
    graph.nodes.push_back(std::move(node));
  }
  std::set<std::string> made;
  for (const ViewNode& node : graph.nodes)
    for (const ViewTensor& tensor : node.outputs) made.insert(tensor.name);
  for (const TensorRow& binding : engine.bindings)
    (made.contains(binding.name) ? graph.outputs : graph.inputs).push_back(view_of(binding));
  view.graphs.push_back(std::move(graph));
  return view;
}

void tell_of_layers(ViewedModel& model, const ViewedModel& engine) {
  std::map<std::string_view, std::vector<const ViewNode*>> layers;
  for (const ViewNode& layer : engine.graphs.at(0).nodes)
    for (const std::string& node : layer.origin) layers[node].push_back(&layer);
  for (ViewGraph& graph : model.graphs)
    for (ViewNode& node : graph.nodes)
      if (const auto found = layers.find(node.name); found != layers.end())
        for (const ViewNode* layer : found->second) {
          node.ms += layer->ms / static_cast<double>(layer->origin.size());
          node.source = layer->source;
        }
}

void keep_part(ViewedModel& view, const ViewPart& part) {
  ViewGraph& graph = view.graphs.at(0);
  if (!part.beam.empty()) {
    const size_t centre = find_node(graph, part.beam);
    graph.nodes[centre].marked = true;
    std::set<size_t> kept{centre};
    widen(kept, edges_of(graph), part.radius);
    leave_only(graph, kept);
  }
  if (part.query.empty()) return;
  std::set<size_t> kept = matching(graph, part.query);
  widen(kept, edges_of(graph), 1);
  leave_only(graph, kept);
}

std::vector<ViewEdge> edges_of(const ViewGraph& graph) {
  std::unordered_map<std::string_view, size_t> maker;
  const bool in_order = [&] {  // a name that is written anew is read from its latest writer
    std::set<std::string_view> names;
    for (const ViewNode& node : graph.nodes)
      for (const ViewTensor& tensor : node.outputs)
        if (!tensor.name.empty() && !names.insert(tensor.name).second) return true;
    return false;
  }();
  const auto write = [&](size_t i) {
    for (const ViewTensor& tensor : graph.nodes[i].outputs)
      if (!tensor.name.empty()) maker[tensor.name] = i;
  };
  for (size_t i = 0; !in_order && i < graph.nodes.size(); ++i) write(i);
  std::vector<ViewEdge> edges;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ViewTensor& tensor : graph.nodes[i].inputs)
      if (const auto from = maker.find(tensor.name); !tensor.name.empty() && from != maker.end() && from->second != i)
        edges.push_back({from->second, i, &tensor});
    if (in_order) write(i);
  }
  return edges;
}

double longest_of(const ViewGraph& graph) {
  double longest = 0;
  for (const ViewNode& node : graph.nodes) longest = std::max(longest, node.ms);
  return longest;
}

std::string colour_of(const ViewNode& node, ViewColour by, double longest) {
  switch (by) {
    case ViewColour::type: return std::string(colour_of_type(node.op));
    case ViewColour::precision: return std::string(colour_of_precision(node.precision));
    case ViewColour::time: return heat(longest > 0 ? node.ms / longest : 0);
    case ViewColour::source: return colour_of_source(node.source);
  }
  return "";
}

}  // namespace hone
