// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/matmul/linear_region.h"

namespace hone::cpu {
namespace {

std::string reason_against(const Problem& problem, const LinearRegion& region) {
  if (problem.device.architecture == "scalar") return "needs AVX2";
  const Node& node = region.node();
  const Value* x = node.input(0);
  if (x->type.dtype != DType::f32) return fmt::format("input is {}, not f32", name_of(x->type.dtype));
  if (std::string reason = reason_against_operands(problem.region, node); !reason.empty()) return reason;
  if (node.output()->type.shape.elements() == Dim(0) || x->type.shape.elements() == Dim(0)) return "empty operands";
  return region.match.refusal;
}

}  // namespace

std::optional<LinearRegion> offered_linear_region(const Problem& problem, std::string_view family, Candidates& out) {
  std::optional<LinearRegion> region = read_linear_region(problem.region);
  if (!region) return std::nullopt;
  if (std::string reason = reason_against(problem, *region); !reason.empty()) {
    out.refuse(family, std::move(reason));
    return std::nullopt;
  }
  return region;
}

Tactic linear_tactic(std::string_view family, const Problem& problem, Attrs params) {
  const std::vector<Layout> in(problem.region.inputs().size(), Layout::linear);
  return {"cpu", std::string(family), std::move(params), in, {Layout::linear}};
}

}  // namespace hone::cpu
