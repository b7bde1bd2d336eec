// SPDX-License-Identifier: Apache-2.0
//
// --tap: the layers of an engine as it runs, fused as they are, against exact values. The reference goes along node by node and keeps a
// tensor only until the engine has computed it. With --isolate each layer starts from exact operands, so that what is seen is its own
// error and not what came in.
#pragma once

#include "tools/companion/narrator.h"
#include "tools/compare/model_face.h"

namespace hone {

ExitStatus compare_taps(const Arguments& arguments, const ModelFace& face, const TensorList& inputs,
                        const Narrator& narrator);

}  // namespace hone
