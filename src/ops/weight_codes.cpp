// SPDX-License-Identifier: Apache-2.0
#include "ops/weight_codes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>

#include "ir/op.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone {
namespace {

/// How far a weight may be from what it is said to be: both it and the largest of its channel were rounded to their type, which of the
/// smallest numbers leaves whole steps.
struct Slack {
  double relative, absolute;
};
std::optional<Slack> slack_of(DType weights, DType codes) {
  if (weights == DType::f32) return Slack{0x1p-20, 0};
  if (weights == DType::f16) return Slack{0x1p-10, codes == DType::i8 ? 0 : 0x1p-25};
  return weights == DType::bf16 && codes != DType::i8 ? std::optional(Slack{0x1p-7, 0}) : std::nullopt;
}

/// Whole numbers of 8 bits.
struct Integers {
  static constexpr int kScales = 128;
  /// What the largest weight of a channel may be, in steps: the fewest first.
  static double most(int candidate) { return candidate + 1; }
  static bool has(double number) { return number >= -128 && number < 128; }
  /// Of what is far below 2^22 in floats and 2^51 in doubles, ties to even: by additions, which are made for several at once.
  template <typename Real>
  static Real nearest(Real steps) {
    constexpr Real kWhole = Real{3} / 2 / std::numeric_limits<Real>::epsilon();
    return (steps + kWhole) - kWhole;
  }
  static int8_t code_of(float steps) { return static_cast<int8_t>(nearest(steps)); }
};

/// The numbers of E4M3: `most` by the eight fractions, as large as they can be, so that as many as possible are normal.
struct Float8 {
  static constexpr int kScales = 8;
  static constexpr float kLargest = 448, kLeastNormal = 0x1p-6F;
  static double most(int candidate) { return candidate < 7 ? 32 * (8 + candidate) : 240; }
  static bool has(double number) { return std::abs(number) <= kLargest; }
  /// By additions, as FakeQuantizeFloat8 does.
  template <typename Real>
  static Real nearest(Real steps) {
    constexpr Real kDigits = Real{1} / 8 / std::numeric_limits<Real>::epsilon(),
                   kGrid = Real{3} / 1024 / std::numeric_limits<Real>::epsilon();
    const Real shifted = steps + steps * kDigits, normal = shifted - (shifted - steps), small = (steps + kGrid) - kGrid;
    return std::abs(steps) < kLeastNormal ? small : normal;
  }
  static int8_t code_of(float steps) {
    const float number = nearest(steps);
    const auto bits = std::bit_cast<uint32_t>(number), sign = bits >> 24 & 0x80;
    const uint32_t normal = ((bits & 0x7fffffff) >> 20) - (120 << 3),
                   small = static_cast<uint32_t>(std::abs(number) * 0x1p9F);
    return static_cast<int8_t>(sign | (std::abs(number) < kLeastNormal ? small : normal));
  }
};

template <typename Numbers>
bool are_numbers(std::span<const float> weights, double scale, const Slack& slack) {
  constexpr size_t kAtOnce = 64;  // most scales that are none fail at the first few
  const double per_one = 1 / scale, absolute = slack.absolute / scale;
  for (size_t begin = 0; begin < weights.size(); begin += kAtOnce) {
    bool all = true;
    for (const float weight : weights.subspan(begin, std::min(kAtOnce, weights.size() - begin))) {
      const double steps = weight * per_one, number = Numbers::nearest(steps);
      all &= Numbers::has(number) & (std::abs(steps - number) <= slack.relative * std::abs(number) + absolute);
    }
    if (!all) return false;
  }
  return true;
}

/// The scale by which the weights are such numbers, as exactly as they tell; 0 where there is none.
template <typename Numbers>
double scale_of(std::span<const float> weights, const Slack& slack) {
  double most = 0;
  for (const float weight : weights) most = std::max(most, std::abs(static_cast<double>(weight)));
  if (most == 0) return 1;
  if (!std::isfinite(most)) return 0;
  for (int candidate = 0; candidate < Numbers::kScales; ++candidate) {
    const double scale = most / Numbers::most(candidate);
    if (!are_numbers<Numbers>(weights, scale, slack)) continue;
    const double per_one = 1 / scale;
    double products = 0, squares = 0;
    for (const float weight : weights) {
      const double number = Numbers::nearest(weight * per_one);
      products += weight * number;
      squares += number * number;
    }
    return products / squares;
  }
  return 0;
}

bool is_constant_or_missing(const Value* value) { return value == nullptr || value->is_constant(); }

bool has_plain_window(const Node& conv) {
  const size_t axes = conv.input(0)->type.shape.rank() - 2;
  const WindowAttrs window(conv.attrs, axes, kernel_of_weight(conv.input(1)->type.shape));
  return axes <= 2 && conv.attrs.integer("group") == 1 && window.auto_pad == "NOTSET";
}

template <typename Numbers>
std::shared_ptr<const WeightCodes> codes_in(const Tensor& weights, size_t channel_axis, const Slack& slack) {
  const Dims& dims = weights.dims();
  const auto channels = static_cast<size_t>(dims[channel_axis]);
  const auto inner = static_cast<size_t>(elements(std::span(dims).subspan(channel_axis + 1)));
  const Floats values(weights);
  const auto made =
      std::make_shared<WeightCodes>(WeightCodes{std::vector<int8_t>(values.size()), std::vector<float>(channels)});
  WeightCodes& result = *made;
  const size_t depth = channels == 0 ? 0 : values.size() / channels;
  const auto find = [&](size_t channel, std::span<const float> from, std::span<int8_t> to) {
    const double scale = scale_of<Numbers>(from, slack);
    if (scale == 0) return false;
    const auto per_one = static_cast<float>(1 / scale);
    for (size_t i = 0; i < from.size(); ++i) to[i] = Numbers::code_of(from[i] * per_one);
    result.scales[channel] = static_cast<float>(scale);
    return true;
  };
  if (inner == depth) {
    for (size_t c = 0; c < channels; ++c)
      if (!find(c, values.span().subspan(c * depth, depth), std::span(result.codes).subspan(c * depth, depth)))
        return nullptr;
    return made;
  }
  // Of some channels at once: where they lie side by side a line of the cache is read once.
  constexpr size_t kTogether = 16;
  std::vector<float> rows(kTogether * depth);
  std::vector<int8_t> codes(kTogether * depth);
  for (size_t first = 0; first < channels; first += kTogether) {
    const size_t count = std::min(kTogether, channels - first);
    const auto places = [&](auto&& visit) {
      for (size_t at = 0; at < depth; at += inner)
        for (size_t c = 0; c < count; ++c)
          for (size_t i = 0; i < inner; ++i) visit(at * channels + (first + c) * inner + i, c * depth + at + i);
    };
    places([&](size_t from, size_t to) { rows[to] = values.data()[from]; });
    for (size_t c = 0; c < count; ++c)
      if (!find(first + c, std::span(rows).subspan(c * depth, depth), std::span(codes).subspan(c * depth, depth)))
        return nullptr;
    places([&](size_t to, size_t from) { result.codes[to] = codes[from]; });
  }
  return made;
}

std::shared_ptr<const WeightCodes> find_codes(const Tensor& weights, size_t channel_axis, DType codes) {
  const std::optional<Slack> slack = slack_of(weights.dtype(), codes);
  if (!slack) return nullptr;
  return codes == DType::f8e4m3fn ? codes_in<Float8>(weights, channel_axis, *slack)
                                  : codes_in<Integers>(weights, channel_axis, *slack);
}

/// By where weights lie, for as long as these do.
class FoundCodes {
 public:
  std::shared_ptr<const WeightCodes> of(const Tensor& weights, size_t channel_axis, DType codes) {
    const Key key{weights.bytes().data(), weights.dims(), weights.dtype(), channel_axis, codes};
    {
      const std::lock_guard lock(mutex_);
      const auto known = found_.find(key);
      if (known != found_.end() && !known->second.owner.expired()) return known->second.codes;
    }
    std::shared_ptr<const WeightCodes> found = find_codes(weights, channel_axis, codes);
    const std::lock_guard lock(mutex_);
    std::erase_if(found_, [](const auto& entry) { return entry.second.owner.expired(); });
    found_.insert_or_assign(key, Entry{weights.blob().owner(), found});
    return found;
  }

