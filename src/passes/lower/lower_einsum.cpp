// SPDX-License-Identifier: Apache-2.0
//
// An Einsum of floats is written out, two operands at a time: labels of both that are wanted later make the batch of a matmul, the
// others of both its sum, those of one operand its rows or its columns. What nothing is summed over is a product of elements. Labels
// that stand twice in one operand stay with the Einsum.
#include <algorithm>

#include "ops/einsum.h"
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

bool has(std::string_view labels, char label) { return labels.find(label) != std::string_view::npos; }

std::string common(std::string_view labels, std::string_view others) {
  std::string result;
  std::ranges::copy_if(labels, std::back_inserter(result), [&](char label) { return has(others, label); });
  return result;
}

std::string without(std::string_view labels, std::string_view others) {
  std::string result;
  std::ranges::copy_if(labels, std::back_inserter(result), [&](char label) { return !has(others, label); });
  return result;
}

bool repeats(std::string labels) {
  std::ranges::sort(labels);
  return std::ranges::adjacent_find(labels) != labels.end();
}

/// A value with a label for each of its axes.
struct Term {
  Value* value;
  std::string labels;
  Dim size(char label) const { return value->type.shape[labels.find(label)]; }
};

class Einsum {
 public:
  Einsum(Graph& graph, Node* node) : graph_(graph), node_(node) {}

  void lower() {
    if (!is_float(node_->output()->type.dtype)) return;
    std::vector<size_t> ranks;
    for (const Value* input : node_->inputs) ranks.push_back(input->type.shape.rank());
    const EinsumEquation equation = parse_einsum(node_->attrs.text("equation"), ranks);
    std::vector<Term> terms;
    for (size_t i = 0; i < ranks.size(); ++i) terms.push_back({node_->input(i), equation.operands[i]});
    if (repeats(equation.result) || std::ranges::any_of(terms, [](const Term& term) { return repeats(term.labels); }) ||
        !sizes_agree(terms, equation.result))
      return;
    Term all = terms[0];
    terms.erase(terms.begin());
    while (!terms.empty()) {
      // One that shares a label comes first: the product of two that share none has all pairs of their elements.
      auto next =
          std::ranges::find_if(terms, [&](const Term& term) { return !common(term.labels, all.labels).empty(); });
      if (next == terms.end()) next = terms.begin();
      const Term taken = *next;
      terms.erase(next);
      std::string wanted = equation.result;
      for (const Term& term : terms) wanted += term.labels;
      all = product(all, taken, wanted);
    }
    Value* result = ordered(summed(all, equation.result), equation.result).value;
    if (result == node_->input(0)) result = add(ops::identity, {result});
    graph_.replace(node_->output(), result);
  }

 private:
  Value* add(const OpDef& op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return insert_for(graph_, node_, op, std::move(inputs), std::move(attrs), {node_})->output();
  }
  Value* viewed(Value* value, const Shape& shape) { return view(graph_, node_, value, shape, {node_}); }

  /// Whether all operands have the same size along a label; a size of 1 may be repeated along one of the result.
  bool sizes_agree(const std::vector<Term>& terms, std::string_view result) const {
    for (const Term& term : terms) {
      if (!follows_from_inputs(graph_, term.value->type.shape)) return false;
      for (const Term& other : terms)
        for (const char label : common(term.labels, other.labels)) {
          const bool repeated = has(result, label) && (term.size(label) == Dim(1) || other.size(label) == Dim(1));
          if (term.size(label) != other.size(label) && !repeated) return false;
        }
    }
    return true;
  }

  /// The labels that nobody wants are summed over.
  Term summed(const Term& term, std::string_view wanted) {
    const std::string labels = common(term.labels, wanted);
    if (labels == term.labels) return term;
    std::vector<int64_t> axes;
    for (size_t i = 0; i < term.labels.size(); ++i)
      if (!has(wanted, term.labels[i])) axes.push_back(static_cast<int64_t>(i));
    return {add(ops::reduce_sum, {term.value, integers(graph_, axes)}, {{"keepdims", int64_t{0}}}), labels};
  }

  /// The same labels in another order.
  Term ordered(const Term& term, const std::string& labels) {
    if (term.labels == labels) return term;
    Dims order;
    for (const char label : labels) order.push_back(static_cast<int64_t>(term.labels.find(label)));
    return {add(ops::transpose, {term.value}, {{"perm", order}}), labels};
  }

  static Dim elements(const Term& term, std::string_view labels) {
    Dim product(1);
    for (const char label : labels) product = product * term.size(label);
    return product;
  }

  /// The operand of a matmul: axes of the batch, and those of either group as one.
  Value* matrix(const Term& term, const std::string& batch, const std::string& rows, const std::string& columns) {
    const Term turned = ordered(term, batch + rows + columns);
    Shape shape;
    for (const char label : batch) shape.push_back(term.size(label));
    shape.push_back(elements(term, rows));
    shape.push_back(elements(term, columns));
    return viewed(turned.value, shape);
  }

  Term product(Term a, Term b, std::string_view wanted) {
    a = summed(a, std::string(wanted) + b.labels);
    b = summed(b, std::string(wanted) + a.labels);
    const std::string both = common(a.labels, b.labels), sum = without(both, wanted);
    // The batch in the order in which it is wanted, and the operand of its first other label for the rows: nothing to transpose then.
    const std::string batch = in_order(common(both, wanted), wanted);
    if (sum.empty()) return elementwise(a, b, wanted);
    const auto first =
        std::ranges::find_if(wanted, [&](char l) { return !has(both, l) && has(a.labels + b.labels, l); });
    if (first != wanted.end() && has(b.labels, *first)) std::swap(a, b);
    const std::string rows = in_order(without(a.labels, both), wanted),
                      columns = in_order(without(b.labels, both), wanted);
    Value* result = add(ops::mat_mul, {matrix(a, batch, rows, sum), matrix(b, batch, sum, columns)});
    Shape shape;
    for (size_t i = 0; i < batch.size(); ++i) shape.push_back(result->type.shape[i]);
    for (const char label : rows) shape.push_back(a.size(label));
    for (const char label : columns) shape.push_back(b.size(label));
    return {viewed(result, shape), batch + rows + columns};
  }

  static std::string in_order(std::string labels, std::string_view wanted) {
    std::ranges::sort(labels, {}, [&](char label) { return wanted.find(label); });
    return labels;
  }

  Term elementwise(const Term& a, const Term& b, std::string_view wanted) {
    const std::string labels = in_order(a.labels + without(b.labels, a.labels), wanted);
    return {add(ops::mul, {spread(a, labels), spread(b, labels)}), labels};
  }

  /// With axes of size 1 for the labels that it lacks.
  Value* spread(const Term& term, const std::string& labels) {
    const Term turned = ordered(term, common(labels, term.labels));
    Shape shape;
    for (const char label : labels) shape.push_back(has(term.labels, label) ? term.size(label) : Dim(1));
    return viewed(turned.value, shape);
  }

  Graph& graph_;
  Node* node_;
};

}  // namespace

void lower_einsum(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes())
    if (node->is(ops::einsum)) Einsum(graph, node).lower();
  graph.erase_dead();
}

}  // namespace hone::passes
