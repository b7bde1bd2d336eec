// SPDX-License-Identifier: Apache-2.0
//
// Where a device has no kernels for bytes, QuantizeLinear and the DequantizeLinear behind it are one pointwise node, which takes
// its place in chains and epilogues like any other. DequantizeLinear rises above what only moves elements to get there; a Relu
// or Clip before becomes closer limits; and what moves elements of rounded tensors needs no rounding behind it.
#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "ops/byte_scale.h"
#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/moved_elements.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

bool is_float8(DType dtype) { return dtype == DType::f8e4m3fn || dtype == DType::f8e5m2; }

/// One known scale between floats and integers of at most 16 bits, or numbers of eight bits.
struct KnownScale {
  DType floats, codes;
  double scale, zero;
  bool operator==(const KnownScale&) const = default;
};

bool is_one_number(const Value* value) { return value->is_constant() && value->constant->size() == 1; }

std::optional<KnownScale> known_scale(const Node& node) {
  const bool quantizes = node.is(ops::quantize_linear);
  if (!quantizes && !node.is(ops::dequantize_linear)) return std::nullopt;
  const Value *scale = node.input(1), *zero = node.input(2);
  if (!is_one_number(scale) || (zero != nullptr && !is_one_number(zero)) || node.attrs.integer("block_size") != 0)
    return std::nullopt;
  const KnownScale known{(quantizes ? node.input(0) : node.output())->type.dtype,
                         (quantizes ? node.output() : node.input(0))->type.dtype, numbers_of(*scale->constant)[0],
                         zero == nullptr ? 0 : numbers_of(*zero->constant)[0]};
  const bool saturates = !quantizes || node.attrs.integer("saturate") != 0;
  const bool rounds = is_float8(known.codes) ? known.floats != DType::f64 && known.zero == 0 && saturates
                                             : is_integer(known.codes) && bits_of(known.codes) <= 16;
  const bool fits =
      is_float(known.floats) && rounds && std::isnormal(static_cast<float>(known.scale)) && known.scale > 0;
  return fits ? std::optional(known) : std::nullopt;
}

struct Limits {
  double low, high;
};

Limits limits_of(DType integers) {
  const int bits = bits_of(integers);
  const double low = name_of(integers).starts_with('i') ? -std::ldexp(1.0, bits - 1) : 0;
  return {low, low + std::ldexp(1.0, bits) - 1};
}

Attrs fake_quantize_attrs(const KnownScale& known) {
  if (known.codes == DType::f8e4m3fn)
    return {{"scale", known.scale}, {"normal", 0x1p-6}, {"grid", 0x1.8p14}, {"shift", 0x1p20}};
  if (known.codes == DType::f8e5m2)
    return {{"scale", known.scale}, {"normal", 0x1p-14}, {"grid", 0x1.8p7}, {"shift", 0x1p21}};
  const Limits codes = limits_of(known.codes);
  return {{"scale", known.scale},
          {"low", codes.low - known.zero},
          {"high", codes.high - known.zero},
          {"of_nan", -known.zero}};
}

/// DequantizeLinear(move(x)): move(DequantizeLinear(x)).
bool raise_dequantize(Graph& graph, Node* node) {
  if (!node->is(ops::dequantize_linear) || node->input(1)->type.shape.elements() != Dim(1)) return false;
  Node* move = node->input(0)->producer;
  if (move == nullptr || move->outputs.size() != 1 || move->is(ops::pad) || !moves_elements(*move)) return false;
  std::vector<Value*> inputs = move->inputs;
  for (size_t i = 0; i < moved_operands(*move); ++i) {
    std::vector<Value*> operands = node->inputs;
    operands[0] = inputs[i];
    inputs[i] = insert_for(graph, node, ops::dequantize_linear, std::move(operands), node->attrs, {node})->output();
  }
  graph.replace(node->output(),
                insert_for(graph, node, *move->op, std::move(inputs), move->attrs, {move, node})->output());
  return true;
}

void join_pair(Graph& graph, Node* node) {
  if (!node->is(ops::dequantize_linear)) return;
  Node* codes = node->input(0)->producer;
  if (codes == nullptr || codes->input(0)->type.dtype != node->output()->type.dtype) return;
  Node* made = nullptr;
  if (codes->is(ops::dynamic_quantize_linear)) {
    if (node->input(1) != codes->output(1) || node->input(2) != codes->output(2)) return;
    made = insert_for(graph, node, ops::dynamic_fake_quantize, {codes->input(0)}, {}, {codes, node});
  } else {
    const std::optional<KnownScale> known = known_scale(*node);
    if (!known || !codes->is(ops::quantize_linear) || known_scale(*codes) != known) return;
    const bool saturates_first = is_float8(known->codes);
    const OpDef& op = saturates_first ? ops::fake_quantize_float8 : ops::fake_quantize;
    Value* x = codes->input(0);
    if (saturates_first) {
      const double most = largest_of(known->codes) * known->scale;
      x = insert_for(graph, node, ops::clamp, {x}, {{"min", -most}, {"max", most}}, {codes, node})->output();
    }
    made = insert_for(graph, node, op, {x}, fake_quantize_attrs(*known), {codes, node});
  }
  graph.replace(node->output(), made->output());
}

/// Scales that only the run knows, or of each index of an axis: what else is left is written out as arithmetic.
class Arithmetic {
 public:
  Arithmetic(Graph& graph, Node* node) : graph_(graph), node_(node), x_(node->input(0)) {}

  void run() {
    const bool quantizes = node_->is(ops::quantize_linear);
    const DType integers = (quantizes ? node_->output() : x_)->type.dtype;
    if (x_->is_constant() || byte_scale(*node_) || !is_integer(integers) || bits_of(integers) > 16 || !fits(1) ||
        !fits(2))
      return;
    graph_.replace(node_->output(), quantizes ? codes(integers) : floats());
  }

