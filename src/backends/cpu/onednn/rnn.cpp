// SPDX-License-Identifier: Apache-2.0
//
// oneDNN's LSTM and GRU layers, one or both directions. ONNX orders gates, weights and the directions' results otherwise:
// weights and biases are rearranged at build time, the result of two directions at each launch. Weights lie plain or in the
// library's own format, for which it has another kernel: either may be the faster one. Rounded to bf16 are the sequence, the
// weights and the hidden states, not the cell's.
#include "backends/cpu/onednn/rnn_weights.h"
#include "backends/cpu/onednn/support.h"

#if HONE_WITH_ONEDNN
#include <algorithm>

#include "ops/ops.h"

namespace hone::cpu::onednn {
namespace {

constexpr int64_t kAbsent = -100;

bool is_lstm(const Node& node) { return node.is(ops::lstm); }
bool resets_late(const Node& node) { return node.is(ops::gru) && node.attrs.integer("linear_before_reset") != 0; }
int64_t directions(const Node& node) { return node.attrs.text("direction") == "bidirectional" ? 2 : 1; }

bool has_default_activations(const Node& node) {
  if (!node.attrs.has("activations")) return true;
  std::vector<std::string> expected;
  for (int64_t d = 0; d < directions(node); ++d) {
    expected.insert(expected.end(), {"Sigmoid", "Tanh"});
    if (is_lstm(node)) expected.push_back("Tanh");
  }
  return node.attrs.texts("activations") == expected;
}

/// An initial hidden (5) or cell's state (6); null where it is zero.
const Value* initial_state(const Node& node, size_t i) {
  const Value* value = node.input(i);
  if (value == nullptr || !value->is_constant()) return value;
  const std::span<const float> numbers = value->constant->data<float>();
  return std::all_of(numbers.begin(), numbers.end(), [](float number) { return number == 0; }) ? nullptr : value;
}

std::string reason_against(const Node& node) {
  const Value* x = node.input(0);
  if (x->type.dtype != DType::f32) return fmt::format("input is {}, not f32", name_of(x->type.dtype));
  if (x->is_constant() || x->type.shape.elements() == Dim(0)) return "its input is constant or empty";
  for (size_t i = 1; i <= 3; ++i)
    if (node.input(i) != nullptr && !node.input(i)->is_constant()) return "weights are not constant";
  if (node.input(4) != nullptr) return "sequences have lengths of their own";
  const Value *hidden = initial_state(node, 5), *cell = is_lstm(node) ? initial_state(node, 6) : nullptr;
  for (const Value* state : {hidden, cell})
    if (state != nullptr && state->is_constant()) return "an initial state is constant and not zero";
  if (is_lstm(node) && (hidden == nullptr) != (cell == nullptr)) return "only one of the initial states is given";
  if (node.input(7) != nullptr) return "has peepholes";
  if (!has_default_activations(node)) return "its activations are not the usual ones";
  if (node.attrs.has("clip")) return "clips";
  if (node.attrs.integer_or("input_forget", 0) != 0) return "couples input and forget gates";
  return {};
}

const Node* recurrent(const Problem& problem) {
  const Node* node = problem.only();
  return node != nullptr && (node->is(ops::lstm) || node->is(ops::gru)) ? node : nullptr;
}

dnnl::rnn_direction direction_of(const std::string& name) {
  if (name == "bidirectional") return dnnl::rnn_direction::bidirectional_concat;
  return name == "reverse" ? dnnl::rnn_direction::unidirectional_right2left
                           : dnnl::rnn_direction::unidirectional_left2right;
}

struct Layer {
  Desc x, h0, c0, weights, recurrent, bias, y, h, c;
};

template <typename Forward>
dnnl::primitive_desc describe_gru(const Layer& l, dnnl::rnn_direction direction, const dnnl::primitive_attr& attr) {
  return typename Forward::primitive_desc(engine(), dnnl::prop_kind::forward_inference, direction, l.x, l.h0, l.weights,
                                          l.recurrent, l.bias, l.y, l.h, attr, true);
}

dnnl::primitive_desc describe(const std::string& cell, const Layer& l, dnnl::rnn_direction direction) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (cell == "gru") return describe_gru<dnnl::gru_forward>(l, direction, attr);
  if (cell == "lbr_gru") return describe_gru<dnnl::lbr_gru_forward>(l, direction, attr);
  HONE_CHECK(cell == "lstm", "a recurrent kernel in the plan has the unknown cell {}", cell);
  return dnnl::lstm_forward::primitive_desc(engine(), dnnl::prop_kind::forward_inference, direction, l.x, l.h0, l.c0,
                                            l.weights, l.recurrent, l.bias, l.y, l.h, l.c, attr, true);
}

/// What a kernel's code says of its layer.
struct Code {
  const Attrs& attrs;
  const std::string cell = attrs.text("cell"), direction = attrs.text("direction");
  const int64_t hidden = attrs.integer("hidden"), width = attrs.integer("width"),
                d = direction == "bidirectional" ? 2 : 1;
  const ElementType operands = operands_of(attrs);

