// SPDX-License-Identifier: Apache-2.0
//
// A part that changes its type pays for conversions at its edges, which these times do not hold: so little gains are left alone,
// and the engine that results has to win against the others before it is taken.
#include "precision/mix.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace hone {
namespace {

constexpr double kWorthwhile = 0.85;     // of the time that a part takes in the base's type
constexpr double kLeastSaving = 0.0005;  // of the base's whole time

/// Nodes that share a layer in some engine.
class Parts {
 public:
  explicit Parts(std::span<const EngineTimes> engines) {
    for (const EngineTimes& engine : engines)
      for (const LayerTime& layer : engine.layers)
        for (const std::string& node : layer.nodes) join(number(node), number(layer.nodes.front()));
  }
  const std::map<std::string, size_t>& nodes() const { return numbers_; }
  size_t of(const std::string& node) const { return root(numbers_.at(node)); }
  size_t count() const { return parent_.size(); }

 private:
  size_t number(const std::string& node) {
    const auto [at, fresh] = numbers_.try_emplace(node, parent_.size());
    if (fresh) parent_.push_back(at->second);
    return at->second;
  }
  size_t root(size_t at) const {
    while (parent_[at] != at) at = parent_[at];
    return at;
  }
  void join(size_t a, size_t b) { parent_[root(a)] = root(b); }

  std::map<std::string, size_t> numbers_;
  std::vector<size_t> parent_;
};

/// By part; infinite where the engine folded a node of it away.
std::vector<double> part_times(const EngineTimes& engine, const Parts& parts) {
  std::vector<double> ms(parts.count());
  std::set<std::string> has;
  for (const LayerTime& layer : engine.layers) {
    if (layer.nodes.empty()) continue;
    ms[parts.of(layer.nodes.front())] += layer.ms;
    has.insert(layer.nodes.begin(), layer.nodes.end());
  }
  for (const auto& [node, number] : parts.nodes())
    if (!has.contains(node)) ms[parts.of(node)] = std::numeric_limits<double>::infinity();
  return ms;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> mixed_types(std::span<const EngineTimes> engines, size_t base) {
  const Parts parts(engines);
  std::vector<std::vector<double>> times;
  for (const EngineTimes& engine : engines) times.push_back(part_times(engine, parts));
  double total = 0;
  for (const LayerTime& layer : engines[base].layers) total += layer.ms;

  const auto type_of = [&](size_t part) -> const std::string& {
    size_t fastest = base;
    for (size_t engine = 0; engine < engines.size(); ++engine)
      if (times[engine][part] < times[fastest][part]) fastest = engine;
    const double before = times[base][part], after = times[fastest][part];
    const bool gains = after < kWorthwhile * before && before - after > kLeastSaving * total;
    return engines[gains ? fastest : base].type;
  };
  std::vector<std::pair<std::string, std::string>> result{{"*", engines[base].type}};
  for (const auto& [node, number] : parts.nodes())
    if (const std::string& type = type_of(parts.of(node)); type != engines[base].type) result.emplace_back(node, type);
  if (result.size() == 1) result.clear();
  return result;
}

}  // namespace hone
