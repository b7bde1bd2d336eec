// SPDX-License-Identifier: Apache-2.0
//
// Colours of what layers and nodes are and of what tensors hold: those of NVIDIA's engine explorer, so that pictures of both can be
// read side by side, and of ONNX operators as of the layers that they become.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace hone {

std::string_view colour_of_type(std::string_view type, std::string_view origin = {});
std::string_view colour_of_precision(std::string_view precision);
/// Both tables for a page: {"type": {...}, "precision": {...}, "other": "#808080"}.
nlohmann::ordered_json colours_json();

}  // namespace hone
