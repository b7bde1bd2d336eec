// SPDX-License-Identifier: Apache-2.0
//
// What a model view shows: graphs of nodes with attributes, tensors and weights, a model's or an engine's alike. Bodies and functions are
// graphs of their own, which the nodes that run them name.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "explore/engine_file.h"

namespace hone {

struct ViewWeight {
  std::string name, type, shape;  // "FP32", "16×3×3×3"
  int64_t count = 0, bytes = 0;
  int64_t looked_at = 0;  // elements that the figures below are of; 0: they are not known
  double least = 0, most = 0, mean = 0, deviation = 0;
  int64_t zeros = 0, not_finite = 0;
  std::vector<int64_t> bins;  // from the least to the most
  std::string values;         // how they begin
};

struct ViewTensor {
  std::string name, type, shape;  // all may be empty
  bool is_weight = false;
};

struct ViewNode {
  std::string name, op, domain, precision, source;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<ViewTensor> inputs, outputs;
  std::vector<std::pair<std::string, size_t>> bodies;  // what they are called, index of the graph
  std::vector<std::string> origin;                     // nodes of the model that a layer stands for
  double ms = 0;
  bool marked = false;
};

struct ViewGraph {
  std::string title;
  std::vector<ViewNode> nodes;
  std::vector<ViewTensor> inputs, outputs;
  std::vector<ViewWeight> weights;
};

struct ViewedModel {
  std::string title;
  bool is_engine = false;
  std::vector<std::pair<std::string, std::string>> facts;
  std::vector<ViewGraph> graphs;  // the first is the model's own
};

enum class ViewColour { type, precision, time, source };
/// Throws Error for another word.
ViewColour parse_view_colour(std::string_view word);

/// An engine's layers, with what is known of it.
ViewedModel view_of(const EngineRows& engine);
/// Gives the nodes of a model what is known of the layers that stand for them: source and time, shared between the nodes of one layer.
void tell_of_layers(ViewedModel& model, const ViewedModel& engine);

struct ViewPart {
  std::string beam;  // a node: only what is within `radius` steps of it, and it is marked
  int radius = 0;
  std::string query;  // a regular expression: only what it finds in names, operators and tensors, and their neighbours
};
/// Leaves only the part, of the first graph. Throws Error for a node or an expression that is not there or not right.
void keep_part(ViewedModel& view, const ViewPart& part);

/// Pairs of nodes of a graph, a reader for each tensor that another one makes.
struct ViewEdge {
  size_t from, to;
  const ViewTensor* tensor;
};
std::vector<ViewEdge> edges_of(const ViewGraph& graph);

/// "#76b900"; `longest` is the time of the slowest node.
std::string colour_of(const ViewNode& node, ViewColour by, double longest);
double longest_of(const ViewGraph& graph);

}  // namespace hone
