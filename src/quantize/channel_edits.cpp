// SPDX-License-Identifier: Apache-2.0
#include "quantize/channel_edits.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/op.h"
#include "ops/ops.h"

namespace hone {
namespace {

bool is_own_constant(const Value* value) {
  return value != nullptr && value->is_constant() && value->type.dtype == DType::f32 && value->uses.size() == 1;
}

size_t count_of(const Value& value) { return static_cast<size_t>(elements(value.constant->dims())); }

/// f(c x) = c f(x) for c > 0, channel by channel.
bool hands_on_factors(const Node& node) {
  return node.is(ops::relu) || node.is(ops::leaky_relu) || node.is(ops::average_pool) ||
         node.is(ops::global_average_pool) || node.is(ops::global_max_pool) ||
         (node.is(ops::max_pool) && node.outputs.size() == 1);
}

/// A constant whose elements are those of the channels along an axis of a tensor of this rank.
bool is_channel_vector(const Value* value, size_t rank, size_t axis, size_t channels) {
  if (!is_own_constant(value) || count_of(*value) != channels) return false;
  const Dims& dims = value->constant->dims();
  const size_t behind = rank - 1 - axis;  // axes behind that of the channels
  return dims.size() > behind && dims.size() <= rank && static_cast<size_t>(dims[dims.size() - 1 - behind]) == channels;
}

Factors ranges_by(std::span<const float> weights, size_t channels, const auto& channel_of) {
  Factors ranges(channels, 0.0F);
  for (size_t i = 0; i < weights.size(); ++i) {
    float& range = ranges[channel_of(i)];
    range = std::max(range, std::fabs(weights[i]));
  }
  return ranges;
}

class SourceFinder {
 public:
  SourceFinder(const Graph& graph, size_t axis, size_t channels) : graph_(graph), axis_(axis), channels_(channels) {}

  std::optional<ChannelSource> find(const Value& tensor, size_t readers) {
    const Node* node = tensor.producer;
    if (node == nullptr || tensor.uses.size() != readers || graph_.is_output(&tensor)) return std::nullopt;
    if (const auto product = ProductChannels::of(*node))
      if (product->outputs() == channels_ && product->axis() == axis_) return ChannelSource{product, nullptr, {}};
    if (node->is(ops::batch_normalization) && axis_ == 1) return normalization(*node);
    const bool by_last_axis = node->is(ops::layer_normalization) || node->is(ops::rms_normalization);
    if (by_last_axis && axis_ + 1 == tensor.type.shape.rank()) return normalization(*node);
    if (hands_on_factors(*node)) return find(*node->input(0), 1);
    if (node->is(ops::add) || node->is(ops::mul)) return find_with_constant(*node, tensor.type.shape.rank());
    return std::nullopt;
  }

 private:
  std::optional<ChannelSource> normalization(const Node& node) const {
    ChannelSource source{std::nullopt, &node, {}};
    for (const size_t i : {1, 2}) {
      const Value* vector = node.input(i);
      if (vector == nullptr && i == 2) continue;
      if (!is_own_constant(vector) || count_of(*vector) != channels_) return std::nullopt;
      source.vectors.push_back(vector);
    }
    return node.outputs.size() == 1 ? std::optional(source) : std::nullopt;
  }

  /// A factor for each channel takes another; a sum hands it on.
  std::optional<ChannelSource> find_with_constant(const Node& node, size_t rank) {
    for (const size_t i : {0, 1}) {
      const Value *vector = node.input(i), *other = node.input(1 - i);
      if (!is_channel_vector(vector, rank, axis_, channels_) || other->type.shape.rank() != rank) continue;
      if (node.is(ops::mul)) return ChannelSource{std::nullopt, nullptr, {vector}};
      std::optional<ChannelSource> source = find(*other, 1);
      if (source) source->vectors.push_back(vector);
      return source;
    }
    return std::nullopt;
  }

