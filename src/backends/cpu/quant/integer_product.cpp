// SPDX-License-Identifier: Apache-2.0
//
// MatMulInteger of two operands that are both made as the network runs (queries and keys, weights and values of an attention), its sums
// exact, and what may follow them.
#include <algorithm>

#include "backends/cpu/family.h"
#include "backends/cpu/quant/integer_product_kernel.h"
#include "base/checked.h"
#include "ops/matmul_shape.h"

namespace hone::cpu {
namespace {

constexpr int64_t kMostMatrices = 1 << 20;

struct ProductCode {
  IntegerProductCode product;
  IntegerConfig config;
  static void fields(auto& self, auto& visit) {
    IntegerProductCode::fields(self.product, visit);
    IntegerConfig::fields(self.config, visit);
  }
  IntegerSums sums() const { return {product.a, true, product.epilogue, product.sums}; }
};

/// Which matrix of an operand each matrix of the result is made of, by numpy's rules.
std::vector<int64_t> matrices_of(const Dims& operand, const Dims& result) {
  const size_t batches = result.size() - 2, own = operand.size() - 2;
  std::vector<int64_t> places(static_cast<size_t>(elements(std::span(result).first(batches))), 0);
  for (size_t i = 0; i < places.size(); ++i) {
    auto left = static_cast<int64_t>(i);
    int64_t stride = 1;
    for (size_t axis = batches; axis-- > 0; left /= result[axis]) {
      if (axis + own < batches) continue;
      const int64_t size = operand[axis + own - batches];
      if (size != 1) places[i] += left % result[axis] * stride;
      stride *= size;
    }
  }
  return places;
}

ProductShape shape_of(const IntegerProductCode& code, const ConcreteType& a, const ConcreteType& b,
                      const ConcreteType& c) {
  Dims columns = b.dims;
  if (code.transposed_b) std::swap(columns[columns.size() - 2], columns.back());
  const MatMulShape sizes(a.dims, columns);  // throws where they do not fit
  HONE_CHECK(sizes.result == c.dims && elements(sizes.batches) <= kMostMatrices,
             "an integer product in the plan makes {} of {} and {}", join_dims(c.dims), join_dims(a.dims),
             join_dims(b.dims));
  return {.m = sizes.m,
          .n = sizes.n,
          .k = sizes.k,
          .signed_a = a.dtype == DType::i8,
          .signed_b = b.dtype == DType::i8,
          .transposed_b = code.transposed_b,
          .a_matrix = matrices_of(a.dims, c.dims),
          .b_matrix = matrices_of(b.dims, c.dims),
          .b_matrices = elements(b.dims) / (sizes.k * sizes.n)};
}
ProductShape shape_of(const IntegerProductRegion& region) {
  const auto type = [](const Value* value) {
    return ConcreteType{value->type.dtype, value->type.shape.values(), Layout::linear};
  };
  const Node& node = region.node();
  return shape_of(region.code, type(node.input(0)), type(node.input(1)), type(node.output()));
}
ProductShape shape_of(const ProductCode& code, const KernelShapes& shapes) {
  code.product.require_operands(shapes);
  return shape_of(code.product, shapes.inputs[static_cast<size_t>(code.product.a)],
                  shapes.inputs[static_cast<size_t>(code.product.b)], shapes.outputs[0]);
}

int64_t padded_columns(const ProductShape& shape, const IntegerConfig& config, Isa isa) {
  require_sizes(Dims{shape.n + config.panel(isa), config.steps(shape.tile()) * kStepBytes, shape.b_matrices});
  return round_up(shape.n, config.panel(isa));
}

struct IntegerProductFamily {
  static constexpr std::string_view kName = "integer_product";
  static constexpr int kVersion = 1;
  static constexpr bool kPacksForIsa = true;
  static constexpr Cost kCost = {.arithmetic = 0.5, .operands = 2};
  using Params = IntegerConfig;
  using Code = ProductCode;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::optional<IntegerProductRegion> region = read_integer_product_region(problem.region);
    if (!region) return;
    if (info.isa == Isa::scalar) return out.refuse(kName, "needs AVX2");
    if (!region->match) return out.refuse(kName, region->match.refusal);
    if (problem.symbolic.node_count() != problem.region.node_count())
      return out.refuse(kName, "an operand depends on the input's shape");
    const ProductShape shape = shape_of(*region);
    if (static_cast<int64_t>(shape.a_matrix.size()) > kMostMatrices) return out.refuse(kName, "too many matrices");
    const std::vector<IntegerConfig> configs =
        integer_configs(shape.tile(), region->code.epilogue, static_cast<bool>(region->code.sums.result), info.isa,
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
    const IntegerProductRegion region = *read_integer_product_region(problem.region);
    const ProductShape shape = shape_of(region);
    Built<Code> built{{region.code, config}};
    const auto padded = static_cast<size_t>(padded_columns(shape, config, cpu_info(problem.device).isa));
    const auto keep = [&](std::vector<float> values, size_t count) {
      values.resize(count, 0);
      built.constants.push_back(Tensor::of<float>({static_cast<int64_t>(count)}, std::span<const float>(values)));
    };
    if (region.code.sums.factor != Factor::none)
      keep(region.factor(), region.code.sums.factor == Factor::one ? 1 : padded);
    if (region.code.epilogue.bias) keep(region.bias(shape.n), padded);
    return built;
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const int64_t padded = padded_columns(shape_of(code, shapes), code.config, info.isa);
    std::vector<ConstantSpec> specs;
    if (code.product.sums.factor != Factor::none)
      specs.push_back({DType::f32, {code.product.sums.factor == Factor::one ? 1 : padded}});
    if (code.product.epilogue.bias) specs.push_back({DType::f32, {padded}});
    return specs;
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const ProductShape shape = shape_of(code, shapes);
    require_integer_kernel(shape.tile(), code.config, code.sums(), info.isa);
    return make_product_kernel(shape, code.config, code.product, shapes, info);
  }
};

}  // namespace

const CpuTactic tactics::integer_product = describe<IntegerProductFamily>();

}  // namespace hone::cpu
