// SPDX-License-Identifier: Apache-2.0
#include "report/circumstances.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

/// Between the quartiles of a run on a quiet machine lie 1 to 3 %; beyond this, two runs cannot be told apart.
constexpr float kSteadyPercent = 5;

std::vector<float> samples_of(std::span<const Trace> traces, float (Trace::*value)() const) {
  std::vector<float> samples;
  for (const Trace& trace : traces) samples.push_back((trace.*value)());
  return samples;
}

struct Resource {
  std::string_view name;
  double percent;
};

double percent_of(std::span<const Trace> timed, float (Trace::*value)() const, double wall) {
  double sum = 0;
  for (const Trace& trace : timed) sum += (trace.*value)();
  return wall > 0 ? 100 * sum / wall : 0;
}

template <typename T>
Json number(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json state_json(const MachineState& state) {
  return {{"clockMHz", number(state.clock_mhz)},           {"load", number(state.load)},
          {"stolenTicks", number(state.stolen_ticks)},     {"totalTicks", number(state.total_ticks)},
          {"heatThrottles", number(state.heat_throttles)}, {"quotaThrottledUs", number(state.quota_throttled_us)}};
}

}  // namespace

float quartile_spread(std::vector<float> samples) {
  std::ranges::sort(samples);
  if (samples.empty()) return 0;
  const float median = percentile(50, samples);
  return median > 0 ? (percentile(75, samples) - percentile(25, samples)) / median * 100 : 0;
}

bool is_steady(std::span<const Trace> timed) {
  return quartile_spread(samples_of(timed, &Trace::compute)) <= kSteadyPercent;
}

std::vector<float> round_trips(std::span<const Trace> timed) {
  std::vector<float> times;
  for (const Trace& trace : timed) times.push_back(trace.d2h_end - trace.h2d_start);
  return times;
}

std::string bound_by(std::span<const Trace> timed, bool synchronous_stream) {
  const double wall = timed.empty() ? 0 : timed.back().d2h_end - timed.front().h2d_start;
  std::vector<Resource> resources{{"compute", percent_of(timed, &Trace::compute, wall)},
                                  {"input copies", percent_of(timed, &Trace::h2d, wall)},
                                  {"output copies", percent_of(timed, &Trace::d2h, wall)}};
  double busy = 0;
  for (const Resource& resource : resources) busy += resource.percent;
  resources.push_back({"waiting", std::max(0.0, 100 - busy)});
  if (!synchronous_stream) resources.push_back({"enqueueing", percent_of(timed, &Trace::enqueue, wall)});
  std::ranges::stable_sort(resources, std::ranges::greater{}, &Resource::percent);
  std::vector<std::string> rest;
  for (size_t i = 1; i < resources.size(); ++i)
    if (resources[i].percent >= 0.5)
      rest.push_back(fmt::format("{} {:.0f} %", resources[i].name, resources[i].percent));
  return fmt::format("{} ({:.0f} % of the wall time{}{})", resources[0].name, resources[0].percent,
                     rest.empty() ? "" : "; ", join(rest, ", "));
}

std::vector<std::string> circumstance_lines(std::span<const Trace> timed, const Circumstances& circumstances,
                                            bool synchronous_stream) {
  const float percentiles[] = {90, 99};
  const Summary closed = summarize(circumstances.closed_loop, percentiles);
  return {fmt::format("Closed-loop latency: median = {:g} ms, percentile(90%) = {:g} ms, percentile(99%) = {:g} ms, "
                      "one query at a time",
                      closed.median, closed.percentiles[0], closed.percentiles[1]),
          fmt::format("Bound by: {}", bound_by(timed, synchronous_stream)),
          fmt::format("Steadiness: {}, {:.1f} % between the quartiles of compute time",
                      is_steady(timed) ? "steady" : "unsteady", quartile_spread(samples_of(timed, &Trace::compute))),
          fmt::format("Machine: {}", circumstances.machine.text())};
}

std::string machine_json(std::span<const Trace> timed, const Circumstances& circumstances) {
  const MachineChange& machine = circumstances.machine;
  const Json json{{"before", state_json(machine.before)},
                  {"after", state_json(machine.after)},
                  {"stolenPercent", number(machine.stolen_percent())},
                  {"heatThrottles", number(machine.heat_throttles())},
                  {"quotaThrottledMs", number(machine.quota_throttled_ms())},
                  {"quartileSpreadPercent", quartile_spread(samples_of(timed, &Trace::compute))},
                  {"closedLoopMedianMs", summarize(circumstances.closed_loop, {}).median},
                  {"steady", is_steady(timed)}};
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hone
