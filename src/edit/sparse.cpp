// SPDX-License-Identifier: Apache-2.0
#include "edit/sparse.h"

#include "tensor/sparse.h"

namespace hone::edit {
namespace {

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
  return dense(sparse.name, tensor_of(model, found.values), tensor_of(model, found.places),
               Dims(found.dims.begin(), found.dims.end()));
}

}  // namespace hone::edit
