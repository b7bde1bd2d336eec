// SPDX-License-Identifier: Apache-2.0
//
// Helpers of passes; see edit.h.
#include "passes/edit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/text.h"
#include "ops/ops.h"

namespace hone {

std::optional<double> splat(const Value* value) {
  if (value == nullptr || !value->constant) return std::nullopt;
  const Tensor& tensor = *value->constant;
  if (tensor.dtype() == DType::string || tensor.size() == 0) return std::nullopt;
  const std::span<const std::byte> bytes = tensor.bytes();
  const size_t step = size_of(tensor.dtype());
  // All elements equal the first exactly when the bytes equal themselves shifted by one element.
  if (std::memcmp(bytes.data(), bytes.data() + step, bytes.size() - step) != 0) return std::nullopt;
  return tensor.real(0);
}

bool is_splat(const Value* value, double number) {
  const std::optional<double> found = splat(value);
  if (!found) return false;
  if (*found == number) return true;
  return std::abs(*found - number) <= 1e-4 * std::abs(number);
}

double largest_of(DType dtype) {
  if (is_small(dtype)) return small_to_float(dtype, float_to_small(dtype, std::numeric_limits<float>::infinity()));
  return dtype == DType::f16 ? 65504.0 : dtype == DType::bf16 ? 0x1.FEp127 : double{std::numeric_limits<float>::max()};
}

namespace {

/// A bound of the magnitudes in a tensor, as far as its making tells.
double bound_of(const Value* value, int depth) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity(), kInteger = 0x1p64;
  constexpr int kDeepest = 8;
  if (value->is_constant()) {
    double bound = 0;
    for (const double number : numbers_of(*value->constant)) {
      if (!std::isfinite(number)) return kUnknown;
      bound = std::max(bound, std::abs(number));
    }
    return bound;
  }
  const DType dtype = value->type.dtype;
  if (dtype == DType::boolean) return 1;
  if (!is_float(dtype)) return kInteger;
  if (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32) return kUnknown;
  const Node* node = value->producer;
  if (node == nullptr || depth > kDeepest) return kUnknown;
  const auto operand = [&](size_t i) { return bound_of(node->input(i), depth + 1); };
  double bound = kUnknown;
  if (node->op->traits.hands_on == HandsOn::all) {
    bound = 0;
    for (size_t i = 0; i < node->inputs.size(); ++i) bound = std::max(bound, operand(i));
  } else if (node->op->hands_on(0)) bound = operand(0);
  else if (node->is(ops::where)) bound = std::max(operand(1), operand(2));
  else if (node->is(ops::add) || node->is(ops::sub)) bound = operand(0) + operand(1);
  else if (node->is(ops::mul)) bound = operand(0) * operand(1);
  return bound <= largest_of(dtype) ? bound : kUnknown;
}

}  // namespace

bool surely_finite(const Value* value) { return std::isfinite(bound_of(value, 0)); }

bool used_once(const Graph& graph, const Value* value) { return value->uses.size() == 1 && !graph.is_output(value); }

Node* producer(const Value* value, const OpDef& op) {
  return value != nullptr && value->producer != nullptr && value->producer->is(op) ? value->producer : nullptr;
}

Node* sole_producer(const Graph& graph, const Value* value, const OpDef& op) {
  Node* node = producer(value, op);
  return node != nullptr && used_once(graph, value) ? node : nullptr;
}

bool may_replace(const Graph& graph, const Value* from, const Value* to) {
  if (from->type.dtype != to->type.dtype || from->type.shape.rank() != to->type.shape.rank()) return false;
  return !graph.is_output(from) || (to->producer != nullptr && !graph.is_output(to));
}

Tensor tensor_from(DType dtype, Dims dims, std::span<const double> values) {
  TensorBuilder builder(dtype, std::move(dims));
  visit(dtype, [&]<typename T>() {
    const std::span<T> out = builder.data<T>();
    for (size_t i = 0; i < out.size(); ++i) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>) out[i] = T(static_cast<float>(values[i]));
      else if constexpr (std::is_same_v<T, bool>) out[i] = values[i] != 0;
      else out[i] = static_cast<T>(values[i]);
    }
  });
  return builder.finish();
}

std::vector<double> numbers_of(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<size_t>(tensor.size()));
  if (tensor.dtype() == DType::f32) {
    std::ranges::copy(tensor.data<float>(), numbers.begin());
  } else {
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = tensor.real(static_cast<int64_t>(i));
  }
  return numbers;
}

Value* scalar(Graph& graph, DType dtype, double number) {
  return graph.add_constant(tensor_from(dtype, {}, std::span(&number, 1)));
}

Value* integers(Graph& graph, std::vector<int64_t> values) {
  return graph.add_constant(
      Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, std::span<const int64_t>(values)));
}

std::vector<std::string_view> name_parts(std::string_view name) {
  constexpr std::string_view kBetween = " + ";
  std::vector<std::string_view> parts;
  for (size_t cut = 0; cut != std::string_view::npos; name = name.substr(cut + kBetween.size())) {
    cut = name.find(kBetween);
    parts.push_back(name.substr(0, cut));
    if (cut == std::string_view::npos) break;
  }
  return parts;
}

std::string joined_name(std::span<const Node* const> parts) {
  std::vector<std::string_view> names;
  for (const Node* part : parts)
    for (const std::string_view name : name_parts(part->name))
      if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  return join(names, " + ");
}

void inherit(Node* node, std::span<const Node* const> parts) {
  node->name = joined_name(parts);
  for (const Node* part : parts)
    for (const std::string& origin : part->origin)
      if (std::find(node->origin.begin(), node->origin.end(), origin) == node->origin.end())
        node->origin.push_back(origin);
}

Node* insert_for(Graph& graph, Node* position, const OpDef& op, std::vector<Value*> inputs, Attrs attrs,
                 std::vector<const Node*> parts, size_t outputs) {
  Node* node = graph.insert(position, op, std::move(inputs), std::move(attrs), joined_name(parts), outputs);
  inherit(node, parts);
  return node;
}

std::vector<std::string> texts_of(const Shape& shape) {
  std::vector<std::string> texts;
  for (const Dim& dim : shape) texts.push_back(dim.text());
  return texts;
}

Value* view(Graph& graph, Node* position, Value* value, const Shape& shape, std::vector<const Node*> parts) {
  if (value->type.shape == shape) return value;
  return insert_for(graph, position, ops::view, {value}, {{"shape", texts_of(shape)}}, std::move(parts))->output();
}

bool follows_from_inputs(const Graph& graph, const Shape& shape) {
  std::set<std::string> wanted, known;
  for (const Dim& dim : shape) dim.collect_symbols(wanted);
  if (wanted.empty()) return true;
  for (const Value* input : graph.inputs())
    for (const Dim& dim : input->type.shape) dim.collect_symbols(known);
  return std::includes(known.begin(), known.end(), wanted.begin(), wanted.end());
}

}  // namespace hone
