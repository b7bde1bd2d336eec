// SPDX-License-Identifier: Apache-2.0
//
// `hone debug precision`: which layers have to be computed in FP32 for an engine of few bits to pass a check: the first or the last few
// of them, as Polygraphy looks for, or with --minimal the fewest wherever they stand; as flags that can be used as they are.
#include <algorithm>
#include <bit>
#include <map>

#include "base/text.h"
#include "ir/graph.h"
#include "tools/commands/commands.h"
#include "tools/common/plan_view.h"
#include "tools/companion/polygraphy_flags.h"
#include "tools/debug/engine_subject.h"
#include "tools/debug/fewest.h"
#include "tools/model/read.h"

namespace hone {
namespace {

const CompanionCommand& command() {
  static const CompanionCommand kCommand = [] {
    CompanionCommand made{
        "debug precision",
        "MODEL.onnx",
        "Builds an engine of few bits (--fp16, --bf16, --int8) again and again with other layers in more, to find "
        "those that need it. Exit 0: "
        "found, or none does; 1: it fails with all layers in more bits, too.",
        {{"--mode", Takes::one, "<mode>", "bisect (default), or linear: layer by layer"},
         {"--dir", Takes::one, "<direction>", "forward (default): the first layers; reverse: the last ones",
          "--direction"},
         {"--precision", Takes::one, "<type>", "of the layers that are kept: float32 (default) or float16", "-p"},
         {"--minimal", Takes::nothing, "", "the fewest layers, wherever they stand; none of them can be left out"}},
        1,
        1,
        true};
    for (const CompanionFlag& flag : engine_subject_flags()) made.flags.push_back(flag);
    made.flags = with_accepted(std::move(made.flags), {AcceptedFlags::data, AcceptedFlags::model,
                                                       AcceptedFlags::network, AcceptedFlags::builder});
    return made;
  }();
  return kCommand;
}

std::string word_of(const Arguments& arguments, std::string_view flag, const std::string& standard,
                    const std::string& other) {
  std::string word = arguments.value(flag, standard);
  if (word != standard && word != other)
    throw UsageError(fmt::format("{} {}: there is no such word", flag, word), fmt::format("{} or {}", standard, other));
  return word;
}

class PrecisionSearch {
 public:
  explicit PrecisionSearch(const Arguments& arguments)
      : arguments_(arguments),
        narrator_(arguments),
        linear_(word_of(arguments, "--mode", "bisect", "linear") == "linear"),
        reverse_(word_of(arguments, "--dir", "forward", "reverse") == "reverse"),
        kept_type_(word_of(arguments, "--precision", "float32", "float16") == "float16" ? "fp16" : "fp32"),
        checker_(arguments, narrator_, "polygraphy_debug.engine"),
        subject_(arguments, narrator_),
        cache_(make<hone_timing_cache>(hone_timing_cache_create, nullptr, size_t{0})) {
    if (subject_.request().precision == "fp32")
      throw UsageError("no type of few bits is allowed, so that all layers are in FP32 as it is",
                       "add --fp16, --bf16 or --int8");
    if (kept_type_ == "fp16" && subject_.request().precision != "int8")
      throw UsageError("--precision float16 keeps layers in FP16, which are so already",
                       "add --int8 and --fp16, or keep them in float32");
    find_layers();
  }

