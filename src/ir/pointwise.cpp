// SPDX-License-Identifier: Apache-2.0
//
// What all pointwise operators share: numpy broadcasting of shapes, evaluation of the formula element by element, and the
// propagation of integer contents that carry shapes.
#include <algorithm>

#include "base/limits.h"
#include "base/node_error.h"
#include "base/numbers.h"
#include "ir/op.h"

namespace hone {
namespace {

Dim broadcast_dim(const Dim& a, const Dim& b) {
  if (a == b) return a;
  if (a == Dim(1)) return b;
  if (b == Dim(1)) return a;
  HONE_CHECK(!(a.is_constant() && b.is_constant()), "sizes {} and {} do not broadcast", a.text(), b.text());
  if (a.is_constant()) return a;  // a symbol against 5 must be 5 (or 1)
  return b.is_constant() ? b : maximum(a, b);
}

using MaybeDim = std::optional<Dim>;

/// Equality of expressions where it is certain. A size is never negative, so it differs from -1, the exporters' marker.
MaybeDim equality(const Dim& a, const Dim& b, bool wanted) {
  const Dim difference = a - b;
  if (difference.is_constant()) return Dim((difference.value() == 0) == wanted ? 1 : 0);
  const auto negative = [](const Dim& d) { return d.is_constant() && d.value() < 0; };
  if (negative(a) || negative(b)) return Dim(wanted ? 0 : 1);
  return std::nullopt;
}

MaybeDim apply_numbers(const ExprNode& node, std::span<const MaybeDim> operands) {
  std::vector<ExprNode> lone;
  std::vector<int64_t> numbers;
  ExprNode last{.kind = node.kind, .number = 0, .input = 0, .attribute = {}, .operands = {}};
  for (size_t i = 0; i < operands.size(); ++i) {
    lone.push_back(
        {.kind = ExprKind::input, .number = 0, .input = static_cast<int>(i), .attribute = {}, .operands = {}});
    numbers.push_back(operands[i]->value());
    last.operands.push_back(static_cast<int>(i));
  }
  lone.push_back(std::move(last));
  return Dim(evaluate_integer(Expr(std::move(lone)), numbers));
}

/// One formula node on expressions; nothing when the result is not an exact expression.
MaybeDim apply_dims(const ExprNode& node, std::span<const MaybeDim> operands) {
  if (node.kind == ExprKind::select) {
    if (operands[0] && operands[0]->is_constant()) return operands[0]->value() != 0 ? operands[1] : operands[2];
    return operands[1] && operands[2] && *operands[1] == *operands[2] ? operands[1] : std::nullopt;
  }
  bool all_numbers = true;
  for (const MaybeDim& operand : operands) {
    if (!operand) return std::nullopt;
    all_numbers &= operand->is_constant();
  }
  if (all_numbers) return apply_numbers(node, operands);
  const Dim& a = *operands[0];
  const Dim b = operands.size() > 1 ? *operands[1] : Dim();
  const auto decide = [](const Dim& difference, auto test) {
    return difference.is_constant() ? MaybeDim(Dim(test(difference.value()) ? 1 : 0)) : std::nullopt;
  };
  switch (node.kind) {
    case ExprKind::negate: return Dim(0) - a;
    case ExprKind::floor:
    case ExprKind::ceil:
    case ExprKind::round_even: return a;
    case ExprKind::add: return a + b;
    case ExprKind::subtract: return a - b;
    case ExprKind::multiply: return a * b;
    case ExprKind::divide: return b == Dim(0) ? std::nullopt : MaybeDim(floor_divide(a, b));
    case ExprKind::modulo_floor:
    case ExprKind::modulo_trunc: return b == Dim(0) ? std::nullopt : MaybeDim(modulo(a, b));
    case ExprKind::minimum: return minimum(a, b);
    case ExprKind::maximum: return maximum(a, b);
    case ExprKind::less: return decide(a - b, [](int64_t d) { return d < 0; });
    case ExprKind::less_equal: return decide(a - b, [](int64_t d) { return d <= 0; });
    case ExprKind::equal: return equality(a, b, true);
    case ExprKind::not_equal: return equality(a, b, false);
    default: return std::nullopt;
  }
}

MaybeDim evaluate_dims(const Expr& expr, std::span<const Dim> inputs) {
  std::vector<MaybeDim> values;
  for (const ExprNode& node : expr.nodes()) {
    if (node.kind == ExprKind::input) {
      values.emplace_back(inputs[static_cast<size_t>(node.input)]);
    } else if (node.kind == ExprKind::number) {
      const auto whole = saturated<int64_t>(node.number);
      values.push_back(static_cast<double>(whole) == node.number ? MaybeDim(Dim(whole)) : std::nullopt);
    } else if (node.kind == ExprKind::attribute) {
      return std::nullopt;
    } else {
      std::vector<MaybeDim> operands;
      for (const int operand : node.operands) operands.push_back(values[static_cast<size_t>(operand)]);
      values.push_back(apply_dims(node, operands));
    }
  }
  return values.back();
}

/// Walks the elements of the broadcast result; offsets[k] is the element of operand k.
class BroadcastWalk {
 public:
  BroadcastWalk(std::span<const int64_t> dims, const std::vector<Dims>& operand_dims)
      : dims_(dims.begin(), dims.end()), index_(dims.size(), 0) {
    for (const Dims& operand : operand_dims) {
      Dims strides(dims.size(), 0), own = strides_of(operand);
      const size_t shift = dims.size() - operand.size();
      for (size_t i = 0; i < operand.size(); ++i) strides[shift + i] = operand[i] == 1 ? 0 : own[i];
      strides_.push_back(std::move(strides));
    }
    offsets.assign(operand_dims.size(), 0);
  }
  void next() {
    for (size_t axis = dims_.size(); axis-- > 0;) {
      ++index_[axis];
      for (size_t k = 0; k < offsets.size(); ++k) offsets[k] += strides_[k][axis];
      if (index_[axis] < dims_[axis]) return;
      index_[axis] = 0;
      for (size_t k = 0; k < offsets.size(); ++k) offsets[k] -= strides_[k][axis] * dims_[axis];
    }
  }
  std::vector<int64_t> offsets;

