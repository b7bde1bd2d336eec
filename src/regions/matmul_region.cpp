// SPDX-License-Identifier: Apache-2.0

#include "regions/matmul_region.h"

#include <algorithm>

#include "ops/ops.h"
#include "regions/match_region.h"

namespace hone {
namespace {

/// Whether leading axes are those of the result or repeat along them.
bool broadcasts(const Dims& operand, const Dims& result) {
  for (size_t i = 3; i <= operand.size(); ++i)
    if (const int64_t size = operand[operand.size() - i]; size != 1 && size != result[result.size() - i]) return false;
  return true;
}

const Dims& dims_of(const ConcreteType& type) {
  HONE_CHECK(type.dtype == DType::f32, "a matmul in the plan has an operand of {}", name_of(type.dtype));
  return type.dims;
}

const Dims& result_dims(const KernelShapes& shapes) {
  HONE_CHECK(shapes.outputs.size() == 1, "a matmul in the plan has {} results", shapes.outputs.size());
  return dims_of(shapes.outputs[0]);
}

const OperandCode& operand(const MatmulCode& code, size_t i) {
  HONE_CHECK(code.operands.size() == 2, "a matmul in the plan has {} operands", code.operands.size());
  return code.operands[i];
}

/// The nodes of read_linear_regions() where there are several, else none.
std::vector<const Node*> parallel_linears(const Graph& region) {
  std::vector<Node*> nodes = region.nodes();
  const auto decoders = std::erase_if(nodes, [](const Node* node) { return node->is(ops::decode); });
  const bool linears = std::ranges::all_of(nodes, [](const Node* node) { return node->is(ops::linear); });
  if (!linears || nodes.size() < 2 || region.outputs().size() != nodes.size()) return {};
  const Value* input = undecoded(nodes[0]->input(0));
  const Decoding decoding = decoding_of(nodes[0]->input(0));
  if (decoders != (decoding ? nodes.size() : 0) || input->is_constant()) return {};
  const auto constant = [](const Value* value) { return value == nullptr || value->is_constant(); };
  const auto type = [](const Value* value) { return value == nullptr ? TensorType{} : value->type; };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node &node = *nodes[i], &first = *nodes[0];
    const bool fits =
        undecoded(node.input(0)) == input && decoding_of(node.input(0)) == decoding && constant(node.input(1)) &&
        constant(node.input(2)) && type(node.input(1)) == type(first.input(1)) &&
        type(node.input(2)) == type(first.input(2)) && (node.input(2) == nullptr) == (first.input(2) == nullptr) &&
        node.attrs.integer("trans_w") == first.attrs.integer("trans_w") && region.outputs()[i] == node.output();
    if (!fits) return {};
  }
  return {nodes.begin(), nodes.end()};
}

LinearRegion linear_region(const Graph& region, RegionMatch match) {
  const Node& node = *match.anchor;
  const Dims w = node.input(1)->type.shape.values();
  const bool transposed = node.attrs.integer("trans_w") != 0;
  const LinearCode code{std::max(0, input_index(region, undecoded(node.input(0)))), w[transposed ? 0 : 1],
                        w[transposed ? 1 : 0], epilogue_code(match, node.input(2) != nullptr || !match.biases.empty())};
  return {std::move(match), code, transposed};
}

}  // namespace

void LinearCode::require_operands(const KernelShapes& shapes) const {
  HONE_CHECK(input < static_cast<int64_t>(shapes.inputs.size()), "a linear layer in the plan has the input {} of {}",
             input, shapes.inputs.size());
  const Dims &in = dims_of(shapes.inputs[static_cast<size_t>(input)]), &out = result_dims(shapes);
  const bool valid =
      !in.empty() && !out.empty() && in.back() == k && out.back() == n && elements(in) / k == elements(out) / n;
  HONE_CHECK(valid, "a linear layer in the plan takes {} to {}", join_dims(in), join_dims(out));
  require_residual(epilogue, shapes);
}

std::optional<LinearRegion> read_linear_region(const Graph& region, Roundings roundings) {
  const Node* node = anchor_of(region, ops::linear);
  if (node == nullptr) return std::nullopt;
  return linear_region(region, match_region(region, node, 1, roundings));
}

std::vector<LinearRegion> read_linear_regions(const Graph& region, Roundings roundings) {
  std::vector<LinearRegion> list;
  for (const Node* node : parallel_linears(region)) list.push_back(linear_region(region, match_bare(node, roundings)));
  if (!list.empty()) return list;
  if (std::optional<LinearRegion> one = read_linear_region(region, roundings)) list.push_back(std::move(*one));
  return list;
}

Floats LinearRegion::weights() const { return scaled_weights(match, *node().input(1)->constant); }

std::vector<float> LinearRegion::bias() const { return collect_bias(match, node().input(2), code.n); }

MatmulSizes::MatmulSizes(const MatmulCode& code, const KernelShapes& shapes)
    : a(dims_of(operand_type(operand(code, 0), shapes))),
      b(dims_of(operand_type(operand(code, 1), shapes))),
      c(result_dims(shapes)) {
  const bool valid = a.size() >= 2 && b.size() >= 2 && c.size() == std::max(a.size(), b.size()) &&
                     a.back() == b[b.size() - 2] && c.back() == b.back() && c[c.size() - 2] == a[a.size() - 2] &&
                     broadcasts(a, c) && broadcasts(b, c);
  HONE_CHECK(valid, "a matmul in the plan multiplies {} by {} to {}", join_dims(a), join_dims(b), join_dims(c));
  HONE_CHECK(!code.epilogue.bias, "a matmul of two operands in the plan adds a bias");
  require_residual(code.epilogue, shapes);
}

std::optional<MatmulRegion> read_matmul_region(const Graph& region) {
  const Node* node = anchor_of(region, ops::mat_mul);
  if (node == nullptr) return std::nullopt;
  MatmulRegion result{match_region(region, node, 1), {}};
  for (const Value* value : node->inputs) result.code.operands.push_back(operand_code(region, value, result.constants));
  result.code.scale = result.match.scale;
  result.code.epilogue = epilogue_code(result.match, false);
  return result;
}

std::vector<float> MatmulRegion::bias() const {
  return collect_bias(match, nullptr, node().output()->type.shape.values().back());
}

}  // namespace hone
