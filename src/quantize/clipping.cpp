// SPDX-License-Identifier: Apache-2.0
#include "quantize/clipping.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/text.h"

namespace hone {
namespace {

using Bins = std::array<uint64_t, Histogram::kBins>;

size_t used_bins(const Bins& bins) {
  size_t used = bins.size();
  while (used > 0 && bins[used - 1] == 0) --used;
  return used;
}

/// Counts and bins in use, and the terms p·log p, summed up to each bin.
class Sums {
 public:
  explicit Sums(std::span<const double> counts) : counts_(1), filled_(1), terms_(1) {
    for (const double count : counts) {
      counts_.push_back(counts_.back() + count);
      filled_.push_back(filled_.back() + (count > 0 ? 1 : 0));
      terms_.push_back(terms_.back() + (count > 0 ? count * std::log(count) : 0));
    }
  }
  double counts(size_t from, size_t to) const { return counts_[to] - counts_[from]; }
  double filled(size_t from, size_t to) const { return filled_[to] - filled_[from]; }
  double terms(size_t from, size_t to) const { return terms_[to] - terms_[from]; }

 private:
  std::vector<double> counts_, filled_, terms_;
};

/// The divergence of what `levels` levels keep of the first `cut` bins from those bins with all that is beyond in the last of them.
/// A level stands for the bins in use that fall to it, each as often as the others; an empty last bin counts as half a value.
double divergence(std::span<const double> counts, const Sums& sums, size_t cut, size_t levels) {
  constexpr double kAlmostNone = 0.5;
  const double total = sums.counts(0, counts.size()), inside = sums.counts(0, cut), last = counts[cut - 1],
               rest = total - inside;
  if (inside == 0) return std::numeric_limits<double>::infinity();
  double logs = sums.terms(0, cut);
  if (last > 0) logs += (last + rest) * std::log(last + rest) - last * std::log(last);
  else if (rest > 0) logs += rest * std::log(rest / kAlmostNone);
  for (size_t level = 0; level < levels; ++level) {
    const size_t from = level * cut / levels, to = (level + 1) * cut / levels;
    const double count = sums.counts(from, to);
    if (count == 0) continue;
    const double real = to == cut && last > 0 ? count + rest : count;
    logs -= real * std::log(count / sums.filled(from, to));
  }
  return logs / total - std::log(total / inside);
}

/// Of few values a fine histogram is holes, and any cut through it looks as good as another: as many bins become one as it takes for
/// this many values to a bin.
constexpr uint64_t kValuesPerBin = 4;
/// A cut that loses more than this harms more than finer steps help, however alike the distributions are: large values carry the
/// signal. With one in a hundred instead byte_gpt loses twice as much.
constexpr double kMostClipped = 3e-4;

std::vector<double> merged(const Bins& bins, size_t used, size_t factor) {
  std::vector<double> counts((used + factor - 1) / factor);
  for (size_t i = 0; i < used; ++i) counts[i / factor] += static_cast<double>(bins[i]);
  return counts;
}

/// Zeros are exact at any scale, and after a ReLU most values are: the first bin counts as its neighbour.
size_t least_divergent_cut(const Bins& bins, uint64_t count, size_t used, size_t levels) {
  const auto factor = static_cast<size_t>((used * kValuesPerBin + count - 1) / count);
  std::vector<double> counts = merged(bins, used, factor);
  if (counts.size() <= levels) return used;
  counts[0] = counts[1];
  const Sums sums(counts);
  size_t best = counts.size();
  double least = divergence(counts, sums, best, levels);
  for (size_t cut = levels; cut < counts.size(); ++cut) {
    if (sums.counts(cut, counts.size()) > kMostClipped * static_cast<double>(count)) continue;
    const double found = divergence(counts, sums, cut, levels);
    if (found < least) least = found, best = cut;
  }
  return std::min(used, best * factor);
}

/// The squared error of all values, each at the middle of its bin, in squared widths.
double squared_error(const Bins& bins, size_t used, size_t cut, int steps) {
  const double step = static_cast<double>(cut) / steps;
  double error = 0;
  for (size_t i = 0; i < used; ++i) {
    if (bins[i] == 0) continue;
    const double value = static_cast<double>(i) + 0.5,
                 nearest = step * std::min<double>(steps, std::nearbyint(value / step));
    error += static_cast<double>(bins[i]) * (value - nearest) * (value - nearest);
  }
  return error;
}

size_t least_error_cut(const Bins& bins, size_t used, int steps) {
  constexpr size_t kCuts = 128;
  size_t best = used;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = kCuts; i > 0; --i) {
    const size_t cut = std::max<size_t>(1, used * i / kCuts);
    const double error = squared_error(bins, used, cut, steps);
    if (error < least) least = error, best = cut;
  }
  return best;
}

size_t percentile_cut(const Histogram& histogram, double percentile) {
  const double wanted = static_cast<double>(histogram.count()) * percentile / 100;
  double below = 0;
  size_t cut = 0;
  while (cut < Histogram::kBins && below < wanted) below += static_cast<double>(histogram.bins()[cut++]);
  return cut;
}

}  // namespace

std::optional<Clipping> parse_clipping(std::string_view text) {
  constexpr std::string_view kPercentile = "percentile";
  if (text == "entropy") return Clipping{ClippingMethod::entropy};
  if (text == "minmax" || text == "max") return Clipping{ClippingMethod::minmax};
  if (text == "mse") return Clipping{ClippingMethod::mse};
  if (text == kPercentile) return Clipping{ClippingMethod::percentile};
  if (!text.starts_with(kPercentile) || text[kPercentile.size()] != '=') return std::nullopt;
  const std::optional<double> share = parse_real(text.substr(kPercentile.size() + 1));
  if (!share || !(*share > 0 && *share <= 100)) return std::nullopt;
  return Clipping{ClippingMethod::percentile, *share};
}

std::string text_of(const Clipping& clipping) {
  switch (clipping.method) {
    case ClippingMethod::minmax: return "minmax";
    case ClippingMethod::entropy: return "entropy";
    case ClippingMethod::mse: return "mse";
    case ClippingMethod::percentile: break;
  }
  return fmt::format("percentile={:g}", clipping.percentile);
}

float clip_magnitude(const Histogram& histogram, const Clipping& clipping, int steps) {
  const float whole = histogram.magnitude();
  const size_t used = used_bins(histogram.bins());
  if (clipping.method == ClippingMethod::minmax || whole == 0) return whole;
  const auto levels = static_cast<size_t>(steps) + 1;
  size_t cut = used;
  if (clipping.method == ClippingMethod::percentile) cut = percentile_cut(histogram, clipping.percentile);
  else if (clipping.method == ClippingMethod::mse) cut = least_error_cut(histogram.bins(), used, steps);
  else if (used > levels) cut = least_divergent_cut(histogram.bins(), histogram.count(), used, levels);
  return std::min(whole, static_cast<float>(static_cast<double>(cut) * histogram.width()));
}

double share_beyond(const Histogram& histogram, double magnitude) {
  if (histogram.count() == 0 || histogram.width() == 0) return 0;
  const auto first = static_cast<size_t>(std::min<double>(Histogram::kBins, std::ceil(magnitude / histogram.width())));
  uint64_t beyond = 0;
  for (size_t i = first; i < Histogram::kBins; ++i) beyond += histogram.bins()[i];
  return static_cast<double>(beyond) / static_cast<double>(histogram.count());
}

}  // namespace hone
