// SPDX-License-Identifier: Apache-2.0
//
// Rounding shifts the mean of what a product computes; a bias makes that good (Nagel et al., 2019). The shift is seen by running the
// network in floating point with each product a second time on quantised operands beside it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quantize/model_edits.h"
#include "quantize/placement.h"
#include "quantize/scale.h"

namespace hone {

struct ShadowProduct {
  std::string exact, rounded;     // the two results
  size_t axis = 0, channels = 0;  // along which the result's channels lie
};

/// Adds the quantised twins of a placement's products to its graph. Nothing reads their results.
std::vector<ShadowProduct> add_shadow_products(Graph& graph, const Placement& placement, const TensorScales& scales,
                                               Codes codes);

/// The mean of each channel, over everything that is added.
class ChannelMeans {
 public:
  ChannelMeans(size_t axis, size_t channels) : axis_(axis), sums_(channels) {}
  void add(const Dims& dims, std::span<const float> values);
  double mean(size_t channel) const { return count_ == 0 ? 0 : sums_[channel] / static_cast<double>(count_); }

 private:
  size_t axis_;
  std::vector<double> sums_;
  uint64_t count_ = 0;  // of values of each channel
};

/// What is added to the biases of a graph's products: by the name of the product's result, one value for each channel. Products whose
/// bias is not their own are left.
struct CorrectedBiases {
  ModelEdits edits;
  size_t products = 0;
};
CorrectedBiases corrected_biases(const Graph& graph,
                                 const std::map<std::string, std::vector<float>, std::less<>>& shifts);

}  // namespace hone
