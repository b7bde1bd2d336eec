// SPDX-License-Identifier: Apache-2.0
//
// Operands that may be inputs of a region or its constants, in a kernel's code.
#pragma once

#include <vector>

#include "device/code.h"
#include "device/fields.h"
#include "ir/graph.h"
#include "regions/epilogue.h"

namespace hone {

/// The constants of a kernel are numbered in the order of its operands.
struct OperandCode {
  int64_t place = 0;          // an input of the region, or constant -1 - place
  std::vector<int64_t> dims;  // of a constant
  static void fields(auto& self, auto& visit) {
    visit("place", self.place, -kMostOperands, kMostOperands - 1);
    visit("dims", self.dims, 0, kMostSize, kMaxRank);
  }
  bool is_constant() const { return place < 0; }
  const void* find(const Bindings& bindings) const {
    return is_constant() ? bindings.constants[static_cast<size_t>(-1 - place)]
                         : bindings.inputs[static_cast<size_t>(place)];
  }
};

/// Tensors of constants are appended.
OperandCode operand_code(const Graph& region, const Value* value, std::vector<Tensor>& constants);
/// Throws Error where the step has no such input. Constants are of type `dtype`.
ConcreteType operand_type(const OperandCode& operand, const KernelShapes& shapes, DType dtype = DType::f32);
/// What a plan has to bring for these operands. Throws Error where constants are not numbered in their order.
std::vector<ConstantSpec> operand_constants(const std::vector<OperandCode>& operands, DType dtype = DType::f32);

}  // namespace hone
