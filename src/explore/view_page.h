// SPDX-License-Identifier: Apache-2.0
//
// A model, an engine, or both beside each other as one HTML file that needs nothing else.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "explore/model_view.h"

namespace hone {

nlohmann::ordered_json view_json(std::span<const ViewedModel> views, ViewColour colour);
std::string view_page(std::span<const ViewedModel> views, ViewColour colour);

}  // namespace hone
