// SPDX-License-Identifier: Apache-2.0
//
// `hone bench`: latency of one query at a time, throughput, what bounds it, how steady the run was; then where the time goes.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/env.h"
#include "base/text.h"
#include "report/layer_profile.h"
#include "tools/commands/bench_compare.h"
#include "tools/commands/bench_throughput.h"
#include "tools/commands/commands.h"
#include "tools/common/friendly.h"
#include "tools/common/inference.h"
#include "tools/common/plan_streams.h"
#include "tools/common/replicas.h"
#include "tools/common/terminal.h"
#include "tools/files/rank_files.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      .name = "bench",
      .takes = "PLAN | MODEL.onnx ...",
      .purpose =
          "Measures an engine; with --compare several that take turns, with --throughput in many streams. \n\nhone "
          "bench kernels KEY: all ways to solve "
          "one problem, and what the machine could do at "
          "best.",
      .flags = {{"-s", "<shapes>", "--shapes", "input shapes, name:1x3x224x224[,...]"},
                {"-i", "<name:file[,...]>", "--loadInputs",
                 "input values: raw, .npy or .npz; other inputs get random values"},
                {"-t", "<seconds>", "--duration", "measure at least this long (default 3)"},
                {"-n", "<count>", "--iterations", "and at least so many queries (default 10)"},
                {"--streams", "<count>", "--infStreams",
                 "queries in flight (default: what --throughput left in the plan, or 1)"},
                {"--compute-only", "", "--noDataTransfers", "leave the copies of inputs and outputs out"},
                {"--threadSweep", "", "", "measure with 1, 2, 4 ... up to all of the processor's threads"},
                {"--throughput", "", "", "search streams, workers and rows for the most rows a second"},
                {"--p99", "<ms>", "", "of --throughput: no query is to take longer, 99 times of 100"},
                {"-o", "<file>", "", "of --throughput: the engine with what was found"},
                {"--compare", "", "", "two engines and more in turns: which is faster, and how surely"},
                {"--rounds", "<count>", "", "of --compare: turns of each (default 21)"},
                {"--plot", "<file>", "", "of --compare: the rounds and the ratios as SVG"}},
      .takes_several = true};
  return kCommand;
}

/// What each device did of it.
Json devices_json(const Measurement& measured, const Options& options) {
  Json rows = Json::array();
  for (size_t i = 0; i < measured.by_device.size(); ++i) {
    const std::vector<Trace>& traces = measured.by_device[i];
    const auto timed = std::span(traces).subspan(warm_up_queries(traces, static_cast<float>(options.perf.warm_up_ms)));
    const float percentiles[] = {50, 99};
    const Summary latency = summarize(round_trips(timed), percentiles);
    rows.push_back({{"device", i == 0 ? options.tool.device : options.tool.replicas[i - 1]},
                    {"queries", timed.size()},
                    {"queriesPerSecond", queries_per_second(timed)},
                    {"latencyMs", {{"median", latency.percentiles[0]}, {"p99", latency.percentiles[1]}}}});
  }
  return rows;
}

Json measured_json(const Measurement& measured, const std::string& file, const Options& options, bool synchronous) {
  const float percentiles[] = {50, 90, 99};
  const std::span<const Trace> timed = measured.timed();
  const Summary closed = summarize(measured.circumstances.closed_loop, percentiles);
  return {{"file", file},
          {"queries", timed.size()},
          {"streams", options.perf.streams},
          {"latencyMs",
           {{"min", closed.min},
            {"median", closed.median},
            {"p90", closed.percentiles[1]},
            {"p99", closed.percentiles[2]},
            {"max", closed.max}}},
          {"queriesPerSecond", queries_per_second(timed)},
          {"boundBy", bound_by(timed, synchronous)},
          {"steady", is_steady(timed)},
          {"machineText", measured.circumstances.machine.text()},
          {"machine", Json::parse(machine_json(timed, measured.circumstances))}};
}

void print(const Json& result) {
  const Page page;
  const Json &latency = result["latencyMs"], &machine = result["machine"];
  page.title(result["file"].get<std::string>());
  page.pair("latency",
            fmt::format("{:.3f} ms median, {:.3f} ms at 90 %, {:.3f} ms at 99 %, one query at a time",
                        latency["median"].get<double>(), latency["p90"].get<double>(), latency["p99"].get<double>()));
  page.pair("throughput",
            fmt::format("{:.1f} queries per second with {} in flight ({} queries)",
                        result["queriesPerSecond"].get<double>(), result["streams"].dump(), result["queries"].dump()));
  for (const Json& each : result.value("devices", Json::array()))
    page.pair("  " + each["device"].get<std::string>(),
              fmt::format("{:.1f} queries per second, {:.3f} ms median, {:.3f} ms at 99 %",
                          each["queriesPerSecond"].get<double>(), each["latencyMs"]["median"].get<double>(),
                          each["latencyMs"]["p99"].get<double>()));
  page.pair("bound by", result["boundBy"].get<std::string>());
  page.pair("machine", result["machineText"].get<std::string>());
  if (!result["steady"])
    page.warning(fmt::format("  unsteady: {:.1f} % between the quartiles; close other programs and measure again",
                             machine["quartileSpreadPercent"].get<double>()));
}

