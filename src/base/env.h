// SPDX-License-Identifier: Apache-2.0
//
// Every environment variable that Hone reads stands in one table: name, meaning, default.
// Values count, not presence ("0", "off" and "" mean off). Nothing in the environment changes results or plans.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hone {

struct EnvVariable {
  std::string_view name, value_name, help;
};

std::span<const EnvVariable> env_table();
/// The variable's text, or nothing when unset or empty. `name` must stand in the table.
std::optional<std::string> env_text(std::string_view name);
bool env_flag(std::string_view name);
std::optional<int> env_int(std::string_view name);
/// One message per HONE_* variable that is set but not in the table (with the nearest name).
std::string unknown_env_report();

}  // namespace hone
