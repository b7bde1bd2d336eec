// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/accuracy_file.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/file.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Metrics of one number: how Polygraphy calls the number, its class and its threshold's.
struct Kept {
  std::string_view metric, field, result, threshold;
};
constexpr std::array<Kept, 5> kSingles{
    {{"l2", "l2_norm", "L2Result", "L2Threshold"},
     {"cosine_similarity", "cosine_similarity", "CosineSimilarityResult", "CosineSimilarityThreshold"},
     {"psnr", "psnr", "PsnrResult", "PsnrThreshold"},
     {"snr", "snr", "SnrResult", "SnrThreshold"},
     {"perceptual_metrics", "lpips", "PerceptualMetricsResult", "LpipsThreshold"}}};

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

double number_of(const Json& entry, const std::string& name) {
  if (!entry.contains(name)) return kNan;
  const Json& value = entry[name];
  if (value.is_number()) return value.get<double>();
  if (value.is_string() && value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value.is_string() && value == "-Infinity") return -std::numeric_limits<double>::infinity();
  return kNan;
}

Json simple_entry(const Verdict& v) {
  Json json{{"max_absdiff", number(v.absolute.most)},      {"max_reldiff", number(v.relative.most)},
            {"mean_absdiff", number(v.absolute.mean)},     {"mean_reldiff", number(v.relative.mean)},
            {"median_absdiff", number(v.absolute.median)}, {"median_reldiff", number(v.relative.median)}};
  const bool quantile = v.stat == "quantile";
  json["quantile_absdiff"] = quantile ? number(v.needed_abs) : Json(nullptr);
  json["quantile_reldiff"] = quantile ? number(v.needed_rel) : Json(nullptr);
  json["thresholds"] = {
      {"check_error_stat", v.stat}, {"atol", v.atol}, {"rtol", v.rtol}, {"polygraphy_class", "SimpleThreshold"}};
  json["passed"] = v.passed;
  json["polygraphy_class"] = "OutputCompareResult";
  json["tolerance_curve"] = Json::array();
  for (const auto& [absolute, relative] : v.curve)
    json["tolerance_curve"].push_back({number(absolute), number(relative)});
  return json;
}

Json entry_of(const Verdict& v) {
  if (v.metric == "simple") return simple_entry(v);
  for (const Kept& kept : kSingles)
    if (kept.metric == v.metric)
      return {{std::string(kept.field), number(v.value)},
              {"thresholds", {{"threshold", number(v.threshold)}, {"polygraphy_class", kept.threshold}}},
              {"polygraphy_class", kept.result}};
  return v.passed;  // indices: nothing but the verdict
}

Verdict read_simple(const std::string& output, const Json& entry) {
  Verdict v{.output = output, .metric = "simple"};
  v.absolute.most = number_of(entry, "max_absdiff");
  v.relative.most = number_of(entry, "max_reldiff");
  v.absolute.mean = number_of(entry, "mean_absdiff");
  v.relative.mean = number_of(entry, "mean_reldiff");
  v.absolute.median = number_of(entry, "median_absdiff");
  v.relative.median = number_of(entry, "median_reldiff");
  v.needed_abs = number_of(entry, "quantile_absdiff");
  v.needed_rel = number_of(entry, "quantile_reldiff");
  const Json& limits = member(entry, "thresholds");
  v.stat = text_member(limits, "check_error_stat");
  v.atol = number_of(limits, "atol");
  v.rtol = number_of(limits, "rtol");
  v.passed = member(entry, "passed").get<bool>();
  if (entry.contains("tolerance_curve"))
    for (const Json& point : list_member(entry, "tolerance_curve")) {
      const Json pair{{"a", point.at(0)}, {"r", point.at(1)}};
      v.curve.emplace_back(number_of(pair, "a"), number_of(pair, "r"));
    }
  return v;
}

Verdict read_entry(const std::string& output, const Json& entry) {
  if (entry.is_boolean()) {
    Verdict verdict{.output = output, .metric = "indices"};
    verdict.passed = entry.get<bool>();
    return verdict;
  }
  if (entry.contains("max_absdiff")) return read_simple(output, entry);
  for (const Kept& kept : kSingles) {
    if (!entry.contains(std::string(kept.field))) continue;
    Verdict v{.output = output, .metric = std::string(kept.metric)};
    v.value = number_of(entry, std::string(kept.field));
    v.threshold = number_of(member(entry, "thresholds"), "threshold");
    v.passed = wants_high(v.metric) ? v.value >= v.threshold : v.value <= v.threshold;
    return v;
  }
  throw Error(fmt::format("what is kept of output {} is of no metric that is known", output));
}

