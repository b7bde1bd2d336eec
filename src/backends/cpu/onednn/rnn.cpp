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

enum class Cell { lstm, gru, lbr_gru };  // lbr: resets late
inline constexpr std::array<std::string_view, 3> kCellNames = {"lstm", "gru", "lbr_gru"};
constexpr const auto& field_names(Cell) { return kCellNames; }

enum class Direction { forward, reverse, bidirectional };
inline constexpr std::array<std::string_view, 3> kDirectionNames = {"forward", "reverse", "bidirectional"};
constexpr const auto& field_names(Direction) { return kDirectionNames; }

/// The library's own, of the weights.
enum class Format { blocked };
inline constexpr std::array<std::string_view, 1> kFormatNames = {"blocked"};
constexpr const auto& field_names(Format) { return kFormatNames; }

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

dnnl::rnn_direction direction_of(Direction direction) {
  switch (direction) {
    case Direction::forward: return dnnl::rnn_direction::unidirectional_left2right;
    case Direction::reverse: return dnnl::rnn_direction::unidirectional_right2left;
    case Direction::bidirectional: return dnnl::rnn_direction::bidirectional_concat;
  }
  return dnnl::rnn_direction::unidirectional_left2right;
}

struct Layer {
  Desc x, h0, c0, weights, recurrent, bias, y, h, c;
};

template <typename Forward>
dnnl::primitive_desc describe_gru(const Layer& l, dnnl::rnn_direction direction, const dnnl::primitive_attr& attr) {
  return typename Forward::primitive_desc(engine(), dnnl::prop_kind::forward_inference, direction, l.x, l.h0, l.weights,
                                          l.recurrent, l.bias, l.y, l.h, attr, true);
}

dnnl::primitive_desc describe(Cell cell, const Layer& l, dnnl::rnn_direction direction) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (cell == Cell::gru) return describe_gru<dnnl::gru_forward>(l, direction, attr);
  if (cell == Cell::lbr_gru) return describe_gru<dnnl::lbr_gru_forward>(l, direction, attr);
  return dnnl::lstm_forward::primitive_desc(engine(), dnnl::prop_kind::forward_inference, direction, l.x, l.h0, l.c0,
                                            l.weights, l.recurrent, l.bias, l.y, l.h, l.c, attr, true);
}

struct RecurrentParams {
  std::optional<Format> format;  // none: plain
  OperandType operands;
  static void fields(auto& self, auto& visit) {
    visit("format", self.format);
    OperandType::fields(self.operands, visit);
  }
};

struct RecurrentCode {
  static constexpr int64_t kMostWidth = (1 << 20) - 1;
  using Place = std::optional<int64_t>;  // among inputs or results; none: absent

  Cell cell = Cell::lstm;
  Direction direction = Direction::forward;
  int64_t hidden = 1, width = 1;  // of a state; of the sequence
  int64_t x = 0;
  Place h0, c0, y, h, c;
  std::optional<std::string> format, recurrent_format;  // of the weights in the plan; none: plain
  OperandType operands;
  static void fields(auto& self, auto& visit) {
    visit("cell", self.cell);
    visit("direction", self.direction);
    visit("hidden", self.hidden, 1, kMostWidth);
    visit("width", self.width, 1, kMostWidth);
    visit("x", self.x, 0, kMostOperands - 1);
    visit("h0", self.h0, 0, kMostOperands - 1);
    visit("c0", self.c0, 0, kMostOperands - 1);
    visit("y", self.y, 0, kMostOperands - 1);
    visit("h", self.h, 0, kMostOperands - 1);
    visit("c", self.c, 0, kMostOperands - 1);
    visit("format", self.format);
    visit("recurrent_format", self.recurrent_format);
    OperandType::fields(self.operands, visit);
  }

  bool lstm() const { return cell == Cell::lstm; }
  bool final_states() const { return h || c; }
  int64_t directions() const { return direction == Direction::bidirectional ? 2 : 1; }
  int64_t gates() const { return lstm() ? 4 : 3; }
  Dims weights() const { return {1, directions(), width, gates(), hidden}; }
  Dims recurrent() const { return {1, directions(), hidden, gates(), hidden}; }
  Dims bias() const { return {1, directions(), cell == Cell::gru ? 3 : 4, hidden}; }

