// SPDX-License-Identifier: Apache-2.0
//
// ONNX operators that models compute in FP16 and BF16.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hone {

struct FewBitsOperator {
  /// The operator set from which its tensors may be bfloat16; nothing: they may not. FP16 all of them had from the beginning.
  std::optional<int> bf16_since;
  /// Operands from here on stay as they are.
  size_t operands = 0xffff;
  /// Its results are booleans or integers.
  bool answers = false;
};

/// Nothing for operators that stay in FP32: those without such a form, and those that few bits rob of their meaning (positions, sums over
/// whole axes, random numbers, the choice of boxes).
std::optional<FewBitsOperator> few_bits_operator(std::string_view op_type);

/// From this operator set on all of them that bfloat16 has at all may be bfloat16.
inline constexpr int kBf16Opset = 22;

}  // namespace hone
