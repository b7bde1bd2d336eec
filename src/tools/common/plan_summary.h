// SPDX-License-Identifier: Apache-2.0
//
// What a plan is, as the plain-word tools tell it: on half a screen, or as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/common/api.h"
#include "tools/common/terminal.h"

namespace hone {

nlohmann::ordered_json plan_summary(const hone_plan* plan);
void print_plan_summary(const nlohmann::ordered_json& summary, const Page& page);

}  // namespace hone
