// SPDX-License-Identifier: Apache-2.0
#include "tools/common/tensor_errors.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

struct Sums {
  double difference = 0, expected = 0, found = 0, product = 0, largest = 0;

  void add(std::span<const float> values, std::span<const float> reference) {
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = values[i], y = reference[i];
      const bool same = x == y || (std::isnan(x) && std::isnan(y));
      if (same && !std::isfinite(y)) continue;
      difference += (x - y) * (x - y);
      found += x * x;
      expected += y * y;
      product += x * y;
      largest = std::max(largest, std::abs(x - y));
    }
  }
  TensorError error(const std::string& tensor) const {
    if (found == 0 && expected == 0) return {tensor};
    return {tensor, std::sqrt(difference / std::max(expected, 1e-300)), largest,
            product / std::sqrt(std::max(found * expected, 1e-300))};
  }
};

}  // namespace

ExactNetwork::ExactNetwork(const hone_model& model, const hone_device& device, std::set<std::string> tensors,
                           DataSet& data)
    : device_(device), tensors_(std::move(tensors)), data_(data), exact_(model, device, tensors_, data.shapes()) {}

std::vector<TensorError> ExactNetwork::errors_of(const hone_model& other, size_t batches) {
  ObservedNetwork network(other, device_, tensors_, data_.shapes());
  std::map<std::string, Sums> sums;
  for (size_t batch = 0; batch < std::min(batches, data_.batches()); ++batch) {
    std::map<std::string, std::vector<float>> expected;
    run(exact_, batch, [&](const std::string& tensor, const Dims&, std::span<const float> values) {
      expected[tensor].assign(values.begin(), values.end());
    });
    run(network, batch, [&](const std::string& tensor, const Dims&, std::span<const float> values) {
      sums[tensor].add(values, expected.at(tensor));
    });
  }
  std::vector<TensorError> errors;
  for (const auto& [tensor, sum] : sums) errors.push_back(sum.error(tensor));
  return errors;
}

void ExactNetwork::run(ObservedNetwork& network, size_t batch, const Visit& visit) {
  network.run(
      [&](const IoTensor& input, const Dims&, std::span<std::byte> memory) { data_.load(batch, input.name, memory); },
      visit);
}

}  // namespace hone
