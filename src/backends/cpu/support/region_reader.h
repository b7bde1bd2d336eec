// SPDX-License-Identifier: Apache-2.0
//
// Small readers of single-node regions, shared by the families without an epilogue.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "device/tactic.h"
#include "regions/layout_offers.h"
#include "regions/region_match.h"

namespace hone::cpu {

AlignedBuffer zeroed(size_t bytes);

/// Why a single-node region is not one f32 tensor in, f32 out; empty when it is.
std::string reason_not_f32(const Problem& problem, const Node& node);
/// The same for families that also read and write bf16.
std::string reason_not_f32_or_bf16(const Problem& problem, const Node& node);
/// A plan's kernel with this many inputs at least and f32 throughout; throws Error otherwise.
void check_f32(const KernelShapes& shapes, size_t inputs, std::string_view family);
/// The same with f32 or bf16 throughout.
void check_f32_or_bf16(const KernelShapes& shapes, size_t inputs, std::string_view family);

/// The layout of a kernel that leaves it alone. A tensor of one pixel may be declared in another one that puts its bytes in the
/// same places: then the layout is the other tensor's. Nothing when the two differ.
std::optional<Layout> shared_layout(const ConcreteType& a, const ConcreteType& b);

}  // namespace hone::cpu
