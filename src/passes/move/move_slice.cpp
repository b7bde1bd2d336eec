// SPDX-License-Identifier: Apache-2.0
//
// How projections to q, k and v are taken apart. A Gather of one index is a Slice; a Slice or Split behind a View that
// splits axes, or leaves the sliced one the last, is one before it; and a Linear that is only ever sliced along its
// columns is one Linear per slice, which writes each part where it is wanted instead of copying it there.
#include <algorithm>

#include "ir/op.h"
#include "ops/ops.h"
#include "passes/axes.h"
#include "passes/edit.h"
#include "passes/passes.h"
#include "passes/slices.h"

namespace hone::passes {
namespace {

/// Queries, keys and values make three, sometimes read twice; a long row of single elements is something else.
constexpr size_t kMaxSelections = 8;

bool all_users_select(const Value* x) {
  return x->uses.size() >= 2 && x->uses.size() <= kMaxSelections &&
         std::all_of(x->uses.begin(), x->uses.end(),
                     [](const Use& use) { return use.node->is(ops::gather) || use.node->is(ops::slice); });
}

/// Gather(x, constant index) as a View of a Slice of one element.
void lower_one_gather(Graph& graph, Node* node) {
  Value* x = node->input(0);
  const Value* indices = node->input(1);
  if (!indices->is_constant() || indices->constant->size() != 1) return;
  // Elsewhere a Gather is as good as a Slice; behind these, and with others beside it, the Slice can move on.
  if (producer(x, ops::transpose) == nullptr && producer(x, ops::view) == nullptr) return;
  if (!is_float(x->type.dtype) || !all_users_select(x)) return;
  const size_t axis = normalize_axis(node->attrs.integer("axis"), x->type.shape.rank());
  const Dim& size = x->type.shape[axis];
  if (!size.is_constant() || !follows_from_inputs(graph, node->output()->type.shape)) return;
  int64_t index = indices->constant->integer(0);
  if (index < 0) index += size.value();
  if (index < 0 || index >= size.value()) return;
  Node* slice = insert_slice(graph, node, x, {axis, index, index + 1}, {node});
  graph.replace(node->output(), view(graph, node, slice->output(), node->output()->type.shape, {node}));
}

/// The axis below a View, and how many of its elements one step of `axis` above spans; nothing when `axis` is neither the last of both nor
/// the slowest axis of its group where the View splits axes.
struct SplitAxis {
  size_t axis;
  int64_t stride;
};
std::optional<SplitAxis> axis_below(const Node* inner, size_t axis) {
  const Shape &fine = inner->output()->type.shape, &given = inner->input(0)->type.shape;
  if (axis + 1 == fine.rank() && given.rank() > 0 && given[given.rank() - 1] == fine[axis])
    return SplitAxis{given.rank() - 1, 1};
  const std::optional<std::vector<AxisRange>> runs = groups(fine, given);
  if (!runs) return std::nullopt;
  for (size_t below = 0; below < runs->size(); ++below) {
    const AxisRange run = (*runs)[below];
    if (axis < run.begin || axis >= run.end) continue;
    Dim stride(1);
    for (size_t i = run.begin; i < run.end; ++i) {
      if (i < axis && fine[i] != Dim(1)) return std::nullopt;
      if (i > axis) stride = stride * fine[i];
    }
    return stride.is_constant() ? std::optional(SplitAxis{below, stride.value()}) : std::nullopt;
  }
  return std::nullopt;
}

bool only_taken_apart(const Graph& graph, const Value* value) {
  return !graph.is_output(value) && std::all_of(value->uses.begin(), value->uses.end(), [](const Use& use) {
    return use.node->is(ops::split) || slice_range(use.node).has_value();
  });
}

void raise_slice(Graph& graph, Node* node) {
  const Node* inner = producer(node->input(0), ops::view);
  const std::optional<SliceRange> range = slice_range(node);
  if (inner == nullptr || !range || !only_taken_apart(graph, inner->output())) return;
  const std::optional<SplitAxis> below = axis_below(inner, range->axis);
  if (!below) return;
  Node* moved = insert_slice(graph, node, inner->input(0),
                             {below->axis, range->begin * below->stride, range->end * below->stride}, {node});
  graph.replace(node->output(), view(graph, node, moved->output(), node->output()->type.shape, {inner}));
}

void raise_split(Graph& graph, Node* node) {
  const Node* inner = producer(node->input(0), ops::view);
  if (inner == nullptr || !only_taken_apart(graph, inner->output())) return;
  const size_t axis = normalize_axis(node->attrs.integer("axis"), inner->output()->type.shape.rank());
  const std::optional<SplitAxis> below = axis_below(inner, axis);
  if (!below) return;
  for (Value* output : node->outputs) {
    const std::optional<SlicePart> part = part_of(output);
    if (!part) return;
    const SliceRange range{below->axis, part->range.begin * below->stride, part->range.end * below->stride};
    if (output->uses.empty() && !graph.is_output(output)) continue;
    Node* moved = insert_slice(graph, node, inner->input(0), range, {node});
    graph.replace(output, view(graph, node, moved->output(), output->type.shape, {inner}));
  }
}

/// Columns [begin, end) of a matrix or vector; `axis` is the column axis.
Tensor columns(const Tensor& tensor, size_t axis, int64_t begin, int64_t end) {
  Dims dims = tensor.dims();
  const int64_t outer = axis == 0 ? 1 : dims[0], inner = axis + 1 == dims.size() ? 1 : dims[1];
  const auto row = static_cast<size_t>(dims[axis] * inner) * size_of(tensor.dtype());
  const size_t step = static_cast<size_t>(inner) * size_of(tensor.dtype());
  dims[axis] = end - begin;
  TensorBuilder builder(tensor.dtype(), dims);
  const size_t length = static_cast<size_t>(end - begin) * step;
  for (int64_t i = 0; i < outer; ++i)
    std::memcpy(builder.bytes() + static_cast<size_t>(i) * length,
                tensor.bytes().data() + static_cast<size_t>(i) * row + static_cast<size_t>(begin) * step, length);
  return builder.finish();
}

struct Part {
  Value* result;
  int64_t begin, end;
};

/// The column ranges that are read from a value of this rank, when nothing else reads it.
std::vector<Part> column_parts(const Graph& graph, const Value* value) {
  std::vector<Part> parts;
  if (graph.is_output(value)) return {};
  const size_t last = value->type.shape.rank() - 1;
  for (const Use& use : value->uses) {
    if (const std::optional<SliceRange> range = slice_range(use.node); range && range->axis == last) {
      parts.push_back({use.node->output(), range->begin, range->end});
    } else if (use.node->is(ops::split) && use.index == 0 &&
               normalize_axis(use.node->attrs.integer("axis"), last + 1) == last) {
      for (Value* output : use.node->outputs) {
        const std::optional<SlicePart> part = part_of(output);
        if (!part) return {};
        parts.push_back({output, part->range.begin, part->range.end});
      }
    } else {
      return {};
    }
  }
  return parts;
}

/// The operands that have the columns of the result, each with its column axis.
std::vector<std::pair<size_t, size_t>> operands_by_columns(const Node& node) {
  if (node.is(ops::quantized_linear)) return {{1, 1}, {2, 1}, {3, 1}};
  return {{1, node.attrs.integer("trans_w") != 0 ? 0 : 1}, {2, 0}};
}

void split_one_linear(Graph& graph, Node* node, const PassContext& context) {
  const std::vector<std::pair<size_t, size_t>> operands = operands_by_columns(*node);
  for (const auto& [i, axis] : operands)
    if (node->input(i) != nullptr && !node->input(i)->is_constant()) return;
  const std::vector<Part> parts = column_parts(graph, node->output());
  int64_t total = 0;
  for (const Part& part : parts) total += part.end - part.begin;
  if (parts.empty() || total > node->input(1)->constant->dims()[operands[0].second]) return;
  for (const Part& part : parts) {
    const Node* user = part.result->producer;
    context.report_fusion(node->name, user->name);
    std::vector<Value*> inputs = node->inputs;
    for (const auto& [i, axis] : operands)
      if (node->input(i) != nullptr)
        inputs[i] = graph.add_constant(columns(*node->input(i)->constant, axis, part.begin, part.end));
    graph.replace(part.result,
                  insert_for(graph, node, *node->op, std::move(inputs), node->attrs, {node, user})->output());
  }
}

}  // namespace

void lower_gather(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes())
    if (node->is(ops::gather)) lower_one_gather(graph, node);
}

void move_slice(Graph& graph, const PassContext&) {
  for (Node* node : graph.nodes()) {
    if (node->is(ops::slice)) raise_slice(graph, node);
    else if (node->is(ops::split)) raise_split(graph, node);
  }
}

void split_linear(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes())
    if (node->is(ops::linear) || node->is(ops::quantized_linear)) split_one_linear(graph, node, context);
}

}  // namespace hone::passes