  bool lstm() const { return cell == "lstm"; }
  bool has(const char* name) const { return attrs.integer(name) != kAbsent; }
  bool final_states() const { return has("h") || has("c"); }
  int64_t gates() const { return lstm() ? 4 : 3; }
  Dims weights() const { return {1, d, width, gates(), hidden}; }
  Dims recurrent() const { return {1, d, hidden, gates(), hidden}; }

  Layer layer(int64_t steps, int64_t batch, const Desc& weights, const Desc& recurrent) const {
    const Dims states{1, d, batch, hidden};
    Layer layer{.x = plain_desc({steps, batch, width}, operands),
                .weights = weights,
                .recurrent = recurrent,
                .bias = plain_desc({1, d, cell == "gru" ? 3 : 4, hidden}),
                .y = plain_desc({steps, batch, d * hidden}, operands)};
    if (has("h0")) layer.h0 = plain_desc(states, operands);
    if (has("c0") && lstm()) layer.c0 = plain_desc(states);
    if (final_states()) layer.h = plain_desc(states, operands);
    if (final_states() && lstm()) layer.c = plain_desc(states);
    return layer;
  }
  dnnl::primitive_desc describe(const Layer& layer) const {
    return onednn::describe(cell, layer, direction_of(direction));
  }
  /// The library chooses the format of the weights.
  dnnl::primitive_desc describe_any(int64_t steps, int64_t batch) const {
    return describe(layer(steps, batch, any_desc(weights(), operands), any_desc(recurrent(), operands)));
  }
};

Desc weights_of(const dnnl::primitive_desc& desc) {
  return desc.query_md(dnnl::query::exec_arg_md, DNNL_ARG_WEIGHTS_LAYER);
}
Desc recurrent_of(const dnnl::primitive_desc& desc) {
  return desc.query_md(dnnl::query::exec_arg_md, DNNL_ARG_WEIGHTS_ITER);
}

Attrs attrs_of(const Problem& problem, const Node& node) {
  const auto place = [&](const Value* value) {
    return value == nullptr ? kAbsent : int64_t{input_index(problem.region, value)};
  };
  const auto result = [&](size_t i) {
    const std::vector<Value*>& outputs = problem.region.outputs();
    for (size_t k = 0; k < outputs.size(); ++k)
      if (i < node.outputs.size() && outputs[k] == node.output(i)) return static_cast<int64_t>(k);
    return kAbsent;
  };
  return {{"cell", std::string(is_lstm(node)       ? "lstm"
                               : resets_late(node) ? "lbr_gru"
                                                   : "gru")},
          {"direction", node.attrs.text("direction")},
          {"hidden", node.input(2)->constant->dims()[2]},
          {"width", node.input(1)->constant->dims()[2]},
          {"x", place(node.input(0))},
          {"h0", place(initial_state(node, 5))},
          {"c0", is_lstm(node) ? place(initial_state(node, 6)) : kAbsent},
          {"y", result(0)},
          {"h", result(1)},
          {"c", result(2)}};
}

dnnl::primitive_desc describe_any(const Node& node, const Attrs& attrs) {
  const Dims x = node.input(0)->type.shape.values();
  return Code{attrs}.describe_any(x[0], x[1]);
}

constexpr int64_t kLeastBatchOfBf16 = 8;

/// A layer of one sequence in bf16 ended the process on a machine with AMX (oneDNN 3.2, hidden size 256); eight were right.
std::string reason_against_bf16(const Problem& problem) {
  const Value* x = recurrent(problem)->input(0);
  const Dim& batch = problem.symbolic.inputs()[static_cast<size_t>(input_index(problem.region, x))]->type.shape[1];
  const bool safe = batch.is_constant() && batch.value() >= kLeastBatchOfBf16;
  return safe ? "" : fmt::format("bf16 needs a fixed batch of at least {}", kLeastBatchOfBf16);
}

/// Why the library's own format of the weights is not offered.
std::string reason_against_blocks(const dnnl::primitive_desc& desc) {
  if (!desc || !is_fast(desc)) return "the library has only its reference implementation for weights in its own format";
  if (format_of(weights_of(desc)).empty() || format_of(recurrent_of(desc)).empty())
    return "the library wants weights in a format without a name";
  return {};
}

void propose(const Problem& problem, Candidates& out) {
  const Node* node = recurrent(problem);
  if (node == nullptr) return;
  if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse("recurrent", std::move(reason));
  const auto offer = [&](Attrs params) {
    out.offer({"onednn", "recurrent", std::move(params),
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               std::vector<Layout>(problem.region.outputs().size(), Layout::linear)});
  };
  offer({});
  for (const ElementType operands : {ElementType::f32, ElementType::bf16}) {
    if (operands == ElementType::bf16 && !may_round(problem)) continue;
    Attrs attrs = attrs_of(problem, *node), params{{"format", std::string("blocked")}};
    set_operands(attrs, operands);
    set_operands(params, operands);
    std::string reason = operands == ElementType::bf16 ? reason_against_bf16(problem) : "";
    if (reason.empty()) reason = reason_against_blocks(describe_any(*node, attrs));
    if (reason.empty()) offer(std::move(params));
    else out.refuse("recurrent", std::move(reason));
  }
}

Compiled compile(const Problem& problem, const Tactic& tactic) {
  const Node& node = *recurrent(problem);
  const std::span<const int> gates = is_lstm(node) ? std::span<const int>(kLstmGates) : kGruGates;
  Attrs attrs = attrs_of(problem, node);
  set_operands(attrs, operands_of(tactic.params));
  const Code code{attrs};
  Desc weights = plain_desc(code.weights(), code.operands), recurrent = plain_desc(code.recurrent(), code.operands);
  if (tactic.params.has("format")) {
    const dnnl::primitive_desc desc = describe_any(node, attrs);
    weights = weights_of(desc), recurrent = recurrent_of(desc);
    attrs.set("format", format_of(weights));
    attrs.set("recurrent_format", format_of(recurrent));
  }
  const auto pack = [&](size_t input, const Dims& dims, const Desc& to) {
    return packed(arrange_weights(*node.input(input)->constant, gates, code.hidden).data<float>().data(),
                  plain_desc(dims), to);
  };
  Compiled compiled;
  compiled.constants = {pack(1, code.weights(), weights), pack(2, code.recurrent(), recurrent),
                        arrange_bias(node.input(3) != nullptr ? &*node.input(3)->constant : nullptr, gates, code.d,
                                     code.hidden, resets_late(node))};
  compiled.code = encode_code("recurrent", attrs);
  return compiled;
}

Desc stored_desc(const Code& code, const char* format, const Dims& dims) {
  return code.attrs.has(format) ? desc_in_format(dims, code.attrs.text(format), code.operands)
                                : plain_desc(dims, code.operands);
}

/// With the weights as they are stored, or, where other sizes want that, in another format of the library's, or plain.
dnnl::primitive_desc describe_stored(const Code& code, int64_t steps, int64_t batch, const Desc& weights,
                                     const Desc& recurrent) {
  if (dnnl::primitive_desc desc = code.describe(code.layer(steps, batch, weights, recurrent))) return desc;
  if (dnnl::primitive_desc desc = code.describe_any(steps, batch); desc && is_fast(desc)) return desc;
  dnnl::primitive_desc desc = code.describe(
      code.layer(steps, batch, plain_desc(code.weights(), code.operands), plain_desc(code.recurrent(), code.operands)));
  HONE_CHECK(static_cast<bool>(desc), "oneDNN has no recurrent layer like the one in the plan");
  return desc;
}

Program load(const Attrs& attrs, const KernelShapes& shapes) {
  const Code code{attrs};
  const auto type_of = [&](const std::vector<ConcreteType>& list, const char* name, const Dims& dims) {
    const int64_t place = attrs.integer(name);
    if (place == kAbsent) return place;
    const bool valid = place >= 0 && place < static_cast<int64_t>(list.size()) &&
                       list[static_cast<size_t>(place)] == ConcreteType{DType::f32, dims, Layout::linear};
    HONE_CHECK(valid, "a recurrent kernel in the plan has a wrong operand {}", name);
    return place;
  };
  const int64_t x_place = attrs.integer("x");
  HONE_CHECK(x_place >= 0 && x_place < static_cast<int64_t>(shapes.inputs.size()) &&
                 shapes.inputs[static_cast<size_t>(x_place)].dims.size() == 3 && code.hidden > 0 &&
                 code.hidden < 1 << 20 && code.width > 0 && code.width < 1 << 20,
             "a recurrent kernel in the plan has no sequence");
  const Dims& x = shapes.inputs[static_cast<size_t>(x_place)].dims;
  const int64_t t = x[0], n = x[1], d = code.d, hidden = code.hidden;
  type_of(shapes.inputs, "x", {t, n, code.width});
  HONE_CHECK(code.operands == ElementType::f32 || n >= kLeastBatchOfBf16,
             "a recurrent kernel in the plan rounds {} sequences to bf16, fewer than {}", n, kLeastBatchOfBf16);
  const Dims state{d, n, hidden};
  const int64_t h0 = type_of(shapes.inputs, "h0", state), c0 = type_of(shapes.inputs, "c0", state),
                y = type_of(shapes.outputs, "y", {t, d, n, hidden}), h = type_of(shapes.outputs, "h", state),
                c = type_of(shapes.outputs, "c", state);

  const Desc weights = stored_desc(code, "format", code.weights()),
             recurrent = stored_desc(code, "recurrent_format", code.recurrent());
  const dnnl::primitive_desc desc = describe_stored(code, t, n, weights, recurrent);
  const Layer layer = code.layer(t, n, weights_of(desc), recurrent_of(desc));
  require_constant(shapes, 0, weights);
  require_constant(shapes, 1, recurrent);
  require_constant(shapes, 2, layer.bias);

  Program program;
  const auto given = [&](int64_t place, const Desc& wanted) {
    return operand_as(program, plain_desc(wanted.get_dims()), wanted, {Operand::input, place});
  };
  std::vector<Program::Argument> arguments{
      {DNNL_ARG_SRC_LAYER, layer.x, given(x_place, layer.x)},
      {DNNL_ARG_WEIGHTS_LAYER, layer.weights, operand_as(program, weights, layer.weights, {Operand::constant, 0})},
      {DNNL_ARG_WEIGHTS_ITER, layer.recurrent, operand_as(program, recurrent, layer.recurrent, {Operand::constant, 1})},
      {DNNL_ARG_BIAS, layer.bias, {Operand::constant, 2}}};
  if (!layer.h0.is_zero()) arguments.push_back({DNNL_ARG_SRC_ITER, layer.h0, given(h0, layer.h0)});
  if (!layer.c0.is_zero()) arguments.push_back({DNNL_ARG_SRC_ITER_C, layer.c0, given(c0, layer.c0)});

  struct Result {
    Desc from;
    Operand made;
    Desc to;
    int64_t place;
  };
  std::vector<Result> reordered;
  const auto result = [&](int name, const Desc& made, int64_t place, const Desc& seen, const Desc& wanted) {
    const bool direct = place != kAbsent && seen == wanted;
    const Operand operand = direct ? Operand{Operand::output, place} : program.reserve(made.get_size());
    arguments.push_back({name, made, operand});
    if (place != kAbsent && !direct) reordered.push_back({seen, operand, wanted, place});
  };
  // The directions' results lie side by side.
  const Dims apart{t, d, n, hidden}, strides{n * d * hidden, d == 1 ? n * hidden : hidden, d * hidden, 1};
  result(DNNL_ARG_DST_LAYER, layer.y, y, {apart, code.operands, strides}, plain_desc(apart));
  const Dims states{1, d, n, hidden};
  if (!layer.h.is_zero()) result(DNNL_ARG_DST_ITER, layer.h, h, layer.h, plain_desc(states));
  if (!layer.c.is_zero()) result(DNNL_ARG_DST_ITER_C, layer.c, c, layer.c, plain_desc(states));
  program.add(dnnl::primitive(desc), desc.scratchpad_desc(), std::move(arguments));
  for (const Result& r : reordered) program.add_reorder(r.from, r.made, r.to, {Operand::output, r.place});
  return program;
}

}  // namespace

const Family recurrent_layer{"recurrent", propose, compile, load};

}  // namespace hone::cpu::onednn
#endif
