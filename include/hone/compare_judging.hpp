// SPDX-License-Identifier: Apache-2.0
//
// The judging half of compare.hpp: metrics of Polygraphy on pairs of arrays, and whole runs held against each other.
#pragma once

#include "hone/compare.hpp"

namespace hone::compare {

using ByName = std::map<std::string, double>;  // "" for all that are not named

/// What `hone run` takes as --compare, --atol, --rtol, --check-error-stat, ...
struct Limits {
  std::vector<std::string> metrics{"simple"};  // simple, indices, l2, cosine_similarity, psnr, snr
  ByName atol = {}, rtol = {};
  std::map<std::string, std::string> stat = {};  // elemwise, max, mean, median, quantile
  ByName quantile = {}, index_tolerance = {}, l2 = {}, cosine_similarity = {}, psnr = {}, snr = {};
  bool shape_check = true, infinities_equal = false;
};

/// Of one metric on one output. `needed`: the tolerances that would just pass; of other metrics their one number, twice.
struct Verdict {
  bool passed = false, judged = false;
  std::string text = {};
  double needed[2] = {0, 0}, limits[2] = {0, 0};
};

/// Places of the `count` largest values along an axis, of the output of this name or, for "", of all.
struct TopPlaces {
  std::string output;
  int64_t count = 1, axis = -1;
};

/// How agree() goes about it.
struct Rules {
  std::string pairs = "first";  // each with the first; or neighbour, all
  bool fail_fast = false, average = false, allow_unmatched = false, allow_prefix = false;
  std::vector<TopPlaces> postprocess = {};
};

namespace detail {

template <typename T>
T for_output(const std::map<std::string, T>& values, const std::string& output, T standard) {
  if (const auto named = values.find(output); named != values.end()) return named->second;
  const auto any = values.find("");
  return any == values.end() ? standard : any->second;
}

template <typename... Numbers>
std::string text_of(const char* format, Numbers... numbers) {
  char text[512];
  std::snprintf(text, sizeof text, format, numbers...);
  return text;
}

inline std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string text = "(";
  for (const int64_t size : sizes) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + ")";
}

/// NumPy's: NaNs spread, quantiles interpolate.
inline double statistic(const std::string& stat, double part, std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  if (std::ranges::any_of(numbers, [](double number) { return std::isnan(number); })) return NAN;
  if (stat == "mean") return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
  std::ranges::sort(numbers);
  if (stat != "median" && stat != "quantile") return numbers.back();
  const double place = (stat == "median" ? 0.5 : part) * static_cast<double>(numbers.size() - 1);
  const auto below = static_cast<size_t>(place), above = std::min(below + 1, numbers.size() - 1);
  const double rest = place - static_cast<double>(below);
  return rest == 0 ? numbers[below] : numbers[below] + (numbers[above] - numbers[below]) * rest;
}

inline Verdict simple(const std::string& output, const Array& found, const Array& expected, const Limits& limits) {
  const std::vector<double> a = numbers_of(found), b = numbers_of(expected);
  std::vector<double> absolute, relative;
  for (size_t i = 0; i < a.size(); ++i) {
    double error = std::abs(a[i] - b[i]);
    if (found.dtype == HONE_BOOL) error = a[i] == b[i] ? 0 : 1;
    if (limits.infinities_equal && std::isinf(a[i]) && a[i] == b[i]) error = 0;
    absolute.push_back(error);
    relative.push_back(error == 0 ? 0 : error / (b[i] == 0 ? std::numeric_limits<double>::epsilon() : std::abs(b[i])));
  }
  const std::string stat = for_output(limits.stat, output, std::string("elemwise"));
  const double atol = for_output(limits.atol, output, 1e-5), rtol = for_output(limits.rtol, output, 1e-5),
               part = for_output(limits.quantile, output, 0.99);
  Verdict verdict{.judged = true,
                  .needed = {statistic(stat, part, absolute), statistic(stat, part, relative)},
                  .limits = {atol, rtol}};
  size_t off = 0;
  for (size_t i = 0; i < a.size(); ++i) off += !(absolute[i] <= atol) && !(relative[i] <= rtol);
  verdict.passed = stat == "elemwise" ? off == 0 : verdict.needed[0] <= atol || verdict.needed[1] <= rtol;
  verdict.text = text_of("%s error [abs=%.5g] OR [rel=%.5g], tolerance [abs=%.5g, rel=%.5g]", stat.c_str(),
                         verdict.needed[0], verdict.needed[1], atol, rtol);
  if (stat == "elemwise") verdict.text += text_of(", %zu of %zu elements beyond both", off, a.size());
  return verdict;
}

inline double single(const std::string& metric, const std::vector<double>& a, const std::vector<double>& b) {
  double error = 0, aa = 0, bb = 0, ab = 0, most = -std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    aa += a[i] * a[i];
    bb += b[i] * b[i];
    ab += a[i] * b[i];
    most = std::max(most, a[i]);
  }
  if (metric == "l2") return std::sqrt(error);
  if (metric == "cosine_similarity") {
    if (aa == 0 || bb == 0) return aa == bb ? 1 : 0;
    return std::clamp(ab / (std::sqrt(aa) * std::sqrt(bb)), -1.0, 1.0);
  }
  const double count = std::max<double>(1, static_cast<double>(a.size()));
  if (error == 0) return std::numeric_limits<double>::infinity();
  if (metric == "psnr") return 20 * std::log10(most <= 0 ? 1 : most) - 10 * std::log10(error / count);
  if (metric == "snr") return 10 * std::log10(aa / error);
  throw std::runtime_error("there is no metric " + metric +
                           ": simple, indices, l2, cosine_similarity, psnr and snr are");
}

