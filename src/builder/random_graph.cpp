// SPDX-License-Identifier: Apache-2.0
//
// Every step takes a value made before and puts an operator behind it; what the operator does not accept is not tried.
#include "builder/random_graph.h"

#include <algorithm>

#include "ops/all.h"
#include "ops/ops.h"

namespace hone {
namespace {

constexpr int64_t kMaxElements = 4096;

bool is_small(const Value* value) {
  return !value->type.shape.is_static() || elements(value->type.shape.values()) <= kMaxElements;
}
size_t rank_of(const Value* value) { return value->type.shape.rank(); }
Tensor integers(std::vector<int64_t> values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, std::span<const int64_t>(values));
}

}  // namespace

Graph RandomGraph::make() {
  const std::vector<Dims> shapes = {{2, 8, 6, 6}, {1, 4, 5, 7}, {3, 8}, {2, 5, 16}, {4, 4}, {1, 16, 3, 3}};
  const int64_t inputs = 1 + up_to(1);
  for (int64_t i = 0; i < inputs; ++i) {
    const Dims& dims = shapes[static_cast<size_t>(up_to(static_cast<int64_t>(shapes.size()) - 1))];
    values_.push_back(graph_.add_input("in" + std::to_string(i),
                                       {DType::f32, Shape(std::span<const int64_t>(dims)), Layout::linear}));
  }
  const int64_t steps = 2 + up_to(10);
  for (int64_t i = 0; i < steps; ++i) add_one();
  std::vector<Value*> outputs;
  for (Value* value : values_)
    if (value->producer != nullptr && value->uses.empty()) outputs.push_back(value);
  if (outputs.empty()) outputs.push_back(graph_.add(ops::relu, {values_[0]}, {}, "last")->output());
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i]->name = "out" + std::to_string(i);
  graph_.set_outputs(std::move(outputs));
  return std::move(graph_);
}

Value* RandomGraph::any() {
  // Late values more often, so that chains grow.
  const auto last = static_cast<int64_t>(values_.size()) - 1;
  return values_[static_cast<size_t>(std::max(up_to(last), up_to(last)))];
}

Value* RandomGraph::constant(const Dims& dims) {
  return graph_.add_constant(random_tensor(DType::f32, dims, random_()));
}

void RandomGraph::keep(Node* node) {
  node->name = "node" + std::to_string(graph_.node_count());
  node->origin = {node->name};
  for (Value* output : node->outputs)
    if (output->type.dtype == DType::f32 && is_small(output)) values_.push_back(output);
}

void RandomGraph::add_one() {
  Value* x = any();
  switch (up_to(9)) {
    case 0:
    case 1: return add_unary(x);
    case 2:
    case 3: return add_binary(x);
    case 4: return add_matmul(x);
    case 5: return add_window(x);
    case 6: return add_along_axis(x);
    case 7: return add_movement(x);
    case 8: return add_choice(x);
    default: return add_by_data(x);
  }
}

void RandomGraph::add_unary(Value* x) {
  const OpDef* const kinds[] = {
      &ops::relu, &ops::sigmoid, &ops::tanh,         &ops::abs,      &ops::neg,
      &ops::erf,  &ops::gelu,    &ops::hard_swish,   &ops::softplus, &ops::leaky_relu,
      &ops::elu,  &ops::silu,    &ops::hard_sigmoid, &ops::identity};  // continuous: sums round differently
  keep(graph_.add(*kinds[static_cast<size_t>(up_to(std::ssize(kinds) - 1))], {x}));
}

void RandomGraph::add_binary(Value* x) {
  const OpDef* const kinds[] = {&ops::add, &ops::sub, &ops::mul, &ops::max, &ops::min};
  const OpDef& kind = *kinds[static_cast<size_t>(up_to(std::ssize(kinds) - 1))];
  std::vector<Value*> partners;
  for (Value* value : values_)
    if (value->type.shape == x->type.shape) partners.push_back(value);
  Value* other = partners[static_cast<size_t>(up_to(static_cast<int64_t>(partners.size()) - 1))];
  if (chance(50) && x->type.shape.is_static()) {  // a constant that broadcasts
    Dims dims = x->type.shape.values();
    for (int64_t& size : dims)
      if (chance(50)) size = 1;
    if (!dims.empty() && chance(30)) dims.erase(dims.begin());
    other = constant(dims);
  }
  keep(chance(50) ? graph_.add(kind, {x, other}) : graph_.add(kind, {other, x}));
}

void RandomGraph::add_matmul(Value* x) {
  const size_t rank = rank_of(x);
  if (rank < 2 || !x->type.shape[rank - 1].is_constant()) return add_unary(x);
  const int64_t depth = x->type.shape[rank - 1].value(), width = 1 + up_to(17);
  if (depth == 0) return;
  if (chance(40) && x->type.shape.is_static()) {  // with its own transpose
    std::vector<int64_t> perm;
    for (size_t i = 0; i < rank; ++i) perm.push_back(static_cast<int64_t>(i));
    std::swap(perm[rank - 1], perm[rank - 2]);
    Value* turned =
        graph_.add(ops::transpose, {x}, {{"perm", perm}}, "turned" + std::to_string(graph_.node_count()))->output();
    return keep(graph_.add(ops::mat_mul, {x, turned}));
  }
  keep(graph_.add(ops::mat_mul, {x, constant({depth, width})}));
}

