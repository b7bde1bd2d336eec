// SPDX-License-Identifier: Apache-2.0
//
// oneDNN's convolutions and transposed convolutions of one to three spatial axes, with bias, residual and activation.
#include "backends/cpu/onednn/support.h"

#if HONE_WITH_ONEDNN
#include "base/checked.h"
#include "ops/ops.h"

namespace hone::cpu::onednn {
namespace {

const Node* anchor(const Problem& problem) {
  const Node* node = anchor_of(problem.region, ops::conv);
  return node != nullptr ? node : anchor_of(problem.region, ops::conv_transpose);
}

std::string reason_against(const Problem& problem, const Node& node, const RegionMatch& match) {
  const Value* x = node.input(0);
  const DType dtype = x->type.dtype;
  if (dtype != DType::f32 && !(dtype == DType::bf16 && problem.device.bf16_products))
    return fmt::format("input is {}", name_of(dtype));
  if (problem.region.outputs()[0]->type.dtype != dtype) return "its result has another type than its input";
  if (input_index(problem.region, x) < 0) return "its input is a constant";
  if (!node.input(1)->is_constant() || (node.input(2) != nullptr && !node.input(2)->is_constant()))
    return "weights are not constant";
  if (x->type.shape.rank() < 3 || x->type.shape.rank() > 5) return "more than three spatial axes";
  if (node.output()->type.shape.elements() == Dim(0) || x->type.shape.elements() == Dim(0)) return "empty operands";
  if (node.attrs.has("auto_pad") && node.attrs.text("auto_pad") != "NOTSET") return "padding depends on the size";
  if (node.attrs.has("output_shape") && !node.attrs.integers("output_shape").empty())
    return "padding depends on the size";
  return match.refusal;
}

/// Everything but the concrete sizes.
Attrs read_attrs(const Problem& problem, const Node& node, const RegionMatch& match) {
  Attrs attrs;
  for (const char* name : {"strides", "dilations", "pads", "group"}) attrs.set(name, *node.attrs.find(name));
  attrs.set("transposed", int64_t{node.is(ops::conv_transpose)});
  attrs.set("weights", node.input(1)->constant->dims());
  attrs.set("input", int64_t{input_index(problem.region, node.input(0))});
  write_epilogue(attrs, match, node.input(2) != nullptr || !match.biases.empty());
  return attrs;
}

/// The library's sizes of the weights: [groups,] results, operands, filter.
Dims weight_dims(const Attrs& attrs) {
  Dims dims = attrs.integers("weights");
  const int64_t groups = attrs.integer("group");
  require_sizes(dims);
  HONE_CHECK(dims.size() >= 3 && dims.size() <= 5 && groups >= 1 && dims[0] % groups == 0,
             "a convolution in the plan has weights {}", join_dims(dims));
  if (attrs.integer("transposed") != 0) {  // [I, O/groups, ...] to [groups, O/groups, I/groups, ...]
    const int64_t i = dims[0] / groups, o = dims[1];
    dims[0] = o, dims[1] = i;
  } else {
    dims[0] /= groups;
  }
  if (groups > 1) dims.insert(dims.begin(), groups);
  return dims;
}

/// How the model's weights lie, in the library's order of axes.
Desc source_weights(const Attrs& attrs) {
  const Dims dims = weight_dims(attrs);
  if (attrs.integer("transposed") == 0) return plain_desc(dims);
  const size_t o = attrs.integer("group") > 1 ? 1 : 0;
  Dims stored = dims;
  std::swap(stored[o], stored[o + 1]);
  Dims strides = strides_of(stored);
  std::swap(strides[o], strides[o + 1]);
  return {dims, dnnl::memory::data_type::f32, strides};
}

struct Primitive {
  dnnl::primitive primitive;
  Desc source, weights, bias, scratchpad;
};

Dims less_one(Dims dilations) {
  for (int64_t& dilation : dilations) --dilation;
  return dilations;
}

/// Rows or columns that are added, or cut off where it is negative.
constexpr int64_t kMostPadding = 1 << 20;

/// The end padding that makes the sizes meet exactly: rounding may leave the last rows unread.
Dims end_padding(const Attrs& attrs, const ConcreteType& in, const ConcreteType& out, const Dims& weights) {
  const Dims &strides = attrs.integers("strides"), &dilations = attrs.integers("dilations"),
             &pads = attrs.integers("pads");
  const size_t spatial = in.dims.size() - 2;
  HONE_CHECK(strides.size() == spatial && dilations.size() == spatial && pads.size() == 2 * spatial &&
                 weights.size() >= spatial && out.dims.size() == in.dims.size(),
             "a convolution in the plan has attributes of another rank");
  for (const Dims* list : {&strides, &dilations, &pads})
    for (const int64_t value : *list)
      HONE_CHECK(value >= (list == &pads ? -kMostPadding : 1) && value < kMostPadding,
                 "a convolution in the plan has the attributes {}", attrs.print());
  const bool transposed = attrs.integer("transposed") != 0;
  Dims result;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t reach = (weights[weights.size() - spatial + i] - 1) * dilations[i] + 1;
    const int64_t small = transposed ? in.dims[2 + i] : out.dims[2 + i],
                  large = transposed ? out.dims[2 + i] : in.dims[2 + i];
    result.push_back((small - 1) * strides[i] + reach - large - pads[i]);
  }
  return result;
}

/// A tensor of the model in the type that the primitive computes in.
Desc computed_desc(const Attrs& attrs, const ConcreteType& type) {
  return desc_of({operands_of(attrs) == ElementType::bf16 ? DType::bf16 : DType::f32, type.dims, type.layout});
}

/// Nothing when the library has no fast implementation.
std::optional<Primitive> make(const Attrs& attrs, const ConcreteType& in, const ConcreteType& out,
                              const Desc& weights) {
  const Dims &strides = attrs.integers("strides"), dilations = less_one(attrs.integers("dilations")),
             &pads = attrs.integers("pads");
  const Dims after = end_padding(attrs, in, out, weights.get_dims());
  const Dims before(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2));
  const Epilogue epilogue = read_epilogue(attrs);
  const Desc source = desc_of(in), result = desc_of(out), bias = epilogue.bias ? plain_desc({out.dims[1]}) : Desc();
  const dnnl::primitive_attr attr = attr_of(epilogue, result);
  const auto finish = [&](const auto& desc, auto kind) -> std::optional<Primitive> {
    if (!desc || !is_fast(desc)) return std::nullopt;
    return Primitive{typename decltype(kind)::type(desc), source, desc.weights_desc(), bias, desc.scratchpad_desc()};
  };
  constexpr auto kInference = dnnl::prop_kind::forward_inference;
  if (attrs.integer("transposed") != 0) {
    using Forward = dnnl::deconvolution_forward;
    return finish(Forward::primitive_desc(engine(), kInference, dnnl::algorithm::deconvolution_direct, source, weights,
                                          bias, result, strides, dilations, before, after, attr, true),
                  std::type_identity<Forward>());
  }
  using Forward = dnnl::convolution_forward;
  return finish(Forward::primitive_desc(engine(), kInference, dnnl::algorithm::convolution_direct, source, weights,
                                        bias, result, strides, dilations, before, after, attr, true),
                std::type_identity<Forward>());
}