  Layer layer(int64_t steps, int64_t batch, const Desc& weights, const Desc& recurrent) const {
    const ElementType element = operands.element();
    const Dims states{1, directions(), batch, hidden};
    Layer layer{.x = plain_desc({steps, batch, width}, element),
                .weights = weights,
                .recurrent = recurrent,
                .bias = plain_desc(bias()),
                .y = plain_desc({steps, batch, directions() * hidden}, element)};
    if (h0) layer.h0 = plain_desc(states, element);
    if (c0 && lstm()) layer.c0 = plain_desc(states);
    if (final_states()) layer.h = plain_desc(states, element);
    if (final_states() && lstm()) layer.c = plain_desc(states);
    return layer;
  }
  dnnl::primitive_desc describe(const Layer& layer) const {
    return onednn::describe(cell, layer, direction_of(direction));
  }
  /// The library chooses the format of the weights.
  dnnl::primitive_desc describe_any(int64_t steps, int64_t batch) const {
    return describe(
        layer(steps, batch, any_desc(weights(), operands.element()), any_desc(recurrent(), operands.element())));
  }
  dnnl::primitive_desc describe_plain(int64_t steps, int64_t batch) const {
    return describe(
        layer(steps, batch, plain_desc(weights(), operands.element()), plain_desc(recurrent(), operands.element())));
  }
  /// As the plan keeps the weights.
  Desc stored_weights() const { return stored(format, weights()); }
  Desc stored_recurrent() const { return stored(recurrent_format, recurrent()); }

 private:
  Desc stored(const std::optional<std::string>& name, const Dims& dims) const {
    return name ? desc_in_format(dims, *name, operands.element()) : plain_desc(dims, operands.element());
  }
};

Desc weights_of(const dnnl::primitive_desc& desc) {
  return desc.query_md(dnnl::query::exec_arg_md, DNNL_ARG_WEIGHTS_LAYER);
}
Desc recurrent_of(const dnnl::primitive_desc& desc) {
  return desc.query_md(dnnl::query::exec_arg_md, DNNL_ARG_WEIGHTS_ITER);
}

RecurrentCode code_of(const Problem& problem, const Node& node, const OperandType& operands) {
  const auto place = [&](const Value* value) {
    return value == nullptr ? RecurrentCode::Place() : input_index(problem.region, value);
  };
  const auto result = [&](size_t i) -> RecurrentCode::Place {
    const std::vector<Value*>& outputs = problem.region.outputs();
    for (size_t k = 0; k < outputs.size(); ++k)
      if (i < node.outputs.size() && outputs[k] == node.output(i)) return static_cast<int64_t>(k);
    return std::nullopt;
  };
  const std::string& direction = node.attrs.text("direction");
  RecurrentCode code;
  code.cell = is_lstm(node) ? Cell::lstm : resets_late(node) ? Cell::lbr_gru : Cell::gru;
  code.direction = direction == "bidirectional" ? Direction::bidirectional
                   : direction == "reverse"     ? Direction::reverse
                                                : Direction::forward;
  code.hidden = node.input(2)->constant->dims()[2];
  code.width = node.input(1)->constant->dims()[2];
  code.x = input_index(problem.region, node.input(0));
  code.h0 = place(initial_state(node, 5));
  if (is_lstm(node)) code.c0 = place(initial_state(node, 6));
  code.y = result(0), code.h = result(1), code.c = result(2);
  code.operands = operands;
  return code;
}

