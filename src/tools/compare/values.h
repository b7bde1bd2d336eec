// SPDX-License-Identifier: Apache-2.0
//
// Named tensors in an order, and what is told of them: NumPy's words for types, statistics, values, histograms.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace hone {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};
using TensorList = std::vector<NamedTensor>;

/// Null where there is none.
const Tensor* find_tensor(const TensorList& list, std::string_view name);

/// "float32", "int64", "bool", ...; and back.
std::string_view numpy_word(DType type);
std::optional<DType> type_of_numpy_word(std::string_view word);
/// "(2, 8)", "(8,)", "()".
std::string shape_text(const Dims& dims);
/// "(1, 5)": where a row-major index is.
std::string index_text(size_t index, const Dims& dims);
/// "y [dtype=float32, shape=(2, 8)]", of all between braces.
std::string metadata_text(const TensorList& list);
/// "['y', 'z']".
std::string names_text(const std::vector<std::string>& names);

/// All elements as they are in double; strings have none: throws Error.
std::vector<double> doubles_of(const Tensor& tensor);

/// As it is printed: a NaN's sign says nothing.
inline double shown(double number) { return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number; }

/// Over numbers, NumPy's definitions; the quantiles interpolate.
struct Statistics {
  double mean = 0, deviation = 0, variance = 0, median = 0, least = 0, most = 0, magnitude = 0;
  double p90 = 0, p95 = 0, p99 = 0;
  size_t least_at = 0, most_at = 0;
};
Statistics statistics_of(const std::vector<double>& numbers);
/// Of numbers in ascending order.
double quantile(const std::vector<double>& sorted, double part);
/// "mean=0.1, std-dev=..., min=... at (0, 2), ..." with five digits.
std::string statistics_text(const Statistics& statistics, const Dims& dims);
/// Nested brackets; tensors of more than 100 elements are shortened.
std::string values_text(const std::vector<double>& numbers, const Dims& dims);
/// Ten bins with bars.
std::string histogram_text(const std::vector<double>& numbers);

}  // namespace hone
