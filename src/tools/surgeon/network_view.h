// SPDX-License-Identifier: Apache-2.0
//
// The network that an engine is built of, in ONNX's form: for viewers and for eyes. Its nodes are Hone's operators, which no ONNX runtime
// has; large constants are known by type and sizes alone.
#pragma once

#include "edit/model.h"
#include "ir/graph.h"

namespace hone {

edit::Model network_view(const Graph& graph);

}  // namespace hone
