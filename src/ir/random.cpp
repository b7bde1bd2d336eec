// SPDX-License-Identifier: Apache-2.0
//
// Deterministic inputs for checks and timing (SplitMix64: the same numbers on every machine).
#include <algorithm>

#include "ir/op.h"

namespace hone {
namespace {

class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

/// The sizes of the data's axes that a gather or scatter indexes.
std::vector<Dim> indexed_axes(const Node& node, const Shape& data) {
  if (!node.op_name().ends_with("ND")) return {data[normalize_axis(node.attrs.integer_or("axis", 0), data.rank())]};
  const Shape& indices = node.input(1)->type.shape;
  const Dim depth = indices.rank() > 0 ? indices[indices.rank() - 1] : Dim(0);
  const size_t first = static_cast<size_t>(node.attrs.integer_or("batch_dims", 0));
  std::vector<Dim> sizes;
  for (size_t axis = first; depth.is_constant() && axis < std::min(data.rank(), first + static_cast<size_t>(depth.value())); ++axis) sizes.push_back(data[axis]);
  return sizes;
}

/// Smallest size that a consumer indexes with this value; integers stay below it.
int64_t index_limit(const Value* value, int depth = 0) {
  int64_t limit = INT64_MAX;
  if (depth > 8) return limit;
  for (const Use& use : value->uses) {
    const std::string_view op = use.node->op_name();
    const Value* data = use.node->input(0);
    if (use.index == 1 && (op.starts_with("Gather") || op.starts_with("Scatter")) && data->type.shape.rank() > 0) {
      for (const Dim& size : indexed_axes(*use.node, data->type.shape))
        if (size.is_constant()) limit = std::min(limit, size.value());
    } else if (op == "Cast" || op == "Reshape" || op == "View" || op == "Unsqueeze" || op == "Squeeze" || op == "Identity" || op == "Expand") {
      if (use.index == 0) limit = std::min(limit, index_limit(use.node->output(), depth + 1));
    }
  }
  return limit;
}

}  // namespace

Tensor random_tensor(DType dtype, const Dims& dims, uint64_t seed, double low, double high) {
  SplitMix random(seed);
  if (dtype == DType::string) return Tensor::of_strings(dims, std::vector<std::string>(static_cast<size_t>(elements(dims)), "a"));
  TensorBuilder builder(dtype, dims);
  if (is_small(dtype)) {
    for (uint8_t& code : builder.codes()) code = float_to_small(dtype, static_cast<float>(low + random.uniform() * (high - low)));
    return builder.finish();
  }
  visit(dtype, [&]<typename T>() {
    for (T& out : builder.data<T>()) {
      const double u = random.uniform();
      if constexpr (std::is_same_v<T, bool>) out = u < 0.5;
      else if constexpr (std::is_integral_v<T>) out = static_cast<T>(low + u * (high - low));
      else if constexpr (std::is_same_v<T, double>) out = low + u * (high - low);
      else out = T(static_cast<float>(low + u * (high - low)));
    }
  });
  return builder.finish();
}

std::vector<Tensor> random_inputs(const Graph& graph, uint64_t seed) {
  std::vector<Tensor> tensors;
  for (const Value* input : graph.inputs()) {
    const DType dtype = input->type.dtype;
    const int64_t limit = index_limit(input);
    const bool integer = is_integer(dtype);
    const double high = integer ? static_cast<double>(limit == INT64_MAX ? 2 : std::min<int64_t>(limit, dtype == DType::i8 ? 127 : dtype == DType::u8 ? 255 : limit)) : 1;
    tensors.push_back(random_tensor(dtype, input->type.shape.values(), seed * 1000003 + tensors.size(), integer ? 0 : -1, high));
  }
  return tensors;
}

}  // namespace hone
