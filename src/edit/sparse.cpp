// SPDX-License-Identifier: Apache-2.0
#include "edit/sparse.h"

#include <algorithm>
#include <cstring>

namespace hone::edit {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;  // elements: a short message may claim any size

struct Sparse {
  Weight values, places;
  std::vector<int64_t> dims;
};

Sparse read(std::string_view message) {
  Sparse sparse;
  read_fields(
      message,
      [&](uint32_t field, std::string_view payload) {
        if (field == 1) sparse.values = read_weight(payload);
        if (field == 2) sparse.places = read_weight(payload);
        if (field == 3)
          for (const char *at = payload.data(), *const end = at + payload.size(); at != end;)
            sparse.dims.push_back(static_cast<int64_t>(protozero::decode_varint(&at, end)));
        return true;
      },
      [&](uint32_t field, int64_t value) {
        if (field == 3) sparse.dims.push_back(value);
        return true;
      });
  return sparse;
}

/// Of the entry in row-major order: places are numbers of elements, or of axes, one entry a row.
int64_t place_of(std::span<const int64_t> places, size_t entry, const std::vector<int64_t>& dims, bool by_axis) {
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

ValueType type_of_sparse(const Value& sparse) {
  const Sparse read_sparse = read(sparse.bytes);
  ValueType type{read_sparse.values.type, std::vector<Size>(), true};
  for (const int64_t dim : read_sparse.dims) type.sizes->push_back({dim, {}});
  return type;
}

std::string renamed_sparse(std::string_view message, const std::string& name) {
  Rope out;
  const Rest rest = read_fields(message, [&](uint32_t field, std::string_view payload) {
    if (field != 1) return false;
    Weight values = read_weight(payload);
    values.name = name;
    out.add_message(1, encode(values));
    return true;
  });
  RestWriter(rest, out).finish();
  return out.text();
}

Tensor dense_of(const Model& model, const Value& sparse) {
  const Sparse found = read(sparse.bytes);
  const Tensor values = tensor_of(model, found.values), places = tensor_of(model, found.places);
  for (const int64_t dim : found.dims) HONE_CHECK(dim >= 0 && dim <= kMost, "{} has the size {}", sparse.name, dim);
  const int64_t whole = elements(found.dims), count = elements(values.dims());
  HONE_CHECK(whole <= kMost, "{} has {} elements", sparse.name, whole);
  HONE_CHECK(places.dtype() == DType::i64 && values.dtype() != DType::string, "{}: places of type {}", sparse.name,
             name_of(places.dtype()));
  const bool by_axis = places.dims().size() == 2;
  const auto rank = static_cast<int64_t>(found.dims.size());
  HONE_CHECK(elements(places.dims()) == (by_axis ? count * rank : count), "{} has {} values and {} places", sparse.name,
             count, elements(places.dims()));
  TensorBuilder builder(values.dtype(), Dims(found.dims.begin(), found.dims.end()));
  const auto size =
      static_cast<size_t>(std::max(bits_of(values.dtype()), 8) / 8);  // in memory; in files fewer bits are packed
  std::memset(builder.bytes(), 0, static_cast<size_t>(whole) * size);
  const std::vector<int64_t> at = places.integers();
  for (size_t entry = 0; entry < static_cast<size_t>(count); ++entry) {
    const int64_t place = place_of(at, entry, found.dims, by_axis);
    HONE_CHECK(place >= 0 && place < whole, "place {} of {} is outside of its {} elements", place, sparse.name, whole);
    std::memcpy(builder.bytes() + static_cast<size_t>(place) * size, values.bytes().data() + entry * size, size);
  }
  return builder.finish();
}

}  // namespace hone::edit
