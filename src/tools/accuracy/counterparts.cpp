// SPDX-License-Identifier: Apache-2.0
#include "tools/accuracy/counterparts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/ops.h"

namespace hone {
namespace {

bool is_byte(DType type) { return type == DType::i8 || type == DType::u8; }
bool is_real(DType type) { return type == DType::f32 || type == DType::f16 || type == DType::bf16; }

/// Of QuantizeLinear or DequantizeLinear, where it has one number for the whole tensor.
std::optional<TensorScale> scale_of(const Node& node) {
  const Value* scale = node.input(1);
  if (scale == nullptr || !scale->is_constant() || scale->constant->size() != 1) return std::nullopt;
  TensorScale result{static_cast<float>(scale->constant->real(0))};
  const Value* zero = node.input(2);
  if (zero == nullptr) return result;
  if (!zero->is_constant() || !is_byte(zero->type.dtype)) return std::nullopt;
  result.zero = static_cast<int>(zero->constant->integer(0));
  return result;
}

int lowest_code(DType type) { return type == DType::i8 ? -128 : 0; }
int highest_code(DType type) { return type == DType::i8 ? 127 : 255; }

}  // namespace

std::map<std::string, Counterpart, std::less<>> counterparts_in(const Graph& graph) {
  std::map<std::string, Counterpart, std::less<>> found;
  for (const Value* input : graph.inputs()) found[input->name] = {input->name, std::nullopt};
  for (const Node* node : graph.nodes()) {
    const auto source =
        node->inputs.empty() || node->input(0) == nullptr ? found.end() : found.find(node->input(0)->name);
    if (node->op == &ops::quantize_linear) {
      const std::optional<TensorScale> scale = scale_of(*node);
      if (scale && source != found.end()) found[node->output()->name] = {source->second.tensor, scale};
    } else if (node->op == &ops::dequantize_linear) {
      if (source != found.end()) found[node->output()->name] = {source->second.tensor, std::nullopt};
    } else {
      for (const Value* output : node->outputs) found[output->name] = {output->name, std::nullopt};
    }
  }
  found.erase("");
  return found;
}

std::optional<TypeLimits> limits_of(DType type, const std::optional<TensorScale>& scale) {
  switch (type) {
    case DType::f32: return TypeLimits{-std::numeric_limits<float>::max(), std::numeric_limits<float>::max(), 0x1p-126};
    case DType::bf16: return TypeLimits{-0x1.fep127, 0x1.fep127, 0x1p-126};
    case DType::f16: return TypeLimits{-65504, 65504, 0x1p-14};
    case DType::i8:
    case DType::u8: break;
    default: return std::nullopt;
  }
  if (!scale) return std::nullopt;
  const double step = scale->scale;
  return TypeLimits{(lowest_code(type) - scale->zero) * step, (highest_code(type) - scale->zero) * step, step / 2};
}

std::optional<std::vector<float>> real_values(const Tensor& tensor, const std::optional<TensorScale>& scale) {
  const DType type = tensor.dtype();
  if (!is_real(type) && !(is_byte(type) && scale)) return std::nullopt;
  std::vector<float> values(static_cast<size_t>(tensor.size()));
  const auto fill = [&]<typename T>() {
    const std::span<const T> from = tensor.data<T>();
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = is_byte(type) ? (static_cast<float>(from[i]) - static_cast<float>(scale->zero)) * scale->scale
                                : static_cast<float>(from[i]);
  };
  visit(type, fill);
  return values;
}

Tensor rounded(std::span<const float> values, DType type, const Dims& dims, const std::optional<TensorScale>& scale) {
  TensorBuilder result(type, dims);
  const auto fill = [&]<typename T>() {
    const std::span<T> to = result.data<T>();
    for (size_t i = 0; i < to.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        const double code = std::nearbyint(static_cast<double>(values[i]) / scale->scale) + scale->zero;
        to[i] = static_cast<T>(std::clamp<double>(std::isnan(code) ? 0 : code, lowest_code(type), highest_code(type)));
      } else {
        to[i] = T(values[i]);
      }
    }
  };
  visit(type, fill);
  return result.finish();
}

}  // namespace hone
