// SPDX-License-Identifier: Apache-2.0
//
// `hone inspect data`: statistics, values and histograms of tensors in files, and the numbers of comparisons that were kept.
#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/companion/narrator.h"
#include "tools/data/saved.h"

namespace hone {
namespace {

const CompanionCommand& command() {
  static const CompanionCommand kCommand{
      "inspect data",
      "FILE",
      "Shows what a file of inputs, outputs or accuracy results holds: JSON or a folder of it, .npz, .npy, "
      ".safetensors.",
      {{"--all", Takes::nothing, "", "all iterations, not the first alone", "-a"},
       {"--show-values", Takes::nothing, "", "the elements, too", "-s"},
       {"--histogram", Takes::nothing, "", "ten bins of them"},
       {"--num-items", Takes::one, "<count>", "how many elements at both ends of an axis (default 3; -1: all)", "-n"},
       {"--line-width", Takes::one, "<count>", "accepted: a row stands on one line"}}};
  return kCommand;
}

/// Rows of long axes with their first and last elements alone.
std::string shown_values(const std::vector<double>& numbers, const Dims& dims, int64_t ends, size_t depth = 0,
                         size_t start = 0) {
  if (dims.size() == depth) return fmt::format("{:.9g}", numbers.at(start));
  size_t stride = 1;
  for (size_t i = depth + 1; i < dims.size(); ++i) stride *= static_cast<size_t>(dims[i]);
  const int64_t length = dims[depth];
  const bool last = depth + 1 == dims.size(), cut = ends >= 0 && length > 2 * ends;
  const std::string between = last ? " " : "\n" + std::string(depth + 1, ' ');
  std::vector<std::string> parts;
  for (int64_t i = 0; i < length; ++i) {
    if (cut && i == ends) {
      parts.emplace_back("...");
      i = length - ends;
      if (i >= length) break;
    }
    parts.push_back(shown_values(numbers, dims, ends, depth + 1, start + static_cast<size_t>(i) * stride));
  }
  return "[" + join(parts, between) + "]";
}

std::string indented(const std::string& text, size_t depth) {
  const std::string blanks(4 * depth, ' ');
  return blanks + join(split(text, '\n'), "\n" + blanks);
}

class DataView {
 public:
  explicit DataView(const Arguments& arguments)
      : arguments_(arguments),
        narrator_(arguments),
        ends_(arguments.has("--num-items") ? arguments.integer("--num-items", 3) : 3) {}

  ExitStatus run() {
    const SavedData data = read_saved(arguments_.file());
    std::string text;
    if (data.kind == SavedData::Kind::accuracy) {
      text = accuracy_lines(data.accuracy);
    } else if (data.kind == SavedData::Kind::results) {
      text = fmt::format("==== Run Results ({} runners) ====\n", data.results.size());
      for (const RunResult& result : data.results) {
        text += fmt::format("\n---- {} ({} iterations) ----\n", result.runner, result.iterations.size());
        text += iteration_lines(result.iterations, json_["runners"][result.runner]);
      }
    } else {
      text = fmt::format("==== Data ({} iterations) ====\n", data.inputs.size()) +
             iteration_lines(data.inputs, json_["iterations"]);
    }
    narrator_.write(Narrator::Level::info, trim(text));
    write_json_result(arguments_, json_.dump(2, ' ', false, Json::error_handler_t::replace));
    return ExitStatus::passed;
  }

 private:
  std::string iteration_lines(const std::vector<TensorList>& iterations, Json& json) {
    json = Json::array();
    const bool all = arguments_.has("--all"), numbered = all && iterations.size() > 1;
    std::string text;
    for (size_t i = 0; i < iterations.size() && (all || i == 0); ++i) {
      if (numbered) text += fmt::format("\n-- Iteration: {}\n", i);
      Json tensors = Json::array();
      for (const NamedTensor& each : iterations[i]) text += tensor_lines(each, numbered ? 1 : 0, tensors);
      json.push_back(tensors);
    }
    return text;
  }

  std::string tensor_lines(const NamedTensor& each, size_t depth, Json& json) {
    const Tensor& tensor = each.tensor;
    Json entry{{"name", each.name}, {"dtype", numpy_word(tensor.dtype())}, {"shape", tensor.dims()}};
    std::string text =
        fmt::format("{} [dtype={}, shape={}]", each.name, numpy_word(tensor.dtype()), shape_text(tensor.dims()));
    if (!is_object(tensor.dtype()) && tensor.size() > 0) {
      const std::vector<double> numbers = doubles_of(tensor);
      const Statistics s = statistics_of(numbers);
      text += " | Stats: " + statistics_text(s, tensor.dims());
      entry.update(
          {{"mean", s.mean}, {"stdDev", s.deviation}, {"median", s.median}, {"min", s.least}, {"max", s.most}});
      if (arguments_.has("--histogram")) text += "\n" + indented("---- Histogram ----\n" + histogram_text(numbers), 1);
      if (arguments_.has("--show-values"))
        text += "\n" + indented(shown_values(numbers, tensor.dims(), tensor.size() <= 1000 ? -1 : ends_), 1);
    }
    json.push_back(entry);
    return indented(text, depth) + "\n";
  }

  std::string accuracy_lines(const std::vector<KeptComparison>& comparisons) {
    std::string text = fmt::format("==== Accuracy Results ({} comparison(s)) ====\n", comparisons.size());
    json_["comparisons"] = Json::array();
    for (const KeptComparison& comparison : comparisons) {
      text +=
          fmt::format("\n---- {} | Aggregation: {} ----\n", metric_title(comparison.metric), comparison.aggregation);
      for (const RunPair& pair : comparison.pairs) {
        size_t passed = 0;
        for (size_t i = 0; i < pair.iterations.size(); ++i) passed += pair.passed(i, true);
        text += fmt::format("{} vs. {} | {}/{} iteration(s) matched\n", pair.first_name, pair.second_name, passed,
                            pair.iterations.size());
        json_["comparisons"].push_back({{"metric", comparison.metric},
                                        {"first", pair.first_name},
                                        {"second", pair.second_name},
                                        {"passed", passed},
                                        {"iterations", pair.iterations.size()}});
        for (size_t i = 0; i < pair.iterations.size() && (arguments_.has("--all") || i == 0); ++i) {
          text += fmt::format("    -- Iteration: {}\n", i);
          for (const Verdict& verdict : pair.iterations[i])
            text += fmt::format("        {} | {}{}\n", verdict.output, verdict.passed ? "PASSED" : "FAILED",
                                numbers_of(verdict));
        }
      }
    }
    return text;
  }

  static std::string numbers_of(const Verdict& v) {
    if (v.metric == "indices") return "";
    if (v.metric != "simple") return fmt::format(" | {:.5g} (threshold {:.5g})", v.value, v.threshold);
    return fmt::format(
        " | max_absdiff={:.5g}, max_reldiff={:.5g}, mean_absdiff={:.5g}, mean_reldiff={:.5g}, median_absdiff={:.5g}, "
        "median_reldiff={:.5g}",
        v.absolute.most, v.relative.most, v.absolute.mean, v.relative.mean, v.absolute.median, v.relative.median);
  }

  const Arguments& arguments_;
  const Narrator narrator_;
  const int64_t ends_;
  Json json_ = Json::object();
};

ExitStatus inspect(const Arguments& arguments) { return DataView(arguments).run(); }

}  // namespace

const FriendlyCommand& describe_inspect_data() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}
int run_inspect_data(Words words) { return run_companion(command(), words, inspect); }

}  // namespace hone
