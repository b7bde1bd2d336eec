// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/tactics.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "tools/common/plan_view.h"
#include "tools/companion/exit_status.h"

namespace hone {
namespace {

std::string text_of(const Json& json) { return json.is_string() ? json.get<std::string>() : json.dump(); }

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> texts;
  if (list.is_array())
    for (const Json& each : list) texts.push_back(text_of(each));
  return texts;
}

Json read(const std::string& path) {
  need_file(path);
  try {
    Json json = parse_json(read_file(path), path);
    if (!member(json, "replay").is_object()) throw Error("'replay' is no object");
    return json;
  } catch (const Error& error) {
    throw StatusError(ExitStatus::no_file, fmt::format("{} is no tactic replay: {}", path, error.message()),
                      "hone run or hone debug build write one with --save-tactics");
  }
}

}  // namespace

std::string LayerTactic::text() const {
  return fmt::format("(Implementation: {}, Tactic: {}) | Inputs: ({}) | Outputs: ({})", implementation, tactic,
                     join(inputs, ", "), join(outputs, ", "));
}

TacticReplay replay_of(const hone_plan* plan) {
  TacticReplay replay;
  for (size_t i = 0; i < hone_plan_layers(plan, 0); ++i) {
    const auto layer = ask<hone_layer>(hone_plan_layer, plan, 0, i);
    if (layer.is_view != 0) continue;
    LayerTactic tactic{layer.source, fmt::format("{} {}", layer.tactic, layer.parameters), {}, {}};
    for (size_t k = 0; k < layer.inputs + layer.outputs; ++k) {
      const auto tensor = ask<hone_tensor>(hone_plan_layer_tensor, plan, 0, i, k);
      const auto type = name_of(static_cast<DType>(tensor.dtype));
      (k < layer.inputs ? tactic.inputs : tactic.outputs).emplace_back(type);
    }
    replay[layer.name] = std::move(tactic);
  }
  return replay;
}

std::string tactics_json(const hone_plan* plan, hone_timing_cache* cache) {
  Json layers = Json::object();
  for (const auto& [layer, tactic] : replay_of(plan))
    layers[layer] = {{"implementation", tactic.implementation},
                     {"tactic", tactic.tactic},
                     {"inputs", tactic.inputs},
                     {"outputs", tactic.outputs}};
  Json json{{"replay", layers}};
  if (cache != nullptr) {
    const void* bytes = nullptr;
    size_t size = 0;
    check(hone_timing_cache_bytes(cache, &bytes, &size));
    json["times"] = std::string(static_cast<const char*>(bytes), size);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Owned<hone_timing_cache> replay_times(const std::string& path) {
  const Json json = read(path);
  if (!json.contains("times"))
    throw StatusError(ExitStatus::no_file, fmt::format("{} names tactics and holds no times to choose them by", path),
                      "a replay that hone wrote can be followed; those of other builders can be inspected alone");
  const std::string text = text_member(json, "times");
  return make<hone_timing_cache>(hone_timing_cache_create, static_cast<const void*>(text.data()), text.size());
}

TacticReplay read_replay(const std::string& path) {
  const Json json = read(path);
  TacticReplay replay;
  for (const auto& [layer, entry] : json["replay"].items()) {
    if (!entry.is_object()) continue;
    const auto text = [&entry = entry](const char* name) {
      return entry.contains(name) ? text_of(entry[name]) : std::string("?");
    };
    const auto list = [&entry = entry](const char* name) {
      return entry.contains(name) ? texts_of(entry[name]) : std::vector<std::string>();
    };
    replay[layer] = {text("implementation"), text("tactic"), list("inputs"), list("outputs")};
  }
  return replay;
}

}  // namespace hone
