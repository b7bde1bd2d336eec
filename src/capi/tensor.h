// SPDX-License-Identifier: Apache-2.0
//
// Network inputs and outputs as the C interface describes them.
#pragma once

#include <algorithm>

#include "hone/hone.h"
#include "tensor/tensor.h"

namespace hone::capi {

inline void copy_dims(const Dims& dims, int64_t* out, int* rank) {
  HONE_CHECK(dims.size() <= HONE_MAX_RANK, "a tensor has rank {}", dims.size());
  std::copy(dims.begin(), dims.end(), out);
  *rank = static_cast<int>(dims.size());
}

/// `name` must outlive the description.
inline void describe(const std::string& name, const TensorType& type, bool is_input, hone_tensor* tensor) {
  Dims dims;
  for (const Dim& dim : type.shape) dims.push_back(dim.constant().value_or(-1));
  const TensorType* inner = &type;
  while (inner->dtype != DType::map && inner->element != nullptr) inner = inner->element.get();
  *tensor = {.name = name.c_str(),
             .dtype = static_cast<hone_dtype>(type.dtype),
             .is_input = is_input,
             .rank = 0,
             .dims = {},
             .by_value = is_object(type.dtype) || !type.ranked,
             .element = static_cast<hone_dtype>((inner->element != nullptr ? *inner->element : *inner).dtype),
             .key = static_cast<hone_dtype>(inner->key)};
  copy_dims(dims, tensor->dims, &tensor->rank);
  if (!type.ranked) tensor->rank = -1;
}

}  // namespace hone::capi