 private:
  Value* add(const OpDef& op, std::vector<Value*> inputs, Attrs attrs = {}) {
    return insert_for(graph_, node_, op, std::move(inputs), std::move(attrs), {node_})->output();
  }
  Value* as(DType dtype, Value* value) {
    return value->type.dtype == dtype ? value : add(ops::cast, {value}, {{"to", std::string(name_of(dtype))}});
  }

  size_t axis() const {
    const auto rank = static_cast<int64_t>(x_->type.shape.rank());
    const int64_t given = node_->attrs.integer("axis");
    return static_cast<size_t>(given < 0 ? given + rank : given);
  }
  bool fits(size_t operand) const {
    const Value* value = node_->input(operand);
    if (value == nullptr) return true;
    const Shape &shape = value->type.shape, &all = x_->type.shape;
    if (shape.elements() == Dim(1)) return shape.rank() <= all.rank();
    return node_->attrs.integer("block_size") == 0 && shape.rank() == 1 && axis() < all.rank() &&
           shape[0] == all[axis()];
  }
  /// An operand along its axis.
  Value* along(size_t operand, DType dtype) {
    Value* value = as(dtype, node_->input(operand));
    if (value->type.shape.elements() == Dim(1)) return value;
    Shape shape(std::vector<Dim>(x_->type.shape.rank(), Dim(1)));
    shape[axis()] = value->type.shape[0];
    return view(graph_, node_, value, shape, {node_});
  }

  Value* floats() {
    const DType dtype = node_->output()->type.dtype;
    Value* codes = as(dtype, x_);
    if (node_->input(2) != nullptr) codes = add(ops::sub, {codes, along(2, dtype)});
    return add(ops::mul, {codes, along(1, dtype)});
  }
  Value* codes(DType integers) {
    Value* value = add(ops::round, {add(ops::div, {as(DType::f32, x_), along(1, DType::f32)})});
    if (node_->input(2) != nullptr) value = add(ops::add, {value, along(2, DType::f32)});
    const Limits limits = limits_of(integers);
    return as(integers, add(ops::clamp, {value}, {{"min", limits.low}, {"max", limits.high}}));
  }

  Graph& graph_;
  Node* node_;
  Value* x_;
};

/// What a FakeQuantize's codes are between, and those of a Relu or Clip counted in its steps.
Limits limits_of(const Node& node) { return {node.attrs.real("low"), node.attrs.real("high")}; }
std::optional<Limits> limits_before(const Node* node, double scale) {
  if (node == nullptr) return std::nullopt;
  const auto steps = [&](const char* name) {
    return std::nearbyint(static_cast<float>(node->attrs.real(name)) / static_cast<float>(scale));
  };
  if (node->is(ops::relu)) return Limits{0, INFINITY};
  if (node->is(ops::clamp) && node->attrs.real("min") <= node->attrs.real("max"))
    return Limits{steps("min"), steps("max")};
  return std::nullopt;
}

/// Rounding is monotonic: limits of the floats are limits of the codes.
bool take_limits(Graph& graph, Node* node, const PassContext& context) {
  Node* before = node->input(0)->producer;
  const std::optional<Limits> given = limits_before(before, node->attrs.real("scale"));
  if (!given || !used_once(graph, node->input(0))) return false;
  context.report_fusion(before->name, node->name);
  const Limits own = limits_of(*node);
  node->attrs.set("low", std::clamp(given->low, own.low, own.high));
  node->attrs.set("high", std::clamp(given->high, own.low, own.high));
  const std::vector<const Node*> parts{before, node};
  graph.set_input(node, 0, before->input(0));
  inherit(node, parts);
  return true;
}

/// Whether every element is one that `node` gives already.
bool is_rounded(const Value* value, const Node& node) {
  const Node* from = value->producer;
  if (from == nullptr || value->type.dtype != node.input(0)->type.dtype) return false;
  const Limits own = limits_of(node);
  if (from->is(ops::fake_quantize)) {
    const Limits other = limits_of(*from);
    return from->attrs.real("scale") == node.attrs.real("scale") && other.low >= own.low && other.high <= own.high;
  }
  if (!moves_elements(*from) || (from->is(ops::pad) && (own.low > 0 || own.high < 0))) return false;
  for (size_t i = 0; i < moved_operands(*from); ++i)
    if (!is_rounded(from->input(i), node)) return false;
  return true;
}

bool drop_repeated(Graph& graph, Node* node, const PassContext& context) {
  if (!is_rounded(node->input(0), *node) || !may_replace(graph, node->output(), node->input(0))) return false;
  context.report_removal(node->name);
  graph.replace(node->output(), node->input(0));
  return true;
}

}  // namespace

void lower_fake_quantize(Graph& graph, const PassContext& context) {
  if (context.byte_matmuls) return;
  for (bool changed = true; changed;) {
    changed = false;
    for (Node* node : graph.nodes()) changed |= raise_dequantize(graph, node);
    graph.erase_dead();
  }
  for (Node* node : graph.nodes()) join_pair(graph, node);
  graph.erase_dead();
  for (Node* node : graph.nodes())
    if (node->is(ops::quantize_linear) || node->is(ops::dequantize_linear)) Arithmetic(graph, node).run();
}

void merge_fake_quantize(Graph& graph, const PassContext& context) {
  for (bool changed = true; changed;) {
    changed = false;
    for (Node* node : graph.nodes())
      if (node->is(ops::fake_quantize) && !node->output()->uses.empty())
        changed |= drop_repeated(graph, node, context) || take_limits(graph, node, context);
    graph.erase_dead();
  }
}

}  // namespace hone::passes
