// SPDX-License-Identifier: Apache-2.0
//
// oneDNN's matrix products: Linear with constant weights in the library's own format, and batched MatMul of activations.
#include "backends/cpu/onednn/support.h"

#if HONE_WITH_ONEDNN
#include "ops/ops.h"

namespace hone::cpu::onednn {
namespace {

using Product = dnnl::matmul;

Product::primitive_desc describe(const Desc& a, const Desc& b, const Desc& bias, const Desc& c,
                                 const Epilogue& epilogue) {
  const dnnl::primitive_attr attr = attr_of(epilogue, c);
  return bias ? Product::primitive_desc(engine(), a, b, bias, c, attr, true)
              : Product::primitive_desc(engine(), a, b, c, attr, true);
}

Desc bias_desc(const Dims& result) {
  Dims dims(result.size(), 1);
  dims.back() = result.back();
  return plain_desc(dims);
}

/// Where the residual stands among the post-operations.
int residual_position(const Epilogue& epilogue) {
  return (epilogue.scale != 1 ? 1 : 0) +
         (epilogue.residual_after_activation && epilogue.activation.kind != ActivationKind::none ? 1 : 0);
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

void offer(const Problem& problem, const Product::primitive_desc& desc, std::string_view name, Candidates& out,
           ElementType operands = ElementType::f32) {
  if (!desc || !is_fast(desc)) return out.refuse(name, "the library has only its reference implementation");
  Attrs params;
  set_operands(params, operands);
  out.offer({"onednn",
             std::string(name),
             std::move(params),
             std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
             {Layout::linear}});
}

void require_f32(const KernelShapes& shapes) {
  for (const auto* list : {&shapes.inputs, &shapes.outputs})
    for (const ConcreteType& type : *list)
      HONE_CHECK(type.dtype == DType::f32, "a product in the plan has an operand of {}", name_of(type.dtype));
}

void add_residual(const Attrs& attrs, const KernelShapes& shapes, const Epilogue& epilogue, const Desc& result,
                  std::vector<Program::Argument>& arguments) {
  const int64_t residual = read_residual(attrs);
  if (residual < 0) return;
  HONE_CHECK(residual < static_cast<int64_t>(shapes.inputs.size()) &&
                 shapes.inputs[static_cast<size_t>(residual)] == shapes.outputs[0],
             "a product in the plan adds a tensor that does not fit");
  arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(residual_position(epilogue)) | DNNL_ARG_SRC_1,
                       result,
                       {Operand::input, residual}});
}

// ---- Linear: [M, K] times weights ----

struct LinearShape {
  int64_t n, k;
  bool transposed;
};

LinearShape linear_shape(const Node& node) {
  const Dims& w = node.input(1)->constant->dims();
  const bool transposed = node.attrs.integer("trans_w") != 0;
  return {transposed ? w[0] : w[1], transposed ? w[1] : w[0], transposed};
}

/// The input is read as the weights are: f32, or rounded to bf16.
Product::primitive_desc describe_linear(const Dims& output, int64_t k, const Desc& weights, const Epilogue& epilogue) {
  const Dims c{elements(output) / output.back(), output.back()};
  return describe(plain_desc({c[0], k}, weights.get_data_type()), weights, epilogue.bias ? bias_desc(c) : Desc(),
                  plain_desc(c), epilogue);
}

Attrs linear_attrs(const Problem& problem, const Node& node, const RegionMatch& match) {
  const LinearShape shape = linear_shape(node);
  Attrs attrs{{"input", int64_t{input_index(problem.region, node.input(0))}}, {"n", shape.n}, {"k", shape.k}};
  write_epilogue(attrs, match, node.input(2) != nullptr || !match.biases.empty());
  return attrs;
}

Product::primitive_desc describe_linear(const Node& node, const Attrs& attrs) {
  const LinearShape shape = linear_shape(node);
  return describe_linear(node.output()->type.shape.values(), shape.k, any_desc({shape.k, shape.n}, operands_of(attrs)),
                         read_epilogue(attrs));
}

void propose_linear(const Problem& problem, Candidates& out) {
  const Node* node = anchor_of(problem.region, ops::linear);
  if (node == nullptr) return;
  const RegionMatch match = match_region(problem.region, node, 1);
  std::string reason = reason_against(*node, match);
  if (reason.empty() && input_index(problem.region, node->input(0)) < 0) reason = "its input is a constant";
  if (reason.empty() &&
      (!node->input(1)->is_constant() || (node->input(2) != nullptr && !node->input(2)->is_constant())))
    reason = "weights are not constant";
  if (!reason.empty()) return out.refuse("linear", std::move(reason));
  for (const ElementType operands : {ElementType::bf16, ElementType::f32}) {
    if (operands == ElementType::bf16 && !may_round(problem)) continue;
    Attrs attrs = linear_attrs(problem, *node, match);
    set_operands(attrs, operands);
    const Product::primitive_desc desc = describe_linear(*node, attrs);
    if (desc && format_of(desc.weights_desc()).empty())
      out.refuse("linear", "the library wants weights in a format of its own");
    else offer(problem, desc, "linear", out, operands);
  }
}

Compiled compile_linear(const Problem& problem, const Tactic& tactic) {
  const Node& node = *anchor_of(problem.region, ops::linear);
  const RegionMatch match = match_region(problem.region, &node, 1);
  const LinearShape shape = linear_shape(node);
  Attrs attrs = linear_attrs(problem, node, match);
  set_operands(attrs, operands_of(tactic.params));
  const Desc weights = describe_linear(node, attrs).weights_desc();
  attrs.set("format", format_of(weights));
  const Desc stored({shape.k, shape.n}, dnnl::memory::data_type::f32,
                    shape.transposed ? Dims{1, shape.k} : Dims{shape.n, 1});
  Compiled compiled;
  compiled.constants.push_back(packed(scaled_weights(match, *node.input(1)->constant).data(), stored, weights));
  const std::vector<float> bias = collect_bias(match, node.input(2), shape.n);
  if (!bias.empty()) compiled.constants.push_back(Tensor::of<float>({shape.n}, bias));
  compiled.code = encode_code("linear", attrs);
  return compiled;
}

Program load_linear(const Attrs& attrs, const KernelShapes& shapes) {
  const int64_t input = attrs.integer("input"), k = attrs.integer("k"), n = attrs.integer("n");
  HONE_CHECK(input >= 0 && input < static_cast<int64_t>(shapes.inputs.size()) && shapes.outputs.size() == 1,
             "a linear layer in the plan reads inputs that its step does not have");
  const Dims &in = shapes.inputs[static_cast<size_t>(input)].dims, &out = shapes.outputs[0].dims;
  const bool valid = k > 0 && n > 0 && !in.empty() && !out.empty() && in.back() == k && out.back() == n &&
                     elements(in) / k == elements(out) / n;
  HONE_CHECK(valid, "a linear layer in the plan takes {} to {}", join_dims(in), join_dims(out));
  require_f32(shapes);
  const Epilogue epilogue = read_epilogue(attrs);
  const Desc stored = desc_in_format({k, n}, attrs.text("format"), operands_of(attrs));
  require_constant(shapes, 0, stored);
  if (epilogue.bias) require_constant(shapes, 1, plain_desc({n}));
  Product::primitive_desc desc = describe_linear(out, k, stored, epilogue);
  if (!desc) desc = describe_linear(out, k, any_desc({k, n}, operands_of(attrs)), epilogue);
  HONE_CHECK(static_cast<bool>(desc), "oneDNN has no product from {} to {} like the one in the plan", join_dims(in),
             join_dims(out));
  Program program;
  std::vector<Program::Argument> arguments{
      {DNNL_ARG_SRC, desc.src_desc(),
       operand_as(program, plain_desc({elements(in) / k, k}), desc.src_desc(), {Operand::input, input})},
      {DNNL_ARG_WEIGHTS, desc.weights_desc(), operand_as(program, stored, desc.weights_desc(), {Operand::constant, 0})},
      {DNNL_ARG_DST, desc.dst_desc(), {Operand::output, 0}}};
  if (epilogue.bias) arguments.push_back({DNNL_ARG_BIAS, desc.bias_desc(), {Operand::constant, 1}});
  add_residual(attrs, shapes, epilogue, desc.dst_desc(), arguments);
  program.add(Product(desc), desc.scratchpad_desc(), std::move(arguments));
  return program;
}

// ---- MatMul: numpy's batched product ----

/// Ones in front, up to the result's rank.
Desc batched_desc(const Dims& dims, size_t rank) {
  Dims full = dims;
  full.insert(full.begin(), rank - dims.size(), 1);
  return plain_desc(full);
}

Product::primitive_desc describe_matmul(const Dims& a, const Dims& b, const Dims& c, const Epilogue& epilogue) {
  return describe(batched_desc(a, c.size()), batched_desc(b, c.size()), Desc(), plain_desc(c), epilogue);
}

Attrs matmul_attrs(const Problem& problem, const Node& node, const RegionMatch& match, std::vector<Tensor>& constants) {
  Attrs attrs;
  for (const auto& [name, value] : {std::pair{"a", node.input(0)}, std::pair{"b", node.input(1)}}) {
    attrs.set(name, value->is_constant() ? -1 - static_cast<int64_t>(constants.size())
                                         : int64_t{input_index(problem.region, value)});
    if (!value->is_constant()) continue;
    attrs.set(std::string(name) + "_dims", value->constant->dims());
    constants.push_back(*value->constant);
  }
  attrs.set("scale", double{match.scale});
  write_epilogue(attrs, match, false);
  return attrs;
}

Epilogue scaled_epilogue(const Attrs& attrs) {
  Epilogue epilogue = read_epilogue(attrs);
  epilogue.scale = static_cast<float>(attrs.real("scale"));
  return epilogue;
}

void propose_matmul(const Problem& problem, Candidates& out) {
  const Node* node = anchor_of(problem.region, ops::mat_mul);
  if (node == nullptr) return;
  const RegionMatch match = match_region(problem.region, node, 0);
  std::string reason = reason_against(*node, match);
  const Dims a = node->input(0)->type.shape.values(), b = node->input(1)->type.shape.values(),
             c = node->output()->type.shape.values();
  if (reason.empty() && !match.biases.empty()) reason = "adds a bias";
  if (reason.empty() && (a.size() < 2 || b.size() < 2 || c.size() > 6)) reason = "an operand is a vector";
  if (!reason.empty()) return out.refuse("matmul", std::move(reason));
  std::vector<Tensor> constants;
  offer(problem, describe_matmul(a, b, c, scaled_epilogue(matmul_attrs(problem, *node, match, constants))), "matmul",
        out);
}

Compiled compile_matmul(const Problem& problem, const Tactic&) {
  const Node& node = *anchor_of(problem.region, ops::mat_mul);
  Compiled compiled;
  compiled.code =
      encode_code("matmul", matmul_attrs(problem, node, match_region(problem.region, &node, 0), compiled.constants));
  return compiled;
}

Program load_matmul(const Attrs& attrs, const KernelShapes& shapes) {
  HONE_CHECK(shapes.outputs.size() == 1, "a matrix product in the plan has {} results", shapes.outputs.size());
  const auto dims_of = [&](const char* name) -> Dims {
    const int64_t index = attrs.integer(name);
    HONE_CHECK(index >= -2 && index < static_cast<int64_t>(shapes.inputs.size()),
               "a matrix product in the plan reads input {}", index);
    if (index >= 0) return shapes.inputs[static_cast<size_t>(index)].dims;
    return constant_operand(shapes, -1 - index, DType::f32, attrs.integers(std::string(name) + "_dims")).dims;
  };
  const auto operand_of = [&](const char* name) -> Operand {
    const int64_t index = attrs.integer(name);
    return index >= 0 ? Operand{Operand::input, index} : Operand{Operand::constant, -1 - index};
  };
  require_f32(shapes);
  const Dims a = dims_of("a"), b = dims_of("b");
  const Dims& c = shapes.outputs[0].dims;
  HONE_CHECK(a.size() >= 2 && b.size() >= 2 && c.size() == std::max(a.size(), b.size()),
             "a matrix product in the plan multiplies {} by {}", join_dims(a), join_dims(b));
  const Epilogue epilogue = scaled_epilogue(attrs);
  const Product::primitive_desc desc = describe_matmul(a, b, c, epilogue);
  HONE_CHECK(static_cast<bool>(desc), "oneDNN has no product of {} and {} like the one in the plan", join_dims(a),
             join_dims(b));
  std::vector<Program::Argument> arguments{{DNNL_ARG_SRC, desc.src_desc(), operand_of("a")},
                                           {DNNL_ARG_WEIGHTS, desc.weights_desc(), operand_of("b")},
                                           {DNNL_ARG_DST, desc.dst_desc(), {Operand::output, 0}}};
  add_residual(attrs, shapes, epilogue, desc.dst_desc(), arguments);
  Program program;
  program.add(Product(desc), desc.scratchpad_desc(), std::move(arguments));
  return program;
}

}  // namespace

const Family linear{"linear", propose_linear, compile_linear, load_linear};
const Family matmul{"matmul", propose_matmul, compile_matmul, load_matmul};

}  // namespace hone::cpu::onednn
#endif
