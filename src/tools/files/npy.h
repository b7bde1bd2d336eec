// SPDX-License-Identifier: Apache-2.0
//
// NumPy's files: one array (.npy), or several in a zip archive (.npz, as numpy.savez and numpy.savez_compressed write it). Nothing
// read from a file is trusted: every offset and size is checked.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/tensor.h"
#include "tools/files/zip.h"

namespace hone {

/// What a .npy file says of its array.
struct NpyHeader {
  DType dtype = DType::f32;
  Dims dims;
  uint64_t start = 0, bytes = 0;  // of the elements in the file, row-major
};

/// An array of a file.
struct NpyArray {
  DType dtype = DType::f32;
  Dims dims;
  std::span<const std::byte> bytes;  // row-major; in what was parsed, or in `memory`
  Blob memory = {};
};

/// An array that is read piece by piece.
class NpyReader {
 public:
  /// Of a .npy file. Throws Error for what is no such file, is cut, is in column-major order, big-endian, or of a type that tensors do
  /// not have.
  explicit NpyReader(std::span<const std::byte> file);
  /// The array called `name` in an archive; throws Error naming those that are there, too.
  NpyReader(std::span<const std::byte> archive, std::string_view name);

  const NpyHeader& header() const { return header_; }
  /// Elements' bytes from `at` on. Cheap where they follow those that were read last.
  void read(uint64_t at, std::span<std::byte> to);
  /// Throws Error when the array's checksum does not fit.
  void finish();

 private:
  void read_file(uint64_t at, std::span<std::byte> to);

  std::span<const std::byte> file_;
  std::optional<ZipStream> entry_;  // instead of a file
  NpyHeader header_;
};

/// The errors are those of NpyReader.
NpyArray parse_npy(std::span<const std::byte> file);
NpyArray parse_npz(std::span<const std::byte> file, std::string_view name);
/// A .npy file of row-major bytes; types that NumPy lacks are written as raw 16-bit integers ("<u2").
std::string npy_text(DType dtype, const Dims& dims, std::span<const std::byte> bytes);

}  // namespace hone
