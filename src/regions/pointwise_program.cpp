// SPDX-License-Identifier: Apache-2.0

#include "regions/pointwise_program.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/checked.h"
#include "ir/op.h"
#include "ops/byte_scale.h"
#include "ops/ops.h"
#include "regions/copy_request.h"
#include "regions/region_match.h"

namespace hone {
namespace {

/// Of the types of few bits codes of E4M3 alone.
bool is_operand(DType dtype) { return !is_object(dtype) && (!is_small(dtype) || dtype == DType::f8e4m3fn); }

/// A change of the float type. Values of a program are f32, so that such a Cast costs nothing where the region begins or ends.
bool is_float_cast(const Node& node) {
  const auto is_known = [](const Value* value) {
    const DType dtype = value->type.dtype;
    return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  };
  return node.is(ops::cast) && is_known(node.input(0)) && is_known(node.output());
}

class Builder {
 public:
  explicit Builder(const Problem& problem) : region_(problem.symbolic) {}

  /// Of what reads an operand of this type, which is the program's first.
  Builder(const Graph& region, const Value* operand, DType dtype) : region_(region) {
    result_.program.operands.push_back({false, 0, dtype});
    values_[operand] = call(ExprKind::input, 0);
  }

  ProgramResult run(const std::vector<Node*>& nodes) {
    return run(std::vector<const Node*>(nodes.begin(), nodes.end()));
  }
  ProgramResult run(const std::vector<const Node*>& nodes) {
    for (const Node* node : nodes)
      if (!node->is(ops::symbolic_constant) && !values_.contains(node->output()))
        values_[node->output()] = result_of(*node);
    return std::move(result_);
  }

 private:
  int result_of(const Node& node) {
    if (node.is(ops::cast)) return value(node.input(0));
    if (const std::optional<ByteScale> scale = byte_scale(node))
      return node.is(ops::quantize_linear) ? quantized(node, *scale) : dequantized(node, *scale);
    const Expr formula = node.op->pointwise.bind(node.attrs);
    std::vector<int> made;
    for (const ExprNode& expr : formula.nodes()) made.push_back(translate(node, expr, made));
    return made.back();
  }

  using Instruction = PointwiseProgram::Instruction;

  int emit(Instruction instruction) {
    result_.program.instructions.push_back(instruction);
    return static_cast<int>(result_.program.instructions.size()) - 1;
  }
  int number(double value) { return emit({ExprKind::number, value}); }
  int call(ExprKind kind, int a, int b = -1, int c = -1) { return emit({kind, 0, {a, b, c}}); }

  int translate(const Node& node, const ExprNode& expr, const std::vector<int>& made) {
    if (expr.kind == ExprKind::number) return number(expr.number);
    if (expr.kind == ExprKind::input) return value(node.input(static_cast<size_t>(expr.input)));
    int operands[3] = {-1, -1, -1};
    for (size_t i = 0; i < expr.operands.size(); ++i) operands[i] = made[static_cast<size_t>(expr.operands[i])];
    if (expr.kind == ExprKind::power) return power(operands[0], operands[1]);
    return call(expr.kind, operands[0], operands[1], operands[2]);
  }

  /// Several nodes may dequantise the same bytes.
  int dequantized(const Node& node, const ByteScale& scale) {
    const int bytes = value(node.input(0));
    for (const auto& [known, from, made] : dequantized_)
      if (known == scale && from == bytes) return made;
    const int shifted = scale.zero == 0 ? bytes : call(ExprKind::subtract, bytes, number(scale.zero));
    const int made = call(ExprKind::multiply, shifted, number(scale.scale));
    dequantized_.push_back({scale, bytes, made});
    return made;
  }

  int quantized(const Node& node, const ByteScale& scale) {
    const int quotient = divided(value(node.input(0)), scale.scale);
    int result = call(ExprKind::round_even, quotient);
    if (scale.zero != 0) result = call(ExprKind::add, result, number(scale.zero));
    if (region_.outputs()[0] == node.output()) return result;
    const bool is_signed = scale.bytes == DType::i8;
    const int high = call(ExprKind::minimum, result, number(is_signed ? 127 : 255)),
              bounded = call(ExprKind::maximum, high, number(is_signed ? -128 : 0));
    return call(ExprKind::select, call(ExprKind::is_nan, result), number(0), bounded);
  }

  /// By a power of two a product says the same, and is many times as fast.
  int divided(int x, double divisor) {
    int exponent = 0;
    const bool exact = std::frexp(divisor, &exponent) == 0.5 && std::abs(exponent) < 100;
    return exact ? call(ExprKind::multiply, x, number(1 / divisor)) : call(ExprKind::divide, x, number(divisor));
  }

