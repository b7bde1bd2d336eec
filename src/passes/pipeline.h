// SPDX-License-Identifier: Apache-2.0
//
// The list of passes that a build runs; see pipeline.cpp for the order and its reasons.
#pragma once

#include <span>
#include <string_view>

#include "passes/pass.h"

namespace hone {

std::span<const Pass> pipeline();
/// Any pass of the pipeline by name, groups included; null when there is none.
const Pass* find_pass(std::string_view name);

}  // namespace hone
