// SPDX-License-Identifier: Apache-2.0
#include "builder/prepare/gatings.h"

#include <algorithm>

#include "ops/ops.h"

namespace hone {
namespace {

/// Of a llama with twelve layers the first three have as many (docs/adr/0022-parts-of-bf16.md).
constexpr int kMany = 10;

bool is_gating(const Node& node) {
  return node.is(ops::mul) && node.input(0)->producer != nullptr && node.input(1)->producer != nullptr &&
         node.input(0)->type.shape == node.input(1)->type.shape;
}

}  // namespace

Gatings::Gatings(const Graph& graph) {
  const std::vector<Node*> nodes = graph.nodes();
  std::for_each(nodes.rbegin(), nodes.rend(), [this](const Node* node) {
    int most = 0;
    for (const Value* output : node->outputs)
      for (const Use& use : output->uses) most = std::max(most, behind(*use.node) + (is_gating(*use.node) ? 1 : 0));
    behind_[node] = most;
  });
}

bool Gatings::many_behind(const Node& node) const { return behind(node) >= kMany; }

}  // namespace hone
