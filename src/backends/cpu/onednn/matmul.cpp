// SPDX-License-Identifier: Apache-2.0
//
// oneDNN's matmuls: Linear with constant weights in the library's own format, and batched MatMul of activations.
#include "backends/cpu/onednn/support.h"

#if HONE_WITH_ONEDNN
#include "regions/matmul_region.h"

namespace hone::cpu::onednn {
namespace {

using Matmul = dnnl::matmul;

Matmul::primitive_desc describe(const Desc& a, const Desc& b, const Desc& bias, const Desc& c,
                                const Epilogue& epilogue) {
  const dnnl::primitive_attr attr = attr_of(epilogue, c);
  return bias ? Matmul::primitive_desc(engine(), a, b, bias, c, attr, true)
              : Matmul::primitive_desc(engine(), a, b, c, attr, true);
}

Desc bias_desc(const Dims& result) {
  Dims dims(result.size(), 1);
  dims.back() = result.back();
  return plain_desc(dims);
}

std::string reason_against(const Node& node, const RegionMatch& match) {
  for (const Value* operand : node.inputs) {
    if (operand == nullptr) continue;
    if (operand->type.dtype != DType::f32) return fmt::format("operand is {}, not f32", name_of(operand->type.dtype));
    if (operand->type.shape.elements() == Dim(0)) return "empty operands";
  }
  if (node.output()->type.shape.elements() == Dim(0)) return "empty result";
  return match.refusal;
}

void offer(const Problem& problem, const Matmul::primitive_desc& desc, std::string_view name, Attrs params,
           Candidates& out) {
  if (!desc || !is_fast(desc)) return out.refuse(name, "the library has only its reference implementation");
  out.offer({"onednn",
             std::string(name),
             std::move(params),
             std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
             {Layout::linear}});
}

void add_residual(const EpilogueCode& code, const Epilogue& epilogue, const Desc& result,
                  std::vector<Program::Argument>& arguments) {
  if (code.residual >= 0)
    arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(residual_position(epilogue)) | DNNL_ARG_SRC_1,
                         result,
                         {Operand::input, code.residual}});
}

// ---- Linear: [M, K] times weights ----

struct LinearLayerCode {
  LinearCode linear;
  OperandType operands;
  std::string format;  // of the weights in the plan
  static void fields(auto& self, auto& visit) {
    LinearCode::fields(self.linear, visit);
    OperandType::fields(self.operands, visit);
    visit("format", self.format);
  }
  Dims weights() const { return {linear.k, linear.n}; }
  Desc stored_weights() const { return desc_in_format(weights(), format, operands.element()); }
};

/// The input is read as the weights are: f32, or rounded to bf16.
Matmul::primitive_desc describe_linear(const LinearLayerCode& code, const Dims& output, const Desc& weights) {
  const LinearCode& linear = code.linear;
  const Dims c{elements(output) / linear.n, linear.n};
  const Epilogue epilogue = linear.epilogue.epilogue();
  return describe(plain_desc({c[0], linear.k}, weights.get_data_type()), weights, epilogue.bias ? bias_desc(c) : Desc(),
                  plain_desc(c), epilogue);
}

/// With weights in the format that the library chooses.
Matmul::primitive_desc describe_any(const LinearLayerCode& code, const Dims& output) {
  return describe_linear(code, output, any_desc(code.weights(), code.operands.element()));
}

Dims result_dims(const LinearRegion& region) { return region.node().output()->type.shape.values(); }

struct LinearFamily {
  static constexpr std::string_view kName = "linear";
  static constexpr int kVersion = 1;
  using Params = OperandType;
  using Code = LinearLayerCode;

  static void propose(const Problem& problem, Candidates& out) {
    const std::optional<LinearRegion> region = read_linear_region(problem.region);
    if (!region) return;
    std::string reason = reason_against(region->node(), region->match);
    if (reason.empty()) reason = reason_against_operands(problem.region, region->node());
    if (!reason.empty()) return out.refuse(kName, std::move(reason));
    for (const ElementType element : {ElementType::bf16, ElementType::f32}) {
      if (element == ElementType::bf16 && !may_round(problem)) continue;
      const OperandType operands(element);
      const Matmul::primitive_desc desc = describe_any({region->code, operands, {}}, result_dims(*region));
      if (desc && format_of(desc.weights_desc()).empty())
        out.refuse(kName, "the library wants weights in a format of its own");
      else offer(problem, desc, kName, write_fields(operands), out);
    }
  }

  static Cost cost(const Problem& problem, const Params& operands, const Tactic&) {
    if (!operands.rounded) return {.arithmetic = 1.9, .operands = 2, .weights = 0.8};
    return {.arithmetic = has_tiles(problem) ? 0.45 : 1, .operands = 2, .weights = 0.4};
  }
  static Built<Code> compile(const Problem& problem, const Params& operands, const Tactic&) {
    const LinearRegion region = *read_linear_region(problem.region);
    const int64_t n = region.code.n, k = region.code.k;
    Built<Code> built{{region.code, operands, {}}};
    const Desc weights = describe_any(built.code, result_dims(region)).weights_desc();
    built.code.format = format_of(weights);
    const Desc given({k, n}, ElementType::f32, region.transposed ? Dims{1, k} : Dims{n, 1});
    built.constants.push_back(packed(region.weights().data(), given, weights));
    if (const std::vector<float> bias = region.bias(); !bias.empty())
      built.constants.push_back(Tensor::of<float>({n}, bias));
    return built;
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&) {
    std::vector<ConstantSpec> specs{constant_spec(code.stored_weights())};
    if (code.linear.epilogue.bias) specs.push_back({DType::f32, {code.linear.n}});
    return specs;
  }