void RandomGraph::add_window(Value* x) {
  if (rank_of(x) != 4 || !x->type.shape.is_static()) return add_unary(x);
  const Dims dims = x->type.shape.values();
  const int64_t kernel = 1 + 2 * up_to(1), stride = 1 + up_to(1), pad = kernel / 2;
  if (dims[1] == 0 || dims[2] == 0 || dims[3] == 0) return;
  Attrs attrs{{"kernel_shape", Dims{kernel, kernel}},
              {"strides", Dims{stride, stride}},
              {"pads", Dims{pad, pad, pad, pad}},
              {"dilations", Dims{1, 1}}};
  if (chance(40)) return keep(graph_.add(chance(50) ? ops::max_pool : ops::average_pool, {x}, std::move(attrs), {}, 1));
  const bool depthwise = chance(30);
  const int64_t filters = depthwise ? dims[1] : 1 + up_to(11);
  attrs.set("group", depthwise ? dims[1] : int64_t{1});
  std::vector<Value*> operands{x, constant({filters, depthwise ? 1 : dims[1], kernel, kernel})};
  if (chance(60)) operands.push_back(constant({filters}));
  keep(graph_.add(ops::conv, std::move(operands), std::move(attrs)));
}

void RandomGraph::add_along_axis(Value* x) {
  const size_t rank = rank_of(x);
  if (rank == 0 || !x->type.shape.is_static() || x->type.shape.elements() == Dim(0)) return add_unary(x);
  const int64_t axis = up_to(static_cast<int64_t>(rank) - 1);
  if (chance(30)) return keep(graph_.add(ops::softmax, {x}, {{"axis", axis}}));
  if (chance(30)) {
    const int64_t width = x->type.shape[rank - 1].value();
    return keep(graph_.add(ops::layer_normalization, {x, constant({width}), constant({width})},
                           {{"axis", int64_t{-1}}, {"epsilon", 1e-5}}, {}, 1));
  }
  const OpDef* const kinds[] = {&ops::reduce_sum, &ops::reduce_mean, &ops::reduce_max, &ops::reduce_min,
                                &ops::reduce_l2};
  keep(graph_.add(*kinds[static_cast<size_t>(up_to(std::ssize(kinds) - 1))], {x, graph_.add_constant(integers({axis}))},
                  {{"keepdims", up_to(1)}}));
}

void RandomGraph::add_movement(Value* x) {
  const size_t rank = rank_of(x);
  if (rank == 0 || !x->type.shape.is_static() || x->type.shape.elements() == Dim(0)) return add_unary(x);
  const Dims dims = x->type.shape.values();
  const int64_t axis = up_to(static_cast<int64_t>(rank) - 1), size = dims[static_cast<size_t>(axis)];
  switch (up_to(5)) {
    case 0: {
      std::vector<int64_t> perm;
      for (size_t i = 0; i < rank; ++i) perm.push_back(static_cast<int64_t>(i));
      std::shuffle(perm.begin(), perm.end(), random_);
      return keep(graph_.add(ops::transpose, {x}, {{"perm", perm}}));
    }
    case 1: return keep(graph_.add(ops::reshape, {x, graph_.add_constant(integers({dims[0], -1}))}));
    case 2: {
      const int64_t begin = up_to(size - 1), end = begin + 1 + up_to(size - begin - 1);
      return keep(
          graph_.add(ops::slice, {x, graph_.add_constant(integers({begin})), graph_.add_constant(integers({end})),
                                  graph_.add_constant(integers({axis}))}));
    }
    case 3: return keep(graph_.add(ops::concat, {x, chance(50) ? x : constant(dims)}, {{"axis", axis}}));
    case 4: {
      std::vector<int64_t> pads(2 * rank, 0);
      pads[static_cast<size_t>(axis)] = up_to(2);
      pads[rank + static_cast<size_t>(axis)] = up_to(2);
      return keep(graph_.add(ops::pad, {x, graph_.add_constant(integers(pads))}));
    }
    default: {
      std::vector<int64_t> chosen;
      for (int64_t i = 0; i <= up_to(3); ++i) chosen.push_back(up_to(size - 1));
      return keep(graph_.add(ops::gather, {x, graph_.add_constant(integers(chosen))}, {{"axis", axis}}));
    }
  }
}

void RandomGraph::add_choice(Value* x) {
  Value* limit = graph_.add_constant(Tensor::scalar(0.25f));
  Value* smaller = graph_.add(ops::less, {x, limit}, {}, "compare" + std::to_string(graph_.node_count()))->output();
  keep(graph_.add(ops::where, {smaller, x, chance(50) ? limit : x}));
}

/// The elements of an input above a limit, as many as there are. Not of computed values: one close to the limit might fall
/// on either side.
void RandomGraph::add_by_data(Value* x) {
  x = graph_.inputs()[static_cast<size_t>(up_to(std::ssize(graph_.inputs()) - 1))];
  if (rank_of(x) == 0 || !x->type.shape.is_static()) return add_unary(x);
  const auto part = [&](const OpDef& op, std::vector<Value*> operands, Attrs attrs = {}) {
    return graph_.add(op, std::move(operands), std::move(attrs), "part" + std::to_string(graph_.node_count()))
        ->output();
  };
  Value* above = part(ops::greater, {x, graph_.add_constant(Tensor::scalar(0.1f))});
  Value* places = part(ops::transpose, {part(ops::non_zero, {above})}, {{"perm", std::vector<int64_t>{1, 0}}});
  keep(graph_.add(ops::gather_nd, {x, places}));
}

}  // namespace hone
