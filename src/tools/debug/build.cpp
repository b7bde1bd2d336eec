// SPDX-License-Identifier: Apache-2.0
//
// `hone debug build`: engines of one model that choose other tactics each time, to find the one that is faulty. The first engine is the
// usual one; every further one chooses by the same times with a factor for each, drawn from a seed, so that slower tactics are chosen,
// too. What an iteration chose is in --save-tactics, and --load-tactics repeats it.
#include <cmath>
#include <random>

#include "base/file.h"
#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/companion/polygraphy_flags.h"
#include "tools/compare/tactics.h"
#include "tools/debug/engine_subject.h"
#include "tools/debug/passing_file.h"
#include "tools/debug/until.h"

namespace hone {
namespace {

constexpr double kSpread = 8;  // times are multiplied by 1/8 to 8: enough for any tactic of a small layer to come first

const CompanionCommand& command() {
  static const CompanionCommand kCommand = [] {
    CompanionCommand made{"debug build",
                          "MODEL.onnx",
                          "Builds the model again and again with other tactics and sorts what each engine leaves into "
                          "good/ and bad/; hone inspect "
                          "diff-tactics then names the tactics that bad engines alone have. --seed decides which "
                          "tactics come. Exit 0: all iterations passed, "
                          "or with --until good one did; 1: one failed.",
                          {until_flag()},
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

/// Lines of a timing cache with other times. Those of tactics that were refused stay.
std::string varied(const std::string& times, uint32_t seed) {
  std::mt19937 engine(seed);
  std::string text;
  for (const std::string_view line : split(times, '\n')) {
    if (trim(line).empty()) continue;
    Json row = Json::parse(line, nullptr, false);
    const double part = static_cast<double>(engine()) / 4294967295.0;
    if (row.is_object() && row.contains("ms") && row["ms"].is_number() && row["ms"].get<double>() > 0)
      row["ms"] = row["ms"].get<double>() * std::pow(kSpread, 2 * part - 1);
    text += (row.is_discarded() ? std::string(line) : row.dump()) + "\n";
  }
  return text;
}

std::string text_of(hone_timing_cache* cache) {
  const void* bytes = nullptr;
  size_t size = 0;
  check(hone_timing_cache_bytes(cache, &bytes, &size));
  return {static_cast<const char*>(bytes), size};
}

class Builds {
 public:
  explicit Builds(const Arguments& arguments)
      : arguments_(arguments),
        narrator_(arguments),
        until_(arguments),
        checker_(arguments, narrator_, "polygraphy_debug.engine"),
        subject_(arguments, narrator_),
        seed_(static_cast<uint32_t>(arguments.integer("--seed", 1))) {}

  ExitStatus run() {
    narrator_.info("RUNNING | Command: hone debug build {}", join(arguments_.words(), " "));
    bool again = true;
    for (uint32_t iteration = 0; again; ++iteration) {
      checker_.expect(until_.remaining());
      again = until_.goes_on(checker_.passes(fmt::format("engine {}", iteration), [&] { build(iteration); }));
    }
    checker_.finish();
    write_json_result(arguments_, Json{{"iterations", checker_.asked()}, {"passed", checker_.passed()}}.dump(2));
    if (arguments_.has("--save-tactics"))
      narrator_.info("hone inspect diff-tactics --dir {} names tactics that bad engines alone have",
                     arguments_.value("--art-dir", "polygraphy_artifacts"));
    return until_.status();
  }

 private:
  void build(uint32_t iteration) {
    EngineRequest request = subject_.request();
    request.save_tactics.clear();
    Owned<hone_timing_cache> cache;
    const bool replays = !request.load_tactics.empty();
    if (!replays) cache = times_for(iteration);
    request.cache = cache.get();
    if (iteration > 0) request.save_cache.clear();  // times that were made up
    const auto plan = subject_.build(request, checker_.artifact());
    if (!replays && iteration == 0) times_ = text_of(cache.get());
    if (const std::string path = arguments_.value("--save-tactics"); !path.empty())
      write_passing_file(path, replays ? read_file(request.load_tactics) : tactics_json(plan.get(), cache.get()));
  }

  Owned<hone_timing_cache> times_for(uint32_t iteration) {
    // A replay may have answered for the iteration that measures.
    if (iteration > 0 && times_.empty()) {
      EngineRequest request = subject_.request();
      request.save_tactics.clear();
      const std::string known = first_times();
      auto cache =
          make<hone_timing_cache>(hone_timing_cache_create, static_cast<const void*>(known.data()), known.size());
      request.cache = cache.get();
      subject_.build(request, checker_.artifact());
      times_ = text_of(cache.get());
    }
    const std::string times = iteration == 0 ? first_times() : varied(times_, seed_ + iteration);
    return make<hone_timing_cache>(hone_timing_cache_create, static_cast<const void*>(times.data()), times.size());
  }

  std::string first_times() const {
    const std::string path = subject_.request().load_cache;
    if (path.empty()) return {};
    need_file(path);
    return read_file(path);
  }

  const Arguments& arguments_;
  const Narrator narrator_;
  Until until_;
  Checker checker_;
  const EngineSubject subject_;
  const uint32_t seed_;
  std::string times_;
};

ExitStatus build_again(const Arguments& arguments) { return Builds(arguments).run(); }

}  // namespace

const FriendlyCommand& describe_debug_build() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}
int run_debug_build(Words words) { return run_companion(command(), words, build_again); }

}  // namespace hone
