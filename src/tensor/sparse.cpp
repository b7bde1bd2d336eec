// SPDX-License-Identifier: Apache-2.0
#include "tensor/sparse.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace hone {
namespace {

constexpr int64_t kMost = int64_t{1} << 28;

/// Of the entry in row-major order.
int64_t place_of(std::span<const int64_t> places, size_t entry, const Dims& dims, bool by_axis) {
  if (!by_axis) return places[entry];
  int64_t at = 0;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const int64_t index = places[entry * dims.size() + axis];
    HONE_CHECK(index >= 0 && index < dims[axis], "place {} of a sparse weight is outside of the size {}", index,
               dims[axis]);
    at = at * dims[axis] + index;
  }
  return at;
}

}  // namespace

Tensor dense(std::string_view name, const Tensor& values, const Tensor& places, const Dims& dims) {
  int64_t whole = 1;
  for (const int64_t dim : dims) {
    HONE_CHECK(dim >= 0 && dim <= kMost, "{} has the size {}", name, dim);
    whole *= dim;
    HONE_CHECK(whole <= kMost, "{} has more than {} elements", name, kMost);
  }
  HONE_CHECK(places.dtype() == DType::i64 && values.dtype() != DType::string,
             "{} has values of type {} at places of type {}", name, name_of(values.dtype()), name_of(places.dtype()));
  const bool by_axis = places.dims().size() == 2;
  const int64_t count = values.size(), each = by_axis ? static_cast<int64_t>(dims.size()) : 1;
  HONE_CHECK(places.size() == count * each, "{} has {} values and {} places", name, count, places.size());
  TensorBuilder builder(values.dtype(), dims);
  const auto size =
      static_cast<size_t>(std::max(bits_of(values.dtype()), 8) / 8);  // in memory; in files fewer bits are packed
  std::memset(builder.bytes(), 0, static_cast<size_t>(whole) * size);
  const std::vector<int64_t> at = places.integers();
  for (size_t entry = 0; entry < static_cast<size_t>(count); ++entry) {
    const int64_t place = place_of(at, entry, dims, by_axis);
    HONE_CHECK(place >= 0 && place < whole, "place {} of {} is outside of its {} elements", place, name, whole);
    std::memcpy(builder.bytes() + static_cast<size_t>(place) * size, values.bytes().data() + entry * size, size);
  }
  return builder.finish();
}

}  // namespace hone
