// SPDX-License-Identifier: Apache-2.0
//
// Recurrences over tokens with a state that is handed on: LinearAttention (a matrix per head) and CausalConvWithState (the
// last positions of each channel).
#include <cmath>

#include "base/node_error.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

struct LinearSizes {
  int64_t batch, tokens, heads, key_heads, depth, value_depth;
};

void infer_linear(InferContext& context) {
  for (size_t i = 0; i < 3; ++i) check_rank(context, i, 3, "an operand of LinearAttention");
  const int64_t heads = context.attrs().integer("q_num_heads"), key_heads = context.attrs().integer("kv_num_heads");
  HONE_CHECK(heads > 0 && key_heads > 0 && heads % key_heads == 0, "{} heads of queries cannot share {} of keys", heads,
             key_heads);
  const Shape &q = context.shape(0), &v = context.shape(2);
  const Dim depth = floor_divide(q[2], Dim(heads)), value_depth = floor_divide(v[2], Dim(key_heads));
  context.set(0, context.dtype(0), {q[0], q[1], Dim(heads) * value_depth});
  context.set(1, context.has(3) ? context.dtype(3) : context.dtype(0), {q[0], Dim(key_heads), depth, value_depth});
}

/// One token of one head: the state decays, takes in the token, and answers the queries that share it.
class HeadState {
 public:
  HeadState(std::span<float> state, int64_t depth, int64_t width) : state_(state), depth_(depth), width_(width) {}

  void decay(const float* rates, bool per_row) {
    for (int64_t d = 0; d < depth_; ++d) {
      const float factor = std::exp(rates[per_row ? d : 0]);
      for (int64_t m = 0; m < width_; ++m) at(d, m) *= factor;
    }
  }
  void add(const float* key, const float* value, const float* rate) {
    for (int64_t m = 0; m < width_; ++m) {
      float update = value[m];
      if (rate != nullptr) {
        float known = 0;
        for (int64_t d = 0; d < depth_; ++d) known += at(d, m) * key[d];
        update = *rate * (update - known);
      }
      for (int64_t d = 0; d < depth_; ++d) at(d, m) += key[d] * update;
    }
  }
  void answer(const float* query, float scale, float* out) {
    for (int64_t m = 0; m < width_; ++m) {
      float sum = 0;
      for (int64_t d = 0; d < depth_; ++d) sum += query[d] * at(d, m);
      out[m] = scale * sum;
    }
  }

 private:
  float& at(int64_t d, int64_t m) { return state_[static_cast<size_t>(d * width_ + m)]; }
  std::span<float> state_;
  int64_t depth_, width_;
};

void eval_linear(EvalContext& context) {
  const Attrs& attrs = context.attrs();
  const std::string& rule = attrs.text("update_rule");
  const bool gated = rule == "gated" || rule == "gated_delta", delta = rule == "delta" || rule == "gated_delta";
  HONE_CHECK_AS(AttributeError, gated || delta || rule == "linear", "'{}' is no update rule of LinearAttention", rule);
  HONE_CHECK(gated == context.has(4) && delta == context.has(5), "the update rule {} {} decay and {} beta", rule,
             gated ? "needs" : "forbids", delta ? "needs" : "forbids");
  const Floats q(context.input(0)), k(context.input(1)), v(context.input(2));
  const int64_t heads = attrs.integer("q_num_heads"), key_heads = attrs.integer("kv_num_heads");
  const LinearSizes s{context.input(0).dims()[0],
                      context.input(0).dims()[1],
                      heads,
                      key_heads,
                      context.input(0).dims()[2] / heads,
                      context.input(2).dims()[2] / key_heads};
  const float scale =
      attrs.real("scale") == 0 ? 1 / std::sqrt(static_cast<float>(s.depth)) : static_cast<float>(attrs.real("scale"));
  std::vector<float> state(static_cast<size_t>(s.batch * key_heads * s.depth * s.value_depth), 0.0f),
      out(static_cast<size_t>(s.batch * s.tokens * heads * s.value_depth));
  if (context.has(3)) {
    const Floats past(context.input(3));
    HONE_CHECK(past.size() == state.size(), "the past state has {} values, not {}", past.size(), state.size());
    state.assign(past.data(), past.data() + past.size());
  }
  std::optional<Floats> decay, beta;
  if (gated) decay.emplace(context.input(4));
  if (delta) beta.emplace(context.input(5));
  const int64_t rows = s.batch * s.tokens, decay_width = gated && rows > 0 ? context.input(4).size() / rows : 0,
                beta_width = delta && rows > 0 ? context.input(5).size() / rows : 0;
  const auto holds = [&](size_t operand, int64_t width) {
    HONE_CHECK(context.input(operand).size() == rows * width, "operand {} of LinearAttention has {} elements, not {}",
               operand, context.input(operand).size(), rows * width);
  };
  holds(0, heads * s.depth);
  holds(1, key_heads * s.depth);
  holds(2, key_heads * s.value_depth);
  if (gated) holds(4, decay_width == key_heads ? key_heads : key_heads * s.depth);
  if (delta) holds(5, beta_width == 1 ? 1 : key_heads);
  const int64_t group = heads / key_heads, area = s.depth * s.value_depth;
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < key_heads; ++h) {
      HeadState head(
          std::span<float>(state).subspan(static_cast<size_t>((b * key_heads + h) * area), static_cast<size_t>(area)),
          s.depth, s.value_depth);
      for (int64_t t = 0; t < s.tokens; ++t) {
        const int64_t token = b * s.tokens + t;
        const bool per_row = decay_width != key_heads;
        if (gated) head.decay(decay->data() + token * decay_width + (per_row ? h * s.depth : h), per_row);
        const float* rate = delta ? beta->data() + token * beta_width + (beta_width == 1 ? 0 : h) : nullptr;
        head.add(k.data() + (token * key_heads + h) * s.depth, v.data() + (token * key_heads + h) * s.value_depth,
                 rate);
        for (int64_t g = h * group; g < (h + 1) * group; ++g)
          head.answer(q.data() + (token * heads + g) * s.depth, scale,
                      out.data() + (token * heads + g) * s.value_depth);
      }
    }
  context.set(0, write_floats(context.input(0).dtype(), {s.batch, s.tokens, heads * s.value_depth}, out));
  if (context.outputs() > 1)
    context.set(1, write_floats(context.has(3) ? context.input(3).dtype() : context.input(0).dtype(),
                                {s.batch, key_heads, s.depth, s.value_depth}, state));
}

