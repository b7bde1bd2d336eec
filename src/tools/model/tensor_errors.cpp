// SPDX-License-Identifier: Apache-2.0
#include "tools/model/tensor_errors.h"

#include <algorithm>
#include <cmath>

namespace hone {
void ErrorSums::add(std::span<const float> found, std::span<const float> expected) {
  for (size_t i = 0; i < found.size(); ++i) {
    const double x = found[i], y = expected[i];
    const bool same = x == y || (std::isnan(x) && std::isnan(y));
    if (same && !std::isfinite(y)) continue;
    difference_ += (x - y) * (x - y);
    found_ += x * x;
    expected_ += y * y;
    product_ += x * y;
    largest_ = std::max(largest_, std::abs(x - y));
  }
}

TensorError ErrorSums::error(const std::string& tensor) const {
  if (found_ == 0 && expected_ == 0) return {tensor};
  return {tensor, std::sqrt(difference_ / std::max(expected_, 1e-300)), largest_,
          product_ / std::sqrt(std::max(found_ * expected_, 1e-300))};
}

ExactNetwork::ExactNetwork(const hone_model& model, const hone_device& device, std::set<std::string> tensors,
                           DataSet& data)
    : device_(device), tensors_(std::move(tensors)), data_(data), exact_(model, device, tensors_, data.shapes()) {}

std::vector<TensorError> ExactNetwork::errors_of(const hone_model& other, size_t batches) {
  ObservedNetwork network(other, device_, tensors_, data_.shapes());
  std::map<std::string, ErrorSums> sums;
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
  network.run([&](const NetworkTensor& input, const Dims&,
                  std::span<std::byte> memory) { data_.load(batch, input.name, memory, input.dtype); },
              visit);
}

}  // namespace hone