/// How far each value of a row stands from where it stands in the other row; the last `allowed` of a row are left out.
inline double places_apart(const Array& found, const Array& expected, size_t allowed) {
  const std::vector<double> a = numbers_of(found), b = numbers_of(expected);
  const size_t row = found.sizes.empty() ? 1 : static_cast<size_t>(found.sizes.back());
  size_t worst = 0;
  for (size_t at = 0; row > 0 && at + row <= a.size(); at += row)
    for (size_t i = 0; i + std::min(allowed, row) < row; ++i) {
      size_t distance = row;
      for (size_t k = 0; k < row; ++k)
        if (b[at + k] == a[at + i]) distance = std::min(distance, k > i ? k - i : i - k);
      worst = std::max(worst, distance);
    }
  return static_cast<double>(worst);
}

inline bool wants_low(const std::string& metric) { return metric == "l2" || metric == "indices"; }

}  // namespace detail

/// One output by one metric.
inline Verdict judge(const std::string& metric, const std::string& output, const Array& found, const Array& expected,
                     const Limits& limits) {
  if (found.dtype == HONE_STRING || expected.dtype == HONE_STRING) {
    const bool same = found.dtype == expected.dtype && found.sizes == expected.sizes && found.texts == expected.texts;
    return {.passed = same, .text = same ? "the same strings" : "strings are compared as a whole: they differ"};
  }
  if (limits.shape_check ? found.sizes != expected.sizes : count_of(found.sizes) != count_of(expected.sizes))
    return {.text = "Shapes differ: " + detail::sizes_text(found.sizes) + " and " + detail::sizes_text(expected.sizes)};
  if (metric == "simple") return detail::simple(output, found, expected, limits);
  const auto limit_in = [&](const ByName& values, double standard) {
    return detail::for_output(values, output, standard);
  };
  const double limit = metric == "indices"             ? limit_in(limits.index_tolerance, 0)
                       : metric == "l2"                ? limit_in(limits.l2, 1e-5)
                       : metric == "cosine_similarity" ? limit_in(limits.cosine_similarity, 0.997)
                       : metric == "psnr"              ? limit_in(limits.psnr, 30)
                                                       : limit_in(limits.snr, 20);
  const double value = metric == "indices"
                           ? detail::places_apart(found, expected, static_cast<size_t>(limit))
                           : detail::single(metric, detail::numbers_of(found), detail::numbers_of(expected));
  return {.passed = detail::wants_low(metric) ? value <= limit : value >= limit,
          .judged = true,
          .text = detail::text_of("%s %.5g (limit %g)", metric.c_str(), value, limit),
          .needed = {value, value},
          .limits = {limit, limit}};
}

