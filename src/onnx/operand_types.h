// SPDX-License-Identifier: Apache-2.0
//
// Which element types ONNX's definitions of operators allow where. Hone runs what it has a meaning for; ONNX's checker and other runtimes
// refuse what is told here.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace hone::onnx {

struct TypeFault {
  std::string text, hint;
};

/// Of an operator of the default domain; types that are not known are nothing. Nothing where all is well.
std::optional<TypeFault> operand_type_fault(std::string_view op, int opset,
                                            std::span<const std::optional<DType>> operands);

}  // namespace hone::onnx
