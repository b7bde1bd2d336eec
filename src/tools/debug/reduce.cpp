// SPDX-License-Identifier: Apache-2.0
//
// `hone debug reduce`: the smallest part of a model that still fails a check. First the shortest beginning that fails, then the shortest
// end of that, then whatever else can be left out, branches included: a part is any choice of nodes, and what left-out nodes would
// have given is an input of it.
#include <algorithm>
#include <bit>
#include <map>

#include "base/text.h"
#include "edit/changes/pieces.h"
#include "edit/file.h"
#include "tools/commands/commands.h"
#include "tools/companion/polygraphy_flags.h"
#include "tools/compare/inputs.h"
#include "tools/compare/run_flags.h"
#include "tools/debug/checker.h"
#include "tools/debug/fewest.h"
#include "tools/debug/golden.h"
#include "tools/debug/passing_file.h"
#include "tools/surgeon/describe_model.h"
#include "tools/surgeon/model_line.h"

namespace hone {
namespace {

using edit::Part;

std::vector<CompanionFlag> flags() {
  std::vector<CompanionFlag> all{
      {"--output", Takes::one, "<file>", "the reduced model", "-o"},
      {"--min-good", Takes::one, "<file>", "a model of about its size that passes", "--minimal-good"},
      {"--mode", Takes::one, "<mode>", "bisect (default), or linear: node by node"},
      {"--no-reduce-inputs", Takes::nothing, "", "leave the beginning of the model as it is"},
      {"--no-reduce-outputs", Takes::nothing, "", "leave the end of the model as it is"},
      {"--model-input-shapes", Takes::some, "<name:[sizes]...>", "shapes of inputs, for --check-run",
       "--model-inputs --input-shapes"},
      {"--seed", Takes::one, "<number>", "of the inputs that are drawn for --check-run (default 1)"},
      {"--val-range", Takes::some, "<[name:][low,high]...>", "of the inputs that are drawn for --check-run"},
      {"--load-inputs", Takes::some, "<file...>", "the inputs for --check-run", "--load-input-data"},
      {"--model-type", Takes::one, "<type>", "accepted; models are ONNX"},
      {"--shape-inference", Takes::nothing, "", "accepted: shapes are always inferred", "--no-shape-inference"},
      {"--force-fallback-shape-inference", Takes::nothing, "", "accepted, without effect"}};
  for (CompanionFlag& flag : checker_flags()) all.push_back(flag);
  return with_accepted(with_load_flags(std::move(all)), {AcceptedFlags::data, AcceptedFlags::model});
}

const CompanionCommand& command() {
  static const CompanionCommand kCommand{"debug reduce", "MODEL.onnx",
                                         "Finds the smallest part of a model that still fails a check. Every part is "
                                         "written to polygraphy_debug.onnx for --check to read; "
                                         "--check-run compares in this process, on the values that flow there in the "
                                         "whole model. Exit 0: found; 2: the model does not fail.",
                                         flags()};
  return kCommand;
}

std::string part_text(const Part& part) {
  std::string text;
  for (size_t i = 0; i < part.size();) {
    size_t end = i;
    while (end + 1 < part.size() && part[end + 1] == part[end] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", part[i]);
    if (end > i) text += fmt::format("-{}", part[end]);
    i = end + 1;
  }
  return text;
}

class Reduction {
 public:
  explicit Reduction(const Arguments& arguments)
      : arguments_(arguments),
        narrator_(arguments),
        linear_(mode() == "linear"),
        pieces_(load_model(arguments, arguments.file())),
        checker_(arguments, narrator_, "polygraphy_debug.onnx") {
    if (arguments.has("--no-reduce-inputs") && arguments.has("--no-reduce-outputs"))
      throw UsageError("--no-reduce-inputs and --no-reduce-outputs leave nothing to reduce", "give one of them");
    if (!arguments.has("--output")) throw UsageError("no file to write is given", "-o reduced.onnx");
    if (pieces_.nodes() == 0) throw UsageError(fmt::format("{} has no nodes", arguments.file()));
  }

  ExitStatus run() {
    narrator_.info("RUNNING | Command: hone debug reduce {}", join(arguments_.words(), " "));
    if (arguments_.has("--check-run")) draw_golden();
    Part all(pieces_.nodes());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    narrator_.info("Original Model:\n{}", model_text(pieces_.model(), {}));
    if (!fails(all)) {
      checker_.finish();
      throw UsageError("The model does not fail, so there is nothing to reduce",
                       "no file is written; check the --check command");
    }
    Part part = std::move(all);
    if (!arguments_.has("--no-reduce-outputs")) part = shorter(part, true);
    if (!arguments_.has("--no-reduce-inputs")) part = shorter(part, false);
    part = sparser(part);
    return finish(part);
  }

 private:
  std::string mode() const {
    std::string mode = arguments_.value("--mode", "bisect");
    if (mode != "bisect" && mode != "linear")
      throw UsageError(fmt::format("--mode {}: there is no such mode", mode), "bisect or linear");
    return mode;
  }

  void draw_golden() {
    const ModelFace face = read_face(arguments_.file(), arguments_.value("--external-data-dir"));
    InputRequest request;
    request.shapes = parse_shape_words("--model-input-shapes", arguments_.values("--model-input-shapes"));
    request.ranges = parse_range_words(arguments_.values("--val-range"));
    request.seed = static_cast<uint32_t>(arguments_.integer("--seed", 1));
    TensorList inputs;
    if (arguments_.has("--load-inputs")) {
      const std::vector<TensorList> iterations = load_inputs(arguments_.values("--load-inputs"), face.inputs);
      if (!iterations.empty()) inputs = iterations.front();
      for (const KnownTensor& input : face.inputs) input_for(inputs, input.name);
    } else {
      inputs = draw_inputs(resolved_inputs(face, request, narrator_), request, 0, narrator_, true);
    }
    golden_.emplace(face, inputs, narrator_);
  }

  bool fails(const Part& part) {
    if (const auto known = answers_.find(part); known != answers_.end()) return known->second;
    TensorList feed;
    const std::vector<std::string> inputs = pieces_.inputs_of(part);
    if (golden_) feed = golden_->of(inputs);
    const bool fed = golden_ && golden_->any() && feed.size() == inputs.size();
    narrator_.verbose("Nodes {}", part_text(part));
    const bool failed = !checker_.passes(
        part_text(part), [&] { write_passing_model(checker_.artifact(), pieces_.piece(part)); }, fed ? &feed : nullptr);
    answers_.emplace(part, failed);
    return failed;
  }

  /// The shortest beginning, or end, of the part that fails.
  Part shorter(const Part& part, bool beginning) {
    narrator_.info("Reducing model {}", beginning ? "outputs" : "inputs");
    const auto of_length = [&](size_t count) {
      const auto size = static_cast<std::ptrdiff_t>(count);
      return beginning ? Part(part.begin(), part.begin() + size) : Part(part.end() - size, part.end());
    };
    size_t least = 1, most = part.size();
    return of_length(least_count(1, part.size(), linear_, [&](size_t count) {
      checker_.expect(linear_ ? static_cast<int64_t>(count) : static_cast<int64_t>(std::bit_width(most - least)));
      const Part candidate = of_length(count);
      if (beginning) narrator_.info("Marking model outputs: {}", names_text(pieces_.outputs_of(candidate)));
      else narrator_.info("Marking model inputs: {}", names_text(pieces_.inputs_of(candidate)));
      const bool failed = fails(candidate);
      (failed ? most : least) = failed ? count : count + 1;
      return failed;
    }));
  }

  /// Nodes in between that are not needed, too.
  Part sparser(const Part& part) {
    if (part.size() < 2) return part;
    narrator_.info("Leaving out other nodes");
    checker_.expect(-1);
    FewestRules rules{.first_chunk = linear_ ? size_t{1} : size_t{0}, .goes_along = nullptr};
    if (arguments_.has("--no-reduce-inputs"))
      rules.goes_along = [&](const Part& going) { return pieces_.with_readers(going); };
    if (arguments_.has("--no-reduce-outputs"))
      rules.goes_along = [&](const Part& going) { return pieces_.with_givers(going); };
    return fewest(part, rules, [&](const Part& rest) { return fails(rest); });
  }

  /// Of those that pass the largest that is smaller than the one that fails; else the smallest.
  std::optional<Part> good_part(const Part& bad) {
    const auto find = [&] {
      std::optional<Part> best;
      for (const auto& [part, failed] : answers_) {
        if (failed) continue;
        const bool smaller = part.size() < bad.size();
        const bool best_smaller = best && best->size() < bad.size();
        if (!best || (smaller && (!best_smaller || part.size() > best->size())) ||
            (!smaller && !best_smaller && part.size() < best->size()))
          best = part;
      }
      return best;
    };
    std::optional<Part> found = find();
    if (found) return found;
    Part rest;  // all searches failed: what is left without the culprits
    for (size_t i = 0; i < pieces_.nodes(); ++i)
      if (!std::ranges::binary_search(bad, i)) rest.push_back(i);
    if (!rest.empty() && !fails(rest)) return rest;
    return std::nullopt;
  }

  ExitStatus finish(const Part& part) {
    const edit::Model bad = pieces_.piece(part);
    narrator_.info("Minimum Bad Model:\n{}", model_text(bad, {.layers = part.size() <= 32}));
    std::vector<std::string> names;
    for (const size_t i : part) names.push_back(pieces_.label(i));
    Json json{{"nodes", names},
              {"inputs", pieces_.inputs_of(part)},
              {"outputs", pieces_.outputs_of(part)},
              {"written", arguments_.value("--output")}};
    if (arguments_.has("--min-good")) {
      if (const std::optional<Part> good = good_part(part)) {
        const edit::Model model = pieces_.piece(*good);
        narrator_.info("Minimum Good Model:\n{}", model_text(model, {}));
        narrator_.info("Saving ONNX model to: {}", arguments_.value("--min-good"));
        edit::save(model, arguments_.value("--min-good"));
        json["good"] = arguments_.value("--min-good");
      } else {
        narrator_.warning("No part passed: {} is not written", arguments_.value("--min-good"));
      }
    }
    narrator_.info("Saving ONNX model to: {}", arguments_.value("--output"));
    edit::save(bad, arguments_.value("--output"));
    checker_.finish();
    json["timing"] = checker_.timing();
    write_json_result(arguments_, json.dump(2, ' ', false, Json::error_handler_t::replace));
    narrator_.info("PASSED | Command: hone debug reduce {}", join(arguments_.words(), " "));
    return ExitStatus::passed;
  }

  const Arguments& arguments_;
  const Narrator narrator_;
  const bool linear_;
  const edit::Pieces pieces_;
  Checker checker_;
  std::optional<GoldenValues> golden_;
  std::map<Part, bool> answers_;
};

ExitStatus reduce(const Arguments& arguments) { return Reduction(arguments).run(); }

}  // namespace

const FriendlyCommand& describe_debug_reduce() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}
int run_debug_reduce(Words words) { return run_companion(command(), words, reduce); }

}  // namespace hone