ConcreteType concrete(const Value* value, Layout layout) {
  return {value->type.dtype, value->type.shape.values(), layout};
}

std::optional<Primitive> make_for(const Problem& problem, const Node& node, const Attrs& attrs, Layout in, Layout out) {
  return make(attrs, concrete(node.input(0), in), concrete(problem.region.outputs()[0], out),
              any_desc(weight_dims(attrs), operands_of(attrs)));
}

/// Why a primitive cannot be used; empty when it can.
std::string reason_against(const std::optional<Primitive>& primitive, const Attrs& attrs) {
  if (!primitive) return "the library has only its reference implementation";
  if (operands_of(attrs) == ElementType::f32 && format_of(primitive->weights).empty())
    return "the library wants weights in a format of its own";
  return {};
}

/// How the plan keeps the weights: as the primitive wants them, or plain where that format has no name.
Desc stored_weights(const Attrs& attrs) {
  const std::string& format = attrs.text("format");
  return format.empty() ? plain_desc(weight_dims(attrs), operands_of(attrs))
                        : desc_in_format(weight_dims(attrs), format, operands_of(attrs));
}

/// Of bf16 where the tensors are that and the library is fast with them; of f32, between reorders, where it is not. False when
/// it was refused.
bool offer(const Problem& problem, const Node& node, Attrs attrs, Layout in, Layout out, Candidates& candidates) {
  set_operands(attrs, element_of(node.input(0)->type.dtype));
  std::string reason = reason_against(make_for(problem, node, attrs, in, out), attrs);
  if (!reason.empty() && operands_of(attrs) != ElementType::f32) {
    set_operands(attrs, ElementType::f32);
    reason = reason_against(make_for(problem, node, attrs, in, out), attrs);
  }
  if (!reason.empty()) {
    candidates.refuse(fmt::format("convolution {} -> {}", name_of(in), name_of(out)), std::move(reason));
    return false;
  }
  Tactic tactic{"onednn", "convolution", {}, std::vector<Layout>(problem.region.inputs().size(), out), {out}};
  set_operands(tactic.params, operands_of(attrs));
  tactic.in[static_cast<size_t>(attrs.integer("input"))] = in;
  candidates.offer(std::move(tactic));
  return true;
}

