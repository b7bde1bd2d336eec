// SPDX-License-Identifier: Apache-2.0
//
// Multiplication, division, addition and subtraction of per-channel constants behind a convolution or a Linear go into
// its weights and bias.
#include <algorithm>

#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"
#include "passes/weights.h"

namespace hone::passes {
namespace {

struct Affine {
  std::vector<double> scale, shift;
};

/// x op constant as x * scale + shift; `constant_at` is the constant's operand position.
std::optional<Affine> affine_of(const Node* node, std::vector<double> numbers, size_t constant_at) {
  const std::vector<double> ones(numbers.size(), 1.0), zeros(numbers.size(), 0.0);
  const auto map = [&](auto f) {
    std::vector<double> result(numbers);
    std::transform(result.begin(), result.end(), result.begin(), f);
    return result;
  };
  if (node->is(ops::mul)) return Affine{numbers, zeros};
  if (node->is(ops::add)) return Affine{ones, numbers};
  if (node->is(ops::sub))
    return constant_at == 1 ? Affine{ones, map([](double x) { return -x; })}
                            : Affine{std::vector<double>(numbers.size(), -1.0), numbers};
  if (node->is(ops::div) && constant_at == 1) return Affine{map([](double x) { return 1 / x; }), zeros};
  return std::nullopt;
}

void fold_into(Graph& graph, Node* node, size_t constant_at, const PassContext& context) {
  Value* x = node->input(1 - constant_at);
  if (!used_once(graph, x) || node->output()->type != x->type) return;
  const std::optional<Weighted> target = weighted(x->producer);
  if (!target) return;
  const std::optional<std::vector<double>> numbers =
      per_channel(node->input(constant_at), x->type.shape.rank(), target->channel_axis, target->channels);
  if (!numbers) return;
  const std::optional<Affine> affine = affine_of(node, *numbers, constant_at);
  if (!affine) return;
  absorb_affine(graph, context, *target, node, affine->scale, affine->shift);
}

}  // namespace

void fold_scale(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    if (node->inputs.size() != 2 || !node->op->is_pointwise() || !is_float(node->output()->type.dtype)) continue;
    if (node->input(1)->is_constant()) fold_into(graph, node, 1, context);
    else if (node->input(0)->is_constant()) fold_into(graph, node, 0, context);
  }
}

}  // namespace hone::passes
