// SPDX-License-Identifier: Apache-2.0

#include "regions/region_match.h"

#include <algorithm>
#include <utility>

#include "ops/byte_scale.h"
#include "ops/formula.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "ops/weight_codes.h"
#include "regions/match_region.h"

namespace hone {
namespace {

float real_of(const Attrs& attrs, std::string_view name) { return static_cast<float>(attrs.real(name)); }

bool is_scalar_constant(const Value* value) {
  return value->is_constant() && is_float(value->type.dtype) && value->constant->size() == 1;
}

/// One value per channel (or one for all of them) that broadcasts along the channel axis of the result.
bool is_per_channel(const Value* value, const Shape& result, size_t channel_axis) {
  const Shape& shape = value->type.shape;
  if (shape.rank() > result.rank()) return false;
  for (size_t from_end = 1; from_end <= shape.rank(); ++from_end) {
    const Dim& size = shape[shape.rank() - from_end];
    if (size != Dim(1) && (from_end != channel_axis || size != result[result.rank() - from_end])) return false;
  }
  return true;
}

bool is_channel_constant(const Value* value, const Shape& result, size_t channel_axis) {
  return value->is_constant() && is_float(value->type.dtype) && is_per_channel(value, result, channel_axis);
}

void refuse_unread(RegionMatch& match, Roundings roundings) {
  if (match && match.rounds && roundings == Roundings::refused) match.refusal = "its result is rounded to codes";
  if (match && match.has_codes() && roundings != Roundings::codes) match.refusal = "its tensors are codes";
}

class Matcher {
 public:
  Matcher(const Graph& region, const Node* anchor, size_t channel_axis) : region_(region), channel_axis_(channel_axis) {
    match_.anchor = anchor;
  }

  RegionMatch run() {
    if (match_.anchor->outputs.size() != 1) return refuse("the anchor has several results");
    match_.operand_codes = decode(match_.anchor->input(0));
    const Value* current = match_.anchor->output();
    while (!current->uses.empty()) {
      if (const Value* made = take_formula(current)) {
        current = made;
        continue;
      }
      if (current->uses.size() != 1 || region_.is_output(current))
        return refuse("a result inside the region is used twice");
      const Node& node = *current->uses[0].node;
      if (node.outputs.size() != 1) return refuse("the region is not a chain");
      if (!absorb(node, current)) return refuse(fmt::format("{} cannot be part of its epilogue", node.op_name()));
      ++absorbed_;
      current = node.output();
    }
    if (absorbed_ != region_.node_count()) return refuse("the region is not a chain");
    if (region_.outputs().size() != 1 || region_.outputs()[0] != current)
      return refuse("the region has several results");
    return std::move(match_);
  }

 private:
  RegionMatch refuse(std::string reason) {
    match_.refusal = std::move(reason);
    return std::move(match_);
  }

  /// Where sums are rounded: pointwise nodes that make one value of the sum alone, when one step does not say what they do.
  const Value* take_formula(const Value* current) {
    if (region_.is_output(current)) return nullptr;
    EpilogueStep step{.kind = EpilogueStep::Kind::formula, .nodes = formula_behind(region_, current), .from = current};
    const auto rounds = [](const Node* node) { return node->is(ops::fake_quantize); };
    if (step.nodes.empty() || (step.nodes.size() == 1 && is_step(*step.nodes[0])) ||
        std::ranges::none_of(region_.nodes(), rounds))
      return nullptr;
    absorbed_ += step.nodes.size();
    current = step.nodes.back()->output();
    match_.rounds = true;
    match_.steps.push_back(std::move(step));
    return current;
  }
  bool is_step(const Node& node) const {
    const bool activated = match_.activation.kind != ActivationKind::none;
    return node.is(ops::fake_quantize) || (activation_of(node) && !activated && !match_.residual_after_activation) ||
           !match_.rounds;
  }

