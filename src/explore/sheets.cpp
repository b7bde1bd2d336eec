// SPDX-License-Identifier: Apache-2.0
#include "explore/sheets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/text.h"
#include "explore/layout.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFewest = 2;              // nodes of a scope that is folded
constexpr size_t kDeepest = 32;            // scopes
constexpr size_t kMostWork = 400'000'000;  // scopes times nodes; what is larger stays unfolded
constexpr size_t kMostPorts = 24;          // of a sheet, either way

/// A scope and what is in it, in the order of the nodes.
struct Scope {
  std::string title;
  size_t parent = 0, nodes = 0;
  std::vector<std::pair<bool, size_t>> members;  // true: a scope
};

std::vector<std::string_view> scopes_in(std::string_view name) {
  std::vector<std::string_view> parts = split(name, '/');
  std::erase_if(parts, [](std::string_view part) { return part.empty(); });
  if (!parts.empty()) parts.pop_back();
  if (parts.size() > kDeepest) parts.resize(kDeepest);
  return parts;
}

class Scopes {
 public:
  explicit Scopes(const ViewGraph& graph) {
    all_.push_back({graph.title, 0, 0, {}});
    std::unordered_map<std::string, size_t> known;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      size_t at = 0;
      std::string path;
      ++all_[0].nodes;
      // The name of a fused layer is that of its first part.
      const std::string_view name = graph.nodes[i].name;
      for (const std::string_view part : scopes_in(name.substr(0, name.find(" + ")))) {
        path += fmt::format("/{}", part);
        const auto [scope, fresh] = known.try_emplace(path, all_.size());
        if (fresh) {
          all_[at].members.emplace_back(true, all_.size());
          all_.push_back({path, at, 0, {}});
        }
        at = scope->second;
        ++all_[at].nodes;
      }
      all_[at].members.emplace_back(false, i);
    }
    for (size_t i = 0; i < all_.size(); ++i) flatten(i);
  }
  const std::vector<Scope>& all() const { return all_; }

 private:
  /// Scopes of one node, or with nothing but another scope, are no help: their members move up.
  void flatten(size_t scope) {
    std::vector<std::pair<bool, size_t>> left, todo(all_[scope].members.rbegin(), all_[scope].members.rend());
    while (!todo.empty()) {
      const auto [is_scope, index] = todo.back();
      todo.pop_back();
      if (is_scope && (all_[index].nodes < kFewest || all_[index].members.size() == 1)) {
        todo.insert(todo.end(), all_[index].members.rbegin(), all_[index].members.rend());
        all_[index].members.clear();
      } else {
        if (is_scope) all_[index].parent = scope;
        left.emplace_back(is_scope, index);
      }
    }
    all_[scope].members = std::move(left);
  }

  std::vector<Scope> all_;
};

struct Item {
  const char* kind;
  size_t index;  // of a node, a sheet, or a tensor that is given or a result
};

/// One sheet being made: items, and edges between them with their tensors.
class Sheet {
 public:
  size_t add(const char* kind, size_t index) {
    items_.push_back({kind, index});
    return items_.size() - 1;
  }
  size_t size() const { return items_.size(); }
  void connect(size_t from, size_t to, const ViewTensor* tensor) {
    if (from == to) return;
    const auto [found, fresh] = edge_of_.try_emplace(from * kPrime + to, edges_.size());
    if (fresh) edges_.push_back({from, to, tensor, 1});
    else ++edges_[found->second].count;
  }
  Json json(std::string_view title, size_t parent) const {
    std::vector<std::pair<size_t, size_t>> pairs;
    for (const Edge& edge : edges_) pairs.emplace_back(edge.from, edge.to);
    const GraphLayout layout = place_graph(
        items_.size(), pairs, {.width = kBoxWidth, .height = kBoxHeight, .gap_x = kBoxGapX, .gap_y = kBoxGapY});
    Json items = Json::array(), edges = Json::array();
    for (size_t i = 0; i < items_.size(); ++i)
      items.push_back({items_[i].kind, items_[i].index, rounded(layout.nodes[i].x), rounded(layout.nodes[i].y)});
    for (size_t e = 0; e < edges_.size(); ++e) {
      Json edge{edges_[e].from, edges_[e].to, text_of(*edges_[e].tensor), edges_[e].tensor->type, edges_[e].count};
      for (const PlacedNode& bend : layout.bends[e]) edge.insert(edge.end(), {rounded(bend.x), rounded(bend.y)});
      edges.push_back(std::move(edge));
    }
    return {{"title", title},
            {"parent", parent},
            {"items", std::move(items)},
            {"edges", std::move(edges)},
            {"width", rounded(layout.width)},
            {"height", rounded(layout.height)}};
  }

 private:
  struct Edge {
    size_t from, to;
    const ViewTensor* tensor;
    size_t count;
  };
  static constexpr size_t kPrime = size_t{1} << 32;
  static int64_t rounded(double value) { return std::llround(value); }
  static std::string text_of(const ViewTensor& tensor) {
    return tensor.shape.empty() ? tensor.type : fmt::format("{} {}", tensor.shape, tensor.type);
  }

  std::vector<Item> items_;
  std::vector<Edge> edges_;
  std::unordered_map<size_t, size_t> edge_of_;
};

