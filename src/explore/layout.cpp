// SPDX-License-Identifier: Apache-2.0
//
// What stands in rows are boxes and, numbered behind them, the places of long edges.
#include "explore/layout.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace hone {
namespace {

constexpr int kSweeps = 4, kMoves = 6;
constexpr size_t kLongest = 200;  // rows; longer edges go straight
constexpr size_t kMostPlaces = 60'000;
constexpr double kPlaceWidth = 8;

using Lists = std::vector<std::vector<size_t>>;
using Edges = std::vector<std::pair<size_t, size_t>>;

struct Rows {
  std::vector<size_t> row_of;
  Lists rows, before, after;  // neighbours above and below
  size_t boxes = 0;
  Lists places;  // of each edge

  size_t add(size_t row) {
    row_of.push_back(row);
    before.emplace_back(), after.emplace_back();
    return row_of.size() - 1;
  }
  void connect(size_t from, size_t to) { after[from].push_back(to), before[to].push_back(from); }
};

/// As late as its readers allow, so that a constant stands above the one that reads it; what nobody reads, as early as can be.
std::vector<size_t> depths(size_t nodes, const Edges& edges) {
  Lists after(nodes);
  for (const auto& [from, to] : edges)
    if (from < to && to < nodes) after[from].push_back(to);
  std::vector<size_t> row_of(nodes, 0);
  for (size_t i = 0; i < nodes; ++i)
    for (const size_t to : after[i]) row_of[to] = std::max(row_of[to], row_of[i] + 1);
  for (size_t i = nodes; i-- > 0;) {
    size_t first = SIZE_MAX;
    for (const size_t to : after[i]) first = std::min(first, row_of[to]);
    if (first != SIZE_MAX) row_of[i] = first - 1;
  }
  return row_of;
}

Rows rows_of(size_t nodes, const Edges& edges) {
  Rows result;
  result.boxes = nodes;
  for (const size_t row : depths(nodes, edges)) result.add(row);
  result.places.resize(edges.size());
  std::map<std::pair<size_t, size_t>, size_t> taken;  // edges of one producer share their places
  for (size_t e = 0; e < edges.size(); ++e) {
    const auto [from, to] = edges[e];
    if (from >= to || to >= nodes) continue;
    const size_t first = result.row_of[from] + 1, last = result.row_of[to];
    size_t at = from;
    if (last - first <= kLongest && result.row_of.size() < nodes + kMostPlaces)
      for (size_t row = first; row < last; ++row) {
        const auto [place, fresh] = taken.try_emplace({from, row}, 0);
        if (fresh) {
          place->second = result.add(row);
          result.connect(at, place->second);
        }
        at = place->second;
        result.places[e].push_back(at);
      }
    result.connect(at, to);
  }
  for (size_t i = 0; i < result.row_of.size(); ++i) {
    if (result.rows.size() <= result.row_of[i]) result.rows.resize(result.row_of[i] + 1);
    result.rows[result.row_of[i]].push_back(i);
  }
  return result;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// The median of a node's neighbours' places, or its own where it has none.
std::vector<double> wishes(const std::vector<size_t>& row, const Lists& neighbours, const std::vector<double>& places) {
  std::vector<double> wanted;
  for (const size_t node : row) {
    std::vector<double> values;
    for (const size_t each : neighbours[node]) values.push_back(places[each]);
    wanted.push_back(values.empty() ? places[node] : median_of(std::move(values)));
  }
  return wanted;
}

void order_rows(Rows& graph) {
  std::vector<double> places(graph.row_of.size());
  const auto number = [&](const std::vector<size_t>& row) {
    for (size_t i = 0; i < row.size(); ++i) places[row[i]] = static_cast<double>(i);
  };
  std::ranges::for_each(graph.rows, number);
  const auto order = [&](std::vector<size_t>& row, const Lists& neighbours) {
    const std::vector<double> wanted = wishes(row, neighbours, places);
    std::vector<size_t> by(row.size());
    std::iota(by.begin(), by.end(), size_t{0});
    std::ranges::stable_sort(by, {}, [&](size_t i) { return wanted[i]; });
    std::vector<size_t> sorted;
    for (const size_t i : by) sorted.push_back(row[i]);
    row = std::move(sorted);
    number(row);
  };
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::vector<size_t>& row : graph.rows) order(row, graph.before);
    for (auto row = graph.rows.rbegin(); row != graph.rows.rend(); ++row) order(*row, graph.after);
  }
}

class Placer {
 public:
  Placer(const Rows& graph, const BoxSizes& sizes) : graph_(graph), sizes_(sizes), x_(graph.row_of.size()) {
    for (const std::vector<size_t>& row : graph.rows) {
      double right = 0;
      for (size_t i = 0; i < row.size(); ++i) x_[row[i]] = right += i == 0 ? 0 : step(row[i - 1], row[i]);
      for (const size_t node : row) x_[node] -= right / 2;
    }
  }
  std::vector<double> place() {
    for (int move = 0; move < kMoves; ++move) {
      const Lists& neighbours = move % 2 == 0 ? graph_.before : graph_.after;
      for (const std::vector<size_t>& row : graph_.rows) move_row(row, wishes(row, neighbours, x_));
    }
    return x_;
  }

 private:
  double width(size_t node) const { return node < graph_.boxes ? sizes_.width : kPlaceWidth; }
  double step(size_t left, size_t right) const { return (width(left) + width(right)) / 2 + sizes_.gap_x; }
  /// Each as near to its wish as its neighbours in the row allow: from the left, then from the right, and the middle of both.
  void move_row(const std::vector<size_t>& row, const std::vector<double>& wanted) {
    std::vector<double> left(wanted), right(wanted);
    for (size_t i = 1; i < row.size(); ++i) left[i] = std::max(wanted[i], left[i - 1] + step(row[i - 1], row[i]));
    for (size_t i = row.size() - 1; i-- > 0;) right[i] = std::min(wanted[i], right[i + 1] - step(row[i], row[i + 1]));
    for (size_t i = 0; i < row.size(); ++i) x_[row[i]] = (left[i] + right[i]) / 2;
  }

  const Rows& graph_;
  const BoxSizes& sizes_;
  std::vector<double> x_;
};

}  // namespace

GraphLayout place_graph(size_t nodes, const Edges& edges, const BoxSizes& sizes) {
  GraphLayout layout;
  layout.bends.resize(edges.size());
  if (nodes == 0) return layout;
  Rows graph = rows_of(nodes, edges);
  order_rows(graph);
  const std::vector<double> x = Placer(graph, sizes).place();
  const double step = sizes.width + sizes.gap_x, low = std::ranges::min(x);
  const auto placed = [&](size_t i) {
    const double row =
        sizes.height / 2 + sizes.gap_y / 2 + static_cast<double>(graph.row_of[i]) * (sizes.height + sizes.gap_y);
    return PlacedNode{x[i] - low + step / 2, row};
  };
  for (size_t i = 0; i < nodes; ++i) layout.nodes.push_back(placed(i));
  for (size_t e = 0; e < edges.size(); ++e)
    for (const size_t place : graph.places[e]) layout.bends[e].push_back(placed(place));
  layout.width = std::ranges::max(x) - low + step;
  layout.height = static_cast<double>(graph.rows.size()) * (sizes.height + sizes.gap_y);
  return layout;
}

}  // namespace hone
