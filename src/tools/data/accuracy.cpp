// SPDX-License-Identifier: Apache-2.0
//
// `hone check accuracy`: a comparison that was kept, judged with other tolerances. Nothing runs again.
#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/companion/polygraphy_flags.h"
#include "tools/compare/run_flags.h"
#include "tools/data/saved.h"

namespace hone {
namespace {

constexpr std::string_view kSilent[] = {"--fail-fast",
                                        "--infinities-compare-equal",
                                        "--no-shape-check",
                                        "--error-quantile",
                                        "--index-tolerance",
                                        "--lpips-threshold",
                                        "--save-heatmaps",
                                        "--show-heatmaps",
                                        "--save-error-metrics-plot",
                                        "--show-error-metrics-plot"};
constexpr std::string_view kOwn[] = {"--fail-fast",
                                     "--infinities-compare-equal",
                                     "--no-shape-check",
                                     "--error-quantile",
                                     "--index-tolerance",
                                     "--lpips-threshold",
                                     "--save-heatmaps",
                                     "--show-heatmaps",
                                     "--save-error-metrics-plot",
                                     "--show-error-metrics-plot",
                                     "--compare-func-script",
                                     "--compare",
                                     "--atol",
                                     "--rtol",
                                     "--check-error-stat",
                                     "--l2-threshold",
                                     "--psnr-threshold",
                                     "--snr-threshold",
                                     "--cosine-similarity-threshold",
                                     "--check-average",
                                     "--save-accuracy-results"};

const CompanionCommand& command() {
  static const CompanionCommand kCommand = [] {
    CompanionCommand made{"check accuracy",
                          "FILE.json",
                          "Judges what hone run kept with --save-accuracy-results anew. What no flag says holds as it "
                          "did then. Exit 0: passed; 1: failed; 2: "
                          "the file lacks the numbers for it.",
                          {}};
    for (CompanionFlag flag : comparison_command().flags) {
      if (std::ranges::find(kOwn, flag.name) == std::end(kOwn)) continue;
      if (std::ranges::find(kSilent, flag.name) != std::end(kSilent))
        flag.help = "accepted: the numbers are kept as they are";
      made.flags.push_back(flag);
    }
    return made;
  }();
  return kCommand;
}

class Rejudged {
 public:
  explicit Rejudged(const Arguments& arguments)
      : arguments_(arguments), narrator_(arguments), request_(comparison_request_of_flags(arguments)) {}

  ExitStatus run() {
    narrator_.info("RUNNING | Command: hone check accuracy {}", join(arguments_.words(), " "));
    refuse_python(arguments_);
    need_file(arguments_.file());
    narrator_.info("Loading accuracy results from {}", arguments_.file());
    std::vector<KeptComparison> kept = read_accuracy(arguments_.file());
    size_t judged = 0;
    bool good = true;
    for (KeptComparison& comparison : kept) {
      if (!wanted(comparison.metric)) {
        narrator_.info("Ignoring what is kept of {}: --compare does not name it", metric_title(comparison.metric));
        continue;
      }
      for (RunPair& pair : comparison.pairs) {
        good &= arguments_.has("--check-average") ? judge_means(pair) : judge_each(pair);
        ++judged;
      }
    }
    if (judged == 0)
      throw UsageError(fmt::format("{} holds nothing of the metrics that --compare names", arguments_.file()));
    save(kept);
    write_json_result(arguments_,
                      Json{{"passed", good}, {"pairs", json_}}.dump(2, ' ', false, Json::error_handler_t::replace));
    const std::string words = join(arguments_.words(), " ");
    if (good) narrator_.info("PASSED | Command: hone check accuracy {}", words);
    else narrator_.error("FAILED | Command: hone check accuracy {}", words);
    return good ? ExitStatus::passed : ExitStatus::failed;
  }

 private:
  bool wanted(const std::string& metric) const {
    return !arguments_.has("--compare") || std::ranges::find(request_.metrics, metric) != request_.metrics.end();
  }

  /// A value of the command line for this output, else what it was.
  double limit(std::string_view flag, const ByName& given, const std::string& output, double was) const {
    if (!arguments_.has(flag)) return was;
    const auto named = given.find(output);
    if (named != given.end()) return named->second;
    const bool for_all = std::ranges::any_of(
        arguments_.values(flag), [](const std::string& word) { return word.find(':') == std::string::npos; });
    return for_all ? value_for(given, output, was) : was;
  }

  void set_limits(Verdict& v) const {
    if (v.metric == "simple") {
      v.atol = limit("--atol", request_.atol, v.output, v.atol);
      v.rtol = limit("--rtol", request_.rtol, v.output, v.rtol);
      if (arguments_.has("--check-error-stat")) {
        const auto named = request_.stat.find(v.output), any = request_.stat.find("");
        const std::string had = v.stat;
        if (named != request_.stat.end()) v.stat = named->second;
        else if (any != request_.stat.end()) v.stat = any->second;
        if (v.stat == "quantile" && had != "quantile")
          throw UsageError(fmt::format("the file holds no quantile of output {}", v.output),
                           "--check-error-stat max, mean or median");
      }
    } else if (v.metric == "l2") {
      v.threshold = limit("--l2-threshold", request_.l2, v.output, v.threshold);
    } else if (v.metric == "psnr") {
      v.threshold = limit("--psnr-threshold", request_.psnr, v.output, v.threshold);
    } else if (v.metric == "snr") {
      v.threshold = limit("--snr-threshold", request_.snr, v.output, v.threshold);
    } else if (v.metric == "cosine_similarity") {
      v.threshold = limit("--cosine-similarity-threshold", request_.cosine, v.output, v.threshold);
    }
  }

