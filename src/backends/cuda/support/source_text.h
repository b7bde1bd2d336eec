// SPDX-License-Identifier: Apache-2.0
//
// Small pieces that several families build their source text and their launches from.
#pragma once

#include <string>
#include <vector>

#include "device/tactic.h"
#include "regions/layout_offers.h"

namespace hone::cuda {

/// Whether the element type has a name in CUDA C++; and that name.
bool has_type_name(DType dtype);
std::string_view type_name(DType dtype);
/// What stands before every source: the prelude, and E4M3 where the source names it.
std::string types_before(std::string_view source);
/// Whether blocks of the architecture ("sm_90") can share their shared memory: compute capability 9 and newer.
bool has_clusters(const std::string& architecture);
/// Whether it converts to E4M3 and multiplies it: 8.9 and newer.
bool has_float8(const std::string& architecture);
/// f32, f16 or bf16: what the families for floats work on.
bool is_kernel_float(DType dtype);

/// What code is compiled for: the GPU's own architecture first.
std::vector<std::string> architectures_of(const Problem& problem);

/// Elements that make 16 bytes.
inline int64_t vector_width(DType dtype) { return 16 / static_cast<int64_t>(size_of(dtype)); }
/// Bytes that are copied at once of so many in a row.
int64_t unit_of(int64_t bytes);
inline int64_t blocks_of(int64_t items, int64_t block) { return (items + block - 1) / block; }

/// Why a single-node region is not one tensor in, one out, of one float type; empty when it is.
std::string reason_not_float(const Problem& problem, const Node& node);

}  // namespace hone::cuda
