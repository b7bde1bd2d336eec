// SPDX-License-Identifier: Apache-2.0
//
// A new iteration begins when the order of the steps starts again.
#include "report/layer_profile.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "measured/times.h"
#include "report/text.h"

namespace hone {
namespace {

constexpr float kNear = 0.6f;  // of a ceiling, for a layer to be left alone

float sum(std::span<const float> samples) { return std::accumulate(samples.begin(), samples.end(), 0.0f); }
float average(std::span<const float> samples) {
  return samples.empty() ? 0 : sum(samples) / static_cast<float>(samples.size());
}
float median(const std::vector<float>& samples) { return summarize(samples, {}).median; }

double milliseconds(int64_t amount, double per_second) {
  return per_second > 0 ? static_cast<double>(amount) / per_second * 1e3 : 0;
}

void table_row(const Logger& log, float total, float mean, float middle, float percent, std::string_view name) {
  log.info("{:11.2f}{:13.4f}{:13.4f}{:10.1f}   {}", total, mean, middle, percent, name);
}

}  // namespace

double ProfileCeilings::flops_of(DType operand) const {
  const bool bytes = (operand == DType::u8 || operand == DType::i8 || operand == DType::f8e4m3fn) && i8_flops > 0;
  return bytes ? i8_flops : operand == DType::f32 ? f32_flops : f16_flops;
}

LayerProfile::LayerProfile(const std::vector<ProfiledLayer>& layers, const ProfileCeilings& ceilings)
    : ceilings_(ceilings) {
  for (const ProfiledLayer& each : layers) {
    const double bytes = milliseconds(each.bytes, ceilings.bytes);
    const double flops = milliseconds(each.flops, ceilings.flops_of(each.operand));
    layers_.push_back({.what = each, .floor_ms = std::max(bytes, flops), .moves = bytes >= flops});
  }
}

size_t LayerProfile::next_called(std::string_view name) const {
  const size_t count = layers_.size(), start = totals_.empty() ? 0 : previous_ + 1;
  for (size_t i = 0; i < count; ++i)
    if (const size_t at = (start + i) % count; layers_[at].what.name == name) return at;
  throw InternalError(fmt::format("the layer {} is not of the profiled engine", name));
}

void LayerProfile::layer(std::string_view name, double milliseconds) {
  const size_t index = next_called(name);
  if (totals_.empty() || index <= previous_) totals_.push_back(0);
  previous_ = index;
  const auto time = static_cast<float>(milliseconds);
  layers_[index].samples.push_back(time);
  totals_.back() += time;
}

void LayerProfile::print(const Logger& log) const {
  const float total = sum(totals_);
  log.info("");
  log.info("=== Profile ({} iterations ) ===", iterations());
  log.info("   Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer");
  for (const Layer& layer : layers_) {
    const float time = sum(layer.samples);
    if (time != 0)
      table_row(log, time, average(layer.samples), median(layer.samples), time / total * 100, layer.what.name);
  }
  table_row(log, total, average(totals_), median(totals_), 100, "Total");
  log.info("");
  if (ceilings_.bytes > 0) print_shares(log, total);
}

/// Layers run one by one here, so short ones reach less of the ceilings than they do between their neighbours in a graph.
void LayerProfile::print_shares(const Logger& log, float total) const {
  std::map<std::string, std::pair<float, int>> sources;
  for (const Layer& layer : layers_) {
    if (layer.what.is_view) continue;
    sources[layer.what.source].first += sum(layer.samples);
    ++sources[layer.what.source].second;
  }
  log.info("=== Time by source ===");
  log.info("   Time(%)   Layers   Source");
  for (const auto& [source, share] : sources)
    log.info("{:10.1f}{:9}   {}", share.first / total * 100, share.second, source);
  log.info("");
  std::string products = fmt::format("matmuls {:.0f} GFLOP/s in f32", ceilings_.f32_flops / 1e9);
  if (ceilings_.f16_flops != ceilings_.f32_flops) products += fmt::format(", {:.0f} in f16", ceilings_.f16_flops / 1e9);
  if (ceilings_.i8_flops != 0) products += fmt::format(", {:.0f} in int8", ceilings_.i8_flops / 1e9);
  log.info("=== Share of the measured ceilings: copies {:.0f} GB/s, {} ===", ceilings_.bytes / 1e9, products);
  log.info("  Share(%)   Floor(ms)      MFLOP    GFLOP/s         MB       GB/s   Bound by     Layer");
  for (const Layer& layer : layers_) {
    const float time = median(layer.samples);
    if (layer.floor_ms <= 0 || time <= 0) continue;
    const double flops = static_cast<double>(layer.what.flops) / 1e6,
                 bytes = static_cast<double>(layer.what.bytes) / 1e6;
    log.info("{:10.1f}{:12.5f}{:11.2f}{:11.1f}{:11.3f}{:11.1f}   {}   {}", layer.floor_ms / time * 100, layer.floor_ms,
             flops, flops / time, bytes, bytes / time, layer.moves ? "memory    " : "arithmetic", layer.what.name);
  }
  print_sum(log);
  log.info("");
}

/// Of layers whose floor is known: how far all of them together are from it, and which cost the most beyond it.
void LayerProfile::print_sum(const Logger& log) const {
  float time = 0, far = 0;
  double floor = 0;
  for (const Layer& layer : layers_) {
    if (layer.floor_ms <= 0 || layer.samples.empty()) continue;
    const float own = median(layer.samples);
    time += own, floor += layer.floor_ms;
    if (layer.floor_ms < kNear * own) far += own;
  }
  if (time <= 0) return;
  log.info("{:10.1f}{:12.5f}{:59}   all of these: {:.2f} times their floor", floor / time * 100, floor, "",
           time / floor);
  log.info("{:10.1f} % of their time is in layers below {:.0f} % of a ceiling", far / time * 100, kNear * 100);
}

std::string LayerProfile::json() const {
  const float total = sum(totals_);
  std::string text = fmt::format("[\n  {{ \"count\" : {} }}\n", iterations());
  for (const Layer& layer : layers_) {
    const float time = sum(layer.samples);
    text +=
        fmt::format(", {{ \"name\" : {}, \"timeMs\" : {}, \"averageMs\" : {}, \"medianMs\" : {}, \"percentage\" : {}",
                    json_text(layer.what.name), json_number(time), json_number(average(layer.samples)),
                    json_number(median(layer.samples)), json_number(total == 0 ? 0 : time / total * 100));
    text += " }\n";
  }
  return text + "]\n";
}

}  // namespace hone
