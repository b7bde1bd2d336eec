// SPDX-License-Identifier: Apache-2.0
//
// Labels, order and number formats are parsed by other programs: see the transcripts in the tests.
#include "report/performance.h"

#include <cmath>

#include "report/text.h"

namespace hone {
namespace {

constexpr size_t kWindowsPrinted = 200;  // at either end

struct Metric {
  std::string_view name;
  float (Trace::*value)() const;
};
constexpr Metric kLatency{"Latency", &Trace::latency}, kEnqueue{"Enqueue Time", &Trace::enqueue},
    kH2D{"H2D Latency", &Trace::h2d}, kCompute{"GPU Compute Time", &Trace::compute}, kD2H{"D2H Latency", &Trace::d2h};

float mean(std::span<const Trace> traces, const Metric& metric) {
  float sum = 0;
  for (const Trace& trace : traces) sum += (trace.*metric.value)();
  return sum / static_cast<float>(traces.size());
}

Summary summary_of(std::span<const Trace> traces, const Metric& metric, std::span<const float> percentiles) {
  std::vector<float> samples;
  samples.reserve(traces.size());
  for (const Trace& trace : traces) samples.push_back((trace.*metric.value)());
  return summarize(std::move(samples), percentiles);
}

void trace_averages(std::span<const Trace> timed, size_t window, const Logger& log) {
  log.info("");
  log.info("=== Trace details ===");
  log.info("Trace averages of {} runs:", window);
  const size_t windows = timed.size() / window;
  for (size_t i = 0; i < windows; ++i) {
    if (windows > 2 * kWindowsPrinted && i == kWindowsPrinted) {
      log.info("... Omitting {} lines", timed.size() - 2 * kWindowsPrinted * window);
      i = windows - kWindowsPrinted;
    }
    const std::span<const Trace> part = timed.subspan(i * window, window);
    log.info("Average on {} runs - GPU latency: {:g} ms - Host latency: {:g} ms (enqueue {:g} ms)", window,
             mean(part, kCompute), mean(part, kLatency), mean(part, kEnqueue));
  }
}

std::string metric_line(std::string_view name, const Summary& summary, std::span<const float> percentiles) {
  std::string line = fmt::format("{}: min = {:g} ms, max = {:g} ms, mean = {:g} ms, median = {:g} ms", name,
                                 summary.min, summary.max, summary.mean, summary.median);
  for (size_t i = 0; i < percentiles.size(); ++i)
    line += fmt::format(", percentile({:g}%) = {:g} ms", percentiles[i], summary.percentiles[i]);
  return line;
}

void hint(const Logger& log, std::string_view first, std::string_view second) {
  log.warning("* {}", first);
  if (!second.empty()) log.warning("  {}", second);
}

void hints(const Summary& enqueue, const Summary& h2d, const Summary& compute, const Summary& d2h,
           const PerfOptions& options, const PerformanceContext& context, const Logger& log) {
  if (!context.synchronous_stream && enqueue.median > 0.8f * compute.median)
    hint(log,
         "Throughput may be bound by Enqueue Time rather than GPU Compute: the host submits work more slowly than the "
         "device does it.",
         "Recording the launches once with --useCudaGraph may raise the throughput, if it is not in use already.");
  if (h2d.median >= compute.median)
    hint(log,
         "Throughput may be bound by host-to-device transfers for the inputs rather than GPU Compute: copying takes as "
         "long as computing.",
         "--noDataTransfers leaves the copies out of the measurement.");
  if (d2h.median >= compute.median)
    hint(log,
         "Throughput may be bound by device-to-host transfers for the outputs rather than GPU Compute: copying takes "
         "as long as computing.",
         "--noDataTransfers leaves the copies out of the measurement.");
  if (compute.coefficient_of_variance > context.unstable_percent)
    hint(log,
         fmt::format("GPU compute time is unstable, with coefficient of variance = {:g}%.",
                     compute.coefficient_of_variance),
         "Fixed clocks, a machine without other load, or --useSpinWait may steady it, if not in use already.");
  if (options.streams > 1)
    hint(log,
         "Multiple inference streams are used. Latencies may not be accurate since the streams compete for the device: "
         "compare throughput.",
         "");
}

void explanations(const Logger& log) {
  log.info("Explanations of the performance metrics are printed in the verbose logs.");
  log.verbose("");
  log.verbose("=== Explanations of the performance metrics ===");
  log.verbose(
      "Total Host Walltime: time on the host's clock from the start of the first timed query to the end of the last "
      "one.");
  log.verbose("GPU Compute Time: time that the device takes to run the kernels of one query.");
  log.verbose(
      "Total GPU Compute Time: the GPU Compute Time of all timed queries together. When it is far below Total Host "
      "Walltime, the device "
      "waits for the host or for transfers.");
  log.verbose(
      "Throughput: timed queries divided by Total Host Walltime. When it is far below the inverse of GPU Compute Time, "
      "the device waits "
      "for the host or for transfers.");
  log.verbose(
      "Enqueue Time: time that the host takes to submit one query. When it exceeds GPU Compute Time, the device waits "
      "for the host. A "
      "device that computes while it is called, such as the CPU, shows its compute time here.");
  log.verbose("H2D Latency: time to copy the inputs of one query to the device.");
  log.verbose("D2H Latency: time to copy the outputs of one query to the host.");
  log.verbose(
      "Latency: H2D Latency, GPU Compute Time and D2H Latency of one query added up; waiting between them is left "
      "out.");
  log.info("");
}

}  // namespace

void report_performance(std::span<const Trace> traces, const PerfOptions& options, const PerformanceContext& context,
                        const Logger& log) {
  const size_t warm_up = warm_up_queries(traces, static_cast<float>(options.warm_up_ms));
  const std::span<const Trace> timed = traces.subspan(warm_up);
  log.info("Warmup completed {} queries over {:g} ms", warm_up, options.warm_up_ms);
  if (timed.empty()) {
    log.warning("Timing trace has 0 queries: every query started during the warm-up; raise --duration or --iterations");
    return;
  }
  const float walltime = timed.back().d2h_end - timed.front().h2d_start;
  log.info("Timing trace has {} queries over {:g} s", timed.size(), walltime / 1000);
  trace_averages(timed, static_cast<size_t>(options.average_runs), log);

  const std::span<const float> percentiles = options.percentiles;
  const Summary latency = summary_of(timed, kLatency, percentiles), enqueue = summary_of(timed, kEnqueue, percentiles),
                h2d = summary_of(timed, kH2D, percentiles), compute = summary_of(timed, kCompute, percentiles),
                d2h = summary_of(timed, kD2H, percentiles);
  const auto count = static_cast<float>(timed.size());
  log.info("");
  log.info("=== Performance summary ===");
  log.info("Throughput: {:g} qps", count / walltime * 1000);
  log.info("{}", metric_line(kLatency.name, latency, percentiles));
  log.info("{}", metric_line(kEnqueue.name, enqueue, percentiles));
  log.info("{}", metric_line(kH2D.name, h2d, percentiles));
  log.info("{}", metric_line(kCompute.name, compute, percentiles));
  log.info("{}", metric_line(kD2H.name, d2h, percentiles));
  log.info("Total Host Walltime: {:g} s", walltime / 1000);
  log.info("Total GPU Compute Time: {:g} s", compute.mean * count / 1000);
  if (context.circumstances != nullptr)
    for (const std::string& line : circumstance_lines(timed, *context.circumstances, context.synchronous_stream))
      log.info("{}", line);
  hints(enqueue, h2d, compute, d2h, options, context, log);
  explanations(log);
}

std::string times_json(std::span<const Trace> timed) {
  std::string text = "[\n";
  bool first = true;
  for (const Trace& trace : timed) {
    text += first ? "  {" : ", {";
    first = false;
    const auto field = [&](std::string_view name, float value, std::string_view end) {
      text += fmt::format(" \"{}\" : {}{}", name, json_number(value), end);
    };
    field("startEnqMs", trace.enqueue_start, ",");
    field("endEnqMs", trace.enqueue_end, ",");
    field("startH2dMs", trace.h2d_start, ",");
    field("endH2dMs", trace.h2d_end, ",");
    field("startComputeMs", trace.compute_start, ",");
    field("endComputeMs", trace.compute_end, ",");
    field("startD2hMs", trace.d2h_start, ",");
    field("endD2hMs", trace.d2h_end, ",");
    field("h2dMs", trace.h2d(), ",");
    field("computeMs", trace.compute(), ",");
    field("d2hMs", trace.d2h(), ",");
    field("latencyMs", trace.latency(), " }\n");
  }
  return text + "]\n";
}

}  // namespace hone
