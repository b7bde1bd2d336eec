// SPDX-License-Identifier: Apache-2.0
//
// A page put together of its template, data, style, library and scripts.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "explore/embedded_page.h"

namespace hone {

std::string page_text(std::string_view html, const nlohmann::ordered_json& data,
                      const std::vector<std::string_view>& scripts);

}  // namespace hone
