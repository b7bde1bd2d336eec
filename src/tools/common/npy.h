// SPDX-License-Identifier: Apache-2.0
//
// NumPy's files: one array (.npy), or several in an uncompressed zip archive (.npz, as numpy.savez writes it). Nothing read
// from a file is trusted: every offset and size is checked.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace hone {

/// An array of a file; `bytes` points into what was parsed.
struct NpyArray {
  DType dtype = DType::f32;
  Dims dims;
  std::span<const std::byte> bytes;  // row-major
};

/// Throws Error for what is no .npy file, is cut, is in column-major order, big-endian, or of a type that tensors do not have.
NpyArray parse_npy(std::span<const std::byte> file);
/// The array called `name` in an archive; throws Error naming those that are there.
NpyArray parse_npz(std::span<const std::byte> file, std::string_view name);
/// A .npy file of row-major bytes; types that NumPy lacks are written as raw 16-bit integers ("<u2").
std::string npy_text(DType dtype, const Dims& dims, std::span<const std::byte> bytes);

}  // namespace hone
