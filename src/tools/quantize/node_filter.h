// SPDX-License-Identifier: Apache-2.0
//
// Which nodes the flags of `hone quantize` leave in floating point.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/log.h"
#include "ir/graph.h"
#include "onnx/importer.h"
#include "tools/common/friendly.h"

namespace hone {

/// Asked of a node by its names in the model (a rewrite may have made one of several) and its operator.
using KeepsFloats = std::function<bool(std::span<const std::string> names, std::string_view op_type)>;

/// --include-ops, --exclude-ops, --include-nodes and --exclude-nodes. Throws Error for operators that nothing of the model is; names that
/// fit no node are warned of.
KeepsFloats kept_nodes(const FriendlyLine& line, const ImportedModel& model, const Logger& log);

bool keeps_floats(const KeepsFloats& keeps, const Node& node);

}  // namespace hone
