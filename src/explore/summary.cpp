// SPDX-License-Identifier: Apache-2.0
#include "explore/summary.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "explore/hazards.h"

namespace hone {
namespace {

struct Line {
  std::string name;
  size_t count = 0;
  double ms = 0, share = 0;
};

std::vector<Line> lines_of(const EngineRows& engine, const SummaryOptions& options) {
  std::map<std::string, Line> by_name;
  std::vector<Line> lines;
  for (const LayerRow& row : engine.layers) {
    const std::string name = options.by_tactic ? row.tactic.substr(0, row.tactic.find('(')) : row.name;
    Line& line = by_name[name];
    line.name = name;
    ++line.count;
    line.ms += row.average_ms;
    line.share += row.share;
  }
  for (auto& [name, line] : by_name) lines.push_back(std::move(line));
  switch (options.key) {
    case SortKey::latency: std::ranges::stable_sort(lines, std::greater(), &Line::ms); break;
    case SortKey::count: std::ranges::stable_sort(lines, std::greater(), &Line::count); break;
    case SortKey::name: break;
  }
  return lines;
}

/// "FP32 57.1 %, INT8 42.9 %" of the time, of the layers where no time is known.
std::string precisions(const EngineRows& engine) {
  std::map<std::string, double> shares;
  for (const LayerRow& row : engine.layers)
    shares[row.precision] += engine.profiled ? row.share : 100.0 / static_cast<double>(engine.layers.size());
  std::string text;
  for (const auto& [name, share] : shares)
    text += fmt::format("{}{} {:.1f} %", text.empty() ? "" : ", ", name.empty() ? "none" : name, share);
  return text;
}

}  // namespace

std::vector<std::string> summary_lines(const EngineRows& engine, const SummaryOptions& options) {
  int64_t weights = 0, activations = 0;
  for (const LayerRow& row : engine.layers) weights += row.weight_bytes, activations += row.activation_bytes;
  std::vector<std::string> text{engine.title};
  const auto pair = [&](std::string_view label, const std::string& value) {
    text.push_back(fmt::format("  {:<12} {}", label, value));
  };
  for (const TensorRow& tensor : engine.bindings)
    pair("binding", fmt::format("{} [{}] {}", tensor.name, fmt::join(tensor.dims, ","), tensor.element.name));
  const std::string mean = engine.rounds > 0 ? fmt::format(", the mean of {}", engine.rounds) : "";
  pair("layers", fmt::format("{}{}", engine.layers.size(),
                             engine.profiled ? fmt::format(", {:.4f} ms an inference{}", engine.total_ms(), mean)
                                             : ", no profile was given"));
  if (engine.queries_per_second > 0)
    pair("queries", fmt::format("{}, {:.1f} a second", engine.latencies.size(), engine.queries_per_second));
  pair("weights", fmt::format("{:.3f} MB", static_cast<double>(weights) / 1e6));
  pair("activations", fmt::format("{:.3f} MB read and written", static_cast<double>(activations) / 1e6));
  pair("precision", precisions(engine) + (engine.profiled ? " of the time" : " of the layers"));
  for (const auto& [what, value] : engine.facts) pair(what, value);
  text.push_back(
      fmt::format("{:>10}{:>12}{:>9}   {}", "latency %", "ms", "count", options.by_tactic ? "tactic" : "layer"));
  for (const Line& line : lines_of(engine, options))
    text.push_back(fmt::format("{:>10.2f}{:>12.4f}{:>9}   {}", line.share, line.ms, line.count, line.name));
  const std::vector<Hazard> hazards = find_hazards(engine);
  if (!hazards.empty()) text.push_back(fmt::format("hazards: {}", hazards.size()));
  for (const Hazard& each : hazards)
    text.push_back(fmt::format("  {}: {}; {}", each.layer, each.hazard, each.mitigation));
  return text;
}

}  // namespace hone
