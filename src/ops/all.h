// SPDX-License-Identifier: Apache-2.0
//
// The registry: every operator there is, and one by its IR name.
#pragma once

#include <span>
#include <string_view>

#include "ir/op.h"

namespace hone {

std::span<const OpDef* const> all_ops();
/// Null when there is no operator of this name.
const OpDef* find_op(std::string_view name);
/// The same, of those that a program brought as well; the list has to outlive it.
OpLookup find_among(const OperatorList& brought);

}  // namespace hone
