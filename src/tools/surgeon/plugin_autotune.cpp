// SPDX-License-Identifier: Apache-2.0
//
// `hone plugin autotune`: which operators of one's own make a model faster. Models with and without them are built and run in turns, so that
// what disturbs the machine disturbs both; one stays where its rounds say with 95 % confidence that it is faster.
#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "edit/file.h"
#include "measured/paired.h"
#include "tools/commands/commands.h"
#include "tools/common/operator_libraries.h"
#include "tools/compare/inputs.h"
#include "tools/compare/run_flags.h"
#include "tools/compare/runner.h"
#include "tools/files/yaml.h"
#include "tools/surgeon/model_line.h"
#include "tools/surgeon/plugins.h"

namespace hone {
namespace {

constexpr double kRoundMs = 5;
constexpr int kRounds = 30;

const CompanionCommand& command() {
  static const CompanionCommand kCommand{
      "plugin autotune", "MODEL.onnx",
      "Finds which operators of a folder of patterns make a model faster here, by running it with and without them, "
      "and writes the fastest.",
      with_model_flags(with_plugin_choice(
          {{"--cpu", Takes::nothing, "", "measure on the processor"},
           {"--cuda", Takes::nothing, "", "measure on the GPU; without either: the best device there is"},
           {"--autotune-mode", Takes::one, "<greedy|exhaustive>",
            "one operator behind the other (default), or all sets of them"},
           {"--max-combinations", Takes::one, "<N>", "of --autotune-mode exhaustive (default 1000)"},
           {"--threshold", Takes::one, "<part>",
            "a part less of the time ends --autotune-mode exhaustive (default 0.1)"},
           {"--report", Takes::one, "<file>", "what was measured, as text"},
           {"--input-shapes", Takes::some, "<name:[...]...>", "sizes that the model leaves open", "--inputs"},
           {"--plugin-libraries", Takes::some, "<lib.so...>", "libraries with the operators"},
           {"--python-plugins", Takes::some, "<file.py...>", "refused: engines call no Python"},
           {"--timing-cache", Takes::one, "<file>", "times of kernels, read and added to"},
           {"--no-timing-cache", Takes::nothing, "", "accepted: there is one only where --timing-cache names it"},
           {"--save-config-yaml", Takes::one, "<file>", "writes what was found to fit"},
           {"--load-config-yaml", Takes::one, "<file>", "takes what fits from there"},
           {"--skip-autotuning", Takes::nothing, "", "only finds what fits"}}))};
  return kCommand;
}

using Set = std::vector<size_t>;  // of plugins

struct Candidate {
  Set set;
  edit::Model model;
  std::unique_ptr<ModelFace> face;
  std::unique_ptr<Runner> runner;
};

class Autotune {
 public:
  explicit Autotune(const Arguments& arguments) : arguments_(arguments), narrator_(arguments) {}

  ExitStatus run() {
    check_flags();
    plugins_ = found_plugins();
    if (arguments_.has("--save-config-yaml")) write_file(arguments_.value("--save-config-yaml"), yaml_text(plugins_));
    if (arguments_.has("--skip-autotuning")) return ExitStatus::passed;
    ToolOptions tool;
    tool.plugins = arguments_.values("--plugin-libraries");
    open_operator_libraries(tool, narrator_.engine_log());
    best_ = candidate({});
    if (arguments_.value("--autotune-mode", "greedy") == "greedy") greedy();
    else exhaustive();
    return finish();
  }

 private:
  void check_flags() const {
    const std::string mode = arguments_.value("--autotune-mode", "greedy");
    if (mode != "greedy" && mode != "exhaustive")
      throw UsageError(fmt::format("--autotune-mode knows no '{}'", mode), "greedy, exhaustive");
    if (arguments_.has("--python-plugins"))
      throw UsageError("--python-plugins: engines call no operators in Python",
                       "--plugin-libraries names libraries that have them");
    if (!arguments_.has("--output") && !arguments_.has("--skip-autotuning"))
      throw UsageError("no file to write is given", "-o new.onnx");
  }

  std::vector<Json> found_plugins() const {
    if (arguments_.has("--load-config-yaml")) return read_plugin_config(arguments_.value("--load-config-yaml"));
    return plugin_matches(arguments_, narrator_);
  }

  std::string text_of(const Set& set) const {
    std::string text;
    for (const size_t each : set)
      text += (text.empty() ? "" : ", ") + plugins_[each].value("name", text_member(plugins_[each], "op"));
    return text.empty() ? "none" : text;
  }

