// SPDX-License-Identifier: Apache-2.0
//
// What the machine can still give, asked before much is taken. Linux grants memory that it does not have and ends the process that
// writes there; models and programs may state any size, and get an Error instead.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hone {

/// Bytes that are free or that the kernel can free, swap included, within what the cgroup (version 2) still grants. The largest number
/// where nothing tells. `root`: the machine's files lie there, for tests.
int64_t free_memory(const std::string& root = {});

/// Throws OutOfMemory where a tensor, or a table beside it with so many bytes an element, takes more. What is small passes unasked:
/// reading the kernel's figures takes as long as writing a megabyte.
void require_memory(DType dtype, std::span<const int64_t> dims, size_t bytes_each);
inline void require_memory(DType dtype, std::span<const int64_t> dims) { require_memory(dtype, dims, size_of(dtype)); }
/// The same for memory that is no tensor, called `what`.
void require_memory(std::string_view what, size_t bytes);

}  // namespace hone
