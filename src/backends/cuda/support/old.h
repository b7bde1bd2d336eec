// SPDX-License-Identifier: Apache-2.0
//
// Families that are still maps of strings between generate() and load().
#pragma once

#include "backends/cuda/family.h"

namespace hone::cuda {

struct OldContext {
  const Attrs& attrs;
  const KernelShapes& shapes;
  std::shared_ptr<const Module> module;
  int processors = 1;
};

inline Signature old_signature(const Attrs& attrs) {
  return {attrs.texts("made_for"), attrs.texts("made_to"), attrs.texts("made_with")};
}

template <auto Generate>
Generated generate_old(const Problem& problem, const std::string& architecture, const Tactic& tactic) {
  Generated result = Generate(problem, architecture, tactic);
  for (const auto& [name, value] : write_fields(signature_of(problem, tactic, result.constants)))
    result.attrs.set(name, value);
  return result;
}

template <auto Load>
std::shared_ptr<const CudaKernel> load_old(const Attrs& attrs, const KernelShapes& shapes,
                                           std::shared_ptr<const Module> module, int processors) {
  require_signature(old_signature(attrs), shapes);
  return Load({attrs, shapes, std::move(module), processors});
}

template <auto Generate, auto Load>
constexpr CudaTactic describe_old(std::string_view name, void (*propose)(const Problem&, Candidates&)) {
  return {name, 1, propose, generate_old<Generate>, load_old<Load>, list_fields<NoCode>};
}

/// Place of an operand that is not given.
inline constexpr int64_t kNoPlace = -1000;
inline int64_t old_place_of(const Problem& problem, const Value* value, std::vector<Tensor>& constants) {
  const Place place = place_of(problem, value, constants);
  return !place.given() ? kNoPlace : place.kind == PlaceKind::input ? place.index : -1 - place.index;
}
inline void add_place(Arguments& arguments, int64_t place) {
  if (place == kNoPlace) arguments.null();
  else arguments.place(place);
}
inline void set_place(Generated& result, const Problem& problem, const std::string& name, const Value* operand) {
  result.attrs.set(name, old_place_of(problem, operand, result.constants));
}
inline Dims constant_dims(const Attrs& attrs, int64_t index) {
  return constants_of(old_signature(attrs)).at(static_cast<size_t>(index)).dims;
}
inline Dims dims_of(const OldContext& context, const std::string& name) {
  const int64_t place = context.attrs.integer(name);
  if (place >= 0) return context.shapes.inputs.at(static_cast<size_t>(place)).dims;
  return constant_dims(context.attrs, -1 - place);
}

}  // namespace hone::cuda
