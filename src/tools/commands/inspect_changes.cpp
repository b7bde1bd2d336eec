// SPDX-License-Identifier: Apache-2.0
//
// `hone inspect changes`: what a rebuild changed: layers whose tactic is another one, with the times that the tuner took, and layers
// that only one of two plans has.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/commands/commands.h"
#include "tools/common/friendly.h"
#include "tools/common/plan_view.h"
#include "tools/common/terminal.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "inspect changes",
      "NEW.plan",
      "Shows which layers of two plans of a model differ: in their tactic, or because one of the plans lacks them.",
      {{"--from", "<plan>", "", "the plan that NEW.plan is held against"}}};
  return kCommand;
}

struct LayerTactic {
  std::string tactic;
  double ms = 0;
};

/// By layer, views apart. Of layers with one name the last.
std::map<std::string, LayerTactic> tactics_of(const std::string& path) {
  const auto plan = make<hone_plan>(hone_plan_create_from_file, path.c_str());
  std::map<std::string, LayerTactic> tactics;
  for (const PlanLayer& layer : layers_of(plan.get(), 0))
    if (!layer.is_view())
      tactics[layer.known.name] = {
          fmt::format("{}.{}({})", layer.known.source, layer.known.tactic, layer.parameters().print()),
          layer.known.tuned_ms};
  return tactics;
}

double total_of(const std::map<std::string, LayerTactic>& tactics) {
  double ms = 0;
  for (const auto& [layer, tactic] : tactics) ms += tactic.ms;
  return ms;
}

Json changes_between(const std::map<std::string, LayerTactic>& old, const std::map<std::string, LayerTactic>& now) {
  Json rows = Json::array();
  const auto add = [&](const std::string& layer, const LayerTactic* before, const LayerTactic* after) {
    Json row{{"layer", layer}};
    if (before != nullptr) row["old"] = {{"tactic", before->tactic}, {"tunedMs", before->ms}};
    if (after != nullptr) row["new"] = {{"tactic", after->tactic}, {"tunedMs", after->ms}};
    rows.push_back(std::move(row));
  };
  for (const auto& [layer, before] : old) {
    const auto after = now.find(layer);
    if (after == now.end()) add(layer, &before, nullptr);
    else if (after->second.tactic != before.tactic) add(layer, &before, &after->second);
  }
  for (const auto& [layer, after] : now)
    if (!old.contains(layer)) add(layer, nullptr, &after);
  return rows;
}

std::string text_of(const Json& row, const char* side) {
  if (!row.contains(side)) return "-";
  return fmt::format("{} {:.4f} ms", row[side]["tactic"].get<std::string>(), row[side]["tunedMs"].get<double>());
}

void print(const Json& summary) {
  const Page page;
  page.title(fmt::format("{} -> {}", summary["from"].get<std::string>(), summary["plan"].get<std::string>()));
  for (const Json& row : summary["changes"]) {
    page.line("  " + row["layer"].get<std::string>());
    page.line(fmt::format("    {} -> {}", text_of(row, "old"), text_of(row, "new")));
  }
  page.pair("changed", fmt::format("{} of {} layers", summary["changes"].size(), summary["layers"].get<size_t>()));
  page.pair("tuned time", fmt::format("{:.4f} and {:.4f} ms, all layers together", summary["oldMs"].get<double>(),
                                      summary["newMs"].get<double>()));
}

int changes(const FriendlyLine& line) {
  if (line.options.tool.load_engine.empty() || !line.has("--from"))
    throw Error("hone inspect changes takes two plans", "hone inspect changes NEW.plan --from OLD.plan");
  const auto old = tactics_of(line.value("--from")), now = tactics_of(line.options.tool.load_engine);
  const Json summary{{"plan", line.file},      {"from", line.value("--from")}, {"layers", now.size()},
                     {"oldMs", total_of(old)}, {"newMs", total_of(now)},       {"changes", changes_between(old, now)}};
  if (line.json) fmt::print("{}\n", summary.dump(2, ' ', false, Json::error_handler_t::replace));
  else print(summary);
  return 0;
}

}  // namespace

const FriendlyCommand& describe_inspect_changes() { return command(); }

int run_inspect_changes(Words words) { return run_friendly(command(), words, {}, changes); }

}  // namespace hone
