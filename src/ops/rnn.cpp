// SPDX-License-Identifier: Apache-2.0
//
// LSTM, GRU and the plain recurrent layer, step by step. Operands: x, w, r[, b, sequence_lens, initial_h, initial_c, p].
#include <algorithm>
#include <cmath>

#include "ops/gemm_loops.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone::ops {
namespace {

int64_t directions(const Attrs& attrs) { return attrs.text("direction") == "bidirectional" ? 2 : 1; }

void infer_rnn(InferContext& context) {
  const Shape &x = context.shape(0), &r = context.shape(2);
  HONE_CHECK(x.rank() == 3 && r.rank() == 3 && context.rank(1) == 3, "recurrent layers need operands of rank 3");
  const Dim count(directions(context.attrs())), hidden = r[2];
  HONE_CHECK(r[0] == count, "the weights are for {} directions, the layer has {}", r[0].text(), count.text());
  const Dim gates(context.node().op_name() == "LSTM" ? 4 : context.node().op_name() == "GRU" ? 3 : 1);
  const Shape states{count, x[1], hidden}, wanted[] = {x,
                                                       {count, gates * hidden, x[2]},
                                                       {count, gates * hidden, hidden},
                                                       {count, Dim(2) * gates * hidden},
                                                       {x[1]},
                                                       states,
                                                       states,
                                                       {count, Dim(3) * hidden}};
  for (size_t i = 1; i < std::min(context.inputs(), std::size(wanted)); ++i) {
    if (!context.has(i)) continue;
    check_rank(context, i, wanted[i].rank(), "an operand of a recurrent layer");
    for (size_t axis = 0; axis < wanted[i].rank(); ++axis)
      check_equal(context.shape(i)[axis], wanted[i][axis], fmt::format("axis {} of operand {} of the layer", axis, i));
  }
  context.set(0, context.dtype(0), {x[0], count, x[1], hidden});
  for (size_t i = 1; i < context.outputs(); ++i) context.set(i, context.dtype(0), {count, x[1], hidden});
}

float activate(const std::string& name, float x, float alpha, float beta) {
  if (name == "Sigmoid") return 1 / (1 + std::exp(-x));
  if (name == "Tanh") return std::tanh(x);
  if (name == "Relu") return std::max(x, 0.0f);
  if (name == "HardSigmoid") return std::clamp(alpha * x + beta, 0.0f, 1.0f);
  if (name == "LeakyRelu") return x < 0 ? alpha * x : x;
  if (name == "ThresholdedRelu") return x > alpha ? x : 0;
  if (name == "ScaledTanh") return alpha * std::tanh(beta * x);
  if (name == "Affine") return alpha * x + beta;
  if (name == "Elu") return x < 0 ? alpha * (std::exp(x) - 1) : x;
  if (name == "Softsign") return x / (1 + std::abs(x));
  if (name == "Softplus") return std::log1p(std::exp(x));
  throw Error("unknown activation '" + name + "' of a recurrent layer");
}

/// The activation functions of one direction.
class Activations {
 public:
  Activations(const Attrs& attrs, const std::vector<std::string>& defaults, int64_t direction) : attrs_(attrs) {
    names_ = defaults;
    if (attrs.has("activations") && !attrs.texts("activations").empty()) {
      const std::vector<std::string>& given = attrs.texts("activations");
      first_ = static_cast<size_t>(direction) * defaults.size();
      HONE_CHECK(given.size() >= first_ + defaults.size(), "{} activations are given, {} are needed", given.size(),
                 first_ + defaults.size());
      names_.assign(given.begin() + static_cast<std::ptrdiff_t>(first_),
                    given.begin() + static_cast<std::ptrdiff_t>(first_ + defaults.size()));
    }
  }
  float operator()(size_t which, float x) const {
    return activate(names_[which], x,
                    parameter("activation_alpha", which,
                              names_[which] == "HardSigmoid" ? 0.2f
                              : names_[which] == "LeakyRelu" ? 0.01f
                                                             : 1.0f),
                    parameter("activation_beta", which, names_[which] == "HardSigmoid" ? 0.5f : 0.0f));
  }

