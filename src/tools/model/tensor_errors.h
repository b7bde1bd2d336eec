// SPDX-License-Identifier: Apache-2.0
//
// How far the tensors of a network are from what they are in floating point.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "tools/common/observed_network.h"
#include "tools/model/data_set.h"

namespace hone {

/// Over all elements of all samples.
struct TensorError {
  std::string tensor;
  double relative = 0;  // norm of the difference over the norm of what is expected
  double largest = 0;   // magnitude of a difference
  double cosine = 1;    // of the angle between the two
};

/// Of a tensor whose elements come in pieces.
class ErrorSums {
 public:
  void add(std::span<const float> found, std::span<const float> expected);
  /// NaNs where a value is no number in one alone.
  TensorError error(const std::string& tensor) const;

 private:
  double difference_ = 0, expected_ = 0, found_ = 0, product_ = 0, largest_ = 0;
};

/// A network in floating point, which others are held against. The samples run anew through both each time: a batch's
/// tensors are all that is kept.
class ExactNetwork {
 public:
  /// The tensors are f32. All that is given has to stay.
  ExactNetwork(const hone_model& model, const hone_device& device, std::set<std::string> tensors, DataSet& data);

  /// Of a network that has the same tensors by name, on the first batches, in the order of the names. A tensor with values that
  /// are no numbers in one alone has NaNs for errors.
  std::vector<TensorError> errors_of(const hone_model& other, size_t batches);

 private:
  void run(ObservedNetwork& network, size_t batch, const Visit& visit);

  const hone_device& device_;
  const std::set<std::string> tensors_;
  DataSet& data_;
  ObservedNetwork exact_;
};

}  // namespace hone
