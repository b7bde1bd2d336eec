// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation at inference is y = x * s + t per channel. Behind a convolution s and t disappear into its weights;
// elsewhere they become a Mul and an Add, which fuse with their neighbours like any pointwise operator.
#include <cmath>

#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"
#include "passes/weights.h"

namespace hone::passes {
namespace {

struct Affine {
  std::vector<double> scale, shift;
};

/// s = scale / sqrt(variance + epsilon), t = bias - mean * s; nothing when a parameter is not constant.
std::optional<Affine> affine_of(const Node* node) {
  for (size_t i = 1; i < 5; ++i)
    if (node->input(i) == nullptr || !node->input(i)->is_constant()) return std::nullopt;
  for (size_t i = 1; i < node->outputs.size(); ++i)
    if (!node->outputs[i]->uses.empty()) return std::nullopt;
  const double epsilon = node->attrs.real("epsilon");
  Affine result{numbers_of(*node->input(1)->constant), numbers_of(*node->input(2)->constant)};
  const std::vector<double> mean = numbers_of(*node->input(3)->constant),
                            variance = numbers_of(*node->input(4)->constant);
  for (size_t c = 0; c < result.scale.size(); ++c) {
    result.scale[c] /= std::sqrt(variance[c] + epsilon);
    result.shift[c] -= mean[c] * result.scale[c];
  }
  return result;
}

bool is_inference_form(const Node* node) {
  return node->is(ops::batch_normalization) && node->attrs.integer_or("training_mode", 0) == 0;
}

}  // namespace

void fold_batch_norm(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    if (!is_inference_form(node) || !used_once(graph, node->input(0))) continue;
    const std::optional<Weighted> target = weighted(node->input(0)->producer);
    const std::optional<Affine> affine = affine_of(node);
    if (!target || !affine || target->channel_axis != 1 ||
        static_cast<size_t>(target->channels) != affine->scale.size())
      continue;
    absorb_affine(graph, context, *target, node, affine->scale, affine->shift);
  }
}

void lower_batch_norm(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes()) {
    if (!is_inference_form(node)) continue;
    const std::optional<Affine> affine = affine_of(node);
    if (!affine) continue;
    const TensorType& type = node->output()->type;
    Dims dims(type.shape.rank() < 2 ? 1 : type.shape.rank() - 1, 1);
    dims[0] = static_cast<int64_t>(affine->scale.size());
    Value* scale = graph.add_constant(tensor_from(type.dtype, dims, affine->scale));
    Value* shift = graph.add_constant(tensor_from(type.dtype, dims, affine->shift));
    Node* product = insert_for(graph, node, ops::mul, {node->input(0), scale}, {}, {node});
    Node* sum = insert_for(graph, node, ops::add, {product->output(), shift}, {}, {node});
    graph.replace(node->output(), sum->output());
  }
}

}  // namespace hone::passes
