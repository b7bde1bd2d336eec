// SPDX-License-Identifier: Apache-2.0

#include "regions/integer_region.h"

#include "ops/ops.h"
#include "ops/support.h"
#include "regions/match_region.h"

namespace hone {
namespace {

bool is_byte(DType dtype) { return dtype == DType::u8 || dtype == DType::i8; }
bool is_one(const Value* value) { return value->type.shape.elements() == Dim(1); }

std::string reason_against(const Graph& region, const Node& node) {
  const Value *a = node.input(0), *b = node.input(1), *a_zero = node.input(2), *b_zero = node.input(3);
  if (input_index(region, a) < 0 || !b->is_constant()) return "its weights are no constant";
  if (b->type.shape.rank() != 2) return "its weights are no matrix";
  if (a->type.shape.elements() == Dim(0) || node.output()->type.shape.elements() == Dim(0)) return "empty operands";
  if (a_zero != nullptr && !is_one(a_zero)) return "each row has a zero point";
  if (a_zero != nullptr && !a_zero->is_constant() && input_index(region, a_zero) < 0)
    return "the zero point depends on the input's shape";
  if (b_zero != nullptr && !b_zero->is_constant()) return "the weights' zero points are no constant";
  return {};
}

IntegerLinearCode code_of(const Graph& region, const RegionMatch& match) {
  const Node& node = *match.anchor;
  const Dims w = node.input(1)->type.shape.values();
  IntegerLinearCode code{.input = input_index(region, node.input(0)), .n = w[1], .k = w[0]};
  if (const Value* zero = node.input(2); zero != nullptr && zero->is_constant()) code.zero = zero->constant->integer(0);
  else if (zero != nullptr) code.zero_input = input_index(region, zero);
  if (match.factor != nullptr) {
    code.factor = is_one(match.factor) ? Factor::one : Factor::columns;
    code.factor_input = match.factor->is_constant() ? -1 : input_index(region, match.factor);
  }
  code.epilogue = epilogue_code(match, !match.biases.empty());
  return code;
}

}  // namespace

void IntegerLinearCode::require_operands(const KernelShapes& shapes) const {
  const auto count = static_cast<int64_t>(shapes.inputs.size());
  HONE_CHECK(input < count && zero_input < count && factor_input < count && shapes.outputs.size() == 1,
             "an integer matmul in the plan has {} inputs and {} results", count, shapes.outputs.size());
  const ConcreteType &a = shapes.inputs[static_cast<size_t>(input)], &c = shapes.outputs[0];
  const int64_t rows = elements(a.dims) / k;
  const bool fits = is_byte(a.dtype) && c.dtype == (factor == Factor::none ? DType::i32 : DType::f32) && rows > 0 &&
                    rows * k == elements(a.dims) && elements(c.dims) == rows * n && a.layout == Layout::linear &&
                    c.layout == Layout::linear;
  HONE_CHECK(fits, "an integer matmul in the plan takes {} to {}", join_dims(a.dims), join_dims(c.dims));
  if (zero_input >= 0) {
    const ConcreteType& zeros = shapes.inputs[static_cast<size_t>(zero_input)];
    HONE_CHECK(is_byte(zeros.dtype) && elements(zeros.dims) == 1, "an integer matmul in the plan has zero points {}",
               join_dims(zeros.dims));
  }
  if (factor_input >= 0) {
    const ConcreteType& scales = shapes.inputs[static_cast<size_t>(factor_input)];
    HONE_CHECK(scales.dtype == DType::f32 && elements(scales.dims) == factors(),
               "an integer matmul in the plan has factors {}", join_dims(scales.dims));
  }
  const bool plain = !epilogue.bias && epilogue.residual < 0 && epilogue.activation.kind == ActivationKind::none;
  HONE_CHECK(factor != Factor::none || plain, "an integer matmul in the plan adds floats to integers");
  require_residual(epilogue, shapes);
}

std::optional<IntegerLinearRegion> read_integer_linear_region(const Graph& region) {
  const Node* node = anchor_of(region, ops::mat_mul_integer);
  if (node == nullptr) return std::nullopt;
  if (std::string reason = reason_against(region, *node); !reason.empty())
    return IntegerLinearRegion{{.anchor = node, .refusal = std::move(reason)}, {}};
  RegionMatch match = match_region(region, node, 1);
  if (match && region.node_count() > 1 && match.factor == nullptr) match.refusal = "its sums are not multiplied";
  IntegerLinearCode code = match ? code_of(region, match) : IntegerLinearCode{};
  return IntegerLinearRegion{std::move(match), std::move(code)};
}

std::vector<float> IntegerLinearRegion::factor() const {
  if (match.factor == nullptr || !match.factor->is_constant()) return {};
  const Floats values(*match.factor->constant);
  return {values.data(), values.data() + values.size()};
}

std::vector<float> IntegerLinearRegion::bias() const { return collect_bias(match, nullptr, code.n); }

}  // namespace hone