  int power(int base, int exponent) {
    const Instruction& e = result_.program.instructions[static_cast<size_t>(exponent)];
    if (e.kind == ExprKind::number) {
      if (e.number == 2) return call(ExprKind::multiply, base, base);
      if (e.number == 3) return call(ExprKind::multiply, call(ExprKind::multiply, base, base), base);
      if (e.number == 0.5) return call(ExprKind::sqrt, base);
      if (e.number == -0.5) return call(ExprKind::reciprocal, call(ExprKind::sqrt, base));
      if (e.number == -1) return call(ExprKind::reciprocal, base);
    }
    return call(ExprKind::power, base, exponent);
  }

  /// Large 64-bit integers are not numbers of a formula.
  static bool is_exact(const Tensor& scalar) { return is_float(scalar.dtype()) || std::abs(scalar.real(0)) < 0x1p52; }

  int value(const Value* value) {
    const auto known = values_.find(value);
    if (known != values_.end()) return known->second;
    if (value->is_constant() && value->constant->size() == 1 && is_exact(*value->constant))
      return values_[value] = number(value->constant->real(0));
    const bool shape_data = value->producer != nullptr && value->producer->is(ops::symbolic_constant);
    PointwiseProgram::Operand operand{value->is_constant() || shape_data, 0, value->type.dtype};
    if (shape_data) {
      operand.sizes = *size_texts(value);
      operand.constant_dims = value->type.shape.values();
    } else if (operand.constant) {
      operand.index = static_cast<int>(result_.constants.size());
      operand.constant_dims = value->constant->dims();
      result_.constants.push_back(*value->constant);
    } else {
      operand.index = input_index(region_, value);
    }
    result_.program.operands.push_back(std::move(operand));
    return values_[value] = call(ExprKind::input, static_cast<int>(result_.program.operands.size()) - 1);
  }

  const Graph& region_;
  ProgramResult result_;
  std::map<const Value*, int> values_;
  std::vector<std::tuple<ByteScale, int, int>> dequantized_;  // how, what, and the value
};

/// How many earlier instructions one of this kind reads.
int arity_of(ExprKind kind) {
  if (kind <= ExprKind::input) return 0;
  return kind < ExprKind::add ? 1 : kind < ExprKind::select ? 2 : 3;
}

std::string reason_against(const Problem& problem) {
  const Graph& region = problem.region;
  const std::vector<Node*> nodes = region.nodes();
  const Value* last = nodes.back()->output();
  if (region.outputs().size() != 1 || region.outputs()[0] != last) return "several results";
  for (const Node* node : nodes) {
    if (node->is(ops::cast) && node->output()->type.dtype != DType::f32 && node->output() != last)
      return "a value is rounded on the way";
    const bool is_read = node->is(ops::dequantize_linear) && node->input(0)->producer == nullptr;
    if (!node->is(ops::cast) && !is_read && node->output()->type.shape != last->type.shape)
      return "steps of different shapes";
    for (const Value* value : node->inputs)
      if (value == nullptr ? !byte_scale(*node) : !is_operand(value->type.dtype))
        return "texts, numbers of few bits or missing operands";
  }
  if (last->type.shape.elements() == Dim(0)) return "empty result";
  return {};
}

ProgramResult checked(ProgramResult result) {
  if (result.program.instructions.size() > PointwiseProgram::kMostInstructions ||
      result.program.operands.size() > PointwiseProgram::kMostOperands)
    result.refusal = "too long";
  return result;
}

}  // namespace

const std::vector<std::string_view>& field_names(ExprKind) {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list{"number", "input"};
    for (int kind = static_cast<int>(list.size()); kind <= static_cast<int>(ExprKind::select); ++kind)
      list.push_back(name_of(static_cast<ExprKind>(kind)));
    return list;
  }();
  return names;
}

std::vector<int> PointwiseProgram::last_uses() const {
  std::vector<int> last(instructions.size());
  for (size_t i = 0; i < instructions.size(); ++i) {
    last[i] = static_cast<int>(i);
    if (instructions[i].kind == ExprKind::input) continue;
    for (const int operand : instructions[i].operands)
      if (operand >= 0) last[static_cast<size_t>(operand)] = static_cast<int>(i);
  }
  last.back() = static_cast<int>(instructions.size());
  return last;
}

bool is_pointwise_region(const Graph& region) {
  const std::vector<Node*> nodes = region.nodes();
  return std::all_of(
             nodes.begin(), nodes.end(),
             [](const Node* node) { return node->op->is_pointwise() || is_float_cast(*node) || byte_scale(*node); }) &&
         std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return !node->is(ops::cast); });
}

bool scales_bytes(const Graph& region) {
  const std::vector<Node*> nodes = region.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return byte_scale(*node).has_value(); });
}

ProgramResult make_program(const Problem& problem) {
  if (std::string reason = reason_against(problem); !reason.empty()) return {{}, {}, std::move(reason)};
  return checked(Builder(problem).run(problem.symbolic.nodes()));
}

