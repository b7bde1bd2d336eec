// SPDX-License-Identifier: Apache-2.0
//
// An ONNX model as the rows that a view shows: what inference knows of its tensors, its bodies and functions as graphs of their own.
#pragma once

#include "edit/model.h"
#include "explore/model_view.h"

namespace hone {

ViewedModel view_of(const edit::Model& model, const std::string& title);

}  // namespace hone
