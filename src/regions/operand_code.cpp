// SPDX-License-Identifier: Apache-2.0

#include "regions/operand_code.h"

#include "base/checked.h"
#include "regions/region_match.h"

namespace hone {

OperandCode operand_code(const Graph& region, const Value* value, std::vector<Tensor>& constants) {
  if (!value->is_constant()) return {input_index(region, value), {}};
  constants.push_back(*value->constant);
  return {-static_cast<int64_t>(constants.size()), value->constant->dims()};
}

ConcreteType operand_type(const OperandCode& operand, const KernelShapes& shapes, DType dtype) {
  if (operand.is_constant()) {
    require_sizes(operand.dims);
    return {dtype, operand.dims, Layout::linear};
  }
  HONE_CHECK(operand.place < static_cast<int64_t>(shapes.inputs.size()), "a kernel in the plan reads input {} of {}",
             operand.place, shapes.inputs.size());
  return shapes.inputs[static_cast<size_t>(operand.place)];
}

std::vector<ConstantSpec> operand_constants(const std::vector<OperandCode>& operands, DType dtype) {
  std::vector<ConstantSpec> specs;
  for (const OperandCode& operand : operands) {
    if (!operand.is_constant()) continue;
    HONE_CHECK(operand.place == -1 - static_cast<int64_t>(specs.size()),
               "a kernel in the plan reads constant {} as its constant {}", -1 - operand.place, specs.size());
    specs.push_back({dtype, operand.dims});
  }
  return specs;
}

}  // namespace hone