Json measure_once(const FriendlyLine& line, const Voices& voices) {
  Options options = line.options;
  FollowedPlan followed = follow_plan(options);
  Session session(options, device_for_streams(options), voices);
  session.take(std::move(followed.file));
  if (options.tool.load_engine.empty()) session.build();
  session.load();
  Inference inference(session, options, voices);
  inference.set_up();
  const Replicas replicas(session, inference, options, voices);
  const Measurement measured = inference.measure_all();
  if (measured.timed().empty()) throw Error("no query was measured", "raise -t or -n");
  Json result = measured_json(measured, line.file, options, info_of(session.device()).host_accessible != 0);
  if (!options.tool.replicas.empty()) result["devices"] = devices_json(measured, options);
  return result;
}

/// 1, 2, 4 … and all.
std::vector<int> thread_counts(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

/// A model is built anew for each team, as its tactics may differ; a plan keeps those that it was built with.
Json sweep(const FriendlyLine& line, const Voices& voices) {
  const std::optional<std::string> asked = env_text("HONE_THREADS");
  const auto device = make_device(line.options.tool.device);
  const hone_device_info info = info_of(device.get());
  if (info.host_accessible == 0)
    throw Error(fmt::format("--threadSweep is for processors; this device is {}", info.name));
  Json rows = Json::array();
  for (const int count : thread_counts(info.workers)) {
    setenv("HONE_THREADS", std::to_string(count).c_str(), 1);
    Json row = measure_once(line, voices);
    const double ms = row["latencyMs"]["median"].get<double>(),
                 alone = rows.empty() ? ms : rows[0]["latencyMs"]["median"].get<double>();
    row["threads"] = count;
    row["speedUp"] = alone / ms;
    rows.push_back(std::move(row));
  }
  if (asked) setenv("HONE_THREADS", asked->c_str(), 1);
  else unsetenv("HONE_THREADS");
  return rows;
}

void print_sweep(const Json& rows) {
  const Page page;
  page.title(rows[0]["file"].get<std::string>());
  page.line("  threads   latency ms   speed-up   per thread   queries/s   quartile spread");
  for (const Json& row : rows)
    page.line(fmt::format("{:9}{:13.3f}{:11.2f}{:11.0f} %{:12.1f}{:16.1f} %", row["threads"].get<int>(),
                          row["latencyMs"]["median"].get<double>(), row["speedUp"].get<double>(),
                          100 * row["speedUp"].get<double>() / row["threads"].get<int>(),
                          row["queriesPerSecond"].get<double>(),
                          row["machine"]["quartileSpreadPercent"].get<double>()));
}

int bench(const FriendlyLine& line) {
  const Logger log = quiet_logger();
  const Voices voices(log, "");
  for (const std::string& warning : line.warnings) log.warning("{}", warning);
  if (line.options.perf.duration_s == -1)
    throw Error("hone bench tells its result at the end, which --duration=-1 never reaches",
                "give a time in seconds: -t 10");
  if (line.has("--compare")) return run_comparison_of_engines(line);
  for (const char* own : {"--p99", "-o"})
    if (line.has(own) && !line.has("--throughput"))
      throw Error(fmt::format("{} is of --throughput", own), "hone bench --throughput model.onnx -o model.plan");
  if (line.files.size() > 1)
    throw Error(fmt::format("one file is taken, these are two: {} and {}", line.files[0], line.files[1]),
                "hone bench --compare measures several in turns");
  if (line.has("--throughput")) return run_throughput_search(line);
  const bool swept = line.has("--threadSweep");
  const Json result = swept ? sweep(line, voices) : measure_once(line, voices);
  if (!speaks()) return 0;
  if (line.json) fmt::print("{}\n", result.dump(2, ' ', false, Json::error_handler_t::replace));
  else if (swept) print_sweep(result);
  else print(result);
  return 0;
}

}  // namespace

const FriendlyCommand& describe_bench() { return command(); }

int run_bench(Words words) { return run_friendly(command(), words, {}, bench); }

}  // namespace hone
