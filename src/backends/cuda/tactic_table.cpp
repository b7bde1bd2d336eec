// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/tactic_table.h"

namespace hone::cuda {

std::span<const CudaTactic* const> cuda_tactics() {
  static constexpr const CudaTactic* kAll[] = {
#define FAMILY(name, file) &tactics::name,
#include "backends/cuda/families.def"
#undef FAMILY
  };
  return kAll;
}

const Dims& LoadContext::dims_of(const Place& place) const {
  const bool constant = place.kind == PlaceKind::constant;
  const size_t count = !place.given() ? 0 : constant ? constants.size() : shapes.inputs.size();
  const auto at = static_cast<size_t>(place.index);
  HONE_CHECK(at < count, "a kernel in the plan reads {} {} of {}",
             field_names(place.kind)[static_cast<size_t>(place.kind)], place.index, count);
  return constant ? constants[at].dims : shapes.inputs[at].dims;
}

}  // namespace hone::cuda