  ExitStatus run() {
    narrator_.info("RUNNING | Command: hone debug precision {}", join(arguments_.words(), " "));
    narrator_.info("Using {} as higher precision for some of {} layers", kept_type_ == "fp16" ? "float16" : "float32",
                   layers_.size());
    if (passes({})) return finish(std::vector<size_t>());
    std::vector<size_t> all(layers_.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    if (!passes(all)) return finish(std::nullopt);
    if (arguments_.has("--minimal"))
      return finish(fewest(all, {}, [&](const std::vector<size_t>& kept) { return passes(kept); }));
    return finish(run_of(first_passing()));
  }

 private:
  /// Names of the model's nodes that compute in floating point, in order.
  void find_layers() {
    const ImportedModel model = read_model(subject_.face().path, narrator_.engine_log());
    for (const Node* node : model.graph.nodes())
      if (!node->origin.empty() && is_float(node->output()->type.dtype) &&
          std::ranges::find(layers_, node->origin.front()) == layers_.end())
        layers_.push_back(node->origin.front());
    if (layers_.empty()) throw UsageError(fmt::format("{} computes nothing in floating point", subject_.face().path));
  }

  /// So many from the beginning or the end.
  std::vector<size_t> run_of(size_t count) const {
    std::vector<size_t> kept(count);
    for (size_t i = 0; i < count; ++i) kept[i] = reverse_ ? layers_.size() - count + i : i;
    return kept;
  }

  size_t first_passing() {
    const auto question = [&](size_t count) {
      narrator_.info("Selecting {} {} layer(s) to run in higher precision", reverse_ ? "last" : "first", count);
      return passes(run_of(count));
    };
    if (!linear_) {
      checker_.expect(static_cast<int64_t>(std::bit_width(layers_.size())));
      return least_count(1, layers_.size(), false, question);
    }
    for (size_t count = 1; count < layers_.size(); ++count) {
      checker_.expect(static_cast<int64_t>(layers_.size() - count));
      if (question(count)) return count;
    }
    return layers_.size();
  }

  std::vector<std::string> names_of(const std::vector<size_t>& kept) const {
    std::vector<std::string> names;
    for (const size_t layer : kept) names.push_back(layers_[layer]);
    return names;
  }

  /// Flags that build this engine. Where a device would compute in FP32 although fewer bits are allowed, they are asked for.
  std::vector<std::string> flags_for(const std::vector<size_t>& kept) const {
    const std::string& low = subject_.request().precision;
    std::string entries;
    const bool asks = (low == "fp16" || low == "bf16") && std::string_view(info_of(&subject_.device()).kind) == "cpu";
    if (asks) entries = "*:" + low;
    for (const size_t layer : kept)
      entries += fmt::format("{}{}:{}", entries.empty() ? "" : ",", layers_[layer], kept_type_);
    if (entries.empty()) return {};
    return {"--precisionConstraints=obey", "--layerPrecisions=" + entries};
  }

  bool passes(const std::vector<size_t>& kept) {
    if (const auto known = answers_.find(kept); known != answers_.end()) return known->second;
    const std::string what = fmt::format("{} layers: {}", kept.size(), join(names_of(kept), ","));
    const bool passed = checker_.passes(what, [&] {
      EngineRequest request = subject_.request();
      for (std::string& flag : flags_for(kept)) request.flags.push_back(std::move(flag));
      request.cache = cache_.get();
      subject_.build(request, checker_.artifact());
    });
    answers_.emplace(kept, passed);
    return passed;
  }

  ExitStatus finish(const std::optional<std::vector<size_t>>& kept) {
    checker_.finish();
    Json json{{"found", kept.has_value()}};
    if (!kept) {
      narrator_.error(
          "Could not find a configuration that satisfied accuracy requirements: with all layers in {} it fails, too",
          kept_type_);
    } else if (kept->empty()) {
      narrator_.info("No layer needs higher precision");
    } else {
      if (arguments_.has("--minimal"))
        narrator_.info("To achieve acceptable accuracy, try running {} layer(s) in higher precision", kept->size());
      else
        narrator_.info("To achieve acceptable accuracy, try running the {} {} layer(s) in higher precision",
                       reverse_ ? "last" : "first", kept->size());
      narrator_.info("Layers: {}", join(names_of(*kept), ", "));
      narrator_.info("Flags: {}", join(flags_for(*kept), " "));
    }
    if (kept) {
      json["layers"] = names_of(*kept);
      json["flags"] = flags_for(*kept);
    }
    json["timing"] = checker_.timing();
    write_json_result(arguments_, json.dump(2, ' ', false, Json::error_handler_t::replace));
    return kept ? ExitStatus::passed : ExitStatus::failed;
  }

  const Arguments& arguments_;
  const Narrator narrator_;
  const bool linear_, reverse_;
  const std::string kept_type_;
  Checker checker_;
  const EngineSubject subject_;
  const Owned<hone_timing_cache> cache_;
  std::vector<std::string> layers_;
  std::map<std::vector<size_t>, bool> answers_;
};

ExitStatus precision(const Arguments& arguments) { return PrecisionSearch(arguments).run(); }

}  // namespace

const FriendlyCommand& describe_debug_precision() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}
int run_debug_precision(Words words) { return run_companion(command(), words, precision); }

}  // namespace hone
