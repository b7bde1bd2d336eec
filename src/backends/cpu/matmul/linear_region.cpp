// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/matmul/linear_region.h"

#include "ops/ops.h"

namespace hone::cpu {
namespace {

std::string reason_against(const Problem& problem, const Node& node, const RegionMatch& match) {
  if (problem.device.architecture == "scalar") return "needs AVX2";
  const Value* x = node.input(0);
  if (x->type.dtype != DType::f32) return fmt::format("input is {}, not f32", name_of(x->type.dtype));
  if (input_index(problem.region, x) < 0) return "its input is a constant";
  if (!node.input(1)->is_constant() || (node.input(2) != nullptr && !node.input(2)->is_constant()))
    return "weights are not constant";
  if (node.output()->type.shape.elements() == Dim(0) || x->type.shape.elements() == Dim(0)) return "empty operands";
  return match.refusal;
}

LinearRegion collect(const Problem& problem, RegionMatch match) {
  const Node& node = *match.anchor;
  const Dims& w = node.input(1)->constant->dims();
  const bool transposed = node.attrs.integer("trans_w") != 0;
  return {std::move(match), input_index(problem.region, node.input(0)), transposed ? w[0] : w[1],
          transposed ? w[1] : w[0], transposed};
}

}  // namespace

std::optional<LinearRegion> read_linear_region(const Problem& problem, std::string_view family, Candidates& out) {
  const Node* node = anchor_of(problem.region, ops::linear);
  if (node == nullptr) return std::nullopt;
  RegionMatch match = match_region(problem.region, node, 1);
  if (std::string reason = reason_against(problem, *node, match); !reason.empty()) {
    out.refuse(family, std::move(reason));
    return std::nullopt;
  }
  return collect(problem, std::move(match));
}

LinearRegion linear_region(const Problem& problem) {
  return collect(problem, match_region(problem.region, anchor_of(problem.region, ops::linear), 1));
}

Tactic linear_tactic(std::string_view family, const Problem& problem, Attrs params) {
  const std::vector<Layout> in(problem.region.inputs().size(), Layout::linear);
  return {"cpu", std::string(family), std::move(params), in, {Layout::linear}};
}

Compiled finish_linear(std::string_view family, const Problem& problem, const LinearRegion& region,
                       const Tactic& tactic, Tensor weights, int64_t panel) {
  Compiled compiled;
  compiled.constants.push_back(std::move(weights));
  const std::vector<float> bias = collect_bias(region.match, region.match.anchor->input(2), region.n);
  if (!bias.empty()) compiled.constants.push_back(packed_bias(bias, region.n, 1, panel));
  Attrs attrs = tactic.params;
  attrs.set("input", int64_t{region.input});
  attrs.set("n", region.n);
  attrs.set("k", region.k);
  attrs.set("isa", std::string(to_string(cpu_info(problem.device).isa)));
  write_epilogue(attrs, region.match, !bias.empty());
  compiled.code = encode_code(std::string(family), attrs);
  return compiled;
}

void check_linear(const Attrs& attrs, const KernelShapes& shapes) {
  check_binding(attrs, shapes);
  const Dims& input = shapes.inputs[static_cast<size_t>(attrs.integer("input"))].dims;
  const Dims& output = shapes.outputs[0].dims;
  const int64_t k = bounded(attrs, "k", 1, 1 << 28), n = bounded(attrs, "n", 1, 1 << 28);
  const bool valid = !input.empty() && !output.empty() && input.back() == k && output.back() == n &&
                     elements(input) / k == elements(output) / n;
  HONE_CHECK(valid, "a linear layer in the plan takes {} to {}", join_dims(input), join_dims(output));
}

}  // namespace hone::cpu