void propose(const Problem& problem, Candidates& out) {
  const Node* node = anchor(problem);
  if (node == nullptr) return;
  const RegionMatch match = match_region(problem.region, node, node->output()->type.shape.rank() - 1);
  if (std::string reason = reason_against(problem, *node, match); !reason.empty())
    return out.refuse("convolution", std::move(reason));
  const Attrs attrs = read_attrs(problem, *node, match);
  const int64_t channels = node->input(0)->type.shape[1].value();
  if (channels <= 4) offer(problem, *node, attrs, Layout::linear, Layout::channels_last, out);
  const bool offered = offer(problem, *node, attrs, Layout::channels_last, Layout::channels_last, out);
  // Blocked layouts cost a reformat on both sides and longer tuning; with AVX-512 the library is as fast without them.
  const bool avx512 = problem.device.architecture == "avx512";
  const Layout blocked = avx512 ? Layout::blocked16 : Layout::blocked8;
  if (channels > 4 && (!avx512 || !offered)) offer(problem, *node, attrs, blocked, blocked, out);
}

Compiled compile(const Problem& problem, const Tactic& tactic) {
  const Node& node = *anchor(problem);
  const RegionMatch match = match_region(problem.region, &node, node.output()->type.shape.rank() - 1);
  Attrs attrs = read_attrs(problem, node, match);
  set_operands(attrs, operands_of(tactic.params));
  const std::optional<Primitive> primitive =
      make_for(problem, node, attrs, tactic.in[static_cast<size_t>(attrs.integer("input"))], tactic.out[0]);
  HONE_ASSERT(primitive.has_value(), "the library refuses what it offered");
  attrs.set("format", format_of(primitive->weights));
  Compiled compiled;
  compiled.constants.push_back(
      packed(scaled_weights(match, *node.input(1)->constant).data(), source_weights(attrs), stored_weights(attrs)));
  const std::vector<float> bias = collect_bias(match, node.input(2), node.output()->type.shape[1].value());
  if (!bias.empty()) compiled.constants.push_back(Tensor::of<float>({static_cast<int64_t>(bias.size())}, bias));
  compiled.code = encode_code("convolution", attrs);
  return compiled;
}

Program load(const Attrs& attrs, const KernelShapes& shapes) {
  const int64_t input = attrs.integer("input"), residual = read_residual(attrs),
                count = static_cast<int64_t>(shapes.inputs.size());
  HONE_CHECK(input >= 0 && input < count && residual < count && shapes.outputs.size() == 1,
             "a convolution in the plan reads inputs that its step does not have");
  HONE_CHECK(shapes.inputs[static_cast<size_t>(input)].dims.size() >= 3 && shapes.outputs[0].dims.size() >= 3,
             "a convolution in the plan has operands without spatial axes");
  const ConcreteType &in = shapes.inputs[static_cast<size_t>(input)], &out = shapes.outputs[0];
  HONE_CHECK(residual < 0 || shapes.inputs[static_cast<size_t>(residual)] == out,
             "a convolution in the plan adds a tensor of another type");
  const Desc stored = stored_weights(attrs);
  require_constant(shapes, 0, stored);
  if (attrs.integer("bias") != 0) require_constant(shapes, 1, plain_desc({out.dims.at(1)}));
  std::optional<Primitive> primitive;
  if (!attrs.text("format").empty()) primitive = make(attrs, in, out, stored);
  if (!primitive) primitive = make(attrs, in, out, any_desc(weight_dims(attrs), operands_of(attrs)));
  HONE_CHECK(primitive.has_value(), "oneDNN has no convolution from {} to {} like the one in the plan",
             join_dims(in.dims), join_dims(out.dims));

  Program program;
  const Desc result = computed_desc(attrs, out), stored_result = desc_of(out);
  const Operand output{Operand::output, 0},
      target = result == stored_result ? output : program.reserve(result.get_size());
  std::vector<Program::Argument> arguments{
      {DNNL_ARG_SRC, primitive->source, operand_as(program, desc_of(in), primitive->source, {Operand::input, input})},
      {DNNL_ARG_WEIGHTS, primitive->weights, operand_as(program, stored, primitive->weights, {Operand::constant, 0})},
      {DNNL_ARG_DST, result, target}};
  if (attrs.integer("bias") != 0) arguments.push_back({DNNL_ARG_BIAS, primitive->bias, {Operand::constant, 1}});
  if (residual >= 0) {
    const Epilogue epilogue = read_epilogue(attrs);
    const int position = epilogue.residual_after_activation && epilogue.activation.kind != ActivationKind::none ? 1 : 0;
    arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1, result,
                         operand_as(program, stored_result, result, {Operand::input, residual})});
  }
  program.add(primitive->primitive, primitive->scratchpad, std::move(arguments));
  if (result != stored_result) program.add_reorder(result, target, stored_result, output);
  return program;
}

}  // namespace

const Family convolution{"convolution", propose, compile, load};

}  // namespace hone::cpu::onednn
#endif
