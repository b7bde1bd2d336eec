// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/watch_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "tools/common/watcher.h"

namespace hone {
namespace {

using Json = nlohmann::json;

std::string text_at(const Json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : "";
}
double number_at(const Json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_number() ? found->get<double>() : 0;
}

}  // namespace

double WatchedLatency::percentile(double percent) const {
  int64_t wanted = static_cast<int64_t>(percent / 100 * static_cast<double>(count));
  for (const auto& [bucket, many] : buckets) {
    wanted -= many;
    if (wanted < 0) return (bucket_start(bucket) + bucket_start(bucket + 1)) / 2;
  }
  return buckets.empty() ? 0 : bucket_start(buckets.rbegin()->first + 1);
}

double WatchState::layers_ms() const {
  return std::accumulate(layers_.begin(), layers_.end(), 0.0,
                         [](double sum, const auto& layer) { return sum + layer.second; });
}

WatchedPhase* WatchState::open_phase(std::string_view name) {
  const auto found = std::find_if(phases_.rbegin(), phases_.rend(),
                                  [&](const auto& each) { return each.open() && each.name == name; });
  return found == phases_.rend() ? nullptr : &*found;
}

void WatchState::take(std::string_view line, double now) {
  const Json event = Json::parse(line, nullptr, false);
  if (!event.is_object()) return;
  if (event.contains("begin")) {
    const WatchedPhase* parent = open_phase(text_at(event, "parent"));
    phases_.push_back({.name = text_at(event, "begin"),
                       .depth = parent == nullptr ? 0 : parent->depth + 1,
                       .steps = std::max(static_cast<int>(number_at(event, "steps")), 1),
                       .begun = now});
    if (phases_.back().name == "prepare") layers_.clear();  // another network
  } else if (event.contains("step")) {
    if (WatchedPhase* phase = open_phase(text_at(event, "step")))
      phase->done = std::clamp(static_cast<int>(number_at(event, "done")), 0, phase->steps);
  } else if (event.contains("end")) {
    if (WatchedPhase* phase = open_phase(text_at(event, "end"))) phase->done = phase->steps, phase->ended = now;
  } else if (event.contains("best")) {
    const std::string layer = text_at(event, "best"), fastest = text_at(event, "fastest");
    const double ms = number_at(event, "ms");
    if (layer.empty()) networks_.emplace_back(fastest, ms);
    else layers_[layer] = ms;
    last_best_ = layer.empty() ? fmt::format("{}: {:.4g} ms an inference", fastest, ms)
                               : fmt::format("{}: {}, {:.4g} ms, of {}", layer, fastest, ms,
                                             static_cast<int64_t>(number_at(event, "candidates")));
  } else if (event.contains("measuring")) {
    const std::string engine = text_at(event, "measuring");
    auto found = std::ranges::find(latencies_, engine, &WatchedLatency::engine);
    if (found == latencies_.end()) found = latencies_.insert(found, {.engine = engine});
    std::rotate(found, found + 1, latencies_.end());  // the present one is the last
    WatchedLatency& latency = latencies_.back();
    latency.running = true;
    latency.at_ms = 0;
    latency.warm_up_ms = number_at(event, "warmUpMs");
    const double duration = number_at(event, "durationMs");
    latency.end_ms = duration > 0 ? latency.warm_up_ms + duration : 0;
  } else if (latencies_.empty()) {
    return;
  } else if (const auto queries = event.find("queries"); queries != event.end() && queries->is_array()) {
    WatchedLatency& latency = latencies_.back();
    latency.at_ms = number_at(event, "atMs");
    const double best = number_at(event, "bestMs");
    latency.best_ms = latency.best_ms == 0 ? best : std::min(latency.best_ms, best);
    for (const Json& each : *queries)
      if (each.is_array() && each.size() == 2 && each[0].is_number_integer() && each[1].is_number_integer()) {
        latency.buckets[each[0].get<int>()] += each[1].get<int>();
        latency.count += each[1].get<int>();
      }
  } else if (event.contains("measured")) {
    latencies_.back().running = false;
  }
}

std::optional<double> WatchState::left(double now) const {
  for (auto phase = phases_.rbegin(); phase != phases_.rend(); ++phase)
    if (phase->open() && phase->steps > 3 && phase->done > 0)
      return (now - phase->begun) * (phase->steps - phase->done) / phase->done;
  if (latencies_.empty() || !latencies_.back().running || latencies_.back().end_ms == 0) return std::nullopt;
  return std::max(latencies_.back().end_ms - latencies_.back().at_ms, 0.0) / 1000;
}

}  // namespace hone
