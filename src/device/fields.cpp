// SPDX-License-Identifier: Apache-2.0

#include "device/fields.h"

#include "base/error.h"

namespace hone::fields {

void refuse(std::string_view name, const std::string& what) {
  throw Error(fmt::format("a kernel in the plan has {} as {}", what, name), "build the plan again from the ONNX model");
}

int64_t Reader::bounded(std::string_view name, int64_t value, int64_t low, int64_t high) const {
  if (value < low || value > high)
    refuse(prefix_ + std::string(name), fmt::format("{}, outside of {} to {},", value, low, high));
  return value;
}

std::vector<int64_t> Reader::integers(std::string_view name, int64_t low, int64_t high, size_t most) {
  const std::vector<int64_t>& values = limited(name, get<std::vector<int64_t>>(name, "integers"), most);
  for (const int64_t value : values) bounded(name, value, low, high);
  return values;
}

}  // namespace hone::fields
