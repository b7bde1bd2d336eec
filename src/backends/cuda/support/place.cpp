// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/support/place.h"

#include <algorithm>

#include "regions/region_match.h"

namespace hone::cuda {

Reads Place::pointer(int64_t bytes) const {
  if (kind == PlaceKind::none) return {};
  return kind == PlaceKind::input ? input(index, bytes) : constant(index, bytes);
}

Place place_of(const Problem& problem, const Value* value, std::vector<Tensor>& constants) {
  if (value == nullptr) return {};
  if (!value->is_constant()) return {PlaceKind::input, input_index(problem.region, value)};
  constants.push_back(*value->constant);
  return {PlaceKind::constant, static_cast<int64_t>(constants.size()) - 1};
}

Place place_of(const OperandCode& operand) {
  if (operand.is_constant()) return {PlaceKind::constant, -1 - operand.place};
  return {PlaceKind::input, operand.place};
}

int64_t result_of(const Problem& problem, const Value* value) {
  const auto& outputs = problem.region.outputs();
  const auto found = std::find(outputs.begin(), outputs.end(), value);
  return value == nullptr || found == outputs.end() ? -1 : found - outputs.begin();
}

Writes result_pointer(int64_t result) { return result < 0 ? Writes{} : output(result); }

}  // namespace hone::cuda
