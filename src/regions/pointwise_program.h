// SPDX-License-Identifier: Apache-2.0
//
// A fused chain of pointwise nodes as one list of scalar instructions over tensor operands, and the loops that walk it:
// axes that every operand walks evenly are merged, so that most chains come down to one or two loops.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/code.h"
#include "device/device.h"
#include "device/fields.h"
#include "device/tactic.h"
#include "ir/expr.h"

namespace hone {

const std::vector<std::string_view>& field_names(ExprKind);

struct PointwiseProgram {
  static constexpr int kMostInstructions = 256, kMostOperands = 16, kMostPlaces = 256;
  struct Instruction {
    ExprKind kind = ExprKind::number;
    double number = 0;               // number
    int operands[3] = {-1, -1, -1};  // earlier instructions; of an input: the tensor operand
    static void fields(auto& self, auto& visit) {
      visit("kind", self.kind);
      visit("number", self.number);
      visit("a", self.operands[0], -1, kMostInstructions - 1);
      visit("b", self.operands[1], -1, kMostInstructions - 1);
      visit("c", self.operands[2], -1, kMostInstructions - 1);
    }
  };
  /// A tensor that is read: input `index` of the region, constant `index` of the kernel, or i64 numbers that follow from
  /// the input shapes.
  struct Operand {
    bool constant = false;
    int index = 0;
    DType dtype = DType::f32;
    Dims constant_dims = {};
    std::vector<std::string> sizes = {};
    static void fields(auto& self, auto& visit) {
      visit("constant", self.constant);
      visit("index", self.index, 0, kMostPlaces - 1);
      visit("dtype", self.dtype);
      visit("constant_dims", self.constant_dims, 0, kMostSize, kMaxRank);
      visit("sizes", self.sizes);
    }
  };
  std::vector<Instruction> instructions;  // the last one is the result
  std::vector<Operand> operands;          // constants are numbered in order
  static void fields(auto& self, auto& visit) {
    visit("instructions", self.instructions, kMostInstructions);
    visit("operands", self.operands, kMostOperands);
  }

  /// Index of the last instruction that reads each one; itself when none does.
  std::vector<int> last_uses() const;
};

struct ProgramResult {
  PointwiseProgram program;
  std::vector<Tensor> constants;
  std::string refusal;  // why there is no program; empty when there is one
};

/// True when every node is pointwise, or a Cast between float types beside one that is, or brings bytes to f32 or back with one
/// known scale.
bool is_pointwise_region(const Graph& region);
/// Whether bytes are read or written as numbers with a scale. Its program then means f32, rounded after every instruction.
bool scales_bytes(const Graph& region);
/// Splat constants become numbers, equal inputs one operand, simple powers products. A result in bytes is left to saturate as it
/// is stored, NaN as 0.
ProgramResult make_program(const Problem& problem);
/// Of the nodes behind a region's first one, whose result is operand 0.
ProgramResult make_program_behind(const Problem& problem, const Node& first);

/// The last of some pointwise nodes, which read `from`, scalar constants and each other: a program with one operand.
PointwiseProgram formula_of(const std::vector<const Node*>& nodes, const Value* from);

/// The constants that make_program() gave. Throws Error on a program that it does not write.
std::vector<ConstantSpec> program_constants(const PointwiseProgram& program);

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
