// SPDX-License-Identifier: Apache-2.0

#include "builder/layer_types.h"

#include <algorithm>

namespace hone {

bool kept_in_f32(const BuildOptions& options, const Node& node) {
  bool named = false, everything = false;
  for (const auto& [layer, type] : options.layer_types) {
    if (layer == "*") everything = type == "fp32";
    if (std::find(node.origin.begin(), node.origin.end(), layer) == node.origin.end()) continue;
    if (type == "fp32") return true;
    named = true;
  }
  return everything && !named;
}

}  // namespace hone
