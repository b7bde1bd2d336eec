// SPDX-License-Identifier: Apache-2.0
#include "tools/debug/replay.h"

#include <fmt/format.h>

#include "base/file.h"
#include "tensor/json.h"
#include "tools/companion/exit_status.h"

namespace hone {

DebugAnswers read_debug_replay(const std::string& path) {
  need_file(path);
  DebugAnswers answers;
  try {
    const Json replay = parse_json(read_file(path), path);
    if (!replay.is_object()) throw Error("it is no object");
    // "_N3_": iterations are in order.
    for (const auto& [name, entry] : replay.items()) {
      const bool says =
          entry.is_object() && entry.contains("state") && entry["state"].is_object() && entry["state"].contains("what");
      answers.emplace_back(says ? text_member(entry["state"], "what") : "", member(entry, "success").get<bool>());
    }
  } catch (const std::exception& error) {
    throw StatusError(ExitStatus::no_file, fmt::format("{} is no replay of hone debug: {}", path, error.what()),
                      "--save-debug-replay writes one");
  }
  return answers;
}

std::string debug_replay_text(const DebugAnswers& answers) {
  Json json = Json::object();
  for (size_t i = 0; i < answers.size(); ++i)
    json[fmt::format("_N{}_", i)] = {{"state", {{"what", answers[i].first}}},
                                     {"iteration_info", {{"iteration", i}}},
                                     {"success", answers[i].second},
                                     {"polygraphy_class", "IterationContext"}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hone
