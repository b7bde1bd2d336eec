// SPDX-License-Identifier: Apache-2.0
#include "explore/view_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "explore/colours.h"

namespace hone {
namespace {

constexpr size_t kMostNameRows = 6, kWeightRows = 4, kTellBytes = 2000;

std::string type_text(const ViewTensor& tensor) {
  return tensor.shape.empty() ? tensor.type : fmt::format("[{}] {}", tensor.shape, tensor.type);
}

/// Names of fused layers are long: a row for each part.
void add_name(std::vector<DrawnRow>& rows, std::string_view name) {
  size_t at = 0, count = 0;
  while (at <= name.size() && count++ < kMostNameRows) {
    const size_t end = std::min(name.find(" + ", at), name.size());
    rows.push_back({shortened(name.substr(at, end - at))});
    at = end == name.size() ? end + 1 : end + 3;
  }
  if (at <= name.size()) rows.push_back({"…"});
}

DrawnBox view_box(const ViewNode& node, std::string fill) {
  DrawnBox box{.rows = {{node.ms > 0 ? fmt::format("{}  {:.4f} ms", shortened(node.op), node.ms) : shortened(node.op),
                         {},
                         true}},
               .fill = std::move(fill),
               .marked = node.marked,
               .tells = node.name};
  add_name(box.rows, node.name);
  size_t weights = 0;
  for (const ViewTensor& tensor : node.inputs)
    if (tensor.is_weight && ++weights <= kWeightRows)
      box.rows.push_back({shortened(fmt::format("{} {}", shortened(tensor.name, 20), type_text(tensor)))});
  for (const auto& [name, value] : node.attributes)
    box.tells += fmt::format("\n{}: {}", name, shortened(value, kTellBytes));
  return box;
}

DrawnBox view_box(const ViewTensor& tensor) {
  return {.rows = {{shortened(tensor.name), {}, true}, {type_text(tensor)}},
          .fill = "#D3D3D3",
          .region = true,
          .tells = tensor.name};
}

}  // namespace

Drawing draw_view(const ViewedModel& view, ViewColour colour) {
  const ViewGraph& graph = view.graphs.at(0);
  const double longest = longest_of(graph);
  Drawing drawing;
  const size_t first = graph.inputs.size();
  std::unordered_map<std::string_view, size_t> given, maker;
  for (const ViewTensor& tensor : graph.inputs) {
    given[tensor.name] = drawing.boxes.size();
    drawing.boxes.push_back(view_box(tensor));
  }
  for (const ViewNode& node : graph.nodes) drawing.boxes.push_back(view_box(node, colour_of(node, colour, longest)));
  const auto arrow = [&](size_t from, size_t to, const ViewTensor& tensor) {
    drawing.arrows.push_back({from, to, type_text(tensor), colour_of_precision(tensor.type)});
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ViewTensor& tensor : graph.nodes[i].inputs)
      if (const auto from = given.find(tensor.name); from != given.end()) arrow(from->second, first + i, tensor);
    for (const ViewTensor& tensor : graph.nodes[i].outputs) maker[tensor.name] = i;
  }
  for (const ViewEdge& edge : edges_of(graph)) arrow(first + edge.from, first + edge.to, *edge.tensor);
  for (const ViewTensor& tensor : graph.outputs)
    if (const auto from = maker.find(tensor.name); from != maker.end()) {
      arrow(first + from->second, drawing.boxes.size(), tensor);
      drawing.boxes.push_back(view_box(tensor));
    }
  return drawing;
}

}  // namespace hone
