// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/tactics/region_reader.h"

#include <algorithm>

namespace hone::cpu {

AlignedBuffer zeroed(size_t bytes) {
  AlignedBuffer buffer(bytes);
  std::memset(buffer.data(), 0, bytes);
  return buffer;
}

std::string reason_not_f32(const Problem& problem, const Node& node) {
  if (problem.region.outputs().size() != 1) return "more than one result is used";
  const Value* x = node.input(0);
  if (x->is_constant()) return "its input is a constant";
  if (x->type.dtype != DType::f32 || node.output()->type.dtype != DType::f32) return fmt::format("input is {}, not f32", name_of(x->type.dtype));
  if (x->type.shape.elements() == Dim(0)) return "empty input";
  return {};
}

void offer_layouts(const Problem& problem, std::string_view family, Candidates& out) {
  const Graph& region = problem.region;
  const size_t rank = region.inputs()[0]->type.shape.rank();
  for (const Layout layout : {Layout::linear, Layout::channels_last}) {
    if (layout == Layout::channels_last && (rank < 3 || rank > 5 || region.outputs()[0]->type.shape.rank() != rank)) continue;
    std::vector<Layout> in(region.inputs().size(), Layout::linear);
    in[0] = layout;
    out.offer({"cpu", std::string(family), {}, std::move(in), {layout}});
  }
}

void check_f32(const KernelShapes& shapes, size_t inputs, std::string_view family) {
  HONE_CHECK(shapes.inputs.size() >= inputs && shapes.outputs.size() == 1, "a {} kernel in the plan has {} inputs", family, shapes.inputs.size());
  for (const auto* list : {&shapes.inputs, &shapes.outputs})
    for (const ConcreteType& type : *list) {
      const bool plain = type.dtype == DType::f32 && (type.layout == Layout::linear || type.layout == Layout::channels_last);
      HONE_CHECK(plain, "a {} kernel in the plan has operands of type {}", family, name_of(type.dtype));
    }
}

}  // namespace hone::cpu
