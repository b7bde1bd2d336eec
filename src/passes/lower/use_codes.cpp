// SPDX-License-Identifier: Apache-2.0
//
// On a device that multiplies bytes inside networks of floats, what convolutions and matmuls read as floats that were rounded becomes
// codes: Encode where it was rounded, Decode before each reader, which regions take in. Runs last, when the floats' type is known.
#include <cmath>
#include <map>

#include "ir/op.h"
#include "ops/ops.h"
#include "ops/weight_codes.h"
#include "passes/edit.h"
#include "passes/moved_elements.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

constexpr double kLowest = -128, kHighest = 127, kLeastNormalE4m3 = 0x1p-6;

/// How floats that were rounded are codes.
struct Coding {
  DType codes = DType::i8;
  double scale = 1, zero = 0;
  bool operator==(const Coding&) const = default;
};

std::optional<Coding> whole_coding(const Attrs& rounding) {
  const double low = rounding.real("low"), high = rounding.real("high"), scale = rounding.real("scale");
  if (low >= kLowest && high <= kHighest) return Coding{DType::i8, scale, 0};
  return high - low <= kHighest - kLowest ? std::optional(Coding{DType::i8, scale, kLowest - low}) : std::nullopt;
}

bool casts_floats(const Node& node) {
  return node.is(ops::cast) && is_float(node.output()->type.dtype) && is_float(node.input(0)->type.dtype);
}

bool rounds_to_e4m3(const Node& node) {
  return node.is(ops::fake_quantize_float8) && node.attrs.real("normal") == kLeastNormalE4m3;
}
bool rounds(const Node& node) { return node.is(ops::fake_quantize) || rounds_to_e4m3(node); }

/// What only moves elements, in bytes as well; the largest is one of whole numbers.
bool moves_codes(const Node& node, DType codes) {
  return (keeps_elements(node) || (node.is(ops::max_pool) && codes == DType::i8)) && moves_elements(node);
}

/// Nothing where an element may be no code, or of several codings.
std::optional<Coding> coding_of(const Value* value) {
  const Node* node = value->producer;
  if (node == nullptr) return std::nullopt;
  if (node->is(ops::fake_quantize)) return whole_coding(node->attrs);
  if (rounds_to_e4m3(*node)) return Coding{DType::f8e4m3fn, node->attrs.real("scale"), 0};
  if (casts_floats(*node)) return coding_of(node->input(0));
  if (!moves_elements(*node)) return std::nullopt;
  const std::optional<Coding> first = coding_of(node->input(0));
  if (!first || !moves_codes(*node, first->codes)) return std::nullopt;
  for (size_t i = 1; i < moved_operands(*node); ++i)
    if (coding_of(node->input(i)) != first) return std::nullopt;
  return first;
}

class Codes {
 public:
  Codes(Graph& graph, bool float8) : graph_(graph), float8_(float8) {}

  void run() {
    const std::vector<Node*> nodes = graph_.nodes();
    for (size_t i = 0; i < nodes.size(); ++i) order_[nodes[i]] = i;
    for (Node* node : nodes)
      if (!node->inputs.empty() && node->input(0) != nullptr && multiplies(*node, coding_of(node->input(0))))
        codes_of(node->input(0));
    for (const Node* node : nodes)
      if (node->is(ops::add)) code_residual(*node);
    for (Value* value : coded_) decode_for_readers(value);
    graph_.erase_dead();
  }

 private:
  /// Of two products of codes that are added, the later one holds the sum, and reads what the other one has stored.
  void code_residual(const Node& add) {
    const Node *first = product_behind(add.input(0)), *second = product_behind(add.input(1));
    if (first == nullptr || second == nullptr || first == second) return;
    const bool swapped = order_.at(second) < order_.at(first);
    Value* stored = add.input(swapped ? 1 : 0);
    if (used_once(graph_, stored) && multiplies(swapped ? *second : *first, coding_of(stored))) codes_of(stored);
  }
  bool multiplies(const Node& node, const std::optional<Coding>& coding) const {
    return coding && (float8_ || coding->codes == DType::i8) && multiplies_codes(node, coding->codes);
  }
  /// The convolution or matmul whose rounded result this is, perhaps after an activation.
  static const Node* product_behind(const Value* value) {
    const Node* node = value->producer != nullptr && rounds(*value->producer) ? value->producer : nullptr;
    while (node != nullptr && node->op->is_pointwise()) node = node->input(0)->producer;
    return node != nullptr && (node->is(ops::conv) || node->is(ops::linear)) ? node : nullptr;
  }

  Value* codes_of(Value* value) {
    if (const auto known = codes_.find(value); known != codes_.end()) return known->second;
    Node* node = value->producer;
    Value* made = rounds(*node) ? encode(node) : casts_floats(*node) ? codes_of(node->input(0)) : move(node);
    coded_.push_back(value);
    return codes_[value] = made;
  }

  Value* encode(Node* node) {
    if (rounds_to_e4m3(*node)) return encode_float8(node);
    Attrs attrs = node->attrs;
    attrs.set("zero", whole_coding(attrs)->zero);
    return insert_for(graph_, node, ops::encode, {node->input(0)}, std::move(attrs), {node})->output();
  }

  /// What saturates before it is part of it.
  Value* encode_float8(Node* node) {
    const double scale = node->attrs.real("scale"), most = largest_of(DType::f8e4m3fn) * scale;
    const Node* clamp = producer(node->input(0), ops::clamp);
    const bool saturates = clamp != nullptr && clamp->attrs.real("min") == -most && clamp->attrs.real("max") == most;
    Value* x = saturates ? clamp->input(0) : node->input(0);
    return insert_for(graph_, node, ops::encode_float8, {x}, {{"scale", scale}}, {node})->output();
  }

  Value* move(Node* node) {
    std::vector<Value*> inputs = node->inputs;
    for (size_t i = 0; i < moved_operands(*node); ++i) inputs[i] = codes_of(inputs[i]);
    return insert_for(graph_, node, *node->op, std::move(inputs), node->attrs, {node})->output();
  }

  /// A Decode for each reader that may take it into its own loop; the others share one.
  void decode_for_readers(Value* value) {
    const Coding coding = *coding_of(value);
    Value* shared = nullptr;
    const std::vector<Use> uses = value->uses;
    for (const Use& use : uses) {
      if (is_coded(*use.node)) continue;
      const bool alone = use.node->op->is_pointwise() || use.node->is(ops::conv) || multiplies(*use.node, coding);
      if (alone) graph_.set_input(use.node, use.index, decode(*value, coding, use.node));
      else {
        if (shared == nullptr) shared = decode(*value, coding, use.node);
        graph_.set_input(use.node, use.index, shared);
      }
    }
  }
  /// What reads its result reads its codes.
  bool is_coded(const Node& node) const { return codes_.contains(node.output()) && !graph_.is_output(node.output()); }

  Value* decode(Value& value, const Coding& coding, Node* reader) {
    Value* codes = codes_.at(&value);
    return insert_for(graph_, reader, ops::decode, {codes},
                      {{"scale", coding.scale}, {"zero", coding.zero}, {"to", std::string(name_of(value.type.dtype))}},
                      {codes->producer})
        ->output();
  }

  Graph& graph_;
  const bool float8_;
  std::map<const Node*, size_t> order_;
  std::map<Value*, Value*> codes_;
  std::vector<Value*> coded_;  // in the order in which they were
};

}  // namespace

void use_codes(Graph& graph, const PassContext& context) {
  if (context.code_products) Codes(graph, context.float8_products).run();
}

}  // namespace hone::passes
