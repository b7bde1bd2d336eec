// SPDX-License-Identifier: Apache-2.0
//
// Common subexpressions: two nodes that apply the same operator with the same attributes to the same values are one.
// Constants with equal bytes are merged first, so that pattern and node comparisons can go by identity.
#include <unordered_map>

#include "base/hash.h"
#include "ir/op.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

/// Larger constants are weights; hashing all of them would cost more than merging them could save.
constexpr size_t kMaxComparedBytes = 1 << 20;

std::string key_of(const Tensor& tensor) { return tensor.type().text() + hash_hex(tensor.bytes()); }

std::string key_of(const Node* node) {
  std::string key =
      fmt::format("{}/{}/{}", static_cast<const void*>(node->op), node->outputs.size(), node->attrs.print());
  for (const Value* input : node->inputs) key += fmt::format("/{}", static_cast<const void*>(input));
  return key;
}

bool may_merge(const Node* node) {
  return !node->op->traits.random && !node->op->traits.has_bodies && node->bodies.empty();
}

bool is_result(const Graph& graph, const Node* node) {
  for (const Value* output : node->outputs)
    if (graph.is_output(output)) return true;
  return false;
}

}  // namespace

void merge_constants(Graph& graph, const PassContext&) {
  std::unordered_map<std::string, Value*> seen;
  for (Node* node : graph.nodes())
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      Value* value = node->inputs[i];
      if (value == nullptr || !value->constant || value->type.dtype == DType::string ||
          value->constant->bytes().size() > kMaxComparedBytes)
        continue;
      Value* first = seen.emplace(key_of(*value->constant), value).first->second;
      if (first != value) graph.set_input(node, i, first);
    }
}

void merge_common(Graph& graph, const PassContext& context) {
  merge_constants(graph, context);
  std::unordered_map<std::string, Node*> seen;
  for (Node* node : graph.nodes()) {
    if (!may_merge(node)) continue;
    const auto [at, inserted] = seen.emplace(key_of(node), node);
    if (inserted || is_result(graph, node)) continue;
    context.report_removal(node->name);
    Node* first = at->second;
    for (size_t i = 0; i < node->outputs.size(); ++i) graph.replace(node->outputs[i], first->outputs[i]);
    first->origin.insert(first->origin.end(), node->origin.begin(), node->origin.end());
    graph.erase(node);
  }
}

}  // namespace hone::passes
