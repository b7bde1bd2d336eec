// SPDX-License-Identifier: Apache-2.0
//
// From engines that compute in one type each to a type for each part of the network.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hone {

struct LayerTime {
  std::vector<std::string> nodes;  // of the model
  double ms = 0;
};
/// An engine, run layer by layer.
struct EngineTimes {
  std::string type;  // as BuildOptions::layer_types has it
  std::vector<LayerTime> layers;
};

/// What BuildOptions::layer_types takes: the type of engine `base` for everything, and another for those parts of the network
/// that take clearly less time in an engine of that type. Parts are as small as no layer of any engine belongs to two. Empty
/// where there is no such part.
std::vector<std::pair<std::string, std::string>> mixed_types(std::span<const EngineTimes> engines, size_t base);

}  // namespace hone