  bool absorb(const Node& node, const Value* current) {
    if (match_.encodes) return false;
    if (node.is(ops::quantize_linear)) return quantize(node, current);
    if (makes_codes(node)) return encode(node);
    if (match_.result_type) return dequantize(node);
    if (node.is(ops::fake_quantize)) {
      match_.steps.push_back({.kind = EpilogueStep::Kind::rounding, .rounding = rounding_of(node)});
      return match_.rounds = true;
    }
    const bool activated = match_.activation.kind != ActivationKind::none;
    if (const std::optional<Activation> activation = activation_of(node)) {
      if (activated || match_.residual_after_activation) return false;
      match_.activation = *activation;
      match_.steps.push_back({.kind = EpilogueStep::Kind::activation, .activation = *activation});
      return true;
    }
    if (node.is(ops::cast) && is_integer(current->type.dtype)) return node.output()->type.dtype == DType::f32;
    if (node.inputs.size() != 2 || node.output()->type.shape != current->type.shape) return false;
    const Value* other = node.inputs[0] == current ? node.inputs[1] : node.inputs[0];
    const bool fresh = match_.biases.empty() && match_.residual < 0 && !activated && !match_.rounds;
    if (is_integer(current->type.dtype)) {
      if (!node.is(ops::add) || match_.addend != nullptr || !other->is_constant() ||
          !is_per_channel(other, current->type.shape, channel_axis_))
        return false;
      match_.addend = other;
      return true;
    }
    if (is_integer(match_.anchor->output()->type.dtype) && match_.factor == nullptr) {
      if (!node.is(ops::mul) || !fresh || !is_per_channel(other, current->type.shape, channel_axis_)) return false;
      match_.factor = other;
      return other->is_constant() || input_index(region_, other) >= 0;
    }
    const bool scalable = fresh && match_.factor == nullptr;  // sums of integers are rounded behind each factor
    if (node.is(ops::mul) && scalable && is_scalar_constant(other)) {
      match_.scale *= static_cast<float>(other->constant->real(0));
      return true;
    }
    if (node.is(ops::div) && scalable && node.inputs[0] == current && is_scalar_constant(other)) {
      match_.scale /= static_cast<float>(other->constant->real(0));
      return true;
    }
    if (!node.is(ops::add)) return false;
    // Adding to all channels commutes with adding the residual.
    if (!activated && !match_.rounding && !match_.rounds &&
        is_channel_constant(other, current->type.shape, channel_axis_)) {
      match_.biases.push_back(other);
      return true;
    }
    if (takes_late_bias(other, current)) {
      match_.biases.push_back(other);
      match_.steps.push_back({.kind = EpilogueStep::Kind::bias});
      return match_.late_bias = true;
    }
    if (match_.residual >= 0 || other->type.shape != current->type.shape) return false;
    match_.residual = input_index(region_, dequantized(other));
    match_.residual_after_activation = activated;
    match_.steps.push_back({.kind = EpilogueStep::Kind::residual});
    return match_.residual >= 0;
  }

  /// Behind a rounding, where there was none before.
  bool takes_late_bias(const Value* other, const Value* current) const {
    return match_.rounds && match_.biases.empty() && match_.anchor->input(2) == nullptr &&
           is_channel_constant(other, current->type.shape, channel_axis_);
  }

  bool quantize(const Node& node, const Value* current) {
    match_.result_type = quantization_of(node);
    return match_.factor != nullptr && match_.result_type && node.input(0) == current;
  }

  /// Back to floats, behind which a residual is added or an activation follows.
  bool dequantize(const Node& node) {
    if (!node.is(ops::dequantize_linear) || match_.rounding || match_.residual >= 0) return false;
    match_.rounding = std::exchange(match_.result_type, {});
    match_.residual_after_activation = match_.activation.kind != ActivationKind::none;
    return quantization_of(node) == match_.rounding;
  }

  bool encode(const Node& node) {
    if (node.is(ops::encode_float8))
      match_.steps.push_back(
          {.kind = EpilogueStep::Kind::scaling, .rounding = {.scale = real_of(node.attrs, "scale")}});
    else
      match_.steps.push_back(
          {.kind = EpilogueStep::Kind::encoding, .rounding = rounding_of(node), .zero = real_of(node.attrs, "zero")});
    match_.codes = node.output()->type.dtype;
    return match_.rounds = match_.encodes = true;
  }

  Decoding decode(const Value* floats) {
    const Decoding decoding = decoding_of(floats);
    if (decoding) ++absorbed_;
    return decoding;
  }

  /// The bytes that a residual of floats is made of here, or the floats.
  const Value* dequantized(const Value* residual) {
    const Node* node = residual->producer;
    match_.residual_codes = decode(residual);
    if (match_.residual_codes) return undecoded(residual);
    if (node == nullptr || !node->is(ops::dequantize_linear) || residual->uses.size() != 1) return residual;
    match_.residual_type = quantization_of(*node);
    ++absorbed_;
    return match_.residual_type ? node->input(0) : nullptr;
  }

