// SPDX-License-Identifier: Apache-2.0

#include "builder/work.h"

#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

int64_t flops_of(const Node& node, const SymbolValues& sizes) {
  const auto dims = [&](const Value* value) { return value->type.shape.evaluate(sizes); };
  if (node.is(ops::conv) || node.is(ops::conv_transpose)) {
    // Each result (of a transposed one: each element) meets one filter of a group.
    const Dims weights = dims(node.input(1));
    if (weights.empty() || weights[0] == 0) return 0;
    const int64_t each = elements(weights) / weights[0];
    return 2 * each * elements(dims(node.is(ops::conv) ? node.output() : node.input(0)));
  }
  if (node.is(ops::linear) || node.is(ops::mat_mul)) {
    const Dims left = dims(node.input(0));
    return left.empty() ? 0 : 2 * left.back() * elements(dims(node.output()));
  }
  if (node.is(ops::scaled_dot_product_attention)) {
    const Dims q = dims(node.input(0)), k = dims(node.input(1)), v = dims(node.input(2));
    if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[3] == 0) return 0;
    const int64_t keys = node.attrs.text("layout") == "bhsd" ? k[2] : k[1];
    return 2 * elements(q) / q[3] * keys * (q[3] + v[3]);
  }
  return 0;
}

}  // namespace

int64_t flops_of(const Region& region, const SymbolValues& sizes) {
  int64_t total = 0;
  for (const Node* node : region.nodes) total += flops_of(*node, sizes);
  return total;
}

}  // namespace hone