/// Where each node stands on a sheet: itself, the scope that it is in, or -1 where it is not there.
constexpr size_t kNowhere = SIZE_MAX;

class Folder {
 public:
  explicit Folder(const ViewGraph& graph) : graph_(graph), edges_(edges_of(graph)), scopes_(graph) {
    for (size_t i = 0; i < graph.inputs.size(); ++i) given_[graph.inputs[i].name] = i;
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for (const ViewTensor& tensor : graph.nodes[i].outputs) maker_[tensor.name] = i;
    readers_.resize(graph.inputs.size());
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for (const ViewTensor& tensor : graph.nodes[i].inputs)
        if (const auto from = given_.find(tensor.name); !tensor.name.empty() && from != given_.end())
          readers_[from->second].push_back(i);
  }

  Json sheets() {
    Json all = Json::array();
    std::vector<size_t> every(graph_.nodes.size());
    Sheet flat;
    const std::vector<size_t> in = add_inputs(flat);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) every[i] = flat.add("node", i);
    finish(flat, every, in);
    all.push_back(flat.json(graph_.title, 0));
    if (number_sheets() < 2 || scopes_.all().size() > kMostWork / graph_.nodes.size()) return all;
    for (size_t scope = 0; scope < scopes_.all().size(); ++scope)
      if (sheet_of_[scope] != kNowhere) all.push_back(fold(scope));
    return all;
  }

 private:
  std::vector<size_t> add_inputs(Sheet& sheet) {
    std::vector<size_t> items;
    for (size_t i = 0; i < graph_.inputs.size(); ++i) items.push_back(sheet.add("in", i));
    return items;
  }
  /// Edges of the nodes that stand somewhere, those of the graph's inputs and its outputs.
  void finish(Sheet& sheet, const std::vector<size_t>& place, const std::vector<size_t>& in) {
    for (size_t i = 0; i < in.size(); ++i)
      for (const size_t reader : readers_[i])
        if (place[reader] != kNowhere) sheet.connect(in[i], place[reader], &graph_.inputs[i]);
    for (const ViewEdge& edge : edges_)
      if (place[edge.from] != kNowhere && place[edge.to] != kNowhere)
        sheet.connect(place[edge.from], place[edge.to], edge.tensor);
    for (size_t i = 0; i < graph_.outputs.size(); ++i)
      if (const auto from = maker_.find(graph_.outputs[i].name);
          from != maker_.end() && place[from->second] != kNowhere)
        sheet.connect(place[from->second], sheet.add("out", i), &graph_.outputs[i]);
  }
  /// How many there are beside the unfolded one.
  size_t number_sheets() {
    size_t number = 1;
    sheet_of_.assign(scopes_.all().size(), kNowhere);
    for (size_t scope = 0; scope < scopes_.all().size(); ++scope)
      if (scope == 0 || !scopes_.all()[scope].members.empty()) sheet_of_[scope] = number++;
    return number - 1;
  }
  void put(size_t scope, size_t item, std::vector<size_t>& place) const {
    for (const auto& [is_scope, index] : scopes_.all()[scope].members)
      if (is_scope) put(index, item, place);
      else place[index] = item;
  }
  /// A scope as a sheet: what comes from elsewhere, its members, and where their results go.
  Json fold(size_t number) {
    const Scope& scope = scopes_.all()[number];
    Sheet sheet;
    std::vector<size_t> place(graph_.nodes.size(), kNowhere), from(place), to(place);
    put(number, 0, place);
    std::vector<size_t> in;
    if (number == 0) in = add_inputs(sheet);
    for (const ViewEdge& edge : edges_)
      if (place[edge.from] == kNowhere && place[edge.to] != kNowhere && from[edge.from] == kNowhere &&
          sheet.size() < kMostPorts)
        from[edge.from] = sheet.add("from", edge.from);
    for (const auto& [is_scope, index] : scope.members) {
      const size_t item = is_scope ? sheet.add("sheet", sheet_of_[index]) : sheet.add("node", index);
      if (is_scope) put(index, item, place);
      else place[index] = item;
    }
    if (number == 0) {
      finish(sheet, place, in);
      return sheet.json(scope.title, 0);
    }
    size_t ports = 0;
    for (const ViewEdge& edge : edges_) {
      const size_t source = place[edge.from] == kNowhere ? from[edge.from] : place[edge.from];
      if (place[edge.to] != kNowhere && source != kNowhere) sheet.connect(source, place[edge.to], edge.tensor);
      if (place[edge.to] != kNowhere || place[edge.from] == kNowhere) continue;
      if (to[edge.to] == kNowhere && ports < kMostPorts) to[edge.to] = sheet.add("to", edge.to), ++ports;
      if (to[edge.to] != kNowhere) sheet.connect(place[edge.from], to[edge.to], edge.tensor);
    }
    return sheet.json(scope.title, sheet_of_[scope.parent]);
  }

  const ViewGraph& graph_;
  std::vector<ViewEdge> edges_;
  Scopes scopes_;
  std::unordered_map<std::string_view, size_t> given_, maker_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<size_t> sheet_of_;
};

}  // namespace

nlohmann::ordered_json sheets_json(const ViewGraph& graph) { return Folder(graph).sheets(); }

}  // namespace hone