 private:
  Dims dims_, index_;
  std::vector<Dims> strides_;
};

void propagate_symbolic(InferContext& context, const Shape& shape, DType result) {
  if (is_float(result) || result == DType::string || !shape.is_static() ||
      elements(shape.values()) > kMaxSymbolicElements)
    return;
  std::vector<SymbolicData> data;
  std::vector<Dims> dims;
  for (size_t i = 0; i < context.inputs(); ++i) {
    std::optional<SymbolicData> contents = context.symbolic(i);
    if (!contents) return;
    data.push_back(std::move(*contents));
    dims.push_back(context.shape(i).values());
  }
  const Dims result_dims = shape.values();
  BroadcastWalk walk(result_dims, dims);
  SymbolicData contents;
  std::vector<Dim> scalars(data.size());
  for (int64_t i = 0; i < elements(result_dims); ++i, walk.next()) {
    for (size_t k = 0; k < data.size(); ++k) scalars[k] = data[k][static_cast<size_t>(walk.offsets[k])];
    const MaybeDim value = evaluate_dims(context.node().op->pointwise, scalars);
    if (!value) return;
    contents.push_back(*value);
  }
  context.set_symbolic(0, std::move(contents));
}

/// Integers that are no sizes may wrap, or grow into expressions that are too large to follow: they are data then.
void try_propagate_symbolic(InferContext& context, const Shape& shape, DType result) {
  try {
    propagate_symbolic(context, shape, result);
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {}
}

/// The operand's element in the domain of evaluation: doubles for floats, integers otherwise.
template <typename To>
std::vector<To> read_all(const Tensor& tensor) {
  std::vector<To> values(static_cast<size_t>(tensor.size()));
  visit(tensor.dtype(), [&]<typename T>() {
    const std::span<const T> data = tensor.data<T>();
    for (size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>)
        values[i] = static_cast<To>(static_cast<float>(data[i]));
      else values[i] = static_cast<To>(data[i]);
    }
  });
  return values;
}

template <typename Number>
Tensor evaluate_as(const Expr& expr, std::span<const Tensor* const> inputs, const Dims& dims, DType result) {
  std::vector<std::vector<Number>> data;
  std::vector<Dims> operand_dims;
  for (const Tensor* input : inputs) {
    data.push_back(read_all<Number>(*input));
    operand_dims.push_back(input->dims());
  }
  TensorBuilder builder(result, dims);
  BroadcastWalk walk(dims, operand_dims);
  std::vector<Number> scalars(inputs.size());
  visit(result, [&]<typename T>() {
    for (T& out : builder.data<T>()) {
      for (size_t k = 0; k < data.size(); ++k) scalars[k] = data[k][static_cast<size_t>(walk.offsets[k])];
      Number value;
      if constexpr (std::is_same_v<Number, double>) value = expr.evaluate(scalars);
      else value = evaluate_integer(expr, scalars);
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) out = T(static_cast<float>(value));
      else if constexpr (std::is_same_v<T, bool>) out = value != 0;
      else if constexpr (std::is_same_v<Number, double>) out = from_real<T>(value);
      else out = static_cast<T>(value);
      walk.next();
    }
  });
  return builder.finish();
}

}  // namespace

