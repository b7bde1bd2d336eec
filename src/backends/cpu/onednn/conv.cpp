// SPDX-License-Identifier: Apache-2.0
//
// oneDNN's convolutions and transposed convolutions of one to three spatial axes, with bias, residual and activation.
#include "backends/cpu/onednn/support.h"

#if HONE_WITH_ONEDNN
#include "base/checked.h"
#include "regions/conv_region.h"

namespace hone::cpu::onednn {
namespace {

struct ConvolutionCode {
  ConvCode conv;
  bool transposed = false;
  OperandType operands;
  std::string format;  // in which the plan keeps the weights; empty: plain
  static void fields(auto& self, auto& visit) {
    ConvCode::fields(self.conv, visit);
    visit("transposed", self.transposed);
    OperandType::fields(self.operands, visit);
    visit("format", self.format);
  }
};

std::string reason_against(const Problem& problem, const ConvRegion& region) {
  const Node& node = region.node();
  const Value* x = node.input(0);
  const DType dtype = x->type.dtype;
  if (dtype != DType::f32 && !(dtype == DType::bf16 && problem.device.bf16_matmuls))
    return fmt::format("input is {}", name_of(dtype));
  if (problem.region.outputs()[0]->type.dtype != dtype) return "its result has another type than its input";
  if (std::string reason = reason_against_operands(problem.region, node); !reason.empty()) return reason;
  if (x->type.shape.rank() > 5) return "more than three spatial axes";
  if (node.output()->type.shape.elements() == Dim(0) || x->type.shape.elements() == Dim(0)) return "empty operands";
  if (region.code.padding != Padding::given) return "padding depends on the size";
  return region.match.refusal;
}

/// The library's sizes of the weights for an input of these sizes: [groups,] results, operands, filter.
Dims weight_dims(const ConvCode& conv, const Dims& input) {
  Dims dims{conv.channels / conv.groups, input[1] / conv.groups};
  dims.insert(dims.end(), conv.filter.begin(), conv.filter.end());
  if (conv.groups > 1) dims.insert(dims.begin(), conv.groups);
  require_sizes(dims);
  return dims;
}

/// How the model's weights lie, in the library's order of axes.
Desc source_weights(const ConvolutionCode& code, const Dims& input) {
  const Dims dims = weight_dims(code.conv, input);
  if (!code.transposed) return plain_desc(dims);
  const size_t o = code.conv.groups > 1 ? 1 : 0;
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

/// The end padding that makes the sizes meet exactly: rounding may leave the last rows unread.
Dims end_padding(const ConvolutionCode& code, const Dims& in, const Dims& out) {
  const ConvCode& conv = code.conv;
  Dims result;
  for (size_t i = 0; i < conv.filter.size(); ++i) {
    const int64_t reach = (conv.filter[i] - 1) * conv.dilations[i] + 1, small = (code.transposed ? in : out)[2 + i],
                  large = (code.transposed ? out : in)[2 + i];
    result.push_back((small - 1) * conv.strides[i] + reach - large - conv.pads[i]);
  }
  return result;
}

/// A tensor of the model in the type that the primitive computes in.
Desc computed_desc(const ConvolutionCode& code, const ConcreteType& type) {
  return desc_of({code.operands.rounded ? DType::bf16 : DType::f32, type.dims, type.layout});
}

/// Nothing when the library has no fast implementation.
std::optional<Primitive> make(const ConvolutionCode& code, const ConcreteType& in, const ConcreteType& out,
                              const Desc& weights) {
  const Dims &strides = code.conv.strides, dilations = less_one(code.conv.dilations), &pads = code.conv.pads;
  const Dims after = end_padding(code, in.dims, out.dims);
  const Dims before(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2));
  const Epilogue epilogue = code.conv.epilogue.epilogue();
  const Desc source = desc_of(in), result = desc_of(out), bias = epilogue.bias ? plain_desc({out.dims[1]}) : Desc();
  const dnnl::primitive_attr attr = attr_of(epilogue, result);
  const auto finish = [&](const auto& desc, auto kind) -> std::optional<Primitive> {
    if (!desc || !is_fast(desc)) return std::nullopt;
    return Primitive{typename decltype(kind)::type(desc), source, desc.weights_desc(), bias, desc.scratchpad_desc()};
  };
  constexpr auto kInference = dnnl::prop_kind::forward_inference;
  if (code.transposed) {
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

/// The same with weights in the format that the library chooses.
std::optional<Primitive> make_any(const ConvolutionCode& code, const ConcreteType& in, const ConcreteType& out) {
  return make(code, in, out, any_desc(weight_dims(code.conv, in.dims), code.operands.element()));
}

ConcreteType concrete(const Value* value, Layout layout) {
  return {value->type.dtype, value->type.shape.values(), layout};
}

std::optional<Primitive> make_for(const Problem& problem, const ConvRegion& region, const ConvolutionCode& code,
                                  Layout in, Layout out) {
  return make_any(code, concrete(region.node().input(0), in), concrete(problem.region.outputs()[0], out));
}

/// Why a primitive cannot be used; empty when it can.
std::string reason_against(const std::optional<Primitive>& primitive, const OperandType& operands) {
  if (!primitive) return "the library has only its reference implementation";
  if (!operands.rounded && format_of(primitive->weights).empty())
    return "the library wants weights in a format of its own";
  return {};
}

/// How the plan keeps the weights for an input of these sizes: as the primitive wants them, or plain where that format has no name.
Desc stored_weights(const ConvolutionCode& code, const Dims& input) {
  const Dims dims = weight_dims(code.conv, input);
  return code.format.empty() ? plain_desc(dims, code.operands.element())
                             : desc_in_format(dims, code.format, code.operands.element());
}

/// Of bf16 where the tensors are that and the library is fast with them; of f32, between reorders, where it is not. False when
/// it was refused.
bool offer(const Problem& problem, const ConvRegion& region, Layout in, Layout out, Candidates& candidates) {
  ConvolutionCode code{region.code, region.transposed, OperandType(element_of(region.node().input(0)->type.dtype)), {}};
  std::string reason = reason_against(make_for(problem, region, code, in, out), code.operands);
  if (!reason.empty() && code.operands.rounded) {
    code.operands = {};
    reason = reason_against(make_for(problem, region, code, in, out), code.operands);
  }
  if (!reason.empty()) {
    candidates.refuse(fmt::format("convolution {} -> {}", name_of(in), name_of(out)), std::move(reason));
    return false;
  }
  std::vector<Layout> layouts(problem.region.inputs().size(), out);
  layouts[static_cast<size_t>(region.code.input)] = in;
  candidates.offer({"onednn", "convolution", write_fields(code.operands), std::move(layouts), {out}});
  return true;
}

/// Throws Error where operands and result contradict each other.
void check(const ConvolutionCode& code, const KernelShapes& shapes) {
  code.conv.require_operands(shapes);
  const DType in = code.conv.input_type(shapes).dtype, out = shapes.outputs[0].dtype;
  HONE_CHECK(in == out && (in == DType::bf16 || !code.operands.rounded), "a convolution in the plan turns {} into {}",
             name_of(in), name_of(out));
  HONE_CHECK(code.conv.padding == Padding::given, "a convolution in the plan has padding that depends on the size");
}

struct ConvolutionFamily {
  static constexpr std::string_view kName = "convolution";
  static constexpr int kVersion = 1;
  using Params = OperandType;
  using Code = ConvolutionCode;

  static void propose(const Problem& problem, Candidates& out) {
    const std::optional<ConvRegion> region = read_conv_region(problem.region);
    if (!region) return;
    if (std::string reason = reason_against(problem, *region); !reason.empty())
      return out.refuse(kName, std::move(reason));
    const int64_t channels = region->node().input(0)->type.shape[1].value();
    if (channels <= 4) offer(problem, *region, Layout::linear, Layout::channels_last, out);
    const bool offered = offer(problem, *region, Layout::channels_last, Layout::channels_last, out);
    // Blocked layouts cost a reformat on both sides and longer tuning; with AVX-512 the library is as fast without them.
    const bool avx512 = problem.device.architecture == "avx512";
    const Layout blocked = avx512 ? Layout::blocked16 : Layout::blocked8;
    if (channels > 4 && (!avx512 || !offered)) offer(problem, *region, blocked, blocked, out);
  }

  static Cost cost(const Problem& problem, const Params& operands, const Tactic&) {
    const bool grouped = read_conv_region(problem.region)->code.groups > 1;  // rounding gains nothing there
    if (!operands.rounded || grouped) return {.arithmetic = 1.7, .operands = 2, .weights = 0.5};
    return {.arithmetic = has_tiles(problem) ? 0.4 : 0.8, .operands = 2, .weights = 0.5};
  }
  static Built<Code> compile(const Problem& problem, const Params& operands, const Tactic& tactic) {
    const ConvRegion region = *read_conv_region(problem.region);
    Built<Code> built{{region.code, region.transposed, operands, {}}};
    Code& code = built.code;
    const std::optional<Primitive> primitive =
        make_for(problem, region, code, tactic.in[static_cast<size_t>(region.code.input)], tactic.out[0]);
    HONE_ASSERT(primitive.has_value(), "the library refuses what it offered");
    code.format = format_of(primitive->weights);
    const Dims input = region.node().input(0)->type.shape.values();
    built.constants.push_back(
        packed(region.weights().data(), source_weights(code, input), stored_weights(code, input)));
    if (const std::vector<float> bias = region.bias(); !bias.empty())
      built.constants.push_back(Tensor::of<float>({code.conv.channels}, bias));
    return built;
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes& shapes) {
    check(code, shapes);
    std::vector<ConstantSpec> specs{constant_spec(stored_weights(code, code.conv.input_type(shapes).dims))};
    if (code.conv.epilogue.bias) specs.push_back({DType::f32, {code.conv.channels}});
    return specs;
  }

  static Program load(const Code& code, const KernelShapes& shapes) {
    check(code, shapes);
    const ConcreteType &in = code.conv.input_type(shapes), &out = shapes.outputs[0];
    const Desc stored = stored_weights(code, in.dims);
    std::optional<Primitive> primitive;
    if (!code.format.empty()) primitive = make(code, in, out, stored);
    if (!primitive) primitive = make_any(code, in, out);
    HONE_CHECK(primitive.has_value(), "oneDNN has no convolution from {} to {} like the one in the plan",
               join_dims(in.dims), join_dims(out.dims));
    return write(code, *primitive, in, out, stored);
  }

 private:
  static Program write(const Code& code, const Primitive& primitive, const ConcreteType& in, const ConcreteType& out,
                       const Desc& stored) {
    Program program;
    const EpilogueCode& epilogue = code.conv.epilogue;
    const Desc result = computed_desc(code, out), stored_result = desc_of(out);
    const Operand output{Operand::output, 0},
        target = result == stored_result ? output : program.reserve(result.get_size());
    std::vector<Program::Argument> arguments{
        {DNNL_ARG_SRC, primitive.source,
         operand_as(program, desc_of(in), primitive.source, {Operand::input, code.conv.input})},
        {DNNL_ARG_WEIGHTS, primitive.weights, operand_as(program, stored, primitive.weights, {Operand::constant, 0})},
        {DNNL_ARG_DST, result, target}};
    if (epilogue.bias) arguments.push_back({DNNL_ARG_BIAS, primitive.bias, {Operand::constant, 1}});
    if (epilogue.residual >= 0)
      arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(residual_position(epilogue.epilogue())) | DNNL_ARG_SRC_1,
                           result, operand_as(program, stored_result, result, {Operand::input, epilogue.residual})});
    program.add(primitive.primitive, primitive.scratchpad, std::move(arguments));
    if (result != stored_result) program.add_reorder(result, target, stored_result, output);
    return program;
  }
};

}  // namespace

const Family convolution = family_of<ConvolutionFamily>();

}  // namespace hone::cpu::onednn
#endif
