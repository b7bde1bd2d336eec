// SPDX-License-Identifier: Apache-2.0
//
// MatMulInteger with constant weights, its sums exact, and what may follow them: A's rows are the pixels of an image.
#include "backends/cpu/family.h"
#include "backends/cpu/quant/integer_weights.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

struct IntegerMatmulCode {
  IntegerLinearCode linear;
  bool column_zeros = false;
  IntegerConfig config;
  static void fields(auto& self, auto& visit) {
    IntegerLinearCode::fields(self.linear, visit);
    visit("column_zeros", self.column_zeros);
    IntegerConfig::fields(self.config, visit);
  }
  IntegerSums sums() const { return {linear.input, column_zeros, linear.epilogue, linear.sums}; }
};

IntegerShape shape_of(const IntegerLinearCode& code, const Dims& result, DType a) {
  const Dims rows{elements(result) / code.n}, one{1};
  return {.depth = code.k,
          .columns = code.n,
          .in = rows,
          .out = rows,
          .filter = one,
          .strides = one,
          .dilations = one,
          .pads = {0},
          .signed_a = a == DType::i8};
}
IntegerShape shape_of(const IntegerLinearRegion& region) {
  const Node& node = region.node();
  return shape_of(region.code, node.output()->type.shape.values(), node.input(0)->type.dtype);
}
IntegerShape shape_of(const IntegerMatmulCode& code, const KernelShapes& shapes) {
  code.linear.require_operands(shapes);
  return shape_of(code.linear, shapes.outputs[0].dims, shapes.inputs[static_cast<size_t>(code.linear.input)].dtype);
}

struct IntegerMatmulFamily {
  static constexpr std::string_view kName = "integer_matmul";
  static constexpr int kVersion = 2;
  static constexpr bool kPacksForIsa = true;
  static constexpr Cost kCost = {.arithmetic = 0.5, .operands = 2, .weights = 0.5};
  using Params = IntegerConfig;
  using Code = IntegerMatmulCode;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::optional<IntegerLinearRegion> region = read_integer_linear_region(problem.region);
    if (!region) return;
    if (info.isa == Isa::scalar) return out.refuse(kName, "needs AVX2");
    if (!region->match) return out.refuse(kName, region->match.refusal);
    if (problem.symbolic.node_count() != problem.region.node_count())
      return out.refuse(kName, "an operand depends on the input's shape");
    const std::vector<IntegerConfig> configs =
        integer_configs(shape_of(*region), region->code.epilogue, static_cast<bool>(region->code.sums.result), info.isa,
                        problem.device.byte_dots);
    if (configs.empty()) return out.refuse(kName, "bytes and an activation that needs many registers");
    for (const IntegerConfig& config : configs)
      out.offer({"cpu",
                 std::string(kName),
                 write_fields(config),
                 std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
                 {Layout::linear}});
  }

  static Built<Code> compile(const Problem& problem, const Params& config, const Tactic&) {
    const IntegerLinearRegion region = *read_integer_linear_region(problem.region);
    const SignedWeights weights(region.node());
    const Code code{region.code, weights.have_zeros(), config};
    return {code,
            integer_constants(shape_of(region), config, code.sums(), weights, region, cpu_info(problem.device).isa)};
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    return integer_constants(shape_of(code, shapes), code.config, code.sums(), info.isa);
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const IntegerShape shape = shape_of(code, shapes);
    require_integer_kernel(shape, code.config, code.sums(), info.isa);
    return make_integer_kernel(shape, code.config, code.sums(), shapes, info.isa);
  }
};

}  // namespace

const CpuTactic tactics::integer_matmul = describe<IntegerMatmulFamily>();

}  // namespace hone::cpu
