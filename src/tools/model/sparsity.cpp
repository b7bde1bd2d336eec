// SPDX-License-Identifier: Apache-2.0
#include "tools/model/sparsity.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

constexpr int64_t kGroup = 4, kKept = 2;

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

/// Calls body(element, channel) for every element.
void for_each(const Weights& weights, const std::function<void(int64_t, int64_t)>& body) {
  const AxisView view(weights.value->constant->dims(), weights.axis);
  for (int64_t i = 0; i < weights.value->constant->size(); ++i) body(i, i / view.inner % view.length);
}

bool is_sparse(const Weights& weights) {
  const AxisView view(weights.value->constant->dims(), weights.axis);
  const int64_t groups = (view.length + kGroup - 1) / kGroup;
  std::vector<uint8_t> used(static_cast<size_t>(view.outer * groups * view.inner));
  const std::vector<double> values = read_doubles(*weights.value->constant);
  bool fits = view.length >= kGroup;
  for_each(weights, [&](int64_t i, int64_t channel) {
    const int64_t at = (i / (view.inner * view.length) * groups + channel / kGroup) * view.inner + i % view.inner;
    if (values[static_cast<size_t>(i)] != weights.zero && ++used[static_cast<size_t>(at)] > kKept) fits = false;
  });
  return fits;
}

}  // namespace

SparseWeights check_sparsity(const Graph& graph, const Logger& log) {
  SparseWeights result;
  for (const auto& [node, weights] : all_weights(graph)) {
    const bool fits = is_sparse(weights);
    log.verbose("Sparsity: {} of layer {} {} 2:4 structure.", weights.value->label(), node->name,
                fits ? "has" : "has no");
    result.fitting += fits;
    ++result.all;
  }
  return result;
}

void prune(Graph& graph) {
  for (const auto& [node, weights] : all_weights(graph)) {
    const Tensor& dense = *weights.value->constant;
    TensorBuilder builder(dense.dtype(), dense.dims());
    std::memcpy(builder.bytes(), dense.bytes().data(), dense.bytes().size());
    const Tensor zero = scalar_of(dense.dtype(), weights.zero);
    const size_t size = size_of(dense.dtype());
    for_each(weights, [&](int64_t i, int64_t channel) {
      if (channel % kGroup >= kKept)
        std::memcpy(builder.bytes() + static_cast<size_t>(i) * size, zero.bytes().data(), size);
    });
    weights.value->constant = builder.finish();
  }
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
    log.info("Sparsity: the kernels of this release multiply the zeros too, so sparse weights are not faster.");
}

}  // namespace hone
