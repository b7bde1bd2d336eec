// SPDX-License-Identifier: Apache-2.0
//
// Network inputs and outputs as the C interface describes them.
#pragma once

#include <algorithm>

#include "capi/guard.h"
#include "hone/tools.h"
#include "tensor/tensor.h"

namespace hone::capi {

inline void copy_dims(const Dims& dims, int64_t* out, int* rank) {
  HONE_CHECK(dims.size() <= HONE_MAX_RANK, "a tensor has rank {}", dims.size());
  std::copy(dims.begin(), dims.end(), out);
  *rank = static_cast<int>(dims.size());
}

/// Throws ArgumentError for what are no sizes; `dims` may be NULL where the rank is 0.
inline Dims dims_of(const int64_t* dims, int rank) {
  if (rank < 0 || rank > HONE_MAX_RANK)
    throw ArgumentError(fmt::format("rank is {}, not 0 to {}", rank, HONE_MAX_RANK));
  if (rank > 0) require(dims, "dims");
  for (int i = 0; i < rank; ++i)
    if (dims[i] < 0) throw ArgumentError(fmt::format("dims[{}] is {}", i, dims[i]), "sizes are 0 or more");
  return rank == 0 ? Dims() : Dims(dims, dims + rank);
}

/// `name`, where there is one, must outlive the description.
inline void describe(const std::string& name, const TensorType& type, bool is_input, bool by_value, hone_tensor* out,
                     const Dims* contents = nullptr) {
  Dims dims;
  for (const Dim& dim : type.shape) dims.push_back(dim.constant().value_or(-1));
  if (contents != nullptr) dims = *contents;
  const TensorType* inner = &type;
  while (inner->dtype != DType::map && inner->element != nullptr) inner = inner->element.get();
  hone_tensor tensor{.name = name.empty() ? nullptr : name.c_str(),
                     .dtype = static_cast<hone_dtype>(type.dtype),
                     .is_input = is_input,
                     .by_value = by_value,
                     .element = static_cast<hone_dtype>((inner->element != nullptr ? *inner->element : *inner).dtype),
                     .key = static_cast<hone_dtype>(inner->key)};
  copy_dims(dims, tensor.dims, &tensor.rank);
  if (!type.ranked && contents == nullptr) tensor.rank = -1;
  fill(out, "tensor", tensor);
}

/// Of a model's tensor, of which no engine is known.
inline void describe(const std::string& name, const TensorType& type, bool is_input, hone_tensor* out) {
  describe(name, type, is_input, is_object(type.dtype) || !type.ranked, out);
}

/// `type`, its text, must outlive the details.
inline void describe_details(const char* type, const TensorType& of, hone_tensor_details* out,
                             const int64_t* range = nullptr) {
  hone_tensor_details details{.type = type, .layout = name_of(of.layout).data(), .has_range = range != nullptr};
  if (range != nullptr) details.low = range[0], details.high = range[1];
  fill(out, "details", details);
}

}  // namespace hone::capi