/// Where the largest values stand, the largest first.
inline Array top_places(const Array& array, int64_t count, int64_t axis) {
  const auto rank = static_cast<int64_t>(array.sizes.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) throw std::runtime_error("there is no such axis in " + detail::sizes_text(array.sizes));
  const auto at = static_cast<size_t>(axis);
  const auto length = static_cast<size_t>(array.sizes[at]);
  size_t inner = 1;
  for (size_t i = at + 1; i < array.sizes.size(); ++i) inner *= static_cast<size_t>(array.sizes[i]);
  const std::vector<double> numbers = detail::numbers_of(array);
  const size_t kept = std::min(static_cast<size_t>(count), length);
  Array result{HONE_I64, array.sizes};
  result.sizes[at] = static_cast<int64_t>(kept);
  result.bytes.resize(count_of(result.sizes) * sizeof(int64_t));
  std::vector<size_t> order(length);
  for (size_t o = 0; length * inner > 0 && o < numbers.size() / (length * inner); ++o)
    for (size_t i = 0; i < inner; ++i) {
      std::iota(order.begin(), order.end(), size_t{0});
      std::ranges::stable_sort(order, std::greater(), [&](size_t k) { return numbers[(o * length + k) * inner + i]; });
      for (size_t k = 0; k < kept; ++k) {
        const auto place = static_cast<int64_t>(order[k]);
        std::memcpy(result.bytes.data() + ((o * kept + k) * inner + i) * sizeof place, &place, sizeof place);
      }
    }
  return result;
}

/// Whether no output holds an infinity or a NaN; prints which does.
inline bool valid(const Results& results) {
  bool good = true;
  for (const auto& [run, iterations] : results)
    for (const Feed& outputs : iterations)
      for (const auto& [name, array] : outputs) {
        const bool fine =
            array.dtype == HONE_STRING ||
            std::ranges::all_of(detail::numbers_of(array), [](double number) { return std::isfinite(number); });
        std::printf(fine ? "PASSED | %s | Output: %s is valid\n" : "FAILED | %s | Errors detected in output: %s\n",
                    run.c_str(), name.c_str());
        good &= fine;
      }
  return good;
}

namespace detail {

using Grouped = std::map<std::pair<std::string, std::string>, std::vector<Verdict>>;  // by output and metric

inline std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char each) { return static_cast<char>(std::tolower(each)); });
  return text;
}

/// The output of the other run that has this name, else one whose name holds it or is held by it; "" for none.
inline std::string partner_of(const std::string& name, const Feed& found, const Feed& expected) {
  if (expected.contains(name)) return name;
  for (const auto& [other, array] : expected) {
    const std::string mine = lower(name), theirs = lower(other);
    if (!found.contains(other) && (mine.find(theirs) != std::string::npos || theirs.find(mine) != std::string::npos))
      return other;
  }
  return found.size() == 1 && expected.size() == 1 ? expected.begin()->first : "";
}

inline bool compare_outputs(const Feed& found, const Feed& expected, const Limits& limits, const Rules& rules,
                            Grouped& verdicts) {
  bool good = true;
  std::map<std::string, std::string> partners;
  for (const auto& [name, array] : found) {
    const std::string partner = partner_of(name, found, expected);
    if (!partner.empty()) partners[partner] = name;
    if (partner.empty()) {
      std::printf("%s | Output '%s' is there in one run alone\n", rules.allow_unmatched ? "WARNING" : "FAILED",
                  name.c_str());
      good &= rules.allow_unmatched;
    }
  }
  for (const auto& [name, array] : expected) {
    const auto partner = partners.find(name);
    if (partner == partners.end()) {
      std::printf("%s | Output '%s' is there in one run alone\n", rules.allow_unmatched ? "WARNING" : "FAILED",
                  name.c_str());
      good &= rules.allow_unmatched;
      continue;
    }
    for (const std::string& metric : limits.metrics) {
      const Verdict verdict = judge(metric, partner->second, found.at(partner->second), array, limits);
      std::printf("%s | Output: '%s' | %s\n", verdict.passed ? "PASSED" : "FAILED", partner->second.c_str(),
                  verdict.text.c_str());
      verdicts[{partner->second, metric}].push_back(verdict);
      good &= verdict.passed;
    }
    if (!good && rules.fail_fast) return false;
  }
  return good;
}