 private:
  float parameter(std::string_view name, size_t which, float fallback) const {
    if (!attrs_.has(name) || attrs_.reals(name).size() <= first_ + which) return fallback;
    return static_cast<float>(attrs_.reals(name)[first_ + which]);
  }
  const Attrs& attrs_;
  std::vector<std::string> names_;
  size_t first_ = 0;
};

/// Bounds what goes into the activation functions.
struct Clip {
  explicit Clip(const Attrs& attrs) : limit(attrs.has("clip") ? static_cast<float>(attrs.real("clip")) : INFINITY) {}
  float operator()(float x) const { return std::clamp(x, -limit, limit); }
  float limit;
};

std::vector<float> transposed(const float* data, int64_t rows, int64_t columns) {
  std::vector<float> result(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) result[static_cast<size_t>(j * rows + i)] = data[i * columns + j];
  return result;
}

/// y[n] += x[k] * m[k, n]: one step of one item.
void add_row_product(int64_t n, int64_t k, const float* x, const float* m, float* y) {
  for (int64_t p = 0; p < k; ++p, m += n)
    for (int64_t j = 0; j < n; ++j) y[j] += x[p] * m[j];
}

/// What the three layers share: operands as floats, sizes, the walk over time and directions.
struct Sequence {
  explicit Sequence(EvalContext& context, int64_t gates)
      : x(context.input(0)),
        w(context.input(1)),
        r(context.input(2)),
        steps(context.input(0).dims()[0]),
        batch(context.input(0).dims()[1]),
        width(context.input(0).dims()[2]),
        hidden(context.input(2).dims()[2]),
        count(directions(context.attrs())),
        gates_(gates) {
    check_sizes(context);
    if (context.has(3)) b.emplace(context.input(3));
    if (context.has(4)) lengths = context.input(4).integers();
    if (context.has(5)) h0.emplace(context.input(5));
    y.assign(static_cast<size_t>(steps * count * batch * hidden), 0.0f);
    last_h.assign(static_cast<size_t>(count * batch * hidden), 0.0f);
  }

  /// The later operands: bias, lengths, first hidden state, first cell state, peepholes.
  void check_sizes(const EvalContext& context) const {
    const int64_t rows = count * gates_ * hidden, states = count * batch * hidden,
                  sizes[] = {steps * batch * width, rows * width, rows * hidden, 2 * rows, batch, states, states,
                             3 * count * hidden};
    for (size_t i = 1; i < std::min(context.inputs(), std::size(sizes)); ++i)
      HONE_CHECK(!context.has(i) || context.input(i).size() == sizes[i],
                 "operand {} of the layer has {} elements where {} are needed", i, context.input(i).size(), sizes[i]);
  }

  /// x·Wᵀ (+ both biases where `add_r_bias`) for all steps: [steps*batch, gates*hidden].
  std::vector<float> project(int64_t direction, int64_t biased_r_gates) const {
    const int64_t n = gates_ * hidden;
    std::vector<float> out(static_cast<size_t>(steps * batch * n), 0.0f);
    if (b)
      for (int64_t row = 0; row < steps * batch; ++row)
        for (int64_t j = 0; j < n; ++j)
          out[static_cast<size_t>(row * n + j)] =
              (*b)[direction * 2 * n + j] + (j < biased_r_gates * hidden ? (*b)[direction * 2 * n + n + j] : 0.0f);
    add_matmul_parallel(steps * batch, n, width, {x.data(), width, 1}, {w.data() + direction * n * width, 1, width},
                        out.data(), n);
    return out;
  }
  int64_t length(int64_t item) const {
    return lengths.empty() ? steps : std::clamp<int64_t>(lengths[static_cast<size_t>(item)], 0, steps);
  }
  void store(int64_t direction, int64_t time, int64_t item, const float* h) {
    std::copy_n(h, hidden, y.data() + ((time * count + direction) * batch + item) * hidden);
  }

