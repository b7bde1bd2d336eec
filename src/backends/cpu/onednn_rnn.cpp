// SPDX-License-Identifier: Apache-2.0
//
// oneDNN's LSTM and GRU layers, one or both directions. ONNX orders gates, weights and the directions' results otherwise:
// weights and biases are rearranged at build time, the result of two directions at each launch.
#include "backends/cpu/onednn_support.h"

#if HONE_WITH_ONEDNN
#include "ops/ops.h"

namespace hone::cpu::onednn {
namespace {

constexpr int64_t kAbsent = -100;

/// ONNX's gate for each of the library's: i f c o out of i o f c; u r o out of z r h.
constexpr int kLstmGates[] = {0, 2, 3, 1}, kGruGates[] = {0, 1, 2};

bool is_lstm(const Node& node) { return node.is(ops::lstm); }
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

std::string reason_against(const Problem& problem, const Node& node) {
  const Value* x = node.input(0);
  if (x->type.dtype != DType::f32) return fmt::format("input is {}, not f32", name_of(x->type.dtype));
  if (x->is_constant() || x->type.shape.elements() == Dim(0)) return "its input is constant or empty";
  for (size_t i = 1; i <= 3; ++i)
    if (node.input(i) != nullptr && !node.input(i)->is_constant()) return "weights are not constant";
  if (node.input(4) != nullptr) return "sequences have lengths of their own";
  for (const size_t i : {5, 6})
    if (node.input(i) != nullptr && input_index(problem.region, node.input(i)) < 0)
      return "an initial state is constant";
  if (is_lstm(node) && (node.input(5) == nullptr) != (node.input(6) == nullptr))
    return "only one of the initial states is given";
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

void propose(const Problem& problem, Candidates& out) {
  const Node* node = recurrent(problem);
  if (node == nullptr) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("recurrent", std::move(reason));
  const auto linear = [](size_t count) { return std::vector<Layout>(count, Layout::linear); };
  out.offer(
      {"onednn", "recurrent", {}, linear(problem.region.inputs().size()), linear(problem.region.outputs().size())});
}

/// [D, G*H, K] to [D, K, G, H] with the library's order of gates.
Tensor arrange_weights(const Tensor& weights, std::span<const int> gates, int64_t hidden) {
  const int64_t d_count = weights.dims()[0], k_count = weights.dims()[2], g_count = static_cast<int64_t>(gates.size());
  TensorBuilder builder(DType::f32, {d_count, k_count, g_count, hidden});
  const std::span<const float> from = weights.data<float>();
  float* to = builder.data<float>().data();
  for (int64_t d = 0; d < d_count; ++d)
    for (int64_t k = 0; k < k_count; ++k)
      for (int64_t g = 0; g < g_count; ++g)
        for (int64_t h = 0; h < hidden; ++h)
          *to++ = from[static_cast<size_t>(((d * g_count + gates[static_cast<size_t>(g)]) * hidden + h) * k_count + k)];
  return builder.finish();
}

/// Input and recurrent bias of [D, 2*G*H] added, except for the last gate of a GRU that resets late: it keeps both.
Tensor arrange_bias(const Value* bias, std::span<const int> gates, int64_t d_count, int64_t hidden, bool late_reset) {
  const int64_t g_count = static_cast<int64_t>(gates.size()), rows = g_count + (late_reset ? 1 : 0);
  TensorBuilder builder(DType::f32, {d_count, rows, hidden});
  const std::span<float> to = builder.data<float>();
  std::fill(to.begin(), to.end(), 0.0f);
  if (bias == nullptr) return builder.finish();
  const std::span<const float> from = bias->constant->data<float>();
  for (int64_t d = 0; d < d_count; ++d)
    for (int64_t g = 0; g < g_count; ++g)
      for (int64_t h = 0; h < hidden; ++h) {
        const int64_t at = d * 2 * g_count * hidden + gates[static_cast<size_t>(g)] * hidden + h,
                      target = (d * rows + g) * hidden + h;
        const float input = from[static_cast<size_t>(at)], state = from[static_cast<size_t>(at + g_count * hidden)];
        const bool apart = late_reset && g == g_count - 1;
        to[static_cast<size_t>(target)] = apart ? input : input + state;
        if (apart) to[static_cast<size_t>(target + hidden)] = state;
      }
  return builder.finish();
}

Compiled compile(const Problem& problem, const Tactic&) {
  const Node& node = *recurrent(problem);
  const bool lstm = is_lstm(node), late_reset = !lstm && node.attrs.integer("linear_before_reset") != 0;
  const std::span<const int> gates = lstm ? std::span<const int>(kLstmGates) : kGruGates;
  const int64_t hidden = node.input(2)->constant->dims()[2];
  const auto place = [&](const Value* value) {
    return value == nullptr ? kAbsent : int64_t{input_index(problem.region, value)};
  };
  const auto result = [&](size_t i) {
    const std::vector<Value*>& outputs = problem.region.outputs();
    for (size_t k = 0; k < outputs.size(); ++k)
      if (i < node.outputs.size() && outputs[k] == node.output(i)) return static_cast<int64_t>(k);
    return kAbsent;
  };
  const Attrs attrs{{"cell", std::string(lstm         ? "lstm"
                                         : late_reset ? "lbr_gru"
                                                      : "gru")},
                    {"direction", node.attrs.text("direction")},
                    {"hidden", hidden},
                    {"width", node.input(1)->constant->dims()[2]},
                    {"x", place(node.input(0))},
                    {"h0", place(node.input(5))},
                    {"c0", place(node.input(6))},
                    {"y", result(0)},
                    {"h", result(1)},
                    {"c", result(2)}};
  return {encode_code("recurrent", attrs),
          {arrange_weights(*node.input(1)->constant, gates, hidden),
           arrange_weights(*node.input(2)->constant, gates, hidden),
           arrange_bias(node.input(3), gates, directions(node), hidden, late_reset)}};
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
std::pair<dnnl::primitive, Desc> make_gru(const Layer& l, dnnl::rnn_direction direction,
                                          const dnnl::primitive_attr& attr) {
  const typename Forward::primitive_desc desc(engine(), dnnl::prop_kind::forward_inference, direction, l.x, l.h0,
                                              l.weights, l.recurrent, l.bias, l.y, l.h, attr);
  return {Forward(desc), desc.scratchpad_desc()};
}

std::pair<dnnl::primitive, Desc> make(const std::string& cell, const Layer& l, dnnl::rnn_direction direction) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (cell == "gru") return make_gru<dnnl::gru_forward>(l, direction, attr);
  if (cell == "lbr_gru") return make_gru<dnnl::lbr_gru_forward>(l, direction, attr);
  HONE_CHECK(cell == "lstm", "a recurrent kernel in the plan has the unknown cell {}", cell);
  const dnnl::lstm_forward::primitive_desc desc(engine(), dnnl::prop_kind::forward_inference, direction, l.x, l.h0,
                                                l.c0, l.weights, l.recurrent, l.bias, l.y, l.h, l.c, attr);
  return {dnnl::lstm_forward(desc), desc.scratchpad_desc()};
}

Program load(const Attrs& attrs, const KernelShapes& shapes) {
  const std::string& cell = attrs.text("cell");
  const int64_t hidden = attrs.integer("hidden"), width = attrs.integer("width"),
                d = attrs.text("direction") == "bidirectional" ? 2 : 1;
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
                 shapes.inputs[static_cast<size_t>(x_place)].dims.size() == 3 && hidden > 0 && width > 0,
             "a recurrent kernel in the plan has no sequence");
  const Dims& x = shapes.inputs[static_cast<size_t>(x_place)].dims;
  const int64_t t = x[0], n = x[1];
  type_of(shapes.inputs, "x", {t, n, width});
  const Dims state{d, n, hidden};
  const int64_t h0 = type_of(shapes.inputs, "h0", state), c0 = type_of(shapes.inputs, "c0", state),
                y = type_of(shapes.outputs, "y", {t, d, n, hidden}), h = type_of(shapes.outputs, "h", state),
                c = type_of(shapes.outputs, "c", state);
  const bool lstm = cell == "lstm";
  const int64_t gates = lstm ? 4 : 3, biases = cell == "gru" ? 3 : 4;
  const Desc states = plain_desc({1, d, n, hidden});

  Layer layer;
  layer.x = plain_desc({t, n, width});
  if (h0 != kAbsent) layer.h0 = states;
  if (lstm && c0 != kAbsent) layer.c0 = states;
  layer.weights = plain_desc({1, d, width, gates, hidden});
  layer.recurrent = plain_desc({1, d, hidden, gates, hidden});
  layer.bias = plain_desc({1, d, biases, hidden});
  layer.y = plain_desc({t, n, d * hidden});
  const bool final_states = h != kAbsent || c != kAbsent;
  if (final_states) layer.h = states;
  if (final_states && lstm) layer.c = states;
  const auto [primitive, scratchpad] = make(cell, layer, direction_of(attrs.text("direction")));

  Program program;
  const auto out = [&](int64_t place, const Desc& desc) {
    return place != kAbsent ? Operand{Operand::output, place} : program.reserve(desc.get_size());
  };
  const bool direct = y != kAbsent && d == 1;
  const Operand sequence = direct ? Operand{Operand::output, y} : program.reserve(layer.y.get_size());
  std::vector<Program::Argument> arguments{{DNNL_ARG_SRC_LAYER, layer.x, {Operand::input, x_place}},
                                           {DNNL_ARG_WEIGHTS_LAYER, layer.weights, {Operand::constant, 0}},
                                           {DNNL_ARG_WEIGHTS_ITER, layer.recurrent, {Operand::constant, 1}},
                                           {DNNL_ARG_BIAS, layer.bias, {Operand::constant, 2}},
                                           {DNNL_ARG_DST_LAYER, layer.y, sequence}};
  if (h0 != kAbsent) arguments.push_back({DNNL_ARG_SRC_ITER, states, {Operand::input, h0}});
  if (lstm && c0 != kAbsent) arguments.push_back({DNNL_ARG_SRC_ITER_C, states, {Operand::input, c0}});
  if (final_states) arguments.push_back({DNNL_ARG_DST_ITER, states, out(h, states)});
  if (final_states && lstm) arguments.push_back({DNNL_ARG_DST_ITER_C, states, out(c, states)});
  program.add(primitive, scratchpad, std::move(arguments));
  if (y != kAbsent && !direct) {
    const Dims dims{t, d, n, hidden};
    program.add_reorder({dims, dnnl::memory::data_type::f32, Dims{n * d * hidden, hidden, d * hidden, 1}}, sequence,
                        plain_desc(dims), {Operand::output, y});
  }
  return program;
}

}  // namespace

const Family recurrent_layer{"recurrent", propose, compile, load};

}  // namespace hone::cpu::onednn
#endif
