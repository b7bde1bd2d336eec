// SPDX-License-Identifier: Apache-2.0
//
// Weights that list their elements which are not zero (SparseTensorProto): their types, their names, and as ordinary tensors.
#pragma once

#include "edit/values.h"

namespace hone::edit {

/// The element type and the sizes of the whole tensor.
ValueType type_of_sparse(const Value& sparse);
/// The message with another name; that of its values is the weight's.
std::string renamed_sparse(std::string_view message, const std::string& name);
/// With the zeros that it leaves out. Throws Error where places are outside of the sizes.
Tensor dense_of(const Model& model, const Value& sparse);

}  // namespace hone::edit
