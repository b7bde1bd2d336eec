// SPDX-License-Identifier: Apache-2.0
//
// The sum of two convolutions of the same value is one convolution with the sum of their weights; the smaller kernel is
// placed inside the larger so that both read the same elements. A scaled copy of the value (y = x * s + t per channel,
// what is left of an identity branch with batch normalisation) is a convolution with one tap. Networks trained with
// parallel branches (RepVGG, MobileOne) become the plain stacks they were meant to be.
#include <algorithm>

#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"
#include "passes/weights.h"

namespace hone::passes {
namespace {

/// Weights [out, in / group, kernel…] and bias as numbers, and where the window starts.
struct Branch {
  Value* x = nullptr;
  std::vector<double> weight, bias;
  Dims dims, pads, strides;
  int64_t group = 1;
  std::vector<const Node*> parts;
};

std::optional<Branch> conv_branch(const Graph& graph, const Value* value) {
  Node* node = sole_producer(graph, value, ops::conv);
  if (node == nullptr || !weighted(node) || node->attrs.text("auto_pad") != "NOTSET") return std::nullopt;
  const std::vector<int64_t>& dilations = node->attrs.integers("dilations");
  if (std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; })) return std::nullopt;
  const Tensor& weight = *node->input(1)->constant;
  Branch branch{.x = node->input(0),
                .weight = numbers_of(weight),
                .bias = {},
                .dims = weight.dims(),
                .pads = node->attrs.integers("pads"),
                .strides = node->attrs.integers("strides"),
                .group = node->attrs.integer("group"),
                .parts = {node}};
  branch.bias = node->input(2) != nullptr ? numbers_of(*node->input(2)->constant)
                                          : std::vector<double>(static_cast<size_t>(branch.dims[0]), 0.0);
  return branch;
}

/// Peels Add and Mul of per-channel constants off `value` until `x` is met: the branch as a convolution with one tap.
std::optional<Branch> identity_branch(const Graph& graph, const Value* value, const Branch& other) {
  const size_t rank = value->type.shape.rank();
  if (rank < 3 || !value->type.shape[1].is_constant() || value->type != other.x->type) return std::nullopt;
  const int64_t channels = value->type.shape[1].value();
  if (other.dims[0] != channels || other.dims[1] * other.group != channels) return std::nullopt;
  std::vector<double> scale(static_cast<size_t>(channels), 1.0), shift(scale.size(), 0.0);
  Branch branch{.x = other.x,
                .weight = {},
                .bias = {},
                .dims = {channels, channels / other.group},
                .pads = Dims(2 * (rank - 2), 0),
                .strides = Dims(rank - 2, 1),
                .group = other.group,
                .parts = {}};
  while (value != other.x) {
    const Node* node = value->producer;
    if (node == nullptr || (!node->is(ops::mul) && !node->is(ops::add)) || !used_once(graph, value))
      return std::nullopt;
    const size_t at = node->input(1)->is_constant() ? 1 : 0;
    const std::optional<std::vector<double>> numbers = per_channel(node->input(at), rank, 1, channels);
    if (!numbers || node->input(1 - at)->type != value->type) return std::nullopt;
    for (size_t c = 0; c < scale.size(); ++c)
      (node->is(ops::mul) ? scale[c] : shift[c]) +=
          node->is(ops::mul) ? scale[c] * ((*numbers)[c] - 1) : scale[c] * (*numbers)[c];
    branch.parts.insert(branch.parts.begin(), node);
    value = node->input(1 - at);
  }
  branch.dims.resize(rank, 1);
  const int64_t per_group = branch.dims[1];
  branch.weight.assign(static_cast<size_t>(channels * per_group), 0.0);
  for (int64_t c = 0; c < channels; ++c)
    branch.weight[static_cast<size_t>(c * per_group + c % per_group)] = scale[static_cast<size_t>(c)];
  branch.bias = std::move(shift);
  return branch;
}

/// Adds `small` into `large`; false when its window does not lie inside.
bool add_into(Branch& large, const Branch& small) {
  if (large.x != small.x || large.group != small.group || large.strides != small.strides) return false;
  const size_t spatial = large.strides.size();
  Dims offset(spatial);
  for (size_t i = 0; i < spatial; ++i) {
    offset[i] = large.pads[i] - small.pads[i];
    if (offset[i] < 0 || offset[i] + small.dims[2 + i] > large.dims[2 + i]) return false;
  }
  const Dims from = strides_of(small.dims), to = strides_of(large.dims);
  for (size_t i = 0; i < small.weight.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), target = 0;
    for (size_t axis = 0; axis < small.dims.size(); ++axis) {
      target += (rest / from[axis] + (axis < 2 ? 0 : offset[axis - 2])) * to[axis];
      rest %= from[axis];
    }
    large.weight[static_cast<size_t>(target)] += small.weight[i];
  }
  for (size_t c = 0; c < large.bias.size(); ++c) large.bias[c] += small.bias[c];
  return true;
}

bool merge_one(Graph& graph, Node* node, const PassContext& context) {
  if (node->input(0) == node->input(1) || node->input(0)->type != node->output()->type ||
      node->input(1)->type != node->output()->type)
    return false;
  std::optional<Branch> a = conv_branch(graph, node->input(0)), b = conv_branch(graph, node->input(1));
  if (!a && !b) return false;
  const bool a_is_conv = a.has_value(), b_is_conv = b.has_value();
  if (!a) a = identity_branch(graph, node->input(0), *b);
  if (!b) b = identity_branch(graph, node->input(1), *a);
  if (!a || !b) return false;
  // Among equals the convolution: the merged one takes its attributes.
  Branch& large =
      a->weight.size() > b->weight.size() || (a->weight.size() == b->weight.size() && (a_is_conv || !b_is_conv)) ? *a
                                                                                                                 : *b;
  const Branch& small = &large == &*a ? *b : *a;
  if (!add_into(large, small)) return false;
  const Node* model = large.parts.front();
  std::vector<const Node*> parts(a->parts);
  parts.insert(parts.end(), b->parts.begin(), b->parts.end());
  parts.push_back(node);
  const DType dtype = model->input(1)->type.dtype;
  Value* weight = graph.add_constant(tensor_from(dtype, large.dims, large.weight), model->input(1)->name);
  Value* bias = graph.add_constant(tensor_from(dtype, {large.dims[0]}, large.bias));
  context.report_fusion(model->name, node->name);
  graph.replace(node->output(),
                insert_for(graph, node, ops::conv, {large.x, weight, bias}, model->attrs, parts)->output());
  return true;
}

}  // namespace

void merge_convs(Graph& graph, const PassContext& context) {
  for (Node* node : graph.nodes())
    if (node->op != nullptr && node->is(ops::add) && merge_one(graph, node, context)) graph.erase_dead();
}

}  // namespace hone::passes