ProgramResult make_program_behind(const Problem& problem, const Node& first) {
  if (std::string reason = reason_against(problem); !reason.empty()) return {{}, {}, std::move(reason)};
  const Value* operand = first.output();
  return checked(Builder(problem.symbolic, operand, operand->type.dtype).run(problem.symbolic.nodes()));
}

PointwiseProgram formula_of(const std::vector<const Node*>& nodes, const Value* from) {
  const Graph none;
  return Builder(none, from, DType::f32).run(nodes).program;
}

std::vector<ConstantSpec> program_constants(const PointwiseProgram& program) {
  const auto require = [](bool valid) { HONE_CHECK(valid, "a pointwise kernel in the plan is damaged"); };
  require(!program.instructions.empty());
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const PointwiseProgram::Instruction& instruction = program.instructions[i];
    const bool input = instruction.kind == ExprKind::input;
    for (int k = 0; k < 3; ++k) {
      const int operand = instruction.operands[k];
      require(operand < static_cast<int>(input ? program.operands.size() : i));
      require(operand >= 0 || k >= (input ? 1 : arity_of(instruction.kind)));
    }
  }
  std::vector<ConstantSpec> specs;
  for (const PointwiseProgram::Operand& operand : program.operands) {
    require(is_operand(operand.dtype));
    if (!operand.sizes.empty()) {
      require_sizes(operand.constant_dims);
      require(operand.constant && operand.dtype == DType::i64 &&
              elements(operand.constant_dims) == static_cast<int64_t>(operand.sizes.size()));
    } else if (operand.constant) {
      require(operand.index == static_cast<int>(specs.size()));
      specs.push_back({operand.dtype, operand.constant_dims});
    }
  }
  return specs;
}

LoopNest make_nest(const ConcreteType& result, const std::vector<ConcreteType>& operands) {
  const size_t rank = result.dims.size();
  std::vector<size_t> order;  // of the axes in memory
  for (size_t axis = 0; axis < rank; ++axis) order.push_back(axis);
  if (result.layout == Layout::channels_last && rank > 2)
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());

  const Dims result_strides = layout_strides(result.dims, result.layout);
  std::vector<Dims> strides;
  for (const ConcreteType& operand : operands) {
    const Dims own = layout_strides(operand.dims, operand.layout);
    Dims aligned(rank, 0);
    for (size_t i = 0; i < operand.dims.size(); ++i) {
      const size_t axis = rank - operand.dims.size() + i;
      aligned[axis] = operand.dims[i] == 1 ? 0 : own[i];
    }
    strides.push_back(std::move(aligned));
  }

  LoopNest nest;
  nest.strides.resize(operands.size());
  for (const size_t axis : order) {
    const int64_t size = result.dims[axis];
    if (size == 1) continue;
    bool merges = !nest.sizes.empty() && nest.result.back() == size * result_strides[axis];
    for (size_t k = 0; k < operands.size(); ++k) merges = merges && nest.strides[k].back() == size * strides[k][axis];
    if (merges) {
      nest.sizes.back() *= size;
      nest.result.back() = result_strides[axis];
      for (size_t k = 0; k < operands.size(); ++k) nest.strides[k].back() = strides[k][axis];
    } else {
      nest.sizes.push_back(size);
      nest.result.push_back(result_strides[axis]);
      for (size_t k = 0; k < operands.size(); ++k) nest.strides[k].push_back(strides[k][axis]);
    }
  }
  if (nest.sizes.empty()) {
    nest.sizes = {1};
    nest.result = {1};
    for (Dims& operand : nest.strides) operand = {0};
  }
  return nest;
}

std::vector<ConcreteType> operand_types(const PointwiseProgram& program, const KernelShapes& shapes) {
  HONE_CHECK(shapes.outputs.size() == 1, "a pointwise kernel in the plan has {} results", shapes.outputs.size());
  const Dims& result = shapes.outputs[0].dims;
  std::vector<ConcreteType> types;
  for (const PointwiseProgram::Operand& operand : program.operands) {
    HONE_CHECK(operand.constant || operand.index < static_cast<int>(shapes.inputs.size()),
               "a pointwise kernel in the plan reads input {}", operand.index);
    if (operand.constant && operand.sizes.empty())
      types.push_back(constant_operand(shapes, operand.index, operand.dtype, operand.constant_dims));
    else
      types.push_back(operand.constant ? ConcreteType{operand.dtype, operand.constant_dims, Layout::linear}
                                       : shapes.inputs[static_cast<size_t>(operand.index)]);
    const ConcreteType& type = types.back();
    bool valid = type.dtype == operand.dtype && type.dims.size() <= result.size();
    for (size_t i = 1; valid && i <= type.dims.size(); ++i) {
      const int64_t size = type.dims[type.dims.size() - i];
      valid = size == 1 || size == result[result.size() - i];
    }
    HONE_CHECK(valid, "a pointwise kernel in the plan reads {} for {}", join_dims(type.dims), join_dims(result));
  }
  return types;
}

}  // namespace hone
