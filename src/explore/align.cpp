// SPDX-License-Identifier: Apache-2.0
//
// Layers of the two that share a node are connected; what is connected is a group. All others are matched as two texts are: the longest common
// sequence of signatures.
#include "explore/align.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <numeric>

namespace hone {
namespace {

constexpr size_t kLongestMatch = 4000;  // of each engine; beyond it the table of the match would not fit

class Groups {
 public:
  explicit Groups(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), size_t{0}); }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) {
    a = find(a), b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<size_t> parent_;
};

/// Type and shapes without the batch.
std::string signature(const LayerRow& row) {
  std::string text = row.type;
  for (const std::vector<TensorRow>* side : {&row.inputs, &row.outputs}) {
    text += '|';
    if (!side->empty())
      for (size_t i = 1; i < side->front().dims.size(); ++i) text += fmt::format("{},", side->front().dims[i]);
  }
  return text;
}

struct Signed {
  size_t layer;
  std::string text;
};

std::vector<Signed> signed_layers(std::span<const LayerRow> rows, const std::vector<bool>& taken) {
  std::vector<Signed> left;
  for (size_t i = 0; i < rows.size() && left.size() < kLongestMatch; ++i)
    if (!taken[i]) left.push_back({i, signature(rows[i])});
  return left;
}

/// The longest common sequence.
std::vector<LayerPair> match(const std::vector<Signed>& a, const std::vector<Signed>& b) {
  const size_t width = b.size() + 1;
  std::vector<uint16_t> longest((a.size() + 1) * width, 0);
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      longest[i * width + j] = a[i].text == b[j].text
                                   ? static_cast<uint16_t>(longest[(i + 1) * width + j + 1] + 1)
                                   : std::max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  std::vector<LayerPair> pairs;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();)
    if (a[i].text == b[j].text) pairs.push_back({{a[i++].layer}, {b[j++].layer}});
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) ++i;
    else ++j;
  return pairs;
}

/// The layer of each node that only one layer stands for. A conversion that several layers read stands in all of them, and would
/// make one group of what it feeds.
std::map<std::string_view, size_t> lone_owners(std::span<const LayerRow> rows) {
  std::map<std::string_view, size_t> owner, uses;
  for (size_t i = 0; i < rows.size(); ++i)
    for (const std::string& node : rows[i].nodes) owner[node] = i, ++uses[node];
  std::erase_if(owner, [&](const auto& each) { return uses.at(each.first) > 1; });
  return owner;
}

std::vector<LayerPair> by_nodes(std::span<const LayerRow> first, std::span<const LayerRow> second) {
  Groups groups(first.size() + second.size());
  std::vector<LayerPair> pairs(first.size() + second.size());
  const std::map<std::string_view, size_t> owners = lone_owners(first);
  for (const auto& [node, layer] : lone_owners(second))
    if (const auto other = owners.find(node); other != owners.end()) groups.join(other->second, first.size() + layer);
  for (size_t i = 0; i < first.size(); ++i) pairs[groups.find(i)].first.push_back(i);
  for (size_t i = 0; i < second.size(); ++i) pairs[groups.find(first.size() + i)].second.push_back(i);
  std::erase_if(pairs, [](const LayerPair& pair) { return pair.first.empty() || pair.second.empty(); });
  return pairs;
}

}  // namespace

std::vector<LayerPair> align_layers(std::span<const LayerRow> first, std::span<const LayerRow> second) {
  std::vector<LayerPair> pairs = by_nodes(first, second);
  std::vector<bool> taken_first(first.size()), taken_second(second.size());
  const auto take = [&](const std::vector<LayerPair>& some) {
    for (const LayerPair& pair : some) {
      for (const size_t i : pair.first) taken_first[i] = true;
      for (const size_t i : pair.second) taken_second[i] = true;
    }
  };
  take(pairs);
  const std::vector<LayerPair> matched = match(signed_layers(first, taken_first), signed_layers(second, taken_second));
  take(matched);
  pairs.insert(pairs.end(), matched.begin(), matched.end());
  for (size_t i = 0; i < first.size(); ++i)
    if (!taken_first[i]) pairs.push_back({{i}, {}});
  for (size_t i = 0; i < second.size(); ++i)
    if (!taken_second[i]) pairs.push_back({{}, {i}});
  std::ranges::stable_sort(pairs, {},
                           [](const LayerPair& pair) { return pair.first.empty() ? SIZE_MAX : pair.first[0]; });
  return pairs;
}

}  // namespace hone