RunPair read_pair(const Json& entry) {
  if (!entry.is_array() || entry.size() != 2 || !entry[0].is_array() || entry[0].size() != 2 || !entry[1].is_array())
    throw Error("a comparison is no pair of two runs' names and iterations");
  RunPair pair;
  pair.first_name = entry[0][0].get<std::string>();
  pair.second_name = entry[0][1].get<std::string>();
  for (const Json& iteration : entry[1]) {
    if (!iteration.is_object()) throw Error("an iteration is no object");
    pair.iterations.emplace_back();
    for (const auto& [output, kept] : iteration.items()) pair.iterations.back().push_back(read_entry(output, kept));
  }
  return pair;
}

}  // namespace

std::string accuracy_text(const std::vector<std::string>& metrics, const std::vector<RunPair>& pairs, bool average) {
  Json results = Json::array();
  for (const std::string& metric : metrics) {
    Json list = Json::array();
    for (const RunPair& pair : pairs) {
      Json iterations = Json::array();
      for (const auto& iteration : pair.iterations) {
        Json outputs = Json::object();
        for (const Verdict& verdict : iteration)
          if (verdict.metric == metric && verdict.problem.empty()) outputs[verdict.output] = entry_of(verdict);
        iterations.push_back(outputs);
      }
      list.push_back(Json::array({Json::array({pair.first_name, pair.second_name}), iterations}));
    }
    results.push_back(
        {{"lst", list}, {"aggregation", average ? "average" : "per_sample"}, {"polygraphy_class", "AccuracyResult"}});
  }
  std::string text = Json{{"lst", results}, {"polygraphy_class", "AccuracyResults"}}.dump(
      4, ' ', false, Json::error_handler_t::replace);
  // As values, not as names, which a colon follows.
  for (const std::string word : {"-Infinity", "Infinity", "NaN"})
    for (size_t at = 0; (at = text.find('"' + word + '"', at)) != std::string::npos;) {
      const size_t end = at + word.size() + 2;
      const size_t next = text.find_first_not_of(" \n", end);
      if (next != std::string::npos && text[next] == ':') at = end;
      else text.replace(at, word.size() + 2, word);
    }
  return text + "\n";
}

Json parse_python_json(std::string text, const std::string& path) {
  const auto is_word = [](char each) { return (std::isalnum(static_cast<unsigned char>(each)) != 0) || each == '-'; };
  bool quoted = false;
  std::string clean;
  clean.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    if (quoted || text[i] == '"') {
      if (quoted && text[i] == '\\' && i + 1 < text.size()) clean += text[i++];
      else if (text[i] == '"') quoted = !quoted;
      clean += text[i++];
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string word = text.substr(i, end - i);
    if (word == "Infinity" || word == "-Infinity" || word == "NaN") clean += '"' + word + '"';
    else clean += end > i ? word : std::string(1, text[i]);
    i = std::max(end, i + 1);
  }
  return parse_json(clean, path);
}

bool is_accuracy(const Json& json) {
  return json.is_object() && json.value("polygraphy_class", std::string()) == "AccuracyResults";
}

std::vector<KeptComparison> read_accuracy(const std::string& path) {
  need_file(path);
  try {
    const Json json = parse_python_json(read_file(path), path);
    if (!is_accuracy(json)) throw Error("it is no JSON of that kind");
    std::vector<KeptComparison> all;
    for (const Json& result : list_member(json, "lst")) {
      KeptComparison kept{"", text_member(result, "aggregation"), {}};
      for (const Json& pair : list_member(result, "lst")) kept.pairs.push_back(read_pair(pair));
      for (const RunPair& pair : kept.pairs)
        for (const auto& iteration : pair.iterations)
          for (const Verdict& verdict : iteration) kept.metric = verdict.metric;
      all.push_back(std::move(kept));
    }
    return all;
  } catch (const StatusError&) {
    throw;
  } catch (const std::exception& error) {
    throw StatusError(ExitStatus::no_file, fmt::format("{} holds no accuracy results: {}", path, error.what()),
                      "hone run writes them with --save-accuracy-results");
  }
}

}  // namespace hone
