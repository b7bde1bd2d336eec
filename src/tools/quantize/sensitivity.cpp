// SPDX-License-Identifier: Apache-2.0
#include "tools/quantize/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tools/common/keep_list.h"
#include "tools/common/progress.h"

namespace hone {
namespace {

constexpr size_t kBatches = 8;

}  // namespace

Sensitivity::Sensitivity(ExactNetwork& exact, Quantise quantise, std::vector<std::string> nodes)
    : exact_(exact), quantise_(std::move(quantise)) {
  const NodeNames all(nodes.begin(), nodes.end());
  Progress progress;
  for (const std::string& node : nodes) {
    NodeNames others = all;
    others.erase(node);
    ranked_.push_back({node, error_without(others)});
    progress.advanced(ranked_.size(), nodes.size(), "layers tried");
  }
  std::ranges::stable_sort(ranked_, std::greater(), &NodeError::error);
}

double Sensitivity::error_without(const NodeNames& kept) const {
  double largest = 0;
  for (const TensorError& output : exact_.errors_of(quantise_(kept), kBatches))
    largest =
        std::max(largest, std::isnan(output.relative) ? std::numeric_limits<double>::infinity() : output.relative);
  return largest;
}

NodeNames Sensitivity::worst(size_t count) const {
  NodeNames names;
  for (size_t i = 0; i < count; ++i) names.insert(ranked_[i].node);
  return names;
}

/// What more nodes are kept, the less error is taken to be left.
NodeNames Sensitivity::kept_for(double budget) const {
  return worst(least_count(ranked_.size(), [&](size_t count) { return error_without(worst(count)) <= budget; }));
}

}  // namespace hone
