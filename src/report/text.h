// SPDX-License-Identifier: Apache-2.0
//
// Spelling of names and numbers in reports: the original's type words, six-digit numbers, strictly valid JSON.
#pragma once

#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace hone {

/// "Float", "Half", "Int32", … as release 8.6 spells element types.
std::string_view type_word(DType dtype);
/// "fp32", "fp16", "int32", … as releases from 9.1 on name raw files.
std::string_view short_type_word(DType dtype);
/// Six significant digits, as a C++ stream prints.
std::string general(double value);
/// A JSON string with its quotes; invalid UTF-8 is replaced.
std::string json_text(std::string_view text);
/// A JSON number that reads back as the same float or double; null when it is not finite.
std::string json_number(float value);
std::string json_number(double value);

}  // namespace hone
