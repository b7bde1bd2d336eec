// SPDX-License-Identifier: Apache-2.0
//
// Values of network inputs and outputs: on one line of the log, as JSON, as raw files.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace hone {

/// Host memory of a binding in its own layout.
struct BoundTensor {
  std::string name;
  bool is_input = true;
  DType dtype = DType::f32;
  Dims dims;
  Layout layout = Layout::linear;
  std::span<const std::byte> bytes;
};

/// All elements in row-major order of the logical shape, padding skipped, separated by single blanks.
std::string values_line(const BoundTensor& tensor);
/// The same as numbers.
std::vector<double> values_of(const BoundTensor& tensor);
/// What --exportOutput writes.
std::string outputs_json(std::span<const BoundTensor> outputs);
/// Names of files for tensors, each given out once: letters, digits and "._-," stay, all else becomes '_', and where two
/// would be equal, the later gets a number behind the tensor's name.
class FileNames {
 public:
  std::string take(std::string_view tensor, std::string_view ending);

 private:
  std::set<std::string> taken_;
};
/// How raw files are named: "y.output.4.1000.Float.raw" (release 8.6) or "y.output.4.1000.fp32.raw" (9.1 and later).
enum class RawNames { long_types, short_types };
std::string raw_file_name(const BoundTensor& tensor, RawNames style = RawNames::long_types);
/// The same for several.
std::vector<std::string> raw_file_names(std::span<const BoundTensor> tensors, RawNames style = RawNames::long_types);

}  // namespace hone
