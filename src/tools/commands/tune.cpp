// SPDX-License-Identifier: Apache-2.0
//
// `hone tune`: times listed problems into a cache. The keys go to a process of their own, one after the other: one that crashes, or takes
// too long, is tried again tactic by tactic, and costs the tactic alone that does it a second time.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "builder/problem.h"
#include "tools/commands/commands.h"
#include "tools/common/friendly.h"
#include "tools/common/terminal.h"
#include "tools/tune/timed_here.h"
#include "tools/tune/tuner_process.h"
#include "tuner/timing_cache.h"

namespace hone {
namespace {

constexpr double kProbeTolerance = 0.1;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "tune",
      "KEYS",
      "Times the problems whose keys stand in a file (- is standard input), a line each as hone problems writes them, "
      "and adds the times that it lacks to the file of --timingCacheFile.",
      {{"--timeout", "<seconds>", "", "a problem or tactic that takes longer is rejected (default 300)"},
       {"--probe", "", "", "also time one fixed problem, and tell its time"},
       {"--probe-ms", "<ms>", "", "exit with 3 where the fixed problem takes 10 % more or less than this"},
       {"--probe-tolerance", "<share>", "", "other than 0.1 for --probe-ms"},
       {"--in-process", "", "", "in this process, which a key that crashes ends; a JSON object for each key"},
       {"--singly", "", "", "the same, each tactic by itself"}}};
  return kCommand;
}

struct Rejection {
  std::string key, why;
};

std::vector<std::string> read_keys(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(fmt::format("cannot read {}", path), "hone problems MODEL.onnx > KEYS writes such a file");
  std::vector<std::string> keys;
  for (std::string line; std::getline(file, line);)
    if (std::string key = problem_part(trim(line)); !key.empty() && std::ranges::find(keys, key) == keys.end())
      keys.push_back(std::move(key));
  return keys;
}

/// Gives keys to processes and keeps what they tell.
class Tuner {
 public:
  Tuner(const FriendlyLine& line, std::vector<std::string> words, double timeout_s)
      : cache_file_(line.options.build.timing_cache_file), words_(std::move(words)), timeout_s_(timeout_s) {
    if (std::filesystem::exists(cache_file_)) cache_ = load_timing_cache(cache_file_);
    start(line.has("--probe") || line.has("--probe-ms"));
  }

  const std::string& device() const { return device_; }
  const Json& greeting() const { return greeting_; }

  void time(const std::string& key) {
    const std::string whole = fmt::format("{} | none | {}", key, device_);
    if (const Timing* known = cache_.find(whole)) {
      rejections_.push_back({key, known->note});
      return;
    }
    if (process_ == nullptr) start(false);
    process_->send(key);
    const std::optional<Json> answer = process_->next(timeout_s_);
    if (answer) return keep(*answer);
    fmt::print(stderr, "hone tune: {}: {}; once more, tactic by tactic\n", process_->how(), key);
    process_.reset();
    time_singly(key, whole);
  }

  void save() const { save_timing_cache(cache_, cache_file_); }

  Json summary() const {
    Json rejected = Json::array(), refused = Json::array();
    for (const Rejection& each : rejections_) rejected.push_back({{"key", each.key}, {"why", each.why}});
    for (const Rejection& each : refusals_) refused.push_back({{"key", each.key}, {"why", each.why}});
    Json json = greeting_;
    json.update({{"file", cache_file_}, {"known", known_}, {"timed", timed_}, {"unfit", unfit_}});
    json["rejected"] = std::move(rejected);
    json["refused"] = std::move(refused);
    return json;
  }
  bool all_were_keys() const { return refusals_.empty(); }

 private:
  void start(bool probe, bool singly = false) {
    std::vector<std::string> words = words_;
    words.emplace_back("--in-process");
    if (probe) words.emplace_back("--probe");
    if (singly) words.emplace_back("--singly");
    process_ = std::make_unique<TunerProcess>(std::move(words));
    if (device_.empty()) greeting_ = process_->greeting();
    device_ = text_member(process_->greeting(), "device");
  }

  /// Until all tactics of the problem have a time or are rejected.
  void time_singly(const std::string& key, const std::string& whole) {
    while (true) {
      save();  // the next process reads what was rejected
      start(false, true);
      process_->send(key);
      std::string begun;
      while (const std::optional<Json> answer = process_->next(timeout_s_)) {
        if (!answer->contains("begun")) {
          process_.reset();  // the next key is timed as usual
          return keep(*answer);
        }
        begun = text_member(*answer, "begun");
      }
      reject(begun.empty() ? whole : begun, key, process_->how());
      process_.reset();
      if (begun.empty()) return;  // whatever it is, it is before any tactic
    }
  }

