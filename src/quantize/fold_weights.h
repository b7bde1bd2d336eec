// SPDX-License-Identifier: Apache-2.0
//
// Weights that a model reshapes or transposes before a product reads them.
#pragma once

#include "ir/graph.h"

namespace hone {

/// They become constants, under the name that the product reads them by.
void fold_weights(Graph& graph);

}  // namespace hone
