// SPDX-License-Identifier: Apache-2.0
#include "tools/commands/bench_compare.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "tools/commands/commands.h"
#include "tools/common/inference.h"
#include "tools/common/terminal.h"
#include "tools/common/watcher.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRounds = 21;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// An engine that is ready to take its turn.
class Contender {
 public:
  Contender(const FriendlyLine& line, const std::string& file, const Voices& voices)
      : options_(with_file(line, file)), session_(options_, device_for_streams(options_), voices) {
    if (options_.tool.load_engine.empty()) session_.build();
    session_.load();
    inference_.emplace(session_, options_, voices);
    inference_->set_up();
  }

  /// The median latency of a turn, in ms. What others left in caches is warmed away first.
  double turn(double seconds) {
    PerfOptions perf = options_.perf;
    perf.iterations = 1;
    perf.duration_s = seconds;
    perf.warm_up_ms = seconds * 1000 / 10;
    const std::vector<Trace> traces = inference_->measure(perf);
    const size_t warm_up = warm_up_queries(traces, static_cast<float>(perf.warm_up_ms));
    std::vector<double> latencies;
    for (size_t i = std::min(warm_up, traces.size() - 1); i < traces.size(); ++i)
      latencies.push_back(double{traces[i].latency()});
    return std::max(median_of(std::move(latencies)), 1e-6);
  }

 private:
  static Options with_file(const FriendlyLine& line, const std::string& file) {
    Options options = line.options;
    options.tool.load_engine = file.ends_with(".onnx") ? "" : file;
    options.tool.onnx = file.ends_with(".onnx") ? file : "";
    return options;
  }

  const Options options_;
  Session session_;
  std::optional<Inference> inference_;
};

int rounds_of(const FriendlyLine& line) {
  if (!line.has("--rounds")) return kRounds;
  const auto rounds = parse_integer(line.value("--rounds"));
  if (!rounds || *rounds < 2 || *rounds > 100'000)
    throw Error(fmt::format("--rounds={} is no number of rounds", line.value("--rounds")), "2 and more; 21 by default");
  return static_cast<int>(*rounds);
}

std::string sentence(const ComparedEngine& engine, const ComparedEngine& first) {
  const PairedRatio& to = engine.to_first;
  const std::string bounds =
      fmt::format("{:.4f} times its latency, {:.4f} to {:.4f} with 95 % confidence", to.ratio, to.low, to.high);
  return to.verdict() == PairedVerdict::undecided
             ? fmt::format("{} and {} cannot be told apart: {}", engine.file, first.file, bounds)
             : fmt::format("{} is {} than {}: {}", engine.file, verdict_text(to.verdict()), first.file, bounds);
}

void print(const std::vector<ComparedEngine>& engines) {
  const Page page;
  page.title(fmt::format("{} engines in {} rounds", engines.size(), engines[0].rounds.size()));
  for (const ComparedEngine& engine : engines)
    page.line(fmt::format("  {:.4f} ms median latency: {}", engine.median, engine.file));
  for (size_t i = 1; i < engines.size(); ++i) page.line("  " + sentence(engines[i], engines[0]));
}

Json json_of(const std::vector<ComparedEngine>& engines) {
  Json rows = Json::array(), pairs = Json::array();
  for (const ComparedEngine& engine : engines)
    rows.push_back({{"file", engine.file}, {"medianMs", engine.median}, {"roundsMs", engine.rounds}});
  for (size_t i = 1; i < engines.size(); ++i) {
    const PairedRatio& to = engines[i].to_first;
    pairs.push_back({{"file", engines[i].file},
                     {"comparedWith", engines[0].file},
                     {"ratio", to.ratio},
                     {"low", to.low},
                     {"high", to.high},
                     {"confidence", 0.95},
                     {"verdict", verdict_text(to.verdict())}});
  }
  return {{"rounds", engines[0].rounds.size()}, {"engines", rows}, {"pairs", pairs}};
}

}  // namespace

std::vector<ComparedEngine> compare_engines(const FriendlyLine& line, int rounds) {
  const Logger log = quiet_logger();
  const Voices voices(log, "");
  std::vector<std::unique_ptr<Contender>> contenders;
  std::vector<ComparedEngine> engines;
  for (const std::string& file : line.files) {
    contenders.push_back(std::make_unique<Contender>(line, file, voices));
    engines.push_back({.file = file});
  }
  const double seconds = line.options.perf.duration_s / rounds;
  const size_t count = engines.size();
  for (const auto& contender : contenders) contender->turn(seconds);  // code and data come into memory
  if (Watcher* watcher = Watcher::of_process()) watcher->begin("rounds", nullptr, rounds);
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < count; ++i) {  // each comes first as often as another
      const size_t at = (static_cast<size_t>(round) + i) % count;
      engines[at].rounds.push_back(contenders[at]->turn(seconds));
    }
    if (Watcher* watcher = Watcher::of_process()) watcher->step("rounds", round + 1);
  }
  if (Watcher* watcher = Watcher::of_process()) watcher->end("rounds");
  for (ComparedEngine& engine : engines) {
    engine.median = median_of(engine.rounds);
    engine.to_first = paired_ratio(engine.rounds, engines[0].rounds);
  }
  return engines;
}

int run_comparison_of_engines(const FriendlyLine& line) {
  if (line.files.size() < 2)
    throw Error(fmt::format("--compare needs two engines and more, {} is one", line.file),
                "hone bench --compare old.plan new.plan");
  const std::vector<ComparedEngine> engines = compare_engines(line, rounds_of(line));
  if (line.has("--plot")) export_text(line.value("--plot"), comparison_plot(engines));
  if (line.json) fmt::print("{}\n", json_of(engines).dump(2, ' ', false, Json::error_handler_t::replace));
  else print(engines);
  return 0;
}

}  // namespace hone
