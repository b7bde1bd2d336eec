// SPDX-License-Identifier: Apache-2.0
//
// A Relu or Clip before QuantizeLinear whose limits are no closer than those of the codes: rounding is monotonic, and what is beyond
// the codes ends at their limits anyway.
#include <cmath>
#include <limits>

#include "ir/op.h"
#include "ops/byte_scale.h"
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

struct Limits {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

std::optional<Limits> limits_of(const Node* node) {
  if (node == nullptr) return std::nullopt;
  if (node->is(ops::relu)) return Limits{.low = 0};
  if (node->is(ops::clamp)) return Limits{node->attrs.real("min"), node->attrs.real("max")};
  return std::nullopt;
}

/// The code of a number as QuantizeLinear computes it, before it is cut off.
double code_of(double number, const ByteScale& scale) {
  return static_cast<double>(std::nearbyint(static_cast<float>(number) / scale.scale)) + scale.zero;
}

bool has_limits(const ByteScale& scale, const Limits& limits) {
  const double lowest = scale.bytes == DType::u8 ? 0 : -128, highest = lowest + 255;
  return code_of(limits.low, scale) <= lowest && code_of(limits.high, scale) >= highest;
}

}  // namespace

void drop_limits(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes()) {
    const std::optional<ByteScale> scale = node->is(ops::quantize_linear) ? byte_scale(*node) : std::nullopt;
    if (!scale || !used_once(graph, node->input(0))) continue;
    Node* limit = node->input(0)->producer;
    const std::optional<Limits> limits = limits_of(limit);
    if (!limits || !has_limits(*scale, *limits)) continue;
    context.report_removal(limit->name);
    const std::vector<const Node*> parts{limit, node};
    graph.set_input(node, 0, limit->input(0));
    inherit(node, parts);
  }
  graph.erase_dead();
}

}  // namespace hone::passes
