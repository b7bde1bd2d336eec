// SPDX-License-Identifier: Apache-2.0
//
// Every report against what the documented output of the original says: labels, order, number formats, triggers; every
// JSON text is parsed by a strict parser, with names that need escaping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/circumstances.h"
#include "report/layer_profile.h"
#include "report/performance.h"
#include "report/tensors.h"

namespace hone {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Json = nlohmann::json;

/// Collects "I text", "W text", …
struct Lines {
  std::vector<std::string> lines;
  Logger log{[this](Severity severity, std::string_view text) {
    lines.push_back(std::string(1, "FEWIV"[static_cast<int>(severity)]) + " " + std::string(text));
  }};
};

/// Queries of 1 ms compute, 0.25 ms transfers either way, one every 2 ms.
std::vector<Trace> steady_traces(size_t count) {
  std::vector<Trace> traces(count);
  for (size_t i = 0; i < count; ++i) {
    const float start = 2.0f * static_cast<float>(i);
    traces[i] = {start + 0.25f, start + 0.375f, start,         start + 0.25f,
                 start + 0.25f, start + 1.25f,  start + 1.25f, start + 1.5f};
  }
  return traces;
}

PerfOptions options(double warm_up_ms = 0) {
  PerfOptions result;
  result.warm_up_ms = warm_up_ms;
  return result;
}

TEST(Performance, PrintsTheSummaryOfTheOriginal) {
  Lines out;
  report_performance(steady_traces(24), options(8), {}, out.log);
  EXPECT_THAT(out.lines,
              ElementsAre("I Warmup completed 4 queries over 8 ms", "I Timing trace has 20 queries over 0.0395 s", "I ",
                          "I === Trace details ===", "I Trace averages of 10 runs:",
                          "I Average on 10 runs - GPU latency: 1 ms - Host latency: 1.5 ms (enqueue 0.125 ms)",
                          "I Average on 10 runs - GPU latency: 1 ms - Host latency: 1.5 ms (enqueue 0.125 ms)", "I ",
                          "I === Performance summary ===", "I Throughput: 506.329 qps",
                          "I Latency: min = 1.5 ms, max = 1.5 ms, mean = 1.5 ms, median = 1.5 ms, percentile(90%) = "
                          "1.5 ms, percentile(95%) = 1.5 ms, percentile(99%) = 1.5 ms",
                          StartsWith("I Enqueue Time: min = 0.125 ms"), StartsWith("I H2D Latency: min = 0.25 ms"),
                          StartsWith("I GPU Compute Time: min = 1 ms"), StartsWith("I D2H Latency: min = 0.25 ms"),
                          "I Total Host Walltime: 0.0395 s", "I Total GPU Compute Time: 0.02 s",
                          "I Explanations of the performance metrics are printed in the verbose logs.", "I "));
}

TEST(Performance, ExplainsEightMetricsInVerboseLogs) {
  Lines out;
  out.log.set_threshold(Severity::verbose);
  report_performance(steady_traces(2), options(), {}, out.log);
  std::vector<std::string> labels;
  for (const std::string& line : out.lines)
    if (line.starts_with("V ") && line.find(": ") != std::string::npos)
      labels.push_back(line.substr(2, line.find(": ") - 2));
  EXPECT_THAT(labels, ElementsAre("Total Host Walltime", "GPU Compute Time", "Total GPU Compute Time", "Throughput",
                                  "Enqueue Time", "H2D Latency", "D2H Latency", "Latency"));
}

TEST(Performance, OmitsTheMiddleOfManyWindows) {
  Lines out;
  PerfOptions perf = options();
  perf.average_runs = 1;
  report_performance(steady_traces(1000), perf, {}, out.log);
  EXPECT_THAT(out.lines, Contains("I ... Omitting 600 lines"));
  EXPECT_EQ(
      std::ranges::count_if(out.lines, [](const std::string& line) { return line.starts_with("I Average on 1 runs"); }),
      400);
}

std::vector<std::string> warnings(const std::vector<Trace>& traces, const PerfOptions& perf = options(),
                                  PerformanceContext context = {}) {
  Lines out;
  report_performance(traces, perf, context, out.log);
  std::erase_if(out.lines, [](const std::string& line) { return !line.starts_with("W "); });
  return out.lines;
}

TEST(Hints, AppearExactlyAtTheirTriggers) {
  EXPECT_THAT(warnings(steady_traces(5)), ElementsAre());

  std::vector<Trace> slow_enqueue = steady_traces(5);
  for (Trace& trace : slow_enqueue) trace.enqueue_end = trace.enqueue_start + 0.9f;
  EXPECT_THAT(warnings(slow_enqueue),
              ElementsAre(StartsWith("W * Throughput may be bound by Enqueue Time rather than GPU Compute"),
                          HasSubstr("--useCudaGraph")));
  EXPECT_THAT(warnings(slow_enqueue, options(), {.synchronous_stream = true}), ElementsAre());

  std::vector<Trace> slow_input = steady_traces(5);
  for (Trace& trace : slow_input) trace.h2d_start = trace.h2d_end - 1;
  EXPECT_THAT(warnings(slow_input),
              ElementsAre(StartsWith("W * Throughput may be bound by host-to-device transfers for the inputs"),
                          HasSubstr("--noDataTransfers")));

  std::vector<Trace> slow_output = steady_traces(5);
  for (Trace& trace : slow_output) trace.d2h_end = trace.d2h_start + 1.5f;
  EXPECT_THAT(warnings(slow_output),
              ElementsAre(StartsWith("W * Throughput may be bound by device-to-host transfers for the outputs"),
                          HasSubstr("--noDataTransfers")));

  std::vector<Trace> unsteady = steady_traces(5);
  unsteady[2].compute_end += 0.25f;
  EXPECT_THAT(
      warnings(unsteady),
      ElementsAre(StartsWith("W * GPU compute time is unstable, with coefficient of variance = "), StartsWith("W   ")));

  PerfOptions streams = options();
  streams.streams = 2;
  EXPECT_THAT(warnings(steady_traces(5), streams),
              ElementsAre(StartsWith("W * Multiple inference streams are used. Latencies may not be accurate")));
}

TEST(Circumstances, NameTheBusiestResource) {
  // 0.25 + 0.5 … see steady_traces: every query spends 0.25 ms on copies in, 1 ms on computing, 0.25 ms on copies out, of 2 ms.
  const std::vector<Trace> traces = steady_traces(10);
  EXPECT_THAT(bound_by(traces, true), StartsWith("compute ("));
  std::vector<Trace> waiting = traces;
  for (size_t i = 0; i < waiting.size(); ++i)
    for (float Trace::*stamp : {&Trace::h2d_start, &Trace::h2d_end, &Trace::compute_start, &Trace::compute_end,
                                &Trace::d2h_start, &Trace::d2h_end})
      waiting[i].*stamp += 20 * static_cast<float>(i);
  EXPECT_THAT(bound_by(waiting, true), StartsWith("waiting ("));
  EXPECT_EQ(bound_by({}, true), "waiting (100 % of the wall time)");
}

TEST(Circumstances, ARunIsUnsteadyByItsOwnSpread) {
  std::vector<Trace> traces = steady_traces(20);
  EXPECT_TRUE(is_steady(traces));
  traces[3].compute_end += 5;
  EXPECT_TRUE(is_steady(traces)) << "one outlier says little";
  for (size_t i = 0; i < 8; ++i) traces[i].compute_end += 0.25f;
  EXPECT_FALSE(is_steady(traces));
  EXPECT_FLOAT_EQ(quartile_spread({1, 2, 3, 4, 5}), (4.0f - 2.0f) / 3 * 100);
}

TEST(Circumstances, AreLinesOfTheSummaryAndJson) {
  const std::vector<Trace> traces = steady_traces(4);
  Circumstances circumstances{.closed_loop = round_trips(traces), .machine = {}};
  circumstances.machine.before.load = 0.5;
  circumstances.machine.after.load = 1.5;
  const std::vector<std::string> lines = circumstance_lines(traces, circumstances, true);
  EXPECT_THAT(lines, ElementsAre(StartsWith("Closed-loop latency: median = 1.5 ms, percentile(90%) = 1.5 ms"),
                                 StartsWith("Bound by: compute ("), StartsWith("Steadiness: steady, 0.0 %"),
                                 "Machine: load 0.50 -> 1.50"));
  const Json json = Json::parse(machine_json(traces, circumstances));
  EXPECT_EQ(json["after"]["load"], 1.5);
  EXPECT_TRUE(json["before"]["clockMHz"].is_null());
  EXPECT_EQ(json["steady"], true);
  EXPECT_FLOAT_EQ(json["closedLoopMedianMs"], 1.5);
}

TEST(Times, AreOneValidRecordPerQuery) {
  const std::string text = times_json(steady_traces(3));
  const Json json = Json::parse(text);
  ASSERT_EQ(json.size(), 3u);
  EXPECT_FLOAT_EQ(json[1]["startH2dMs"], 2);
  EXPECT_FLOAT_EQ(json[1]["latencyMs"], 1.5);
  EXPECT_THAT(text, StartsWith("[\n  { \"startEnqMs\" : 0.25, \"endEnqMs\" : 0.375, \"startH2dMs\" : 0"));
}

std::vector<ProfiledLayer> two_layers() {
  return {{.name = "conv + \"relu\"", .source = "cpu"}, {.name = "view", .is_view = true}, {.name = "pool"}};
}

TEST(LayerProfile, PrintsTheTableAndListsAllLayersInJson) {
  LayerProfile profile(two_layers());
  for (const double time : {1.0, 2.0, 6.0}) profile.layer("conv + \"relu\"", time);
  EXPECT_EQ(profile.iterations(), 3u);
  Lines out;
  profile.print(out.log);
  EXPECT_THAT(out.lines, ElementsAre("I ", "I === Profile (3 iterations ) ===",
                                     "I    Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer",
                                     "I        9.00       3.0000       2.0000     100.0   conv + \"relu\"",
                                     "I        9.00       3.0000       2.0000     100.0   Total", "I "));
  const Json json = Json::parse(profile.json());
  ASSERT_EQ(json.size(), 4u);
  EXPECT_EQ(json[0]["count"], 3);
  EXPECT_EQ(json[1]["name"], "conv + \"relu\"");
  EXPECT_FLOAT_EQ(json[1]["averageMs"], 3);
  EXPECT_FLOAT_EQ(json[2]["timeMs"], 0);
}

TEST(LayerProfile, SaysWhatPartOfTheCeilingsALayerReaches) {
  std::vector<ProfiledLayer> layers = two_layers();
  layers[0].bytes = 2'000'000;
  layers[0].flops = 50'000'000;
  layers[0].operand = DType::f32;
  LayerProfile profile(layers, {.bytes = 4e12, .f16_flops = 800e12, .f32_flops = 50e12, .i8_flops = 1600e12});
  for (const double time : {2.0, 2.0}) profile.layer(layers[0].name, time);
  Lines out;
  profile.print(out.log);
  EXPECT_THAT(out.lines, Contains(HasSubstr("100.0        1   " + layers[0].source)));
  EXPECT_THAT(out.lines,
              Contains(HasSubstr("copies 4000 GB/s, matmuls 50000 GFLOP/s in f32, 800000 in f16, 1600000 in int8")));
  EXPECT_THAT(out.lines, Contains("I        0.1     0.00100      50.00       25.0      2.000        1.0   arithmetic   "
                                  "conv + \"relu\""));  // 1 us of 2 ms
  EXPECT_THAT(out.lines, Contains(HasSubstr("all of these: 2000.00 times their floor")));
  EXPECT_THAT(out.lines, Contains(HasSubstr("100.0 % of their time is in layers below 60 % of a ceiling")));
}

TEST(LayerProfile, ANewIterationBeginsWithTheFirstLayer) {
  LayerProfile profile(two_layers());
  for (int i = 0; i < 2; ++i) {
    for (const char* layer : {"conv + \"relu\"", "view", "pool"}) profile.layer(layer, 1);
  }
  EXPECT_EQ(profile.iterations(), 2u);
}

TEST(LayerProfile, LayersOfOneNameFollowEachOther) {
  LayerProfile profile({{.name = "a"}, {.name = "b"}, {.name = "a"}});
  for (int i = 0; i < 3; ++i)
    for (const auto& [name, time] : {std::pair("a", 1.0), std::pair("b", 2.0), std::pair("a", 4.0)})
      profile.layer(name, time);
  EXPECT_EQ(profile.iterations(), 3u);
  const Json json = Json::parse(profile.json());
  EXPECT_FLOAT_EQ(json[1]["timeMs"], 3);
  EXPECT_FLOAT_EQ(json[3]["timeMs"], 12);
  EXPECT_THROW(profile.layer("nobody", 1), InternalError);
}

BoundTensor bound(std::string name, const Tensor& tensor, Layout layout = Layout::linear) {
  return {std::move(name), false, tensor.dtype(), tensor.dims(), layout, tensor.bytes()};
}

TEST(Tensors, ValuesPrintInLogicalOrder) {
  const Tensor tensor = Tensor::of<float>({1, 2, 1, 2}, {0.5f, 1e-7f, 3, 1234567});
  EXPECT_EQ(values_line(bound("y", tensor)), "0.5 1e-07 3 1.23457e+06");
  EXPECT_EQ(values_line(bound("y", tensor, Layout::channels_last)), "0.5 3 1e-07 1.23457e+06");
  EXPECT_EQ(values_line(bound("y", Tensor::of<int8_t>({2}, {-1, 65}))), "-1 65");
}

TEST(Tensors, BlockedLayoutsSkipTheirPadding) {
  std::vector<float> stored(16);
  for (size_t i = 0; i < 16; ++i) stored[i] = static_cast<float>(i);
  const Tensor memory = Tensor::of<float>({16}, stored);
  EXPECT_EQ(values_line({"y", false, DType::f32, {1, 3, 2, 1}, Layout::blocked8, memory.bytes()}), "0 8 1 9 2 10");
}

TEST(Tensors, JsonIsValidWhateverNamesAndValues) {
  const Tensor tensor = Tensor::of<float>({2, 2}, {0.1f, INFINITY, NAN, -2});
  const Json json =
      Json::parse(outputs_json(std::vector{bound("a\"\\b", tensor), bound("scalar", Tensor::scalar<int64_t>(7))}));
  EXPECT_EQ(json[0]["name"], "a\"\\b");
  EXPECT_EQ(json[0]["dimensions"], "2x2");
  EXPECT_FLOAT_EQ(json[0]["values"][0], 0.1f);
  EXPECT_TRUE(json[0]["values"][1].is_null());
  EXPECT_EQ(json[1]["values"][0], 7);
  EXPECT_EQ(json[1]["dimensions"], "");
}

TEST(Tensors, RawFilesAreNamedAsInRelease86) {
  const Tensor tensor = Tensor::of<float>({1, 3}, {1, 2, 3});
  BoundTensor input = bound("x", tensor);
  input.is_input = true;
  EXPECT_EQ(raw_file_name(input), "x.input.1.3.Float.raw");
  BoundTensor half{"/head/out:0", false, DType::f16, {1, 10}, Layout::linear, {}};
  EXPECT_EQ(raw_file_name(half), "_head_out_0.output.1.10.Half.raw");
  EXPECT_THAT(raw_file_names(std::vector{bound("a/b", tensor), bound("a:b", tensor)}),
              ElementsAre("a_b.output.1.3.Float.raw", "a_b_2.output.1.3.Float.raw"));
}

}  // namespace
}  // namespace hone
