// SPDX-License-Identifier: Apache-2.0
//
// Deterministic inputs for checks and timing (SplitMix64: the same numbers on every machine).
#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "ir/op.h"
#include "ir/range.h"

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

}  // namespace

Tensor random_tensor(DType dtype, const Dims& dims, uint64_t seed, double low, double high) {
  SplitMix random(seed);
  if (dtype == DType::string)
    return Tensor::of_strings(dims, std::vector<std::string>(static_cast<size_t>(elements(dims)), "a"));
  TensorBuilder builder(dtype, dims);
  if (is_small(dtype)) {
    for (uint8_t& code : builder.codes())
      code = float_to_small(dtype, static_cast<float>(low + random.uniform() * (high - low)));
    return builder.finish();
  }
  visit(dtype, [&]<typename T>() {
    for (T& out : builder.data<T>()) {
      const double u = random.uniform();
      if constexpr (std::is_same_v<T, bool>) out = u < 0.5;
      else if constexpr (std::is_integral_v<T>) out = saturated<T>(low + u * (high - low));
      else if constexpr (std::is_same_v<T, double>) out = low + u * (high - low);
      else out = T(static_cast<float>(low + u * (high - low)));
    }
  });
  return builder.finish();
}

Tensor random_steps(DType dtype, const Dims& dims, uint64_t seed, double step, DType codes) {
  SplitMix random(seed);
  TensorBuilder builder(dtype, dims);
  const int most = codes == DType::i8 ? 127 : 0x7e;  // the largest finite one
  visit(dtype, [&]<typename T>() {
    for (T& out : builder.data<T>()) {
      const double code = std::floor(random.uniform() * (2 * most + 1)) - most;
      const double number =
          codes == DType::i8 ? code : std::copysign(small_to_float(codes, static_cast<uint8_t>(std::fabs(code))), code);
      const double value = step * number;
      if constexpr (std::is_same_v<T, double>) out = value;
      else if constexpr (!std::is_integral_v<T>) out = T(static_cast<float>(value));
    }
  });
  return builder.finish();
}

std::vector<Tensor> random_inputs(const Graph& graph, uint64_t seed) {
  std::vector<Tensor> tensors;
  for (const Value* input : graph.inputs()) {
    const DType dtype = input->type.dtype;
    if (!is_integer(dtype)) {
      tensors.push_back(random_tensor(dtype, input->type.shape.values(), seed * 1000003 + tensors.size()));
      continue;
    }
    const IntegerRange range = accepted_range(input).value_or(IntegerRange{0, 1});
    const int64_t most = dtype == DType::i8 ? 126 : dtype == DType::u8 ? 254 : range.high;
    const double high = static_cast<double>(std::min(range.high, most)) + 1;
    tensors.push_back(random_tensor(dtype, input->type.shape.values(), seed * 1000003 + tensors.size(),
                                    static_cast<double>(range.low), high));
  }
  return tensors;
}

}  // namespace hone