  static Program load(const Code& code, const KernelShapes& shapes) {
    const LinearCode& linear = code.linear;
    linear.require_operands(shapes);
    const Dims& out = shapes.outputs[0].dims;
    const Desc stored = code.stored_weights();
    Matmul::primitive_desc desc = describe_linear(code, out, stored);
    if (!desc) desc = describe_any(code, out);
    HONE_CHECK(static_cast<bool>(desc), "oneDNN has no matmul of {} by {} like the one in the plan", linear.k,
               linear.n);
    Program program;
    std::vector<Program::Argument> arguments{{DNNL_ARG_SRC, desc.src_desc(),
                                              operand_as(program, plain_desc({elements(out) / linear.n, linear.k}),
                                                         desc.src_desc(), {Operand::input, linear.input})},
                                             {DNNL_ARG_WEIGHTS, desc.weights_desc(),
                                              operand_as(program, stored, desc.weights_desc(), {Operand::constant, 0})},
                                             {DNNL_ARG_DST, desc.dst_desc(), {Operand::output, 0}}};
    if (linear.epilogue.bias) arguments.push_back({DNNL_ARG_BIAS, desc.bias_desc(), {Operand::constant, 1}});
    add_residual(linear.epilogue, linear.epilogue.epilogue(), desc.dst_desc(), arguments);
    program.add(Matmul(desc), desc.scratchpad_desc(), std::move(arguments));
    return program;
  }
};

// ---- MatMul: numpy's batched matmul ----

/// Ones in front, up to the result's rank.
Desc batched_desc(const Dims& dims, size_t rank) {
  Dims full = dims;
  full.insert(full.begin(), rank - dims.size(), 1);
  return plain_desc(full);
}

Epilogue scaled_epilogue(const MatmulCode& code) {
  Epilogue epilogue = code.epilogue.epilogue();
  epilogue.scale = code.scale;
  return epilogue;
}

Matmul::primitive_desc describe_matmul(const MatmulCode& code, const Dims& a, const Dims& b, const Dims& c) {
  return describe(batched_desc(a, c.size()), batched_desc(b, c.size()), Desc(), plain_desc(c), scaled_epilogue(code));
}

struct MatmulFamily {
  static constexpr std::string_view kName = "matmul";
  static constexpr int kVersion = 1;
  static constexpr Cost kCost = {.arithmetic = 1.9, .operands = 2};
  using Params = NoParams;
  using Code = MatmulCode;

  static void propose(const Problem& problem, Candidates& out) {
    const std::optional<MatmulRegion> region = read_matmul_region(problem.region);
    if (!region) return;
    const Node& node = *region->match.anchor;
    std::string reason = reason_against(node, region->match);
    const Dims a = node.input(0)->type.shape.values(), b = node.input(1)->type.shape.values(),
               c = node.output()->type.shape.values();
    if (reason.empty() && !region->match.biases.empty()) reason = "adds a bias";
    if (reason.empty() && (a.size() < 2 || b.size() < 2 || c.size() > 6)) reason = "an operand is a vector";
    if (!reason.empty()) return out.refuse(kName, std::move(reason));
    offer(problem, describe_matmul(region->code, a, b, c), kName, {}, out);
  }

  static Built<Code> compile(const Problem& problem, const Params&, const Tactic&) {
    MatmulRegion region = *read_matmul_region(problem.region);
    return {std::move(region.code), std::move(region.constants)};
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&) {
    return operand_constants(code.operands);
  }

  static Program load(const Code& code, const KernelShapes& shapes) {
    const auto [a, b, c] = MatmulSizes(code, shapes);
    const Matmul::primitive_desc desc = describe_matmul(code, a, b, c);
    HONE_CHECK(static_cast<bool>(desc), "oneDNN has no matmul of {} and {} like the one in the plan", join_dims(a),
               join_dims(b));
    std::vector<Program::Argument> arguments{{DNNL_ARG_SRC, desc.src_desc(), operand_of(code.operands[0])},
                                             {DNNL_ARG_WEIGHTS, desc.weights_desc(), operand_of(code.operands[1])},
                                             {DNNL_ARG_DST, desc.dst_desc(), {Operand::output, 0}}};
    add_residual(code.epilogue, scaled_epilogue(code), desc.dst_desc(), arguments);
    Program program;
    program.add(Matmul(desc), desc.scratchpad_desc(), std::move(arguments));
    return program;
  }
};

}  // namespace

const Family linear = family_of<LinearFamily>();
const Family matmul = family_of<MatmulFamily>();

}  // namespace hone::cpu::onednn
#endif
