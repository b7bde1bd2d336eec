// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/support/region_reader.h"

#include <algorithm>

namespace hone::cpu {
namespace {

void check_all(const KernelShapes& shapes, size_t inputs, DType dtype, std::string_view family) {
  HONE_CHECK(shapes.inputs.size() >= inputs && shapes.outputs.size() == 1, "a {} kernel in the plan has {} inputs",
             family, shapes.inputs.size());
  for (const auto* list : {&shapes.inputs, &shapes.outputs})
    for (const ConcreteType& type : *list) {
      const bool plain = type.dtype == dtype && (type.layout == Layout::linear || type.layout == Layout::channels_last);
      HONE_CHECK(plain, "a {} kernel in the plan has operands of type {}", family, name_of(type.dtype));
    }
}

}  // namespace

AlignedBuffer zeroed(size_t bytes) {
  AlignedBuffer buffer(bytes);
  std::memset(buffer.data(), 0, bytes);
  return buffer;
}

std::string reason_not_f32(const Problem& problem, const Node& node) {
  if (node.input(0)->type.dtype != DType::f32)
    return fmt::format("input is {}, not f32", name_of(node.input(0)->type.dtype));
  return reason_not_unary(problem, node);
}

std::string reason_not_f32_or_bf16(const Problem& problem, const Node& node) {
  const DType dtype = node.input(0)->type.dtype;
  if (dtype != DType::f32 && dtype != DType::bf16) return fmt::format("input is {}, not f32 or bf16", name_of(dtype));
  return reason_not_unary(problem, node);
}

void check_f32(const KernelShapes& shapes, size_t inputs, std::string_view family) {
  check_all(shapes, inputs, DType::f32, family);
}

void check_f32_or_bf16(const KernelShapes& shapes, size_t inputs, std::string_view family) {
  const bool bf16 = !shapes.inputs.empty() && shapes.inputs[0].dtype == DType::bf16;
  check_all(shapes, inputs, bf16 ? DType::bf16 : DType::f32, family);
}

std::optional<Layout> shared_layout(const ConcreteType& a, const ConcreteType& b) {
  if (same_bytes(b.dims, a.layout, b.layout)) return a.layout;
  if (same_bytes(a.dims, a.layout, b.layout)) return b.layout;
  return std::nullopt;
}

}  // namespace hone::cpu
