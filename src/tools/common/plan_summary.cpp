// SPDX-License-Identifier: Apache-2.0
#include "tools/common/plan_summary.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "tools/common/plan_view.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

/// How many layers each source runs, the largest share first.
Json sources_of(const std::vector<PlanLayer>& layers) {
  std::map<std::string, int> counts;
  for (const PlanLayer& layer : layers)
    if (!layer.is_view()) ++counts[layer.known.source];
  std::vector<std::pair<std::string, int>> order(counts.begin(), counts.end());
  std::ranges::stable_sort(order, std::ranges::greater{}, &std::pair<std::string, int>::second);
  Json json = Json::object();
  for (const auto& [source, count] : order) json[source] = count;
  return json;
}

Json profile_json(const PlanProfile& profile, const std::vector<PlanLayer>& layers) {
  const auto views = std::ranges::count_if(layers, &PlanLayer::is_view);
  Json json{{"layers", static_cast<int64_t>(layers.size()) - views},
            {"views", views},
            {"precision", profile.precision},
            {"sources", sources_of(layers)},
            {"activationBytes", profile.memory_bytes},
            {"ranges", Json::array()}};
  for (const InputRange& range : profile.ranges)
    json["ranges"].push_back({{"input", range.input}, {"min", range.min}, {"opt", range.opt}, {"max", range.max}});
  return json;
}

std::string shape_text(const Json& dims) {
  std::vector<std::string> sizes;
  for (const Json& size : dims) sizes.push_back(size.dump());
  return sizes.empty() ? "scalar" : join(sizes, "x");
}

}  // namespace

Json plan_summary(const hone_plan* plan) {
  const hone_plan_info info = info_of(plan);
  Json json{{"model", info.model},
            {"madeBy", fmt::format("hone {}", info.version)},
            {"backend", info.device_kind},
            {"device", info.device},
            {"architecture", info.architecture},
            {"allowed", info.precision},
            {"portable", info.portable != 0},
            {"inputs", Json::array()},
            {"outputs", Json::array()},
            {"profiles", Json::array()}};
  for (const NetworkTensor& io : tensors_of(plan))
    json[io.is_input ? "inputs" : "outputs"].push_back({{"name", io.name}, {"type", io.type}});
  for (const PlanProfile& profile : profiles_of(plan))
    json["profiles"].push_back(profile_json(profile, layers_of(plan, static_cast<int>(json["profiles"].size()))));
  json["weightBytes"] = info.weight_bytes;
  if (const auto found = ask<hone_throughput>(hone_plan_throughput, plan); found.streams != 0)
    json["throughput"] = {{"streams", found.streams},    {"workers", found.workers},
                          {"rows", found.rows},          {"rowsPerSecond", found.rows_per_second},
                          {"medianMs", found.median_ms}, {"p99Ms", found.p99_ms}};
  return json;
}

void print_plan_summary(const Json& summary, const Page& page) {
  constexpr double kMiB = 1 << 20;
  for (const char* direction : {"inputs", "outputs"}) {
    const Json& tensors = summary[direction];
    for (size_t i = 0; i < tensors.size(); ++i)
      page.pair(i == 0 ? direction : "",
                tensors[i]["name"].get<std::string>() + "  " + tensors[i]["type"].get<std::string>());
  }
  for (size_t i = 0; i < summary["profiles"].size(); ++i) {
    const Json& profile = summary["profiles"][i];
    const std::string suffix = summary["profiles"].size() > 1 ? fmt::format(" {}", i) : "";
    for (const Json& range : profile["ranges"])
      page.pair("shapes" + suffix,
                fmt::format("{} from {} to {}, fastest at {}", range["input"].get<std::string>(),
                            shape_text(range["min"]), shape_text(range["max"]), shape_text(range["opt"])));
    std::vector<std::string> sources;
    for (const auto& [source, count] : profile["sources"].items())
      sources.push_back(fmt::format("{} by {}", count.dump(), source));
    page.pair("layers" + suffix,
              fmt::format("{} ({}), {} views", profile["layers"].dump(), join(sources, ", "), profile["views"].dump()));
    page.pair("precision" + suffix, profile["precision"].get<std::string>());
    page.pair("activations" + suffix, fmt::format("{:.1f} MiB", profile["activationBytes"].get<double>() / kMiB));
  }
  page.pair("weights", fmt::format("{:.1f} MiB", summary["weightBytes"].get<double>() / kMiB));
  if (const auto found = summary.find("throughput"); found != summary.end())
    page.pair("streams", fmt::format("{} of {} workers and {} rows gave {:.1f} rows per second, {:.3f} ms at 99 %",
                                     (*found)["streams"].dump(), (*found)["workers"].dump(), (*found)["rows"].dump(),
                                     (*found)["rowsPerSecond"].get<double>(), (*found)["p99Ms"].get<double>()));
  page.pair("tuned for",
            fmt::format("{}, {}", summary["device"].get<std::string>(), summary["architecture"].get<std::string>()));
}

}  // namespace hone
