// SPDX-License-Identifier: Apache-2.0
#include "quantize/block_weights.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hone {
namespace {

/// The shares of a block's range that are tried: 1, 0.95, …, 0.5.
constexpr int kShares = 11;
constexpr float kShareStep = 0.05F;
/// Lines that are computed together, so that a row of the feedback is read once for them.
constexpr int64_t kLines = 32;

struct BlockScale {
  float scale = 1;
  float zero = 0;
};

/// How a block of weights that lie side by side becomes codes.
class BlockQuantizer {
 public:
  explicit BlockQuantizer(Codes codes)
      : symmetric_(codes == Codes::symmetric), low_(symmetric_ ? -8 : 0), high_(symmetric_ ? 7 : 15) {}

  float code(float weight, const BlockScale& scale) const {
    return std::clamp(std::nearbyint(weight / scale.scale) + scale.zero, low_, high_);
  }
  static float weight(float code, const BlockScale& scale) { return (code - scale.zero) * scale.scale; }

  /// `importance` is as long as the block, or empty: then nothing is clipped.
  BlockScale scale_of(std::span<const float> weights, std::span<const float> importance) const {
    const auto [least, most] = std::ranges::minmax(weights);
    BlockScale best = scale_at(least, most, 1);
    if (importance.empty()) return best;
    double least_error = error(weights, importance, best);
    for (int i = 1; i < kShares; ++i) {
      const BlockScale scale = scale_at(least, most, 1 - kShareStep * static_cast<float>(i));
      const double found = error(weights, importance, scale);
      if (found < least_error) least_error = found, best = scale;
    }
    return best;
  }

 private:
  BlockScale scale_at(float least, float most, float share) const {
    constexpr float kLeast = std::numeric_limits<float>::min();
    if (least == 0 && most == 0) return {};
    if (symmetric_) return {std::max(kLeast, share * std::max(std::fabs(least), std::fabs(most)) / high_), 0};
    const float from = share * std::min(least, 0.0F), to = share * std::max(most, 0.0F);
    const float scale = std::max(kLeast, to / high_ - from / high_);
    return {scale, std::clamp(std::nearbyint(-from / scale), low_, high_)};
  }
  double error(std::span<const float> weights, std::span<const float> importance, const BlockScale& scale) const {
    double sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double off = weights[i] - weight(code(weights[i], scale), scale);
      sum += off * off * importance[i];
    }
    return sum;
  }

  bool symmetric_;
  float low_, high_;
};

/// Where the elements of lines along an axis of a matrix lie.
struct Lines {
  Lines(const Dims& dims, int64_t axis)
      : count(dims[static_cast<size_t>(1 - axis)]),
        length(dims[static_cast<size_t>(axis)]),
        stride(axis == 0 ? count : 1),
        pitch(axis == 0 ? 1 : length) {}
  size_t at(int64_t line, int64_t i) const { return static_cast<size_t>(line * pitch + i * stride); }

  int64_t count, length, stride, pitch;
};

class MatrixQuantizer {
 public:
  MatrixQuantizer(const Tensor& weights, int64_t axis, const BlockRules& rules)
      : real_(weights.data<float>()),
        rules_(rules),
        quantizer_(rules.codes),
        lines_(weights.dims(), axis),
        blocks_((lines_.length + rules.block - 1) / rules.block),
        scale_lines_(axis == 0 ? Dims{blocks_, lines_.count} : Dims{lines_.count, blocks_}, axis),
        codes_(rules.codes == Codes::symmetric ? DType::i4 : DType::u4, weights.dims()),
        scales_(DType::f32, axis == 0 ? Dims{blocks_, lines_.count} : Dims{lines_.count, blocks_}),
        zeros_(DType::u4, scales_.dims()) {}

  BlockWeights run() {
    for (int64_t line = 0; line < lines_.count; line += kLines) quantize(line, std::min(kLines, lines_.count - line));
    BlockWeights result{codes_.finish(), scales_.finish(), std::nullopt};
    if (rules_.codes == Codes::asymmetric) result.zeros = zeros_.finish();
    return result;
  }

 private:
  void quantize(int64_t first, int64_t count) {
    std::vector<float> panel(static_cast<size_t>(count * lines_.length));
    for (int64_t line = 0; line < count; ++line)
      for (int64_t i = 0; i < lines_.length; ++i) row(panel, line)[i] = real_[lines_.at(first + line, i)];
    std::vector<BlockScale> scales(static_cast<size_t>(count));
    for (int64_t i = 0; i < lines_.length; ++i)
      for (int64_t line = 0; line < count; ++line) {
        BlockScale& scale = scales[static_cast<size_t>(line)];
        if (i % rules_.block == 0) scale = begin_block(first + line, i, row(panel, line));
        round(first + line, i, scale, row(panel, line));
      }
  }

  float* row(std::vector<float>& panel, int64_t line) const { return panel.data() + line * lines_.length; }

  BlockScale begin_block(int64_t line, int64_t i, const float* weights) {
    const auto from = static_cast<size_t>(i), count = static_cast<size_t>(std::min(rules_.block, lines_.length - i));
    const BlockScale scale = quantizer_.scale_of({weights + from, count}, rules_.importance.empty()
                                                                              ? std::span<const float>()
                                                                              : rules_.importance.subspan(from, count));
    const size_t at = scale_lines_.at(line, i / rules_.block);
    scales_.data<float>()[at] = scale.scale;
    zeros_.codes()[at] = static_cast<uint8_t>(scale.zero);
    return scale;
  }

  void round(int64_t line, int64_t i, const BlockScale& scale, float* weights) {
    const float code = quantizer_.code(weights[i], scale);
    codes_.codes()[lines_.at(line, i)] = static_cast<uint8_t>(static_cast<int8_t>(code));
    if (rules_.feedback.empty()) return;
    const float error = weights[i] - BlockQuantizer::weight(code, scale);
    const float* const shares = rules_.feedback.data() + i * lines_.length;
    for (int64_t j = i + 1; j < lines_.length; ++j) weights[j] -= error * shares[j];
  }

  std::span<const float> real_;
  const BlockRules& rules_;
  BlockQuantizer quantizer_;
  Lines lines_;
  int64_t blocks_;
  Lines scale_lines_;
  TensorBuilder codes_, scales_, zeros_;
};

}  // namespace

BlockWeights quantize_blocks(const Tensor& weights, int64_t axis, const BlockRules& rules) {
  HONE_ASSERT(weights.dims().size() == 2 && (axis == 0 || axis == 1) && rules.block > 0,
              "a matrix is quantised in blocks");
  const std::span<const float> real = weights.data<float>();
  for (size_t i = 0; i < real.size(); ++i) HONE_CHECK(std::isfinite(real[i]), "weight {} is not finite", i);
  const auto length = static_cast<size_t>(weights.dims()[static_cast<size_t>(axis)]);
  HONE_ASSERT(rules.importance.empty() || rules.importance.size() == length, "importances of another axis");
  HONE_ASSERT(rules.feedback.empty() || rules.feedback.size() == length * length, "feedback of another axis");
  return MatrixQuantizer(weights, axis, rules).run();
}

}  // namespace hone
