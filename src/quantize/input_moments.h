// SPDX-License-Identifier: Apache-2.0
//
// What weights are multiplied by, seen over samples: which channels are large, and which move together.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hone {

class InputMoments {
 public:
  /// Keeps the sums of products of every two channels, channels² floats, or those of squares alone.
  InputMoments(size_t channels, bool keeps_products);

  /// Adds rows of so many channels. Throws Error when a value is not finite.
  void add(std::span<const float> rows);

  size_t channels() const { return channels_; }
  /// Of each channel.
  std::vector<float> mean_squares() const;

  /// How the error of one channel's weight is made good by those of the channels behind it, from the inverse of the matrix of
  /// products (GPTQ: Frantar et al., 2022): row i has what is taken from weight j > i for each unit of the error of weight i; channels
  /// by channels, 0 elsewhere. Throws Error when no products were kept.
  std::vector<float> feedback() const;

 private:
  size_t channels_, rows_ = 0;
  bool keeps_products_;
  std::vector<float> sums_;  // of products, those of i with j >= i; or of squares
};

}  // namespace hone
