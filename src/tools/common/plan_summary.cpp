// SPDX-License-Identifier: Apache-2.0
#include "tools/common/plan_summary.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "report/precision.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

/// How many layers each source runs, the largest share first.
Json sources_of(const Profile& profile) {
  std::map<std::string, int> counts;
  for (const Step& step : profile.steps)
    if (step.code >= 0) ++counts[step.source];
  std::vector<std::pair<std::string, int>> order(counts.begin(), counts.end());
  std::ranges::stable_sort(order, std::ranges::greater{}, &std::pair<std::string, int>::second);
  Json json = Json::object();
  for (const auto& [source, count] : order) json[source] = count;
  return json;
}

Json profile_json(const Profile& profile) {
  Json json{{"layers", std::ranges::count_if(profile.steps, [](const Step& step) { return step.code >= 0; })},
            {"views", std::ranges::count_if(profile.steps, [](const Step& step) { return step.code < 0; })},
            {"precision", precision_text(profile)},
            {"sources", sources_of(profile)},
            {"activationBytes", profile.arena_bytes},
            {"ranges", Json::array()}};
  for (const ProfileRange& range : profile.ranges)
    json["ranges"].push_back({{"input", range.tensor}, {"min", range.min}, {"opt", range.opt}, {"max", range.max}});
  return json;
}

std::string shape_text(const Json& dims) {
  std::vector<std::string> sizes;
  for (const Json& size : dims) sizes.push_back(size.dump());
  return sizes.empty() ? "scalar" : join(sizes, "x");
}

}  // namespace

std::string type_line(const TensorType& type) { return type.text(); }

Json plan_summary(const Plan& plan) {
  Json json{{"model", plan.meta.model},
            {"madeBy", "hone " + plan.meta.hone_version},
            {"backend", plan.meta.backend},
            {"device", plan.meta.device},
            {"architecture", plan.meta.architecture},
            {"allowed", plan.meta.precision},
            {"portable", plan.portable.has_value()},
            {"inputs", Json::array()},
            {"outputs", Json::array()},
            {"profiles", Json::array()}};
  for (const IoTensor& io : plan.io)
    json[io.is_input ? "inputs" : "outputs"].push_back({{"name", io.name}, {"type", type_line(io.type)}});
  for (const Profile& profile : plan.profiles) json["profiles"].push_back(profile_json(profile));
  int64_t weights = 0;
  for (const Tensor& tensor : plan.constants) weights += static_cast<int64_t>(tensor.blob().size());
  json["weightBytes"] = weights;
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
  page.pair("tuned for",
            fmt::format("{}, {}", summary["device"].get<std::string>(), summary["architecture"].get<std::string>()));
}

}  // namespace hone
