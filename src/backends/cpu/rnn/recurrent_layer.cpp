// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/rnn/recurrent_layer.h"

#include <algorithm>
#include <limits>

namespace hone::cpu {
namespace {

struct FunctionName {
  std::string_view name;
  GateFunction function;
  float alpha = 1, beta = 0;  // what ONNX says when none are given
};
constexpr FunctionName kFunctions[] = {
    {"Sigmoid", GateFunction::sigmoid},
    {"Tanh", GateFunction::tanh},
    {"Relu", GateFunction::relu},
    {"HardSigmoid", GateFunction::hard_sigmoid, 0.2f, 0.5f},
    {"LeakyRelu", GateFunction::leaky_relu, 0.01f},
    {"ThresholdedRelu", GateFunction::thresholded_relu},
    {"ScaledTanh", GateFunction::scaled_tanh},
    {"Affine", GateFunction::affine},
    {"Elu", GateFunction::elu},
    {"Softsign", GateFunction::softsign},
    {"Softplus", GateFunction::softplus},
};

GateActivation find_activation(const std::string& name) {
  for (const FunctionName& known : kFunctions)
    if (known.name == name) return {known.function, known.alpha, known.beta};
  throw Error("unknown activation '" + name + "' of a recurrent layer");
}

/// Calls put(direction, block, unit, hidden unit) for every unit that exists.
template <typename Put>
void for_units(int64_t directions, int64_t hidden, const Put& put) {
  for (int64_t d = 0; d < directions; ++d)
    for (int64_t h = 0; h < hidden; ++h) put(d, h / kUnits, h % kUnits, h);
}

TensorBuilder zeros(int64_t count) {
  TensorBuilder builder(DType::f32, {count});
  const std::span<float> data = builder.data<float>();
  std::fill(data.begin(), data.end(), 0.0f);
  return builder;
}

}  // namespace

std::optional<Cell> cell_of(std::string_view op, const Attrs& attrs) {
  if (op == "LSTM") return Cell::lstm;
  if (op == "RNN") return Cell::rnn;
  if (op == "GRU") return attrs.integer("linear_before_reset") != 0 ? Cell::gru_late : Cell::gru_early;
  return std::nullopt;
}

GateRule gate_rule(const Attrs& attrs, Cell cell, int64_t direction) {
  std::vector<std::string> names{"Sigmoid", "Tanh", "Tanh"};
  if (cell == Cell::rnn) names = {"Tanh"};
  if (cell == Cell::gru_early || cell == Cell::gru_late) names = {"Sigmoid", "Tanh"};
  const bool given = attrs.has("activations") && !attrs.texts("activations").empty();
  const size_t first = given ? static_cast<size_t>(direction) * names.size() : 0;
  GateRule rule;
  for (size_t i = 0; i < names.size(); ++i) {
    if (given)
      HONE_CHECK(attrs.texts("activations").size() > first + i, "{} activations are given, {} are needed",
                 attrs.texts("activations").size(), first + names.size());
    GateActivation& activation = rule.activations[i];
    activation = find_activation(given ? attrs.texts("activations")[first + i] : names[i]);
    const auto parameter = [&](const char* list, float& value) {
      if (attrs.has(list) && attrs.reals(list).size() > first + i)
        value = static_cast<float>(attrs.reals(list)[first + i]);
    };
    parameter("activation_alpha", activation.alpha);
    parameter("activation_beta", activation.beta);
  }
  rule.clip = attrs.has("clip") ? static_cast<float>(attrs.real("clip")) : std::numeric_limits<float>::infinity();
  rule.coupled = attrs.integer_or("input_forget", 0) != 0;
  return rule;
}

Tensor pack_panels(const Tensor& weights, int64_t gates) {
  const int64_t directions = weights.dims()[0], hidden = weights.dims()[1] / gates, depth = weights.dims()[2];
  const int64_t blocks = (hidden + kUnits - 1) / kUnits, panel = gates * kUnits;
  const float* from = weights.data<float>().data();
  TensorBuilder builder = zeros(directions * blocks * depth * panel);
  float* to = builder.data<float>().data();
  for_units(directions, hidden, [&](int64_t d, int64_t block, int64_t unit, int64_t h) {
    for (int64_t g = 0; g < gates; ++g)
      for (int64_t k = 0; k < depth; ++k)
        to[((d * blocks + block) * depth + k) * panel + g * kUnits + unit] =
            from[((d * gates + g) * hidden + h) * depth + k];
  });
  return builder.finish();
}

Tensor pack_bias(const Tensor* bias, const RecurrentSizes& s) {
  TensorBuilder builder = zeros(s.directions * s.blocks() * s.panel());
  if (bias == nullptr) return builder.finish();
  const float* from = bias->data<float>().data();
  float* to = builder.data<float>().data();
  for_units(s.directions, s.hidden, [&](int64_t d, int64_t block, int64_t unit, int64_t h) {
    for (int64_t g = 0; g < s.gates(); ++g) {
      const float* both = from + d * 2 * s.gates() * s.hidden + g * s.hidden + h;
      const bool apart = s.cell == Cell::gru_late && g == 2;
      to[(d * s.blocks() + block) * s.panel() + g * kUnits + unit] = both[0] + (apart ? 0 : both[s.gates() * s.hidden]);
    }
  });
  return builder.finish();
}

Tensor pack_late_bias(const Tensor* bias, const RecurrentSizes& s) {
  TensorBuilder builder = zeros(s.directions * s.padded());
  if (bias == nullptr) return builder.finish();
  const float* from = bias->data<float>().data();
  float* to = builder.data<float>().data();
  for_units(s.directions, s.hidden,
            [&](int64_t d, int64_t, int64_t, int64_t h) { to[d * s.padded() + h] = from[(d * 6 + 5) * s.hidden + h]; });
  return builder.finish();
}

Tensor pack_peepholes(const Tensor& peepholes, const RecurrentSizes& s) {
  TensorBuilder builder = zeros(s.directions * 3 * s.padded());
  const float* from = peepholes.data<float>().data();
  float* to = builder.data<float>().data();
  for_units(s.directions, s.hidden, [&](int64_t d, int64_t, int64_t, int64_t h) {
    for (int64_t g = 0; g < 3; ++g) to[(d * 3 + g) * s.padded() + h] = from[(d * 3 + g) * s.hidden + h];
  });
  return builder.finish();
}

}  // namespace hone::cpu