inline bool average_passed(const std::string& pair, const Grouped& verdicts) {
  size_t passed = 0;
  for (const auto& [key, each] : verdicts) {
    double means[2] = {0, 0};
    bool judged = true, fine = true;
    for (const Verdict& verdict : each) {
      judged &= verdict.judged;
      fine &= verdict.passed;
      for (size_t i = 0; i < 2; ++i) means[i] += verdict.needed[i] / static_cast<double>(each.size());
    }
    const double* limits = each.front().limits;
    if (judged && key.second == "simple") fine = means[0] <= limits[0] || means[1] <= limits[1];
    else if (judged) fine = wants_low(key.second) ? means[0] <= limits[0] : means[0] >= limits[0];
    passed += fine;
  }
  std::printf("Accuracy Summary | %s | Passed: %zu/%zu outputs\n", pair.c_str(), passed, verdicts.size());
  return passed == verdicts.size() && !verdicts.empty();
}

inline Feed postprocessed(Feed outputs, const Rules& rules) {
  for (const TopPlaces& each : rules.postprocess)
    for (auto& [name, array] : outputs)
      if (each.output.empty() || each.output == name) array = top_places(array, each.count, each.axis);
  return outputs;
}

}  // namespace detail

/// Whether the runs agree; prints a line an output and a summary a pair.
inline bool agree(const Results& results, const Limits& limits = {}, const Rules& rules = {}) {
  bool good = true;
  size_t count = results.empty() ? 0 : results.front().second.size();
  for (const auto& [name, iterations] : results) {
    if (iterations.size() != count && !rules.allow_prefix) {
      std::printf("FAILED | %s has %zu iterations, not %zu\n", name.c_str(), iterations.size(), count);
      good = false;
    }
    count = std::min(count, iterations.size());
  }
  for (size_t a = 0; a < results.size(); ++a)
    for (size_t b = a + 1; b < results.size(); ++b) {
      if (rules.pairs != "all" && !(rules.pairs == "first" && a == 0) && !(rules.pairs == "neighbour" && b == a + 1))
        continue;
      // A golden run comes first on the line and second in a pair: what is judged stands first.
      const bool golden = rules.pairs == "first" && results[0].first.starts_with("ref");
      const auto &mine = results[golden ? b : a], &theirs = results[golden ? a : b];
      const std::string pair = mine.first + " vs. " + theirs.first;
      std::printf("Accuracy Comparison | %s\n", pair.c_str());
      detail::Grouped verdicts;
      size_t passed = 0, compared = 0;
      for (size_t i = 0; i < count; ++i) {
        const bool fine =
            detail::compare_outputs(detail::postprocessed(mine.second[i], rules),
                                    detail::postprocessed(theirs.second[i], rules), limits, rules, verdicts);
        ++compared;
        passed += fine;
        if (!fine && rules.fail_fast) break;
      }
      if (rules.average) {
        good &= detail::average_passed(pair, verdicts);
        continue;
      }
      std::printf("Accuracy Summary | %s | Passed: %zu/%zu iterations | Pass Rate: %.2f%%\n", pair.c_str(), passed,
                  compared, compared == 0 ? 0 : 100.0 * static_cast<double>(passed) / static_cast<double>(compared));
      good &= passed == compared && !verdicts.empty();
      if (!good && rules.fail_fast) return false;
    }
  return good;
}

}  // namespace hone::compare