Shape broadcast(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.rank(), b.rank());
  std::vector<Dim> dims(rank);
  for (size_t i = 0; i < rank; ++i) {
    const Dim left = i + a.rank() < rank ? Dim(1) : a[i + a.rank() - rank];
    const Dim right = i + b.rank() < rank ? Dim(1) : b[i + b.rank() - rank];
    dims[i] = broadcast_dim(left, right);
  }
  return Shape(std::move(dims));
}

Dims broadcast_dims(std::span<const int64_t> a, std::span<const int64_t> b) {
  return broadcast(Shape(a), Shape(b)).values();
}

void infer_pointwise(InferContext& context) {
  Shape shape = context.shape(0);
  for (size_t i = 1; i < context.inputs(); ++i) shape = broadcast(shape, context.shape(i));
  for (size_t i = 0; i < context.inputs(); ++i)
    HONE_CHECK_AS(TypeError, !is_container(context.dtype(i)), "operand {} of {} is {} where a tensor is needed", i,
                  context.node().op_name(), context.type(i).text());
  const DType fixed = context.node().op->result;
  // select(c, a, b): the condition's type is not the result's.
  const bool conditional = context.inputs() == 3 && context.dtype(0) == DType::boolean;
  const DType result = fixed != DType::string ? fixed : context.dtype(conditional ? 1 : 0);
  context.set(0, result, shape);
  try_propagate_symbolic(context, shape, result);
}

void eval_pointwise(EvalContext& context) {
  std::vector<const Tensor*> inputs;
  Dims dims = context.input(0).dims();
  bool floating = false;
  for (size_t i = 0; i < context.inputs(); ++i) {
    inputs.push_back(&context.input(i));
    dims = broadcast_dims(dims, context.input(i).dims());
    floating |= is_float(context.input(i).dtype());
  }
  const OpDef& op = *context.node().op;
  const bool conditional = inputs.size() == 3 && inputs[0]->dtype() == DType::boolean;
  const DType result = op.result != DType::string ? op.result : inputs[conditional ? 1 : 0]->dtype();
  const Expr expr = op.pointwise.bind(context.attrs());
  context.set(
      0, floating ? evaluate_as<double>(expr, inputs, dims, result) : evaluate_as<int64_t>(expr, inputs, dims, result));
}

}  // namespace hone
