// SPDX-License-Identifier: Apache-2.0
//
// `hone doctor`.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/env.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/version.h"
#include "measured/machine.h"
#include "tools/commands/commands.h"
#include "tools/common/plan_view.h"
#include "tools/common/terminal.h"

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

const FriendlyCommand& command() {
  static const FriendlyCommand kCommand{
      "doctor",
      "",
      "Shows what this program is, what it finds on this machine, and the environment variables that it reads.",
      {{"--limits", "", "", "the limits of what files may hold"}},
      false};
  return kCommand;
}

Json backend_json(const char* kind) {
  Json json{{"name", kind}};
  try {
    const auto device = make<hone_device>(hone_device_create, kind, nullptr);
    const hone_device_info info = info_of(device.get());
    json.update({{"usable", true},
                 {"device", info.name},
                 {"architecture", info.architecture},
                 {"workers", info.workers},
                 {"memoryMiB", info.memory_bytes >> 20},
                 {"cacheKiB", info.cache_bytes >> 10},
                 {"bf16Matmuls", (info.multiplied_types >> HONE_BF16 & 1u) != 0},
                 {"versions", info.libraries}});
  } catch (const Error& error) {
    json.update({{"usable", false}, {"reason", error.message()}, {"hint", error.hint()}});
  }
  return json;
}

/// The folder for `tritonserver --backend-directory`: beside the installed program, or in a build's tree; "" where there is none.
std::string triton_backends() {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path root = fs::read_symlink("/proc/self/exe", none).parent_path().parent_path();
  for (const char* place : {"lib/hone/backends", "lib/backends"})
    if (fs::exists(root / place / "hone/libtriton_hone.so", none)) return (root / place).string();
  return {};
}

Json examine() {
  Json json{{"version", kVersion}, {"backends", Json::array()}, {"environment", Json::object()}};
  for (size_t i = 0; i < hone_device_kinds(); ++i) json["backends"].push_back(backend_json(hone_device_kind(i)));
  for (const EnvVariable& variable : env_table())
    json["environment"][std::string(variable.name)] = env_text(variable.name).value_or("");
  json["tritonBackends"] = triton_backends();
  const MachineState state = read_machine_state();
  json["machine"] = MachineChange{state, state}.text();
  return json;
}

void print(const Json& found) {
  const Page page;
  page.title(fmt::format("hone {}", found["version"].get<std::string>()));
  for (const Json& backend : found["backends"]) {
    const std::string label = "backend " + backend["name"].get<std::string>();
    if (!backend["usable"]) {
      page.pair(label, "not usable: " + backend["reason"].get<std::string>());
      continue;
    }
    page.pair(label, fmt::format("{}, {}, {} workers, {} MiB, {} KiB of cache each",
                                 backend["device"].get<std::string>(), backend["architecture"].get<std::string>(),
                                 backend["workers"].dump(), backend["memoryMiB"].dump(), backend["cacheKiB"].dump()));
    page.pair("", backend["versions"].get<std::string>());
    page.pair("", backend["bf16Matmuls"].get<bool>() ? "multiplies bf16 where --bf16 allows it"
                                                     : "no matmuls of bf16: --bf16 computes in f32");
  }
  if (const std::string backends = found["tritonBackends"]; !backends.empty())
    page.pair("for tritonserver", "--backend-directory=" + backends);
  page.pair("machine", found["machine"].get<std::string>());
  page.title("environment");
  for (const EnvVariable& variable : env_table())
    page.pair(variable.name,
              fmt::format("{} ({}: {})", found["environment"][std::string(variable.name)].get<std::string>(),
                          variable.value_name, variable.help));
  if (const std::string unknown = unknown_env_report(); !unknown.empty()) page.warning(trim(unknown));
}

Json limits_json() {
  Json json = Json::array();
  for (const Limit& limit : limit_table())
    json.push_back({{"name", limit.name}, {"value", limit.value}, {"unit", limit.unit}, {"of", limit.meaning}});
  return json;
}

void print_limits() {
  const Page page;
  page.title("limits of what files may hold");
  for (const Limit& limit : limit_table())
    page.pair(limit.name, fmt::format("{} {} {}", limit.value, limit.unit, limit.meaning));
}

}  // namespace

const FriendlyCommand& describe_doctor() { return command(); }

int run_doctor(Words words) {
  const auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  const bool json = has("--json"), limits = has("--limits");
  if (words.size() != static_cast<size_t>(json) + static_cast<size_t>(limits)) {
    const bool asked = has("--help") || has("-h");
    fmt::print(asked ? stdout : stderr, "{}", friendly_help(command()));
    return asked ? 0 : 1;
  }
  if (limits) {
    if (json) fmt::print("{}\n", limits_json().dump(2));
    else print_limits();
    return 0;
  }
  const Json found = examine();
  if (json) fmt::print("{}\n", found.dump(2, ' ', false, Json::error_handler_t::replace));
  else print(found);
  return 0;
}

}  // namespace hone
