// SPDX-License-Identifier: Apache-2.0
//
// A fused chain of pointwise nodes as one list of scalar instructions over tensor operands, and the loops that walk it:
// axes that every operand walks evenly are merged, so that most chains come down to one or two loops.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/tactic.h"
#include "ir/expr.h"

namespace hone {

struct PointwiseProgram {
  struct Instruction {
    ExprKind kind;
    double number = 0;               // number
    int operands[3] = {-1, -1, -1};  // earlier instructions; of an input: the tensor operand
  };
  /// A tensor that is read: input `index` of the region, constant `index` of the kernel, or i64 numbers that follow from
  /// the input shapes.
  struct Operand {
    bool constant = false;
    int index = 0;
    DType dtype = DType::f32;
    Dims constant_dims = {};
    std::vector<std::string> sizes = {};
  };
  std::vector<Instruction> instructions;  // the last one is the result
  std::vector<Operand> operands;

  /// Index of the last instruction that reads each one; itself when none does.
  std::vector<int> last_uses() const;
};

struct ProgramResult {
  PointwiseProgram program;
  std::vector<Tensor> constants;
  std::string refusal;  // why there is no program; empty when there is one
};

/// True when every node is pointwise, or a Cast between float types beside one that is.
bool is_pointwise_region(const Graph& region);
/// Splat constants become numbers, equal inputs one operand, simple powers products.
ProgramResult make_program(const Problem& problem);

void write_program(Attrs& attrs, const PointwiseProgram& program);
/// Throws Error on a list that make_program() does not write.
PointwiseProgram read_program(const Attrs& attrs);

/// Loops over the result in its memory order, outermost first; strides in elements.
struct LoopNest {
  Dims sizes;                 // at least one
  std::vector<Dims> strides;  // [operand][loop]
  Dims result;                // strides of the result
};
LoopNest make_nest(const ConcreteType& result, const std::vector<ConcreteType>& operands);

/// The concrete types of the program's operands; throws Error when one does not exist or does not broadcast.
std::vector<ConcreteType> operand_types(const PointwiseProgram& program, const KernelShapes& shapes);

}  // namespace hone
