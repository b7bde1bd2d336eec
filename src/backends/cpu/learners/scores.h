// SPDX-License-Identifier: Apache-2.0
//
// What kernels of learners share: rows of features, and what becomes of a row's scores at the end.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "backends/cpu/support/node_code.h"

namespace hone::cpu {

enum class Transform : uint8_t { none, softmax, logistic, softmax_zero, probit };
constexpr std::array<std::string_view, 5> field_names(Transform) {
  return {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
}

/// By the standard's names.
template <typename E>
std::optional<E> named(std::string_view name) {
  const auto names = field_names(E{});
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<E>(at - names.begin());
}

template <typename E>
std::string name_in_standard(E value) {
  return std::string(field_names(E{})[static_cast<size_t>(value)]);
}

/// Operand 0 as [count, width] in f32.
struct Rows {
  NodeOperand x;
  int64_t count = 1, width = 1;

  explicit Rows(const BoundNode& node) : x(node.operand(0)) {
    const Dims& dims = x.type.dims;
    node.require((dims.size() == 1 || dims.size() == 2) && x.type.dtype == DType::f32 && x.place >= 0 && !x.known);
    count = dims.size() == 1 ? 1 : dims[0], width = dims.back();
  }
  const float* at(int64_t row, const Bindings& bindings) const { return x.as<float>(bindings) + row * width; }
};

/// The winners' labels, result 0, where somebody reads them.
inline std::optional<NodeResult> labels_of(const BoundNode& node, int64_t rows) {
  if (!node.wants(0)) return std::nullopt;
  node.require(node.result(0).type == ConcreteType{DType::i64, {rows}});
  return node.result(0);
}

}  // namespace hone::cpu