  void reject(const std::string& entry, const std::string& key, const std::string& how) {
    cache_.put(entry, {-1, 0, 0, "twice " + how});
    rejections_.push_back({entry.empty() ? key : entry, "twice " + how});
  }

  void keep(const Json& answer) {
    if (answer.contains("refused")) {
      refusals_.push_back({text_member(answer, "refused"), text_member(answer, "why")});
      fmt::print(stderr, "hone tune: {}: {}\n", refusals_.back().key, refusals_.back().why);
      return;
    }
    known_ += integer_member(answer, "known"), timed_ += integer_member(answer, "timed");
    unfit_ += integer_member(answer, "rejected");
    cache_.merge(TimingCache::parse(text_member(answer, "entries")));
  }

  const std::string cache_file_;
  const std::vector<std::string> words_;  // of each process
  const double timeout_s_;
  std::unique_ptr<TunerProcess> process_;
  std::string device_;
  Json greeting_;
  TimingCache cache_;
  int64_t known_ = 0, timed_ = 0, unfit_ = 0;
  std::vector<Rejection> rejections_, refusals_;
};

/// Whether this node takes as long for the probe as others of its kind.
bool is_like_its_kind(const Json& greeting, double expected_ms, double tolerance) {
  const double ms = real_member(greeting, "probeMs");
  if (std::abs(ms / expected_ms - 1) <= tolerance) return true;
  fmt::print(stderr,
             "hone tune: the probe takes {:.4g} ms here and {:.4g} ms on others of the kind: nothing is timed\n  hint: "
             "see what else runs on this node, and how fast it is clocked\n",
             ms, expected_ms);
  return false;
}

double positive(const FriendlyLine& line, std::string_view flag, double standard) {
  if (!line.has(flag)) return standard;
  const double value = parse_real(line.value(flag)).value_or(-1);
  if (!(value > 0)) throw Error(fmt::format("{} is {}, not a number above 0", flag, line.value(flag)));
  return value;
}

void print(const Json& summary) {
  const Page page;
  page.line(fmt::format("{}: {} tactics timed, {} of them unfit, {} known", summary["file"].get<std::string>(),
                        summary["timed"].dump(), summary["unfit"].dump(), summary["known"].dump()));
  if (summary.contains("probeMs")) page.line(fmt::format("probe: {:.4g} ms", summary["probeMs"].get<double>()));
  for (const Json& each : summary["rejected"])
    page.warning(fmt::format("rejected, {}: {}", each["why"].get<std::string>(), each["key"].get<std::string>()));
}

/// What the user said of the build, for the processes.
std::vector<std::string> words_of(const FriendlyLine& line) {
  std::vector<std::string> words{"/dev/stdin"};
  for (const std::string& argument : line.options.arguments)
    if (!argument.starts_with("--loadEngine=")) words.push_back(argument);
  return words;
}

int tune(const FriendlyLine& line) {
  if (line.has("--in-process") || line.has("--singly")) {
    std::ifstream keys(line.file);
    time_here(line, {.singly = line.has("--singly"), .probe = line.has("--probe")}, keys);
    return 0;
  }
  const double timeout_s = positive(line, "--timeout", 300), probe_ms = positive(line, "--probe-ms", 0),
               tolerance = positive(line, "--probe-tolerance", kProbeTolerance);
  const std::vector<std::string> keys = read_keys(line.file);
  if (line.options.build.timing_cache_file.empty() && !keys.empty())
    throw Error("it is not said where the times go", "add --timingCacheFile=part.jsonl");
  Tuner tuner(line, words_of(line), timeout_s);
  if (probe_ms > 0 && !is_like_its_kind(tuner.greeting(), probe_ms, tolerance)) return 3;
  for (const std::string& key : keys) tuner.time(key);
  if (!keys.empty()) tuner.save();
  const Json summary = tuner.summary();
  if (line.json) fmt::print("{}\n", summary.dump(2, ' ', false, Json::error_handler_t::replace));
  else print(summary);
  return tuner.all_were_keys() ? 0 : 1;
}

}  // namespace

const FriendlyCommand& describe_tune() { return command(); }

int run_tune(Words words) {
  std::vector<std::string> given(words.begin(), words.end());
  std::ranges::replace(given, std::string("-"), std::string("/dev/stdin"));
  return run_friendly(command(), given, {}, tune);
}

}  // namespace hone
