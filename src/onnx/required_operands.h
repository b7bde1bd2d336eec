// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace hone::onnx {

/// Bit i: operand i must be given. 0 for operators that are not known.
uint32_t required_operands(std::string_view domain, std::string_view op, int opset);

}  // namespace hone::onnx
