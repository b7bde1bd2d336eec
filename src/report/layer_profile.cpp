// SPDX-License-Identifier: Apache-2.0
//
// A new iteration begins when the order of the steps starts again.
#include "report/layer_profile.h"

#include <algorithm>
#include <numeric>

#include "perf/benchmark.h"
#include "report/text.h"

namespace hone {
namespace {

float sum(std::span<const float> samples) { return std::accumulate(samples.begin(), samples.end(), 0.0f); }
float average(std::span<const float> samples) {
  return samples.empty() ? 0 : sum(samples) / static_cast<float>(samples.size());
}
float median(const std::vector<float>& samples) { return summarize(samples, {}).median; }

void table_row(const Logger& log, float total, float mean, float middle, float percent, std::string_view name) {
  log.info("{:11.2f}{:13.4f}{:13.4f}{:10.1f}   {}", total, mean, middle, percent, name);
}

}  // namespace

LayerProfile::LayerProfile(const Profile& profile) : first_(profile.steps.data()) {
  for (const Step& step : profile.steps) layers_.push_back({step.name, {}});
}

void LayerProfile::layer(const Step& step, double milliseconds) {
  const auto index = static_cast<size_t>(&step - first_);
  HONE_ASSERT(index < layers_.size(), "step {} is not of the profiled engine", step.name);
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
    if (time != 0) table_row(log, time, average(layer.samples), median(layer.samples), time / total * 100, layer.name);
  }
  table_row(log, total, average(totals_), median(totals_), 100, "Total");
  log.info("");
}

std::string LayerProfile::json() const {
  const float total = sum(totals_);
  std::string text = fmt::format("[\n  {{ \"count\" : {} }}\n", iterations());
  for (const Layer& layer : layers_) {
    const float time = sum(layer.samples);
    text += fmt::format(
        ", {{ \"name\" : {}, \"timeMs\" : {}, \"averageMs\" : {}, \"medianMs\" : {}, \"percentage\" : {} }}\n",
        json_text(layer.name), json_number(time), json_number(average(layer.samples)),
        json_number(median(layer.samples)), json_number(total == 0 ? 0 : time / total * 100));
  }
  return text + "]\n";
}

}  // namespace hone