  Candidate candidate(const Set& set) {
    Candidate made{set, load_model(arguments_, arguments_.file()), std::make_unique<ModelFace>(), nullptr};
    for (const size_t each : set) put_plugin(made.model, plugins_[each], arguments_.value("--plugin-dir"), narrator_);
    *made.face = read_face(arguments_.file());
    made.face->bytes = Blob::copy(edit::encode(made.model).text());
    made.face->marked = true;
    EngineRequest request;
    request.device = arguments_.has("--cpu") ? "cpu" : arguments_.has("--cuda") ? "cuda:0" : best_device();
    if (const std::string cache = arguments_.value("--timing-cache"); !cache.empty()) {
      if (std::filesystem::exists(cache)) request.load_cache = cache;
      request.save_cache = cache;
    }
    if (feeds_.empty()) {
      InputRequest inputs;
      inputs.shapes = parse_shape_words("--input-shapes", arguments_.values("--input-shapes"));
      feeds_.push_back(draw_inputs(resolved_inputs(*made.face, inputs, narrator_), inputs, 0, narrator_, false));
    }
    made.runner = make_engine_runner("with " + text_of(set), *made.face, request, narrator_);
    made.runner->prepare(feeds_);
    ++builds_;
    return made;
  }

  double round_of(Runner& runner, int count) const {
    const double start = now_ms();
    for (int i = 0; i < count; ++i) runner.infer(feeds_[0]);
    return (now_ms() - start) / count;
  }

  PairedRatio against_best(Candidate& other) {
    const int count = std::clamp(static_cast<int>(kRoundMs / std::max(round_of(*best_.runner, 2), 1e-3)), 1, 1000);
    round_of(*other.runner, count);
    std::vector<double> times, reference;
    for (int i = 0; i < kRounds; ++i) {
      reference.push_back(round_of(*best_.runner, count));
      times.push_back(round_of(*other.runner, count));
    }
    const PairedRatio ratio = paired_ratio(times, reference);
    lines_.push_back(fmt::format("{}: {:.3f} of the time of {} ({:.3f} to {:.3f}): {}", text_of(other.set), ratio.ratio,
                                 text_of(best_.set), ratio.low, ratio.high, verdict_text(ratio.verdict())));
    narrator_.info("{}", lines_.back());
    return ratio;
  }

  /// What cannot be built is no candidate. Whether it is the best now.
  bool attempt(const Set& set) {
    try {
      Candidate other = candidate(set);
      const PairedRatio ratio = against_best(other);
      if (ratio.verdict() != PairedVerdict::faster) return false;
      left_ *= ratio.ratio;
      best_ = std::move(other);
      return true;
    } catch (const StatusError&) {
      throw;
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      lines_.push_back(fmt::format("{}: not possible: {}", text_of(set), error.message()));
      narrator_.warning("{}", lines_.back());
      return false;
    }
  }

  void greedy() {
    for (size_t i = 0; i < plugins_.size(); ++i) {
      Set set = best_.set;
      set.push_back(i);
      attempt(set);
    }
  }

  void exhaustive() {
    const auto most = static_cast<uint64_t>(arguments_.integer("--max-combinations", 1000));
    const double enough = arguments_.real("--threshold", 0.1);
    const uint64_t all = uint64_t{1} << std::min<size_t>(plugins_.size(), 62);
    for (uint64_t bits = 1; bits < std::min(all, most + 1); ++bits) {
      Set set;
      for (size_t i = 0; i < plugins_.size(); ++i)
        if ((bits >> i & 1) != 0) set.push_back(i);
      if (attempt(set) && 1 - left_ > enough) break;
    }
  }

  ExitStatus finish() {
    const std::string path = arguments_.value("--output");
    edit::SaveRules rules;
    if (arguments_.has("--save-external-data")) rules.external = arguments_.value("--save-external-data");
    edit::save(best_.model, path, rules);
    const std::string verdict = fmt::format("Fastest: {}, {:.3f} of the model's own time", text_of(best_.set), left_);
    narrator_.info("{}", verdict);
    narrator_.info("Optimized model saved to: {}", path);
    if (arguments_.has("--report")) {
      std::string text = fmt::format("{}\nEngines built: {}\n", verdict, builds_);
      for (const std::string& line : lines_) text += line + "\n";
      for (const size_t each : best_.set) text += "\n" + yaml_text({plugins_[each]});
      write_file(arguments_.value("--report"), text);
    }
    Json names = Json::array();
    for (const size_t each : best_.set)
      names.push_back(plugins_[each].value("name", text_member(plugins_[each], "op")));
    write_json_result(arguments_,
                      Json{{"written", path}, {"plugins", names}, {"timeRatio", left_}, {"engines", builds_}}.dump(
                          2, ' ', false, Json::error_handler_t::replace));
    return ExitStatus::passed;
  }

  const Arguments& arguments_;
  const Narrator narrator_;
  std::vector<Json> plugins_;
  std::vector<TensorList> feeds_;
  Candidate best_;
  double left_ = 1;  // of the model's own time
  int builds_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace

const FriendlyCommand& describe_plugin_autotune() { return friendly<command>(); }
int run_plugin_autotune(Words words) {
  return run_companion(command(), words, [](const Arguments& arguments) { return Autotune(arguments).run(); });
}

}  // namespace hone
