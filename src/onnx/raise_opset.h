// SPDX-License-Identifier: Apache-2.0
//
// A model of an older operator set brought to a newer one, so that it can use operators that only the newer one has.
#pragma once

#include "ir/graph.h"
#include "onnx/model_file.h"

namespace hone::onnx {

/// The operators of the default domain mean afterwards what they meant before. Does nothing where the model has `wanted` already.
/// `graph` is the model as it was imported: ranks are read off it. Throws Error naming a node whose operator changed in a way that
/// is not known here, and for models with bodies or functions, whose nodes are not looked at.
void raise_opset(ModelFile& file, int64_t wanted, const Graph& graph);

}  // namespace hone::onnx