  const Graph& graph_;
  size_t axis_, channels_;
};

}  // namespace

std::span<const float> EditedConstants::floats(const Value& constant) const {
  const auto found = edited_.find(constant.name);
  return (found == edited_.end() ? *constant.constant : found->second).data<float>();
}

void EditedConstants::multiply(const Value& constant, const std::function<float(size_t)>& factor) {
  const std::span<const float> given = floats(constant);
  std::vector<float> changed(given.size());
  for (size_t i = 0; i < given.size(); ++i) changed[i] = given[i] * factor(i);
  edited_.insert_or_assign(constant.name, Tensor::of<float>(constant.constant->dims(), changed));
}

void EditedConstants::add(const Value& constant, std::span<const float> each) {
  const std::span<const float> given = floats(constant);
  std::vector<float> changed(given.size());
  for (size_t i = 0; i < given.size(); ++i) changed[i] = given[i] + each[i];
  edited_.insert_or_assign(constant.name, Tensor::of<float>(constant.constant->dims(), changed));
}

std::optional<ProductChannels> ProductChannels::of(const Node& node) {
  if (!node.is(ops::conv) && !node.is(ops::gemm) && !node.is(ops::mat_mul)) return std::nullopt;
  const Value *weights = node.input(1), *bias = node.input(2);
  if (!is_own_constant(weights) || node.input(0)->is_constant()) return std::nullopt;
  const Dims& dims = weights->constant->dims();
  if (node.is(ops::conv) ? dims.size() < 3 : dims.size() != 2) return std::nullopt;
  if (node.is(ops::gemm) && (node.attrs.integer("transA") != 0 || node.attrs.real("alpha") != 1 ||
                             (bias != nullptr && node.attrs.real("beta") != 1)))
    return std::nullopt;
  ProductChannels result;
  result.weights_ = weights;
  result.bias_ = bias;
  result.groups_ = node.is(ops::conv) ? static_cast<size_t>(node.attrs.integer("group")) : 1;
  result.outputs_first_ = node.is(ops::conv) || (node.is(ops::gemm) && node.attrs.integer("transB") != 0);
  const auto rows = static_cast<size_t>(dims[0]);
  result.columns_ = static_cast<size_t>(dims[1]);
  for (size_t i = 2; i < dims.size(); ++i) result.inner_ *= static_cast<size_t>(dims[i]);
  result.outputs_ = result.outputs_first_ ? rows : result.columns_;
  result.inputs_ = result.outputs_first_ ? result.columns_ * result.groups_ : rows;
  result.axis_ = node.is(ops::conv) ? 1 : node.output()->type.shape.rank() - 1;
  if (bias != nullptr && (!is_own_constant(bias) || count_of(*bias) != result.outputs_)) return std::nullopt;
  return result;
}

size_t ProductChannels::output_of(size_t element) const {
  const size_t row = element / (columns_ * inner_), column = element / inner_ % columns_;
  return outputs_first_ ? row : column;
}

size_t ProductChannels::input_of(size_t element) const {
  const size_t row = element / (columns_ * inner_), column = element / inner_ % columns_;
  return outputs_first_ ? row / (outputs_ / groups_) * columns_ + column : row;
}

Factors ProductChannels::input_ranges(const EditedConstants& constants) const {
  return ranges_by(constants.floats(*weights_), inputs_, [&](size_t i) { return input_of(i); });
}

Factors ProductChannels::output_ranges(const EditedConstants& constants) const {
  return ranges_by(constants.floats(*weights_), outputs_, [&](size_t i) { return output_of(i); });
}

void ProductChannels::multiply_inputs(EditedConstants& constants, const Factors& factors) const {
  constants.multiply(*weights_, [&](size_t i) { return factors[input_of(i)]; });
}

void ProductChannels::divide_outputs(EditedConstants& constants, const Factors& factors) const {
  constants.multiply(*weights_, [&](size_t i) { return 1 / factors[output_of(i)]; });
  if (bias_ != nullptr) constants.multiply(*bias_, [&](size_t i) { return 1 / factors[i]; });
}

void ChannelSource::divide(EditedConstants& constants, const Factors& factors) const {
  if (product) product->divide_outputs(constants, factors);
  for (const Value* vector : vectors) constants.multiply(*vector, [&](size_t i) { return 1 / factors[i]; });
}

std::optional<ChannelSource> channel_source(const Graph& graph, const Value& tensor, size_t readers, size_t axis,
                                            size_t channels) {
  return SourceFinder(graph, axis, channels).find(tensor, readers);
}

Factors ReadChannels::ranges(const EditedConstants& constants) const {
  Factors ranges(channels(), 0.0F);
  for (const ProductChannels& reader : readers) {
    const Factors own = reader.input_ranges(constants);
    std::ranges::transform(ranges, own, ranges.begin(), [](float a, float b) { return std::max(a, b); });
  }
  return ranges;
}

void ReadChannels::move(EditedConstants& constants, const Factors& factors) const {
  source.divide(constants, factors);
  for (const ProductChannels& reader : readers) reader.multiply_inputs(constants, factors);
}

std::vector<ReadChannels> read_channels(const Graph& graph, const std::function<bool(const Node&)>& takes_part) {
  std::vector<ReadChannels> result;
  std::set<const Value*> taken;
  for (const Node* node : graph.nodes()) {
    if (!ProductChannels::of(*node) || !taken.insert(node->input(0)).second) continue;
    ReadChannels read{node->input(0), {}, {}};
    const size_t rank = read.tensor->type.ranked ? read.tensor->type.shape.rank() : 0;
    bool all = rank > 1;
    for (const Use& use : read.tensor->uses) {
      const auto product = ProductChannels::of(*use.node);
      all = all && product && use.index == 0 && takes_part(*use.node);
      if (all) read.readers.push_back(*product);
    }
    if (!all) continue;
    const ProductChannels& first = read.readers.front();
    const bool alike = std::ranges::all_of(read.readers, [&](const ProductChannels& each) {
      return each.inputs() == first.inputs() && each.axis() == first.axis();
    });
    const auto source = channel_source(graph, *read.tensor, read.tensor->uses.size(), first.axis(), first.inputs());
    if (!alike || !source) continue;
    read.source = *source;
    result.push_back(std::move(read));
  }
  return result;
}

float power_of_two(double factor) {
  constexpr double kMostBits = 20;
  return static_cast<float>(std::exp2(std::clamp(std::nearbyint(std::log2(factor)), -kMostBits, kMostBits)));
}

}  // namespace hone
