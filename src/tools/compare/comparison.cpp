// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "base/text.h"
#include "tools/compare/accuracy_file.h"

namespace hone {
namespace {

std::string lower(std::string text) {
  for (char& each : text) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  return text;
}

struct Match {
  const NamedTensor *found = nullptr, *expected = nullptr;
};

/// By name, else by names that hold each other, else by place.
std::vector<Match> match_outputs(const TensorList& found, const TensorList& expected, const Narrator& narrator) {
  std::vector<Match> matches;
  std::vector<const NamedTensor*> left;
  for (const NamedTensor& each : expected)
    if (find_tensor(found, each.name) == nullptr) left.push_back(&each);
  for (size_t i = 0; i < found.size(); ++i) {
    Match match{&found[i]};
    const auto same = std::ranges::find(expected, found[i].name, &NamedTensor::name);
    if (same != expected.end()) {
      match.expected = &*same;
    } else {
      const std::string name = lower(found[i].name);
      auto alike = std::ranges::find_if(left, [&](const NamedTensor* other) {
        const std::string text = lower(other->name);
        return text.find(name) != std::string::npos || name.find(text) != std::string::npos;
      });
      if (alike == left.end() && found.size() == expected.size() && left.size() == found.size())
        alike = std::ranges::find(left, &expected[i]);
      if (alike != left.end()) {
        match.expected = *alike;
        left.erase(alike);
        narrator.warning("Output '{}' is compared with '{}': there is none of its own name", found[i].name,
                         match.expected->name);
      }
    }
    matches.push_back(match);
  }
  for (const NamedTensor* each : left) matches.push_back({nullptr, each});
  return matches;
}

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

Json place_json(const Place& place, const Dims& dims) {
  Json index = Json::array();
  size_t at = place.index;
  for (size_t axis = dims.size(); axis-- > 0;) {
    const auto size = static_cast<size_t>(std::max<int64_t>(dims[axis], 1));
    index.insert(index.begin(), at % size);
    at /= size;
  }
  return {{"index", index}, {"found", number(place.found)}, {"expected", number(place.expected)}};
}

Json verdict_json(const Verdict& v) {
  Json json{{"name", v.output}, {"metric", v.metric}, {"passed", v.passed}};
  if (!v.problem.empty()) json["problem"] = v.problem;
  if (!v.problem.empty()) return json;
  if (v.metric != "simple") {
    json["value"] = number(v.value);
    json["threshold"] = number(v.threshold);
    return json;
  }
  json.update({{"stat", v.stat},
               {"atol", v.atol},
               {"rtol", v.rtol},
               {"requiredAbs", number(v.needed_abs)},
               {"requiredRel", number(v.needed_rel)},
               {"maxAbs", number(v.absolute.most)},
               {"meanAbs", number(v.absolute.mean)},
               {"maxRel", number(v.relative.most)},
               {"meanRel", number(v.relative.mean)},
               {"elements", v.elements},
               {"violations", v.violations},
               {"sameBits", v.same_bits}});
  if (v.largest_ulp >= 0) json["ulp"] = number(v.largest_ulp);
  if (v.violations > 0) json["first"] = place_json(v.first, v.dims);
  if (v.elements > 0) json["worst"] = place_json(v.worst, v.dims);
  if (v.has_channels) json["worstChannel"] = v.worst_channel;
  return json;
}

}  // namespace

bool RunPair::passed(size_t iteration, bool allow_unmatched) const {
  if (!unmatched.empty() && !allow_unmatched) return false;
  return std::ranges::all_of(iterations[iteration], &Verdict::passed);
}

Comparison::Comparison(ComparisonRequest request, const std::vector<std::string>& runners,
                       std::vector<Produced> producers, const Narrator& narrator)
    : request_(std::move(request)), producers_(std::move(producers)), narrator_(narrator) {
  for (size_t a = 0; a < runners.size(); ++a)
    for (size_t b = a + 1; b < runners.size(); ++b) {
      const bool wanted = request_.pairs == "all" || (request_.pairs == "first" && a == 0) ||
                          (request_.pairs == "neighbour" && b == a + 1);
      if (!wanted) continue;
      // A golden run comes first on the line and second in a pair: what is judged stands first.
      if (request_.pairs == "first" && runners[0].starts_with("ref"))
        pairs_.push_back({b, a, runners[b], runners[a], {}, {}});
      else pairs_.push_back({a, b, runners[a], runners[b], {}, {}});
    }
}

bool Comparison::add(const std::vector<TensorList>& outputs) {
  for (RunPair& pair : pairs_) {
    narrator_.info("Accuracy Comparison | {} vs. {}", pair.first_name, pair.second_name);
    const size_t iteration = pair.iterations.size();
    narrator_.info("Iteration: {}", iteration);
    const auto indent = narrator_.indented();
    if (!compare_pair(pair, outputs[pair.first], outputs[pair.second], iteration) && request_.fail_fast) return false;
  }
  return true;
}

bool Comparison::compare_pair(RunPair& pair, const TensorList& found, const TensorList& expected, size_t iteration) {
  pair.iterations.emplace_back();
  const bool good = compare_outputs(pair, found, expected, iteration);
  const auto& verdicts = pair.iterations.back();
  for (const std::string& metric : request_.compare.metrics) {
    std::vector<std::string> failed, passed;
    for (const Verdict& verdict : verdicts)
      if (verdict.metric == metric) (verdict.passed ? passed : failed).push_back(verdict.output);
    if (!failed.empty())
      narrator_.error("FAILED | {} | Mismatched outputs: {}", metric_title(metric), names_text(failed));
    else if (!passed.empty())
      narrator_.info("PASSED | {} | All outputs matched | Outputs: {}", metric_title(metric), names_text(passed));
  }
  return good;
}

bool Comparison::compare_outputs(RunPair& pair, const TensorList& found, const TensorList& expected, size_t iteration) {
  bool good = true;
  pair.unmatched.clear();
  for (const Match& match : match_outputs(found, expected, narrator_)) {
    if (match.found == nullptr || match.expected == nullptr) {
      const std::string& name = match.found == nullptr ? match.expected->name : match.found->name;
      pair.unmatched.push_back(name);
      const std::string text = fmt::format("Output '{}' is there in {} alone", name,
                                           match.found == nullptr ? pair.second_name : pair.first_name);
      if (request_.allow_unmatched) narrator_.warning("{}", text);
      else narrator_.error("FAILED | {} (--allow-unmatched leaves it out)", text);
      continue;
    }
    bool output_good = true;
    for (const std::string& metric : request_.compare.metrics) {
      Verdict verdict =
          compare(metric, match.found->name, match.found->tensor, match.expected->tensor, request_.compare);
      tell_verdict(verdict, match.found->tensor, match.expected->tensor, narrator_);
      if (!request_.heat_maps.empty() && metric == "simple" && verdict.problem.empty())
        write_heat_maps(request_.heat_maps, verdict, iteration);
      if (!request_.error_plots.empty() && metric == "simple" && verdict.problem.empty())
        write_error_plot(request_.error_plots, verdict, match.expected->tensor, iteration);
      verdict.drop_elements();
      output_good &= verdict.passed;
      pair.iterations.back().push_back(std::move(verdict));
    }
    for (const auto& [runner, tensor] :
         {std::pair(pair.first_name, &match.found->tensor), std::pair(pair.second_name, &match.expected->tensor)}) {
      if (is_object(tensor->dtype())) continue;
      const std::vector<double> numbers = doubles_of(*tensor);
      narrator_.info("{}: {} | Stats: {}", runner, match.found->name,
                     statistics_text(statistics_of(numbers), tensor->dims()));
      if (output_good && !narrator_.tells(Narrator::Level::verbose)) continue;
      const auto indent = narrator_.indented();
      narrator_.info("---- Values ----\n    {}", join(split(values_text(numbers, tensor->dims()), '\n'), "\n    "));
    }
    good &= output_good;
    if (!output_good && request_.fail_fast) return false;
  }
  return good && (pair.unmatched.empty() || request_.allow_unmatched);
}

bool judge_average(const std::vector<const Verdict*>& iterations, double& mean_abs, double& mean_rel) {
  mean_abs = mean_rel = 0;
  const auto count = static_cast<double>(iterations.size());
  for (const Verdict* each : iterations) {
    if (!each->problem.empty()) return false;
    mean_abs += (each->metric == "simple" ? each->needed_abs : each->value) / count;
    mean_rel += each->needed_rel / count;
  }
  const Verdict& any = *iterations.front();
  if (any.metric == "simple") return mean_abs <= any.atol || mean_rel <= any.rtol;
  return wants_high(any.metric) ? mean_abs >= any.threshold : mean_abs <= any.threshold;
}

bool Comparison::average_passed(const RunPair& pair) const {
  std::map<std::pair<std::string, std::string>, std::vector<const Verdict*>> by_output;
  std::vector<std::pair<std::string, std::string>> order;
  for (const auto& iteration : pair.iterations)
    for (const Verdict& verdict : iteration) {
      const std::pair key(verdict.output, verdict.metric);
      if (!by_output.contains(key)) order.push_back(key);
      by_output[key].push_back(&verdict);
    }
  size_t passed = 0;
  std::vector<std::string> lines;
  for (const auto& key : order) {
    double mean_abs = 0, mean_rel = 0;
    const bool good = judge_average(by_output[key], mean_abs, mean_rel);
    passed += good;
    lines.push_back(fmt::format("{} | {}: {} [abs={:.5g}, rel={:.5g}] over {} iterations", key.first,
                                good ? "PASSED" : "FAILED", metric_title(key.second), mean_abs, mean_rel,
                                by_output[key].size()));
  }
  const bool all = passed == order.size() && !order.empty() && (pair.unmatched.empty() || request_.allow_unmatched);
  const auto level = all ? Narrator::Level::info : Narrator::Level::error;
  narrator_.write(level, fmt::format("Accuracy Summary | {} vs. {} | Passed: {}/{} outputs", pair.first_name,
                                     pair.second_name, passed, order.size()));
  const auto indent = narrator_.indented();
  for (const std::string& line : lines) narrator_.write(level, line);
  return all;
}

bool Comparison::finish() {
  bool all = true;
  for (const RunPair& pair : pairs_) {
    if (!request_.average) tell_divergence(pair);
    if (request_.average) {
      all &= average_passed(pair);
      continue;
    }
    size_t passed = 0, compared = 0;
    for (size_t i = 0; i < pair.iterations.size(); ++i) {
      passed += pair.passed(i, request_.allow_unmatched);
      compared += pair.iterations[i].size();
    }
    const size_t count = pair.iterations.size();
    const bool good = count > 0 && passed == count && compared > 0;
    if (compared == 0)
      narrator_.error("FAILED | Nothing was compared: {} and {} have no output in common", pair.first_name,
                      pair.second_name);
    narrator_.write(good ? Narrator::Level::info : Narrator::Level::error,
                    fmt::format("Accuracy Summary | {} vs. {} | Passed: {}/{} iterations | Pass Rate: {:.2f}%",
                                pair.first_name, pair.second_name, passed, count,
                                count == 0 ? 0.0 : 100.0 * static_cast<double>(passed) / static_cast<double>(count)));
    all &= good;
  }
  return all;
}

std::string Comparison::producer_text(const std::string& tensor) const {
  const auto found = std::ranges::find(producers_, tensor, &Produced::tensor);
  if (found == producers_.end()) return "";
  return fmt::format(" ({}{}{})", found->op, found->node.empty() ? "" : " ", found->node);
}

/// In the model's order, over all iterations: a tensor's producers come before it.
void Comparison::tell_divergence(const RunPair& pair) {
  std::map<std::string, std::pair<bool, double>> found;
  for (const auto& iteration : pair.iterations)
    for (const Verdict& verdict : iteration) {
      auto& [good, error] = found.try_emplace(verdict.output, true, 0.0).first->second;
      good &= verdict.passed;
      if (verdict.metric == "simple") error = std::max(error, verdict.absolute.most);
    }
  if (found.size() < 2) return;
  double before = 0;
  narrator_.info("Layers in the model's order | {} vs. {}", pair.first_name, pair.second_name);
  const auto indent = narrator_.indented();
  std::string first;
  size_t place = 0;
  for (const Produced& each : producers_) {
    const auto at = found.find(each.tensor);
    if (at == found.end()) continue;
    const auto& [good, error] = at->second;
    narrator_.info("{:>4} | {:<28} | {:<28} | max abs {:<11.5g} | {}", place++, each.tensor,
                   fmt::format("{} {}", each.op, each.node), error, good ? "PASSED" : "FAILED");
    if (!good && first.empty()) first = each.tensor;
    if (first.empty()) before = std::max(before, error);
  }
  if (first.empty()) return;
  if (first_divergence_.empty()) first_divergence_ = first;
  narrator_.error("First divergence: {}{}, layers before it agree to {:.5g}", first, producer_text(first), before);
}

Json Comparison::json() const {
  Json json = Json::array();
  for (const RunPair& pair : pairs_) {
    Json iterations = Json::array();
    for (size_t i = 0; i < pair.iterations.size(); ++i) {
      Json outputs = Json::array();
      for (const Verdict& verdict : pair.iterations[i]) outputs.push_back(verdict_json(verdict));
      iterations.push_back({{"passed", pair.passed(i, request_.allow_unmatched)}, {"outputs", outputs}});
    }
    json.push_back({{"first", pair.first_name},
                    {"second", pair.second_name},
                    {"iterations", iterations},
                    {"unmatched", pair.unmatched}});
  }
  return json;
}

std::string Comparison::kept_accuracy() const {
  return accuracy_text(request_.compare.metrics, pairs_, request_.average);
}

}  // namespace hone