dnnl::primitive_desc describe_any(const Node& node, const RecurrentCode& code) {
  const Dims x = node.input(0)->type.shape.values();
  return code.describe_any(x[0], x[1]);
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

/// With the weights as they are stored, or, where other sizes want that, in another format of the library's, or plain.
dnnl::primitive_desc describe_stored(const RecurrentCode& code, int64_t steps, int64_t batch) {
  if (dnnl::primitive_desc desc =
          code.describe(code.layer(steps, batch, code.stored_weights(), code.stored_recurrent())))
    return desc;
  if (dnnl::primitive_desc desc = code.describe_any(steps, batch); desc && is_fast(desc)) return desc;
  dnnl::primitive_desc desc = code.describe_plain(steps, batch);
  HONE_CHECK(static_cast<bool>(desc), "oneDNN has no recurrent layer like the one in the plan");
  return desc;
}

/// Steps and batch. Throws Error where operands and results do not exist or do not fit together.
std::pair<int64_t, int64_t> checked_sizes(const RecurrentCode& code, const KernelShapes& shapes) {
  const auto check = [&](const std::vector<ConcreteType>& list, const char* name, const RecurrentCode::Place& place,
                         const Dims& dims) {
    const bool valid = !place || (*place < static_cast<int64_t>(list.size()) &&
                                  list[static_cast<size_t>(*place)] == ConcreteType{DType::f32, dims, Layout::linear});
    HONE_CHECK(valid, "a recurrent kernel in the plan has a wrong operand {}", name);
  };
  HONE_CHECK(code.x < static_cast<int64_t>(shapes.inputs.size()) &&
                 shapes.inputs[static_cast<size_t>(code.x)].dims.size() == 3,
             "a recurrent kernel in the plan has no sequence");
  const Dims& x = shapes.inputs[static_cast<size_t>(code.x)].dims;
  const int64_t t = x[0], n = x[1], d = code.directions();
  const Dims state{d, n, code.hidden};
  check(shapes.inputs, "x", code.x, {t, n, code.width});
  check(shapes.inputs, "h0", code.h0, state);
  check(shapes.inputs, "c0", code.c0, state);
  check(shapes.outputs, "y", code.y, {t, d, n, code.hidden});
  check(shapes.outputs, "h", code.h, state);
  check(shapes.outputs, "c", code.c, state);
  HONE_CHECK(!code.operands.rounded || n >= kLeastBatchOfBf16,
             "a recurrent kernel in the plan rounds {} sequences to bf16, fewer than {}", n, kLeastBatchOfBf16);
  return {t, n};
}

/// The steps of a launch.
class Writer {
 public:
  Writer(const RecurrentCode& code, int64_t steps, int64_t batch, const dnnl::primitive_desc& desc)
      : code_(code),
        t_(steps),
        n_(batch),
        desc_(desc),
        layer_(code.layer(steps, batch, weights_of(desc), recurrent_of(desc))) {}

  Program write() && {
    add_operands();
    add_results();
    program_.add(dnnl::primitive(desc_), desc_.scratchpad_desc(), std::move(arguments_));
    for (const Result& r : reordered_) program_.add_reorder(r.from, r.made, r.to, {Operand::output, r.place});
    return std::move(program_);
  }

 private:
  struct Result {
    Desc from;
    Operand made;
    Desc to;
    int64_t place;
  };

  Operand given(int64_t place, const Desc& wanted) {
    return operand_as(program_, plain_desc(wanted.get_dims()), wanted, {Operand::input, place});
  }

  void add_operands() {
    arguments_ = {{DNNL_ARG_SRC_LAYER, layer_.x, given(code_.x, layer_.x)},
                  {DNNL_ARG_WEIGHTS_LAYER, layer_.weights,
                   operand_as(program_, code_.stored_weights(), layer_.weights, {Operand::constant, 0})},
                  {DNNL_ARG_WEIGHTS_ITER, layer_.recurrent,
                   operand_as(program_, code_.stored_recurrent(), layer_.recurrent, {Operand::constant, 1})},
                  {DNNL_ARG_BIAS, layer_.bias, {Operand::constant, 2}}};
    if (!layer_.h0.is_zero()) arguments_.push_back({DNNL_ARG_SRC_ITER, layer_.h0, given(*code_.h0, layer_.h0)});
    if (!layer_.c0.is_zero()) arguments_.push_back({DNNL_ARG_SRC_ITER_C, layer_.c0, given(*code_.c0, layer_.c0)});
  }

  void add_result(int name, const Desc& made, const RecurrentCode::Place& place, const Desc& seen, const Desc& wanted) {
    const bool direct = place && seen == wanted;
    const Operand operand = direct ? Operand{Operand::output, *place} : program_.reserve(made.get_size());
    arguments_.push_back({name, made, operand});
    if (place && !direct) reordered_.push_back({seen, operand, wanted, *place});
  }

  void add_results() {
    const int64_t d = code_.directions(), hidden = code_.hidden;
    // The directions' results lie side by side.
    const Dims apart{t_, d, n_, hidden}, strides{n_ * d * hidden, d == 1 ? n_ * hidden : hidden, d * hidden, 1};
    add_result(DNNL_ARG_DST_LAYER, layer_.y, code_.y, {apart, code_.operands.element(), strides}, plain_desc(apart));
    const Desc states = plain_desc({1, d, n_, hidden});
    if (!layer_.h.is_zero()) add_result(DNNL_ARG_DST_ITER, layer_.h, code_.h, layer_.h, states);
    if (!layer_.c.is_zero()) add_result(DNNL_ARG_DST_ITER_C, layer_.c, code_.c, layer_.c, states);
  }

  const RecurrentCode& code_;
  const int64_t t_, n_;
  const dnnl::primitive_desc& desc_;
  const Layer layer_;
  Program program_;
  std::vector<Program::Argument> arguments_;
  std::vector<Result> reordered_;
};

struct RecurrentFamily {
  static constexpr std::string_view kName = "recurrent";
  static constexpr int kVersion = 1;
  static constexpr Cost kCost = {.arithmetic = 1.5, .operands = 35, .weights = 35};
  using Params = RecurrentParams;
  using Code = RecurrentCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = recurrent(problem);
    if (node == nullptr) return;
    if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    const auto offer = [&](const Params& params) {
      out.offer({"onednn", std::string(kName), write_fields(params),
                 std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
                 std::vector<Layout>(problem.region.outputs().size(), Layout::linear)});
    };
    offer({});
    for (const ElementType element : {ElementType::f32, ElementType::bf16}) {
      if (element == ElementType::bf16 && !may_round(problem)) continue;
      const OperandType operands(element);
      std::string reason = element == ElementType::bf16 ? reason_against_bf16(problem) : "";
      if (reason.empty()) reason = reason_against_blocks(describe_any(*node, code_of(problem, *node, operands)));
      if (reason.empty()) offer({Format::blocked, operands});
      else out.refuse(kName, std::move(reason));
    }
  }

  static Built<Code> compile(const Problem& problem, const Params& params, const Tactic&) {
    const Node& node = *recurrent(problem);
    const std::span<const int> gates = is_lstm(node) ? std::span<const int>(kLstmGates) : kGruGates;
    Built<Code> built{code_of(problem, node, params.operands)};
    Code& code = built.code;
    if (params.format) {
      const dnnl::primitive_desc desc = describe_any(node, code);
      code.format = format_of(weights_of(desc));
      code.recurrent_format = format_of(recurrent_of(desc));
    }
    const auto pack = [&](size_t input, const Dims& dims, const Desc& to) {
      return packed(arrange_weights(*node.input(input)->constant, gates, code.hidden).data<float>().data(),
                    plain_desc(dims), to);
    };
    built.constants = {pack(1, code.weights(), code.stored_weights()),
                       pack(2, code.recurrent(), code.stored_recurrent()),
                       arrange_bias(node.input(3) != nullptr ? &*node.input(3)->constant : nullptr, gates,
                                    code.directions(), code.hidden, resets_late(node))};
    return built;
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&) {
    return {constant_spec(code.stored_weights()), constant_spec(code.stored_recurrent()), {DType::f32, code.bias()}};
  }

  static Program load(const Code& code, const KernelShapes& shapes) {
    const auto [steps, batch] = checked_sizes(code, shapes);
    return Writer(code, steps, batch, describe_stored(code, steps, batch)).write();
  }
};

}  // namespace

const Family recurrent_layer = family_of<RecurrentFamily>();

}  // namespace hone::cpu::onednn
#endif
