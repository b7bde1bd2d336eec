// SPDX-License-Identifier: Apache-2.0
#include "explore/layout.h"

#include <algorithm>
#include <numeric>

namespace hone {
namespace {

constexpr int kSweeps = 4, kMoves = 6;

using Lists = std::vector<std::vector<size_t>>;

struct Rows {
  std::vector<size_t> row_of;
  Lists rows, before, after;  // neighbours above and below
};

Rows rows_of(size_t nodes, const std::vector<std::pair<size_t, size_t>>& edges) {
  Rows result{std::vector<size_t>(nodes, 0), {}, Lists(nodes), Lists(nodes)};
  for (const auto& [from, to] : edges)
    if (from < to && to < nodes) result.after[from].push_back(to), result.before[to].push_back(from);
  for (size_t i = 0; i < nodes; ++i)
    for (const size_t to : result.after[i]) result.row_of[to] = std::max(result.row_of[to], result.row_of[i] + 1);
  for (size_t i = 0; i < nodes; ++i) {
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

/// Each box as near to its wish as its neighbours in the row allow: from the left, then back from the right by half of what is over.
void place_row(const std::vector<size_t>& row, const std::vector<double>& wanted, double step, std::vector<double>& x) {
  std::vector<double> left(row.size()), right(row.size());
  for (size_t i = 0; i < row.size(); ++i) left[i] = i == 0 ? wanted[i] : std::max(wanted[i], left[i - 1] + step);
  for (size_t i = row.size(); i-- > 0;)
    right[i] = i + 1 == row.size() ? wanted[i] : std::min(wanted[i], right[i + 1] - step);
  for (size_t i = 0; i < row.size(); ++i) x[row[i]] = (left[i] + right[i]) / 2;
}

}  // namespace

GraphLayout place_graph(size_t nodes, const std::vector<std::pair<size_t, size_t>>& edges, const BoxSizes& sizes) {
  Rows graph = rows_of(nodes, edges);
  order_rows(graph);
  const double step = sizes.width + sizes.gap_x;
  std::vector<double> x(nodes);
  for (const std::vector<size_t>& row : graph.rows)
    for (size_t i = 0; i < row.size(); ++i)
      x[row[i]] = (static_cast<double>(i) - static_cast<double>(row.size() - 1) / 2) * step;
  for (int move = 0; move < kMoves; ++move) {
    const Lists& neighbours = move % 2 == 0 ? graph.before : graph.after;
    for (const std::vector<size_t>& row : graph.rows) place_row(row, wishes(row, neighbours, x), step, x);
  }
  GraphLayout layout;
  if (nodes == 0) return layout;
  const auto [low, high] = std::ranges::minmax(x);
  for (size_t i = 0; i < nodes; ++i)
    layout.nodes.push_back(
        {x[i] - low + step / 2,
         sizes.height / 2 + sizes.gap_y / 2 + static_cast<double>(graph.row_of[i]) * (sizes.height + sizes.gap_y)});
  layout.width = high - low + step;
  layout.height = static_cast<double>(graph.rows.size()) * (sizes.height + sizes.gap_y);
  return layout;
}

}  // namespace hone
