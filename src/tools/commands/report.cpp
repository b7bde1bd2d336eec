// SPDX-License-Identifier: Apache-2.0
//
// `hone report`: engines on one page. A plan is measured here, layer by layer, beside the machine's ceilings; of an engine elsewhere the
// files are read that trtexec exported, Hone's or NVIDIA's.
#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "explore/page.h"
#include "explore/summary.h"
#include "report/performance.h"
#include "tools/commands/commands.h"
#include "tools/common/friendly.h"
#include "tools/common/inference.h"
#include "tools/common/terminal.h"

namespace hone {
namespace {

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      .name = "report",
      .takes = "PLAN | MODEL.onnx | GRAPH.json ...",
      .purpose =
          "Shows engines on one HTML page that needs no network: where the time goes, what the machine could do at "
          "best, memory, "
          "tactics, hazards, the graph; of two and more also how they differ, layer by layer. Plans and models are "
          "measured here. "
          "GRAPH.json is what trtexec writes with --exportLayerInfo and --profilingVerbosity=detailed; X.profile.json "
          "and "
          "X.timing.json beside X.graph.json are read, too.",
      .flags =
          {{"-o", "<file>", "", "the page (default report.html)"},
           {"-pj", "<file>", "", "of the one GRAPH.json: what --exportProfile wrote"},
           {"--profiling_json", "<file>", "", "the same"},
           {"-tj", "<file>", "", "and what --exportTimes wrote"},
           {"--text", "", "", "print a summary instead"},
           {"--group_tactics", "", "", "in it, a line for each tactic instead of each layer"},
           {"--sort_key", "<key>", "", "by latency (default), count or id"},
           {"-s", "<shapes>", "--shapes", "input shapes for what is measured, name:1x3x224x224[,...]"},
           {"-t", "<seconds>", "--duration",
            "measure whole queries, and then layers one by one, at least this long each (default 1; of plans 0.02)"},
           {"-n", "<count>", "--iterations", "and at least so many times each (default 10; of plans 2)"}},
      .takes_several = true};
  return kCommand;
}

using Facts = std::vector<std::pair<std::string, std::string>>;

/// What the figures are worth: few queries say little of how latencies spread.
std::string steadiness(std::span<const Trace> timed) {
  constexpr size_t kEnough = 10;
  if (timed.size() < kEnough) return "not known of so few queries; -t 1 measures longer";
  return is_steady(timed) ? "steady" : "unsteady: close other programs and measure again";
}

std::string extent(const Measurement& measured, const LayerProfile& profile) {
  const std::span<const Trace> timed = measured.timed();
  const double seconds = timed.empty() ? 0 : (timed.back().d2h_end - timed.front().h2d_start) / 1000;
  return fmt::format("queries: {} in {:.3f} s, after {} to warm up; then layer by layer, rounds: {}", timed.size(),
                     seconds, measured.warm_up, profile.iterations());
}

/// The engine is warm, and a round begins while time is left: less one query, the rounds take as long as asked and no round more.
PerfOptions rounds_of(const PerfOptions& queries, std::span<const Trace> timed) {
  PerfOptions rounds = queries;
  rounds.warm_up_ms = 0;
  if (rounds.duration_s > 0 && !timed.empty())
    rounds.duration_s = std::max(0.0, rounds.duration_s - timed.back().latency() / 1000);
  return rounds;
}

Facts facts_of(const Session& session, const Measurement& measured, const LayerProfile& profile) {
  const hone_plan_info meta = info_of(session.plan());
  const std::vector<Trace> timed(measured.timed().begin(), measured.timed().end());
  return {{"device", meta.device},
          {"architecture", meta.architecture},
          {"model", meta.model},
          {"precision", meta.precision},
          {"build options", meta.options},
          {"written by", fmt::format("Hone {}", meta.version)},
          {"measured", extent(measured, profile)},
          {"bound by", bound_by(timed, info_of(session.device()).host_accessible != 0)},
          {"steadiness", steadiness(timed)},
          {"machine", measured.circumstances.machine.text()}};
}

void add_tried_tactics(EngineRows& engine, const Session& session) {
  std::map<std::string_view, size_t> layers;
  const std::vector<PlanLayer> known = layers_of(session.plan(), session.profile());
  for (size_t i = 0; i < known.size(); ++i)
    if (known[i].known.candidates > 0) layers[known[i].known.name] = i;
  for (LayerRow& row : engine.layers)
    if (const auto found = layers.find(row.name); found != layers.end())
      for (size_t i = 0; i < known[found->second].known.candidates; ++i) {
        const auto each =
            ask<hone_candidate>(hone_plan_layer_candidate, session.plan(), session.profile(), found->second, i);
        row.tried.push_back({each.tactic, each.chosen != 0 ? "chosen" : each.note, each.ms});
      }
}

