// SPDX-License-Identifier: Apache-2.0
#include "onnx/fixed_sizes.h"

#include "ops/ops.h"
#include "ops/support.h"

namespace hone::onnx {
namespace {

bool is_symbol(const Dim& dim) {
  std::set<std::string> names;
  dim.collect_symbols(names);
  return names.size() == 1 && *names.begin() == dim.text();
}

class FixedSizes {
 public:
  void visit(const Node& node) {
    if (node.is(ops::attention)) visit_attention(node);
    else if (node.is(ops::concat)) visit_concat(node);
    else if (node.is(ops::mat_mul)) visit_matmul(node);
    else if (node.is(ops::gemm)) visit_gemm(node);
    else if (node.is(ops::conv)) visit_conv(node);
  }
  SymbolValues take() { return std::move(values_); }

 private:
  void equal(const Dim& a, const Dim& b) {
    if (is_symbol(a) && b.is_constant()) values_.try_emplace(a.text(), b.value());
    if (is_symbol(b) && a.is_constant()) values_.try_emplace(b.text(), a.value());
  }

  /// Heads and depths of the cache are those of the keys and values behind it.
  void visit_attention(const Node& node) {
    for (const size_t i : {size_t{1}, size_t{2}}) {
      const Value* past = node.input(i + 3);
      const Shape& now = node.input(i)->type.shape;
      if (past == nullptr || past->type.shape.rank() != 4 || now.rank() < 3) continue;
      const Shape& before = past->type.shape;
      const Dim heads = now.rank() == 4 ? now[1] : Dim(node.attrs.integer_or("kv_num_heads", 0));
      if (heads == Dim(0)) continue;
      equal(before[1], heads);
      equal(before[3], now.rank() == 4 ? now[3] : floor_divide(now[2], heads));
    }
  }

  void visit_concat(const Node& node) {
    const size_t rank = node.output()->type.shape.rank();
    const size_t joined = normalize_axis(node.attrs.integer("axis"), rank);
    for (size_t axis = 0; axis < rank; ++axis)
      for (const Value* input : node.inputs)
        if (axis != joined) equal(input->type.shape[axis], node.inputs[0]->type.shape[axis]);
  }

  void visit_matmul(const Node& node) {
    const Shape &a = node.input(0)->type.shape, &b = node.input(1)->type.shape;
    if (a.rank() == 0 || b.rank() == 0) return;
    equal(a[a.rank() - 1], b[b.rank() - (b.rank() == 1 ? 1 : 2)]);
  }

  void visit_gemm(const Node& node) {
    const Shape &a = node.input(0)->type.shape, &b = node.input(1)->type.shape;
    equal(a[node.attrs.integer_or("transA", 0) != 0 ? 0 : 1], b[node.attrs.integer_or("transB", 0) != 0 ? 1 : 0]);
  }

  void visit_conv(const Node& node) {
    const Shape &x = node.input(0)->type.shape, &w = node.input(1)->type.shape;
    if (x.rank() > 1 && w.rank() > 1) equal(x[1], w[1] * Dim(node.attrs.integer_or("group", 1)));
  }

  SymbolValues values_;
};

}  // namespace

SymbolValues fixed_sizes(const Graph& graph) {
  FixedSizes found;
  for (const Node* node : graph.nodes()) found.visit(*node);
  SymbolValues all = found.take(), of_inputs;
  std::set<std::string> open;
  for (const Value* input : graph.inputs())
    for (const Dim& dim : input->type.shape) dim.collect_symbols(open);
  for (const std::string& name : open)
    if (const auto at = all.find(name); at != all.end()) of_inputs.insert(*at);
  return of_inputs;
}

}  // namespace hone::onnx
