// SPDX-License-Identifier: Apache-2.0
//
// A model's file written again, with the outputs that were marked; its weights into or out of a file beside it.
#pragma once

#include "tools/companion/arguments.h"
#include "tools/compare/model_face.h"

namespace hone {

/// As --save-external-data and --external-data-size-threshold say. References to other files stay right in another folder.
void save_face(const Arguments& arguments, const ModelFace& face, const std::string& path);

}  // namespace hone