EngineRows measure(const FriendlyLine& line, const std::string& file, std::optional<ProfileCeilings>& ceilings) {
  const Logger log = quiet_logger();
  const Voices voices(log, "");
  Options options = line.options;
  options.tool.load_engine = file.ends_with(".onnx") ? "" : file;
  options.tool.onnx = file.ends_with(".onnx") ? file : "";
  Session session(options, device_for_streams(options), voices);
  if (options.tool.load_engine.empty()) session.build();
  session.load();
  Inference inference(session, options, voices);
  inference.set_up();
  const Measurement measured = inference.measure_all();
  const LayerProfile profile = inference.profile_layers({}, rounds_of(options.perf, measured.timed()));
  if (!ceilings) ceilings = ceilings_of(session.device());
  EngineRows engine =
      read_engine(std::filesystem::path(file).filename(),
                  layers_text(session.plan(), session.profile(), inference.shapes(), HONE_LAYERS_JSON_DETAILED),
                  profile.json(), times_json(measured.timed()));
  engine.peaks = {ceilings->bytes, ceilings->f32_flops, ceilings->f16_flops, ceilings->i8_flops};
  engine.facts = facts_of(session, measured, profile);
  for (const TimedPhase& phase : session.build_phases())
    if (phase.end_ms >= 0) engine.build.push_back({phase.name, phase.depth, phase.begin_ms, phase.end_ms});
  add_tried_tactics(engine, session);
  return engine;
}

/// The file beside X.graph.json that ends in .profile.json or .timing.json; empty where there is none.
std::string beside(const std::string& graph, std::string_view ending) {
  constexpr std::string_view kGraph = ".graph.json";
  if (!graph.ends_with(kGraph)) return "";
  const std::string path = graph.substr(0, graph.size() - kGraph.size()) + std::string(ending);
  return std::filesystem::exists(path) ? path : "";
}

std::string text_of(const std::string& path) { return path.empty() ? "" : read_file(path); }

EngineRows read(const FriendlyLine& line, const std::string& file) {
  std::string profile = line.value("-pj"), times = line.value("-tj");
  if (profile.empty()) profile = line.value("--profiling_json");
  if ((!profile.empty() || !times.empty()) && line.files.size() > 1)
    throw Error("-pj and -tj belong to one engine, and several are given",
                "name the files X.graph.json, X.profile.json and X.timing.json, then they are found");
  if (profile.empty()) profile = beside(file, ".profile.json");
  if (times.empty()) times = beside(file, ".timing.json");
  return with_note([&] { return "reading " + file; },
                   [&] {
                     return read_engine(std::filesystem::path(file).filename(), read_file(file), text_of(profile),
                                        text_of(times));
                   });
}

SortKey sort_key(const FriendlyLine& line) {
  const std::string key = line.value("--sort_key");
  if (key == "count") return SortKey::count;
  if (key == "id" || key == "name") return SortKey::name;
  if (key.empty() || key == "latency") return SortKey::latency;
  throw Error(fmt::format("--sort_key={} is none of the orders", key), "latency, count or id");
}

int report(const FriendlyLine& line) {
  const SummaryOptions summary{.by_tactic = line.has("--group_tactics"), .key = sort_key(line)};
  std::vector<EngineRows> engines;
  std::optional<ProfileCeilings> ceilings;  // of the one device
  for (const std::string& file : line.files)
    engines.push_back(file.ends_with(".json") ? read(line, file) : measure(line, file, ceilings));
  if (line.json) {
    fmt::print("{}\n", report_json(engines).dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  const Page page;
  if (line.has("--text")) {
    for (const EngineRows& engine : engines)
      for (const std::string& text : summary_lines(engine, summary)) page.line(text);
    return 0;
  }
  const std::string path = line.has("-o") ? line.value("-o") : "report.html";
  const std::string html = report_page(engines);
  export_text(path, html);
  page.line(fmt::format("{}: {} engine{}, {:.2f} MB; open it in a browser", path, engines.size(),
                        engines.size() == 1 ? "" : "s", static_cast<double>(html.size()) / 1e6));
  return 0;
}

}  // namespace

const FriendlyCommand& describe_report() { return command(); }

/// The page of a plan is there in a moment; behind a build nobody minds a second of measuring.
int run_report(Words words) {
  const bool builds = std::ranges::any_of(words, [](const std::string& word) { return word.ends_with(".onnx"); });
  std::vector<std::string> defaults{"--duration=1"};
  if (!builds) defaults = {"--duration=0.02", "--iterations=2", "--warmUp=5"};
  return run_friendly(command(), words, defaults, report);
}

}  // namespace hone