  Floats x, w, r;
  std::optional<Floats> b, h0;
  std::vector<int64_t> lengths;
  int64_t steps, batch, width, hidden, count, gates_;
  std::vector<float> y, last_h;
};

/// Calls step(time, item) in each direction's order; a shorter sequence runs backwards from its own end.
template <typename Step>
void walk(const Sequence& s, const Attrs& attrs, int64_t direction, const Step& step) {
  const bool backwards = direction == 1 || attrs.text("direction") == "reverse";
  for (int64_t item = 0; item < s.batch; ++item)
    for (int64_t i = 0; i < s.length(item); ++i) step(backwards ? s.length(item) - 1 - i : i, item);
}

void set_outputs(EvalContext& context, Sequence& s, const std::vector<float>* last_c) {
  const DType dtype = context.input(0).dtype();
  context.set(0, write_floats(dtype, {s.steps, s.count, s.batch, s.hidden}, s.y));
  if (context.outputs() > 1) context.set(1, write_floats(dtype, {s.count, s.batch, s.hidden}, s.last_h));
  if (context.outputs() > 2 && last_c != nullptr)
    context.set(2, write_floats(dtype, {s.count, s.batch, s.hidden}, *last_c));
}

void eval_lstm(EvalContext& context) {
  Sequence s(context, 4);
  const int64_t h = s.hidden, n = 4 * h;
  std::optional<Floats> c0, p;
  if (context.has(6)) c0.emplace(context.input(6));
  if (context.has(7)) p.emplace(context.input(7));
  const bool coupled = context.attrs().integer("input_forget") != 0;
  const Clip clip(context.attrs());
  std::vector<float> last_c(s.last_h.size(), 0.0f), gates(static_cast<size_t>(n));
  for (int64_t d = 0; d < s.count; ++d) {
    const Activations f(context.attrs(), {"Sigmoid", "Tanh", "Tanh"}, d);
    const std::vector<float> projected = s.project(d, 4), rt = transposed(s.r.data() + d * n * h, n, h);
    for (int64_t i = 0; i < s.batch * h; ++i) {
      s.last_h[static_cast<size_t>(d * s.batch * h + i)] = s.h0 ? (*s.h0)[d * s.batch * h + i] : 0.0f;
      last_c[static_cast<size_t>(d * s.batch * h + i)] = c0 ? (*c0)[d * s.batch * h + i] : 0.0f;
    }
    walk(s, context.attrs(), d, [&](int64_t time, int64_t item) {
      float* hidden = s.last_h.data() + (d * s.batch + item) * h;
      float* cell = last_c.data() + (d * s.batch + item) * h;
      std::copy_n(projected.data() + (time * s.batch + item) * n, n, gates.data());
      add_row_product(n, h, hidden, rt.data(), gates.data());
      const auto peep = [&](int64_t which, int64_t j, float c) { return p ? (*p)[(d * 3 + which) * h + j] * c : 0.0f; };
      for (int64_t j = 0; j < h; ++j) {  // gates: input, output, forget, cell
        const float in = f(0, clip(gates[static_cast<size_t>(j)] + peep(0, j, cell[j])));
        const float forget = coupled ? 1 - in : f(0, clip(gates[static_cast<size_t>(2 * h + j)] + peep(2, j, cell[j])));
        const float next = forget * cell[j] + in * f(1, clip(gates[static_cast<size_t>(3 * h + j)]));
        const float out = f(0, clip(gates[static_cast<size_t>(h + j)] + peep(1, j, next)));
        cell[j] = next;
        hidden[j] = out * f(2, next);
      }
      s.store(d, time, item, hidden);
    });
  }
  set_outputs(context, s, &last_c);
}

void eval_gru(EvalContext& context) {
  Sequence s(context, 3);
  const int64_t h = s.hidden, n = 3 * h;
  const Clip clip(context.attrs());
  const bool linear_first = context.attrs().integer("linear_before_reset") != 0;
  std::vector<float> recurrent(static_cast<size_t>(n)), reset(static_cast<size_t>(h)),
      candidate(static_cast<size_t>(h));
  for (int64_t d = 0; d < s.count; ++d) {
    const Activations f(context.attrs(), {"Sigmoid", "Tanh"}, d);
    const std::vector<float> projected = s.project(d, 2);
    const float* r = s.r.data() + d * n * h;
    const std::vector<float> rt_gates = transposed(r, 2 * h, h), rt_new = transposed(r + 2 * h * h, h, h);
    for (int64_t i = 0; i < s.batch * h; ++i)
      s.last_h[static_cast<size_t>(d * s.batch * h + i)] = s.h0 ? (*s.h0)[d * s.batch * h + i] : 0.0f;
    walk(s, context.attrs(), d, [&](int64_t time, int64_t item) {
      float* hidden = s.last_h.data() + (d * s.batch + item) * h;
      const float* in = projected.data() + (time * s.batch + item) * n;
      const auto r_bias = [&](int64_t j) { return s.b ? (*s.b)[d * 2 * n + n + 2 * h + j] : 0.0f; };
      std::fill(recurrent.begin(), recurrent.end(), 0.0f);
      add_row_product(2 * h, h, hidden, rt_gates.data(), recurrent.data());
      for (int64_t j = 0; j < h; ++j)
        reset[static_cast<size_t>(j)] = f(0, clip(in[h + j] + recurrent[static_cast<size_t>(h + j)]));
      std::fill(candidate.begin(), candidate.end(), 0.0f);
      if (linear_first) {
        add_row_product(h, h, hidden, rt_new.data(), candidate.data());
        for (int64_t j = 0; j < h; ++j)
          candidate[static_cast<size_t>(j)] =
              reset[static_cast<size_t>(j)] * (candidate[static_cast<size_t>(j)] + r_bias(j));
      } else {
        std::vector<float> scaled(static_cast<size_t>(h));
        for (int64_t j = 0; j < h; ++j) scaled[static_cast<size_t>(j)] = reset[static_cast<size_t>(j)] * hidden[j];
        add_row_product(h, h, scaled.data(), rt_new.data(), candidate.data());
        for (int64_t j = 0; j < h; ++j) candidate[static_cast<size_t>(j)] += r_bias(j);
      }
      for (int64_t j = 0; j < h; ++j) {
        const float update = f(0, clip(in[j] + recurrent[static_cast<size_t>(j)])),
                    fresh = f(1, clip(in[2 * h + j] + candidate[static_cast<size_t>(j)]));
        hidden[j] = (1 - update) * fresh + update * hidden[j];
      }
      s.store(d, time, item, hidden);
    });
  }
  set_outputs(context, s, nullptr);
}

void eval_rnn(EvalContext& context) {
  Sequence s(context, 1);
  const Clip clip(context.attrs());
  const int64_t h = s.hidden;
  std::vector<float> next(static_cast<size_t>(h));
  for (int64_t d = 0; d < s.count; ++d) {
    const Activations f(context.attrs(), {"Tanh"}, d);
    const std::vector<float> projected = s.project(d, 1), rt = transposed(s.r.data() + d * h * h, h, h);
    for (int64_t i = 0; i < s.batch * h; ++i)
      s.last_h[static_cast<size_t>(d * s.batch * h + i)] = s.h0 ? (*s.h0)[d * s.batch * h + i] : 0.0f;
    walk(s, context.attrs(), d, [&](int64_t time, int64_t item) {
      float* hidden = s.last_h.data() + (d * s.batch + item) * h;
      std::copy_n(projected.data() + (time * s.batch + item) * h, h, next.data());
      add_row_product(h, h, hidden, rt.data(), next.data());
      for (int64_t j = 0; j < h; ++j) hidden[j] = f(0, clip(next[static_cast<size_t>(j)]));
      s.store(d, time, item, hidden);
    });
  }
  set_outputs(context, s, nullptr);
}

/// Layout 1 (batch first) becomes layout 0 between transposes; `output_sequence` of opsets before 7 is dropped.
template <const OpDef& op>
void import_recurrent(ImportContext& context) {
  Attrs attrs = context.attrs();
  const bool batch_first = attrs.integer_or("layout", 0) != 0;
  attrs.erase("layout");
  attrs.erase("output_sequence");
  const auto transpose = [&](Value* value, std::vector<int64_t> perm) {
    return context.add("Transpose", {value}, {{"perm", std::move(perm)}})->output();
  };
  std::vector<Value*> inputs;
  for (size_t i = 0; i < context.inputs(); ++i) {
    Value* value = context.input(i);
    const bool turn = batch_first && value != nullptr && (i == 0 || i == 5 || i == 6);
    inputs.push_back(turn ? transpose(value, {1, 0, 2}) : value);
  }
  const Node* node = context.add(op.name, std::move(inputs), std::move(attrs), std::max(op.outputs, context.outputs()));
  for (size_t i = 0; i < context.outputs(); ++i) {
    if (!context.output_used(i)) continue;
    Value* value = node->output(i);
    if (batch_first) value = i == 0 ? transpose(value, {2, 0, 1, 3}) : transpose(value, {1, 0, 2});
    context.set_output(i, value);
  }
}

std::vector<AttrSpec> rnn_attrs(std::vector<AttrSpec> more) {
  const auto optional = [](std::string_view name, AttrKind kind) {
    return AttrSpec{name, kind, std::nullopt, false, {}};
  };
  std::vector<AttrSpec> attrs{
      optional("hidden_size", AttrKind::integer),   text_attr("direction", "forward"),
      optional("activations", AttrKind::texts),     optional("activation_alpha", AttrKind::reals),
      optional("activation_beta", AttrKind::reals), optional("clip", AttrKind::real)};
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

/// The lengths of the sequences.
std::optional<IntegerRange> accepts_lengths(const Node& node, size_t operand) {
  if (operand != 4) return std::nullopt;
  return lengths_along(node.input(0)->type.shape, 0);
}

}  // namespace

const OpDef lstm{.name = "LSTM",
                 .attrs = rnn_attrs({integer_attr("input_forget", 0)}),
                 .min_inputs = 3,
                 .max_inputs = 8,
                 .infer = infer_rnn,
                 .eval = eval_lstm,
                 .onnx = {{"LSTM", 1, kEveryLater, import_recurrent<lstm>}},
                 .traits = {.layer = "RNN", .accepts = accepts_lengths}};
const OpDef gru{.name = "GRU",
                .attrs = rnn_attrs({integer_attr("linear_before_reset", 0)}),
                .min_inputs = 3,
                .max_inputs = 6,
                .infer = infer_rnn,
                .eval = eval_gru,
                .onnx = {{"GRU", 1, kEveryLater, import_recurrent<gru>}},
                .traits = {.layer = "RNN", .accepts = accepts_lengths}};
const OpDef rnn{.name = "RNN",
                .attrs = rnn_attrs({}),
                .min_inputs = 3,
                .max_inputs = 6,
                .infer = infer_rnn,
                .eval = eval_rnn,
                .onnx = {{"RNN", 1, kEveryLater, import_recurrent<rnn>}},
                .traits = {.accepts = accepts_lengths}};

}  // namespace hone::ops