  static void choose_numbers(Verdict& v) {
    if (v.stat == "max") std::tie(v.needed_abs, v.needed_rel) = std::pair(v.absolute.most, v.relative.most);
    if (v.stat == "mean") std::tie(v.needed_abs, v.needed_rel) = std::pair(v.absolute.mean, v.relative.mean);
    if (v.stat == "median") std::tie(v.needed_abs, v.needed_rel) = std::pair(v.absolute.median, v.relative.median);
  }

  void judge(Verdict& v) const {
    set_limits(v);
    if (v.metric == "indices") return;
    if (v.metric != "simple") {
      v.passed = wants_high(v.metric) ? v.value >= v.threshold : v.value <= v.threshold;
      return;
    }
    if (v.stat != "elemwise") {
      choose_numbers(v);
      v.passed = judge_simple(v.stat, v.atol, v.rtol, v.needed_abs, v.needed_rel, {});
    } else if (v.absolute.most <= v.atol || v.relative.most <= v.rtol) {
      v.passed = true;
    } else if (!v.curve.empty()) {
      v.passed = judge_simple(v.stat, v.atol, v.rtol, 0, 0, v.curve);
    } else {
      throw UsageError(
          fmt::format("the file does not say how the errors of output {} lie, element by element", v.output),
          "--check-error-stat max, mean or median; or keep the comparison with hone run, which says it");
    }
  }

  bool judge_each(RunPair& pair) {
    size_t passed = 0;
    for (size_t i = 0; i < pair.iterations.size(); ++i) {
      for (Verdict& verdict : pair.iterations[i]) {
        judge(verdict);
        narrator_.write(verdict.passed ? Narrator::Level::info : Narrator::Level::error,
                        fmt::format("{} | Output: '{}' | {}{}", verdict.passed ? "PASSED" : "FAILED", verdict.output,
                                    metric_title(verdict.metric), text_of(verdict)));
      }
      passed += pair.passed(i, true);
    }
    const bool all = passed == pair.iterations.size();
    tell(pair, all,
         fmt::format("Passed: {}/{} iterations | Pass Rate: {:.2f}%", passed, pair.iterations.size(),
                     pair.iterations.empty()
                         ? 100.0
                         : 100.0 * static_cast<double>(passed) / static_cast<double>(pair.iterations.size())));
    return all;
  }

  bool judge_means(RunPair& pair) {
    std::map<std::string, std::vector<const Verdict*>> by_output;
    for (auto& iteration : pair.iterations)
      for (Verdict& verdict : iteration) {
        set_limits(verdict);
        const bool elements = verdict.metric == "simple" && verdict.stat == "elemwise";
        if (elements || verdict.metric == "indices")
          throw UsageError("--check-average has no mean of single elements or places",
                           "add --check-error-stat mean, max or median");
        choose_numbers(verdict);
        by_output[verdict.output].push_back(&verdict);
      }
    size_t passed = 0;
    for (const auto& [output, verdicts] : by_output) {
      double absolute = 0, relative = 0;
      const bool good = judge_average(verdicts, absolute, relative);
      passed += good;
      narrator_.write(good ? Narrator::Level::info : Narrator::Level::error,
                      fmt::format("{} | {}: [abs={:.5g}, rel={:.5g}] over {} iterations", output,
                                  good ? "PASSED" : "FAILED", absolute, relative, verdicts.size()));
    }
    tell(pair, passed == by_output.size(), fmt::format("Passed: {}/{} outputs", passed, by_output.size()));
    return passed == by_output.size();
  }

  static std::string text_of(const Verdict& v) {
    if (v.metric == "indices") return "";
    if (v.metric == "simple") return fmt::format(" | {} error within (rel={:g}, abs={:g})", v.stat, v.rtol, v.atol);
    return fmt::format(": {:.5g} (threshold {:g})", v.value, v.threshold);
  }

  void tell(const RunPair& pair, bool good, const std::string& counts) {
    narrator_.write(good ? Narrator::Level::info : Narrator::Level::error,
                    fmt::format("Accuracy Summary | {} vs. {} | {}", pair.first_name, pair.second_name, counts));
    json_.push_back({{"first", pair.first_name}, {"second", pair.second_name}, {"passed", good}, {"text", counts}});
  }

  void save(const std::vector<KeptComparison>& kept) const {
    const std::string path = arguments_.value("--save-accuracy-results");
    if (path.empty()) return;
    std::vector<std::string> metrics;
    std::vector<RunPair> pairs;
    for (const KeptComparison& comparison : kept) {
      metrics.push_back(comparison.metric);
      for (const RunPair& pair : comparison.pairs) {
        const auto same = std::ranges::find_if(pairs, [&](const RunPair& other) {
          return other.first_name == pair.first_name && other.second_name == pair.second_name;
        });
        if (same == pairs.end()) pairs.push_back(pair);
        else
          for (size_t i = 0; i < std::min(same->iterations.size(), pair.iterations.size()); ++i)
            same->iterations[i].insert(same->iterations[i].end(), pair.iterations[i].begin(), pair.iterations[i].end());
      }
    }
    narrator_.info("Saving accuracy results to {}", path);
    write_file(path, accuracy_text(metrics, pairs, arguments_.has("--check-average")));
  }

  const Arguments& arguments_;
  const Narrator narrator_;
  const CompareRequest request_;
  Json json_ = Json::array();
};

ExitStatus accuracy(const Arguments& arguments) { return Rejudged(arguments).run(); }

}  // namespace

const FriendlyCommand& describe_check_accuracy() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}
int run_check_accuracy(Words words) { return run_companion(command(), words, accuracy); }

}  // namespace hone
