// SPDX-License-Identifier: Apache-2.0
//
// Constant folding: nodes whose results follow from the model alone become weights. The operators' reference code computes them; shapes
// that follow from those of the inputs count as known.
#pragma once

#include <functional>

#include "edit/infer.h"

namespace hone::edit {

struct FoldRules {
  bool shapes = true;                         // Shape and what follows from it
  std::optional<int64_t> most_bytes;          // results that are larger stay as they are
  std::function<bool(const Node&)> excludes;  // nodes that stay; without it QuantizeLinear and DequantizeLinear
};

struct FoldPass {
  size_t nodes_before = 0, folded = 0;
};

/// One pass. Results of the graph keep their nodes.
FoldPass fold_constants(Model& model, const FoldRules& rules);
/// Constant nodes become weights, in bodies, too. The number of nodes.
size_t constants_to_weights(Model& model);

}  // namespace hone::edit
