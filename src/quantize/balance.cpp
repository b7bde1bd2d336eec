// SPDX-License-Identifier: Apache-2.0
#include "quantize/balance.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/op.h"
#include "ops/ops.h"

namespace hone {
namespace {

constexpr int kSweeps = 16;
/// The shares that scaled_for_blocks() tries: 0.1, 0.2, …, 1.
constexpr int kShares = 10;

std::function<bool(const Node&)> or_all(const TakesPart& takes_part) {
  return takes_part ? takes_part : [](const Node&) { return true; };
}

/// The largest magnitude of what the source's weights make of each channel; empty where it has none that are known.
Factors source_ranges(const ChannelSource& source, const EditedConstants& constants) {
  if (source.product) return source.product->output_ranges(constants);
  const Node* node = source.normalization;
  if (node == nullptr || !node->is(ops::batch_normalization) || node->input(0)->producer == nullptr) return {};
  const auto product = ProductChannels::of(*node->input(0)->producer);
  if (!product) return {};
  Factors ranges = product->output_ranges(constants);
  const Value* variance = node->input(4);
  if (ranges.size() != source.vectors.front()->constant->data<float>().size() || !variance->is_constant()) return {};
  const std::span<const float> scale = constants.floats(*source.vectors.front()),
                               spread = variance->constant->data<float>();
  const auto epsilon = static_cast<float>(node->attrs.real("epsilon"));
  for (size_t i = 0; i < ranges.size(); ++i) ranges[i] *= std::fabs(scale[i]) / std::sqrt(spread[i] + epsilon);
  return ranges;
}

bool changes(const Factors& factors) {
  return std::ranges::any_of(factors, [](float factor) { return factor != 1; });
}

/// What the weights of a matrix lose in blocks when their inputs are scaled by factors, weighted by the squares of what they are
/// multiplied by.
double block_error(const ProductChannels& product, const EditedConstants& constants, const Factors& factors,
                   std::span<const float> squares, int64_t block, Codes codes) {
  EditedConstants scaled = constants;
  product.multiply_inputs(scaled, factors);
  const Dims& dims = product.weights().constant->dims();
  const std::span<const float> exact = scaled.floats(product.weights());
  const int64_t axis = product.inputs_first() ? 0 : 1;
  const BlockWeights rounded = quantize_blocks(Tensor::of<float>(dims, exact), axis, {.block = block, .codes = codes});
  const std::span<const float> scales = rounded.scales.data<float>();
  const size_t columns = static_cast<size_t>(dims[1]), scale_columns = static_cast<size_t>(rounded.scales.dims()[1]);
  double sum = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const size_t row = i / columns, column = i % columns, length = static_cast<size_t>(block);
    const size_t at = axis == 0 ? row / length * scale_columns + column : row * scale_columns + column / length;
    const size_t input = axis == 0 ? row : column;
    const double zero = rounded.zeros ? rounded.zeros->real(static_cast<int64_t>(at)) : 0;
    const double off = (rounded.codes.real(static_cast<int64_t>(i)) - zero) * scales[at] - exact[i];
    sum += off * off * squares[input] / (static_cast<double>(factors[input]) * factors[input]);
  }
  return sum;
}

/// Factors around 1, from magnitudes: those of 0 stay.
Factors centred(Factors magnitudes, double share) {
  double logs = 0;
  size_t count = 0;
  for (const float each : magnitudes)
    if (each > 0) logs += std::log(each), ++count;
  const double centre = count > 0 ? logs / static_cast<double>(count) : 0;
  for (float& each : magnitudes)
    each = each > 0 ? static_cast<float>(std::exp(share * (std::log(each) - centre))) : 1.0F;
  return magnitudes;
}

}  // namespace

Balanced equalized(const Graph& graph, const TakesPart& takes_part) {
  const std::vector<ReadChannels> tensors = read_channels(graph, or_all(takes_part));
  EditedConstants constants;
  std::set<const Value*> changed;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool settled = true;
    for (const ReadChannels& tensor : tensors) {
      const Factors made = source_ranges(tensor.source, constants), read = tensor.ranges(constants);
      if (made.empty()) continue;
      Factors factors(made.size(), 1.0F);
      for (size_t i = 0; i < made.size(); ++i)
        if (made[i] > 0 && read[i] > 0) factors[i] = power_of_two(std::sqrt(static_cast<double>(made[i]) / read[i]));
      if (!changes(factors)) continue;
      tensor.move(constants, factors);
      changed.insert(tensor.tensor);
      settled = false;
    }
    if (settled) break;
  }
  return {constants.edits(), changed.size()};
}

std::vector<ReadChannels> balanced_tensors(const Graph& graph, const TakesPart& takes_part) {
  const auto takes = or_all(takes_part);
  return read_channels(graph, [&](const Node& node) { return !node.is(ops::conv) && takes(node); });
}

Balanced smoothed(const Graph& graph, const TakesPart& takes_part, const ChannelRanges& seen, double share) {
  EditedConstants constants;
  size_t changed = 0;
  for (const ReadChannels& tensor : balanced_tensors(graph, takes_part)) {
    const auto found = seen.find(tensor.tensor->name);
    if (found == seen.end()) continue;
    const Factors weights = tensor.ranges(constants);
    Factors wanted(weights.size(), 0.0F);
    for (size_t i = 0; i < weights.size(); ++i)
      if (found->second[i] > 0 && weights[i] > 0)
        wanted[i] = static_cast<float>(std::pow(found->second[i], share) / std::pow(weights[i], 1 - share));
    Factors factors = centred(wanted, 1);
    for (float& factor : factors) factor = power_of_two(factor);
    if (!changes(factors)) continue;
    tensor.move(constants, factors);
    ++changed;
  }
  return {constants.edits(), changed};
}

Balanced scaled_for_blocks(const Graph& graph, const TakesPart& takes_part, const Moments& moments, int64_t block,
                           Codes codes) {
  EditedConstants constants;
  size_t changed = 0;
  for (const ReadChannels& tensor : balanced_tensors(graph, takes_part)) {
    const auto found = moments.find(tensor.tensor->name);
    if (found == moments.end()) continue;
    const std::vector<float> squares = found->second.mean_squares();
    Factors spread(squares.size()), best(squares.size(), 1.0F);
    std::ranges::transform(squares, spread.begin(), [](float square) { return std::sqrt(square); });
    const auto error = [&](const Factors& factors) {
      double sum = 0;
      for (const ProductChannels& reader : tensor.readers)
        sum += block_error(reader, constants, factors, squares, block, codes);
      return sum;
    };
    double least = error(best);
    for (int i = 1; i <= kShares; ++i) {
      const Factors factors = centred(spread, static_cast<double>(i) / kShares);
      const double lost = error(factors);
      if (lost < least) least = lost, best = factors;
    }
    if (!changes(best)) continue;
    tensor.move(constants, best);
    ++changed;
  }
  return {constants.edits(), changed};
}

}  // namespace hone
