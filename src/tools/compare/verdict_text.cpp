// SPDX-License-Identifier: Apache-2.0
//
// A verdict in the words that Polygraphy's users search their logs for.
#include <fmt/format.h>

#include "base/text.h"
#include "tools/compare/comparison.h"

namespace hone {
namespace {

std::string tensor_text(const std::string& name, const Tensor& tensor) {
  return fmt::format("'{}' (dtype={}, shape={})", name, numpy_word(tensor.dtype()), shape_text(tensor.dims()));
}

/// Values and histogram are of use where something is wrong.
void tell_statistics(std::string_view title, const Statistics& statistics, const std::vector<double>& numbers,
                     const Dims& dims, bool all, const Narrator& narrator) {
  narrator.info("{} | Stats: {}", title, statistics_text(statistics, dims));
  if (!all) return;
  const auto indent = narrator.indented();
  narrator.info("---- Values ----\n    {}", join(split(values_text(numbers, dims), '\n'), "\n    "));
  narrator.info("---- Histogram ----\n{}", histogram_text(numbers));
}

std::string place_text(const Place& place, const Dims& dims) {
  return fmt::format("{}: {:.8g} against {:.8g}", index_text(place.index, dims), shown(place.found),
                     shown(place.expected));
}

void tell_violations(const Verdict& v, const Narrator& narrator) {
  std::string text;
  if (v.violations > 0)
    text = fmt::format("Violations | {} of {} elements ({:.4g} %) | first at {} | worst at {}", v.violations,
                       v.elements, 100.0 * static_cast<double>(v.violations) / static_cast<double>(v.elements),
                       place_text(v.first, v.dims), place_text(v.worst, v.dims));
  else if (v.same_bits) text = "Bit for bit the same";
  else if (v.elements > 0) text = "Worst at " + place_text(v.worst, v.dims);
  if (v.largest_ulp > 0 && !text.empty())
    text += fmt::format(" | at most {:.6g} floats between the two", v.largest_ulp);
  if (v.has_channels && v.violations > 0) text += fmt::format(" | in channel {}", v.worst_channel);
  if (!text.empty()) narrator.info("{}", text);
}

void tell_simple(const Verdict& v, const Narrator& narrator) {
  narrator.info("Tolerance: [abs={:.5g}, rel={:.5g}] | Checking {} error", v.atol, v.rtol, v.stat);
  {
    const auto metrics = narrator.indented();
    narrator.info("Error Metrics: {}", v.output);
    const auto indent = narrator.indented();
    std::string note;
    if (v.stat == "elemwise") note = " (requirements may be lower if both abs/rel tolerances are set)";
    if (v.stat == "quantile") note = fmt::format(" (quantile={:.5g})", v.quantile);
    narrator.info("Minimum Required Tolerance: {} error | [abs={:.5g}] OR [rel={:.5g}]{}", v.stat, v.needed_abs,
                  v.needed_rel, note);
    const bool all = !v.passed || narrator.tells(Narrator::Level::verbose);
    tell_statistics("Absolute Difference", v.absolute, v.absolutes, v.dims, all, narrator);
    tell_statistics("Relative Difference", v.relative, v.relatives, v.dims, all, narrator);
    tell_violations(v, narrator);
  }
  if (v.passed)
    narrator.info("PASSED | Output: '{}' | Difference is within tolerance (rel={:.5g}, abs={:.5g})", v.output, v.rtol,
                  v.atol);
  else
    narrator.error("FAILED | Output: '{}' | Difference exceeds tolerance (rel={:.5g}, abs={:.5g})", v.output, v.rtol,
                   v.atol);
}

std::string single_text(const Verdict& v) {
  const char* end = v.passed ? "PASSED" : "FAILED";
  if (v.metric == "l2") return fmt::format("L2 Norm: {:.5g} (tolerance: {:.5g}) | {}", v.value, v.threshold, end);
  const std::string unit = v.metric == "cosine_similarity" ? "" : " dB";
  return fmt::format("{}: {:.5g}{} (min required: {:.5g}{}) | {}", metric_title(v.metric), v.value, unit, v.threshold,
                     unit, end);
}

}  // namespace

void tell_verdict(const Verdict& v, const Tensor& found, const Tensor& expected, const Narrator& narrator) {
  narrator.info("{} | Comparing Output: {} with {}", metric_title(v.metric), tensor_text(v.output, found),
                tensor_text(v.output, expected));
  const auto indent = narrator.indented();
  if (!v.problem.empty()) {
    narrator.error("FAILED | Output: '{}' | {}", v.output, v.problem);
  } else if (is_object(found.dtype())) {
    narrator.info("PASSED | Output: '{}' | The same strings", v.output);
  } else if (v.metric == "simple") {
    tell_simple(v, narrator);
  } else if (v.metric == "indices") {
    if (v.passed) narrator.info("PASSED | Difference is within index tolerance ({:g})", v.threshold);
    else
      narrator.error("FAILED | Difference exceeds index tolerance ({:g}): a value stands {:g} places away", v.threshold,
                     v.value);
  } else if (v.passed) {
    narrator.info("{}", single_text(v));
  } else {
    narrator.error("{}", single_text(v));
  }
}

}  // namespace hone
