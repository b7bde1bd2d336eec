// SPDX-License-Identifier: Apache-2.0
//
// A program of scalars as source text. Before it stands formula.cuh, and before that S, the type that scalars are computed in.
#pragma once

#include <string>
#include <string_view>

#include "regions/pointwise_program.h"

namespace hone::cuda {

/// The program as statements: operand k is o<k>, instruction i is v<i>. `type` is S: "float", "double" or "i64".
std::string statements(const PointwiseProgram& program, std::string_view type);

}  // namespace hone::cuda