  const Graph& region_;
  const size_t channel_axis_;
  size_t absorbed_ = 1;
  RegionMatch match_;
};

constexpr std::pair<const OpDef*, ActivationKind> kPlainActivations[] = {
    {&ops::relu, ActivationKind::relu},
    {&ops::sigmoid, ActivationKind::sigmoid},
    {&ops::silu, ActivationKind::silu},
    {&ops::tanh, ActivationKind::tanh},
    {&ops::hard_swish, ActivationKind::hard_swish},
    {&ops::gelu_tanh, ActivationKind::gelu_tanh},
};

}  // namespace

const Node* anchor_of(const Graph& region, const OpDef& op) {
  const std::vector<Node*> nodes = region.nodes();
  const auto makes_floats = [](const Node* node) { return node->is(ops::dequantize_linear) || node->is(ops::decode); };
  const auto first = std::ranges::find_if_not(nodes, makes_floats);
  return first != nodes.end() && (*first)->is(op) ? *first : nullptr;
}

RegionMatch match_region(const Graph& region, const Node* anchor, size_t channel_axis, Roundings roundings) {
  RegionMatch match = Matcher(region, anchor, channel_axis).run();
  refuse_unread(match, roundings);
  return match;
}

RegionMatch match_bare(const Node* anchor, Roundings roundings) {
  RegionMatch match{.anchor = anchor, .operand_codes = decoding_of(anchor->input(0))};
  refuse_unread(match, roundings);
  return match;
}

Quantization quantization_of(const Node& node) {
  const std::optional<ByteScale> scale = byte_scale(node);
  return scale ? Quantization{scale->bytes, scale->scale, static_cast<int64_t>(scale->zero)} : Quantization{};
}

std::optional<Activation> activation_of(const Node& node) {
  if (node.outputs.size() != 1 || !is_float(node.output()->type.dtype)) return std::nullopt;
  for (const auto& [op, kind] : kPlainActivations)
    if (node.is(*op)) return Activation{kind, 0, 0};
  const Attrs& attrs = node.attrs;
  if (node.is(ops::gelu))
    return Activation{attrs.text("approximate") == "tanh" ? ActivationKind::gelu_tanh : ActivationKind::gelu, 0, 0};
  if (node.is(ops::clamp)) return Activation{ActivationKind::clip, real_of(attrs, "min"), real_of(attrs, "max")};
  if (node.is(ops::leaky_relu)) return Activation{ActivationKind::leaky_relu, real_of(attrs, "alpha"), 0};
  if (node.is(ops::hard_sigmoid))
    return Activation{ActivationKind::hard_sigmoid, real_of(attrs, "alpha"), real_of(attrs, "beta")};
  return std::nullopt;
}

Rounding rounding_of(const Node& node) {
  const Attrs& attrs = node.attrs;
  return {real_of(attrs, "scale"), real_of(attrs, "low"), real_of(attrs, "high"), real_of(attrs, "of_nan")};
}

std::vector<const Node*> formula_behind(const Graph& region, const Value* from) {
  const std::vector<Node*> nodes = region.nodes(), found = formula_behind(region, nodes, from, nodes.size());
  return {found.begin(), found.end()};
}

const Value* undecoded(const Value* value) {
  const Node* node = value->producer;
  return node != nullptr && node->is(ops::decode) && value->uses.size() == 1 ? node->input(0) : value;
}

Decoding decoding_of(const Value* floats) {
  if (undecoded(floats) == floats) return {};
  const Node& node = *floats->producer;
  return {real_of(node.attrs, "scale"), real_of(node.attrs, "zero"), node.input(0)->type.dtype};
}

int input_index(const Graph& region, const Value* value) {
  const auto found = std::find(region.inputs().begin(), region.inputs().end(), value);
  return found == region.inputs().end() ? -1 : static_cast<int>(found - region.inputs().begin());
}

EpilogueCode epilogue_code(const RegionMatch& match, bool bias) {
  return {bias, match.residual, match.residual_after_activation, match.activation};
}

void require_residual(const EpilogueCode& epilogue, const KernelShapes& shapes) {
  if (epilogue.residual < 0) return;
  HONE_CHECK(epilogue.residual < static_cast<int64_t>(shapes.inputs.size()),
             "a kernel in the plan adds the residual {} of {} inputs", epilogue.residual, shapes.inputs.size());
  HONE_CHECK(shapes.outputs.size() == 1 && shapes.inputs[static_cast<size_t>(epilogue.residual)] == shapes.outputs[0],
             "a kernel in the plan adds tensors of different sizes");
}

Dims physical_dims(const ConcreteType& type) {
  Dims dims = type.dims;
  if (type.layout == Layout::channels_last && dims.size() > 2)
    std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return dims;
}

size_t physical_axis(size_t axis, const ConcreteType& type) {
  if (type.layout != Layout::channels_last || type.dims.size() <= 2 || axis == 0) return axis;
  return axis == 1 ? type.dims.size() - 1 : axis - 1;
}

std::string reason_against_operands(const Graph& region, const Node& anchor) {
  if (input_index(region, undecoded(anchor.input(0))) < 0) return "its input is a constant";
  const Value* bias = anchor.input(2);
  if (!anchor.input(1)->is_constant() || (bias != nullptr && !bias->is_constant())) return "weights are not constant";
  return {};
}

Floats scaled_weights(const RegionMatch& match, const Tensor& weights) {
  Floats given(weights);
  if (match.scale == 1) return given;
  TensorBuilder scaled(DType::f32, weights.dims());
  std::ranges::transform(given.span(), scaled.data<float>().begin(),
                         [&match](float weight) { return weight * match.scale; });
  return Floats(scaled.finish());
}

std::vector<float> collect_bias(const RegionMatch& match, const Value* own, int64_t channels) {
  if (own == nullptr && match.biases.empty()) return {};
  std::vector<float> bias(static_cast<size_t>(channels), 0.0f);
  const auto accumulate = [&](const Value* value, float scale) {
    const Floats data(*value->constant);
    const bool one = value->constant->size() == 1;
    for (size_t c = 0; c < bias.size(); ++c) bias[c] += scale * data[one ? 0 : static_cast<int64_t>(c)];
  };
  if (own != nullptr) accumulate(own, match.scale);
  for (const Value* value : match.biases) accumulate(value, 1);
  return bias;
}

}  // namespace hone
