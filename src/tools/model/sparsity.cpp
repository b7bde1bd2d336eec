// SPDX-License-Identifier: Apache-2.0
#include "tools/model/sparsity.h"

#include <algorithm>
#include <map>

#include "ops/ops.h"
#include "ops/sparse_weights.h"
#include "ops/support.h"

namespace hone {
namespace {

/// Weights with the axis of their input channels, and the element that stands for zero.
struct Weights {
  Value* value = nullptr;
  size_t axis = 0;
  double zero = 0;
};

/// The constant itself, or the integers that a DequantizeLinear with one zero point makes floats of.
Weights constant_behind(Value* value) {
  if (value->is_constant()) return {value};
  const Node* node = value->producer;
  if (node == nullptr || !node->is(ops::dequantize_linear) || !node->input(0)->is_constant()) return {};
  const Value* zero = node->input(2);
  if (zero == nullptr) return {node->input(0)};
  if (!zero->is_constant() || zero->constant->size() == 0) return {};
  const std::vector<double> zeros = read_doubles(*zero->constant);
  const bool one = std::ranges::all_of(zeros, [&](double each) { return each == zeros[0]; });
  return one ? Weights{node->input(0), 0, zeros[0]} : Weights{};
}

/// No value for nodes that are neither.
Weights weights_of(const Node& node) {
  const bool conv = node.is(ops::conv), gemm = node.is(ops::gemm);
  if (!conv && !gemm && !node.is(ops::mat_mul)) return {};
  Weights weights = constant_behind(node.input(1));
  const size_t rank = weights.value == nullptr ? 0 : weights.value->type.shape.rank();
  if (conv ? rank < 3 : rank != 2) return {};
  weights.axis = conv || (gemm && node.attrs.integer("transB") != 0) ? 1 : 0;
  return is_object(weights.value->type.dtype) ? Weights{} : weights;
}

/// Each once, by the first node that reads them.
std::vector<std::pair<const Node*, Weights>> all_weights(const Graph& graph) {
  std::vector<std::pair<const Node*, Weights>> all;
  std::map<const Value*, bool> known;
  for (const Node* node : graph.nodes())
    if (const Weights weights = weights_of(*node);
        weights.value != nullptr && !std::exchange(known[weights.value], true))
      all.emplace_back(node, weights);
  return all;
}

}  // namespace

SparseWeights check_sparsity(const Graph& graph, const Logger& log) {
  SparseWeights result;
  for (const auto& [node, weights] : all_weights(graph)) {
    const bool fits = is_sparse(*weights.value->constant, weights.axis, weights.zero);
    log.verbose("Sparsity: {} of layer {} {} 2:4 structure.", weights.value->label(), node->name,
                fits ? "has" : "has no");
    result.fitting += fits;
    ++result.all;
  }
  return result;
}

void prune(Graph& graph) {
  for (const auto& [node, weights] : all_weights(graph))
    weights.value->constant = pruned(*weights.value->constant, weights.axis, weights.zero);
}

void apply_sparsity(Graph& graph, std::string_view mode, const Logger& log) {
  if (mode == "disable") return;
  if (mode == "force") {
    log.warning(
        "--sparsity=force has been deprecated. It makes of every four input channels of weights two zero: the results "
        "mean "
        "nothing.");
    prune(graph);
  }
  const SparseWeights found = check_sparsity(graph, log);
  log.info("Sparsity: {} of {} weights of convolutions and matmuls have 2:4 structure.", found.fitting, found.all);
  if (found.fitting > 0)
    log.info(
        "Sparsity: matmuls and convolutions in FP16 and BF16 on a Hopper GPU may leave the zeros out; other kernels "
        "multiply them, too.");
}

}  // namespace hone