 private:
  using Key = std::tuple<const void*, Dims, DType, size_t, DType>;
  struct Entry {
    std::weak_ptr<const void> owner;
    std::shared_ptr<const WeightCodes> codes;
  };
  std::mutex mutex_;
  std::map<Key, Entry> found_;
};

/// What the living KeptWeightCodes share.
struct Kept {
  std::mutex mutex;
  std::weak_ptr<FoundCodes> found;
};
Kept& kept() {
  static Kept all;
  return all;
}

}  // namespace

KeptWeightCodes::KeptWeightCodes() {
  const std::lock_guard lock(kept().mutex);
  std::shared_ptr<FoundCodes> found = kept().found.lock();
  if (!found) kept().found = found = std::make_shared<FoundCodes>();
  found_ = std::move(found);
}

std::shared_ptr<const WeightCodes> weight_codes(const Tensor& weights, size_t channel_axis, DType codes) {
  std::shared_ptr<FoundCodes> found;
  if (weights.blob().owned()) {
    const std::lock_guard lock(kept().mutex);
    found = kept().found.lock();
  }
  return found ? found->of(weights, channel_axis, codes) : find_codes(weights, channel_axis, codes);
}

bool makes_codes(const Node& node) { return node.is(ops::encode) || node.is(ops::encode_float8); }

bool multiplies_codes(const Node& node, DType codes) {
  const bool conv = node.is(ops::conv);
  if ((!conv && !node.is(ops::linear)) || node.input(0)->is_constant() || !node.input(1)->is_constant() ||
      !is_constant_or_missing(node.input(2)) || (conv && !has_plain_window(node)))
    return false;
  const Dims& weights = node.input(1)->constant->dims();
  const size_t channels = conv || node.attrs.integer("trans_w") != 0 ? 0 : 1;
  return weights[1 - channels] % kCodesAtOnce == 0 &&
         weight_codes(*node.input(1)->constant, channels, codes) != nullptr;
}

}  // namespace hone
