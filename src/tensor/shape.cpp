// SPDX-License-Identifier: Apache-2.0
//
// Shapes.
#include "tensor/shape.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"

namespace hone {

bool Shape::is_static() const {
  return std::all_of(begin(), end(), [](const Dim& d) { return d.is_constant(); });
}

Dim Shape::elements() const {
  Dim product(1);
  for (const Dim& dim : dims_) product = product * dim;
  return product;
}

Dims Shape::values() const {
  Dims result;
  for (const Dim& dim : dims_) result.push_back(dim.value());
  return result;
}

Dims Shape::evaluate(const SymbolValues& values) const {
  Dims result;
  for (const Dim& dim : dims_) result.push_back(dim.evaluate(values));
  return result;
}

Shape Shape::substitute(const SymbolValues& values) const {
  Shape result;
  for (const Dim& dim : dims_) result.push_back(dim.substitute(values));
  return result;
}

std::string Shape::text() const {
  std::vector<std::string> parts;
  for (const Dim& dim : dims_) parts.push_back(dim.text());
  return join(parts, ",");
}

int64_t elements(std::span<const int64_t> dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product = checked_multiply(product, dim);
  return product;
}

Dims strides_of(std::span<const int64_t> dims) {
  Dims strides(dims.size());
  uint64_t stride = 1;  // wraps only where another size is 0: then no element is ever addressed
  for (size_t i = dims.size(); i-- > 0; stride *= static_cast<uint64_t>(dims[i]))
    strides[i] = static_cast<int64_t>(stride);
  return strides;
}

std::string join_dims(std::span<const int64_t> dims, std::string_view separator) {
  std::vector<std::string> parts;
  for (const int64_t dim : dims) parts.push_back(std::to_string(dim));
  return join(parts, separator);
}

size_t normalize_axis(int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  HONE_CHECK(axis >= -signed_rank && axis < signed_rank, "axis {} is out of range for a rank-{} tensor", axis, rank);
  return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

}  // namespace hone
