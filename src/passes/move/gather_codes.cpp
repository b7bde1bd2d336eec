// SPDX-License-Identifier: Apache-2.0
//
// Rows of a table whose weights are codes of few bits, as embeddings of language models are: Gather of the codes, their scales and zero
// points, then DequantizeLinear of the rows that were picked, instead of DequantizeLinear of the whole table, which would be a
// constant of four to eight times the size or, where that is too large to be folded, work of each inference.
#include "ops/ops.h"
#include "ops/support.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

/// DequantizeLinear of a constant table, with one scale, one for each index of an axis, or one for each block along it.
class Table {
 public:
  Table(Graph& graph, Node* gather, Node* dequantize) : graph_(graph), gather_(gather), dequantize_(dequantize) {
    rank_ = static_cast<int64_t>(dequantize->input(0)->type.shape.rank());
    axis_ = positive(gather->attrs.integer("axis"));
    along_ = positive(dequantize->attrs.integer("axis"));
    block_ = dequantize->attrs.integer("block_size");
    one_scale_ = dequantize->input(1)->type.shape.elements() == Dim(1);
  }

  bool fits() const {
    const Value* zeros = dequantize_->input(2);
    if (!dequantize_->input(0)->is_constant() || !dequantize_->input(1)->is_constant() ||
        (zeros != nullptr && !zeros->is_constant()) || rank_ < 2)
      return false;
    // Elsewhere scales stay what they are.
    return one_scale_ || block_ == 0 || along_ != axis_;
  }

  void lower() {
    const bool by_rows = !one_scale_ && block_ == 0 && along_ == axis_, blocked = !one_scale_ && block_ > 0;
    Value* codes = rows(dequantize_->input(0));
    Value *scales = dequantize_->input(1), *zeros = dequantize_->input(2);
    Attrs attrs{{"axis", moved(along_)}, {"block_size", int64_t{0}}};
    if (blocked) {
      attrs.set("block_size", block_);
      scales = rows(scales), zeros = zeros == nullptr ? nullptr : rows(zeros);
    } else if (by_rows) {
      // A block as long as the axis behind, or before where that is the last one.
      const int64_t other = axis_ + 1 < rank_ ? rank_ - 1 : 0;
      attrs.set("axis", moved(other));
      attrs.set("block_size", dequantize_->input(0)->type.shape[static_cast<size_t>(other)].value());
      scales = rows(spread(scales, other)), zeros = zeros == nullptr ? nullptr : rows(spread(zeros, other));
    }
    std::vector<Value*> inputs{codes, scales};
    if (zeros != nullptr) inputs.push_back(zeros);
    graph_.replace(gather_->output(), add(ops::dequantize_linear, std::move(inputs), std::move(attrs)));
  }

 private:
  int64_t positive(int64_t axis) const { return axis < 0 ? axis + rank_ : axis; }
  /// Where an axis of the table other than that of the rows is in the result.
  int64_t moved(int64_t axis) const {
    return axis <= axis_ ? axis : axis - 1 + static_cast<int64_t>(gather_->input(1)->type.shape.rank());
  }
  Value* add(const OpDef& op, std::vector<Value*> inputs, Attrs attrs) {
    return insert_for(graph_, gather_, op, std::move(inputs), std::move(attrs), {dequantize_, gather_})->output();
  }
  Value* rows(Value* table) { return add(ops::gather, {table, gather_->input(1)}, {{"axis", axis_}}); }

  /// One for each row, repeated along all axes but that of the blocks.
  Value* spread(const Value* per_row, int64_t other) {
    Dims dims = dequantize_->input(0)->constant->dims();
    dims[static_cast<size_t>(other)] = 1;
    const Tensor& given = *per_row->constant;
    int64_t inner = 1;
    for (size_t axis = static_cast<size_t>(axis_) + 1; axis < dims.size(); ++axis) inner *= dims[axis];
    std::vector<double> values(static_cast<size_t>(elements(dims)));
    const std::vector<double> from = numbers_of(given);
    for (size_t i = 0; i < values.size(); ++i) values[i] = from[i / static_cast<size_t>(inner) % from.size()];
    return graph_.add_constant(write_doubles(given.dtype(), std::move(dims), values));
  }

  Graph& graph_;
  Node *gather_, *dequantize_;
  int64_t rank_ = 0, axis_ = 0, along_ = 0, block_ = 0;
  bool one_scale_ = false;
};

}  // namespace

void gather_codes(Graph& graph, const PassContext& context) {
  if (!context.quantized_weights) return;
  for (Node* node : graph.nodes()) {
    if (!node->is(ops::gather)) continue;
    Node* dequantize = producer(node->input(0), ops::dequantize_linear);
    if (dequantize == nullptr || !dequantize->input(0)->type.ranked) continue;
    if (Table table(graph, node, dequantize); table.fits()) table.lower();
  }
  graph.erase_dead();
}

}  // namespace hone::passes
