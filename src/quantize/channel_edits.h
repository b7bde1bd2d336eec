// SPDX-License-Identifier: Apache-2.0
//
// Factors between layers: what makes a tensor is divided by a factor for each channel and what reads it multiplied, so that the network
// computes what it did, but with other ranges inside.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "quantize/model_edits.h"

namespace hone {

using Factors = std::vector<float>;  // one for each channel

/// The constants of a graph while they are changed; the graph stays as it is.
class EditedConstants {
 public:
  std::span<const float> floats(const Value& constant) const;
  void multiply(const Value& constant, const std::function<float(size_t element)>& factor);
  void add(const Value& constant, std::span<const float> each);
  ModelEdits edits() const { return {edited_, {}}; }

 private:
  std::map<std::string, Tensor, std::less<>> edited_;
};

/// How a convolution or matmul with constant weights, which nobody else reads, reads and makes channels.
class ProductChannels {
 public:
  /// Nothing for other nodes.
  static std::optional<ProductChannels> of(const Node& node);

  size_t inputs() const { return inputs_; }
  size_t outputs() const { return outputs_; }
  /// Along which the channels of operand and result lie.
  size_t axis() const { return axis_; }
  /// Whether the weights' first axis is that of the operand's channels.
  bool inputs_first() const { return !outputs_first_; }
  const Value& weights() const { return *weights_; }
  const Value* bias() const { return bias_; }

  /// The largest magnitude of the weights of each channel.
  Factors input_ranges(const EditedConstants& constants) const;
  Factors output_ranges(const EditedConstants& constants) const;
  void multiply_inputs(EditedConstants& constants, const Factors& factors) const;
  void divide_outputs(EditedConstants& constants, const Factors& factors) const;

 private:
  ProductChannels() = default;
  size_t input_of(size_t element) const;
  size_t output_of(size_t element) const;

  const Value *weights_ = nullptr, *bias_ = nullptr;
  size_t inputs_ = 0, outputs_ = 0, axis_ = 0;
  size_t columns_ = 1, inner_ = 1;  // of the weights: the second axis, and those behind it
  size_t groups_ = 1;
  bool outputs_first_ = true;
};

/// What a tensor can be divided by factors in: the weights of the product that it comes from, or the scale of a normalisation; and what is
/// added on the way.
struct ChannelSource {
  std::optional<ProductChannels> product;
  const Node* normalization = nullptr;  // a batch normalisation or layer normalisation
  std::vector<const Value*> vectors;    // constants with an element for each channel

  void divide(EditedConstants& constants, const Factors& factors) const;
};
/// Through what hands factors on: activations like Relu, pooling, sums with a constant. Nothing where the tensor, or one on the way, is
/// read by somebody else, too; `readers` of the tensor itself are allowed.
std::optional<ChannelSource> channel_source(const Graph& graph, const Value& tensor, size_t readers, size_t axis,
                                            size_t channels);

/// A tensor and the products that read it: all of its readers.
struct ReadChannels {
  const Value* tensor = nullptr;
  std::vector<ProductChannels> readers;
  ChannelSource source;

  size_t channels() const { return readers.front().inputs(); }
  /// The largest magnitude of the weights of each channel.
  Factors ranges(const EditedConstants& constants) const;
  /// Moves factors from the tensor into its readers.
  void move(EditedConstants& constants, const Factors& factors) const;
};
/// In the graph's order. `takes_part` is asked of the readers.
std::vector<ReadChannels> read_channels(const Graph& graph, const std::function<bool(const Node&)>& takes_part);

/// The nearest power of two: multiplied by one, floats lose nothing.
float power_of_two(double factor);

}  // namespace hone