// ---- CausalConvWithState ----

void infer_causal_conv(InferContext& context) {
  check_rank(context, 0, 3, "the input of CausalConvWithState");
  check_rank(context, 1, 3, "the weight of CausalConvWithState");
  const Shape &x = context.shape(0), &w = context.shape(1);
  context.set(0, context.dtype(0), x);
  context.set(1, context.dtype(0), {x[0], x[1], w[2] - Dim(1)});
}

void eval_causal_conv(EvalContext& context) {
  const Floats x(context.input(0)), w(context.input(1));
  const Dims& dims = context.input(0).dims();
  const int64_t channels = dims[1], length = dims[2], kernel = context.input(1).dims()[2], kept = kernel - 1;
  const std::string& activation = context.attrs().text("activation");
  const bool silu = activation == "silu" || activation == "swish";
  HONE_CHECK_AS(AttributeError, silu || activation == "none", "'{}' is no activation of CausalConvWithState",
                activation);
  const auto holds = [&](size_t operand, int64_t count) {
    HONE_CHECK(!context.has(operand) || context.input(operand).size() == count,
               "operand {} of CausalConvWithState has {} elements, not {}", operand, context.input(operand).size(),
               count);
  };
  HONE_CHECK(kernel >= 1, "the weight of CausalConvWithState is empty");
  holds(1, channels * kernel);
  holds(2, channels);
  holds(3, dims[0] * channels * kept);
  std::optional<Floats> bias, past;
  if (context.has(2)) bias.emplace(context.input(2));
  if (context.has(3)) past.emplace(context.input(3));
  std::vector<float> out, state;
  for (int64_t row = 0; row < dims[0] * channels; ++row) {
    const auto at = [&](int64_t i) {
      return i < kept ? (past ? (*past)[row * kept + i] : 0.0f) : x[row * length + i - kept];
    };
    const int64_t c = row % channels;
    for (int64_t i = 0; i < length; ++i) {
      float sum = bias ? (*bias)[c] : 0.0f;
      for (int64_t t = 0; t < kernel; ++t) sum += at(i + t) * w[c * kernel + t];
      out.push_back(silu ? sum / (1 + std::exp(-sum)) : sum);
    }
    for (int64_t i = length; i < length + kept; ++i) state.push_back(at(i));
  }
  context.set(0, write_floats(context.input(0).dtype(), dims, out));
  if (context.outputs() > 1) context.set(1, write_floats(context.input(0).dtype(), {dims[0], channels, kept}, state));
}

}  // namespace

const OpDef ops::linear_attention{
    .name = "LinearAttention",
    .attrs = {required_attr("q_num_heads", AttrKind::integer), required_attr("kv_num_heads", AttrKind::integer),
              integer_attr("chunk_size", 64), real_attr("scale", 0), text_attr("update_rule", "gated_delta")},
    .min_inputs = 3,
    .max_inputs = 6,
    .infer = infer_linear,
    .eval = eval_linear,
    .onnx = {{"LinearAttention", 27}}};

const OpDef ops::causal_conv_with_state{.name = "CausalConvWithState",
                                        .attrs = {text_attr("activation", "none")},
                                        .min_inputs = 2,
                                        .max_inputs = 4,
                                        .infer = infer_causal_conv,
                                        .eval = eval_causal_conv,
                                        .onnx = {{"CausalConvWithState", 27}}};

}  // namespace hone
