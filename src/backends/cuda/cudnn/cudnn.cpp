// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/cudnn/cudnn.h"

#include <algorithm>

#include "backends/cuda/cudnn/convolution_graph.h"
#include "backends/cuda/cudnn/cudnn_attention.h"
#include "backends/cuda/cudnn/engine_tactic.h"
#include "backends/cuda/run/handles.h"
#include "backends/cuda/run/sources.h"
#include "backends/cuda/support/signature.h"
#include "backends/cuda/support/source_text.h"
#include "base/error.h"
#include "device/fields.h"
#include "ops/support.h"
#include "ops/window.h"
#include "regions/conv_region.h"
#include "tensor/layout.h"

namespace hone::cuda {
namespace {

constexpr size_t kOffers = 4,
                 kAsked = 16;  // per layout; of those asked for, many fall away where operands may not be rounded

/// Constant 0 are the weights in the input's layout, constant 1 is the bias.
struct ConvolutionCode {
  int64_t x = 0;
  WindowAttrs window;
  EpilogueCode epilogue;
  EngineTactic choice;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, kMostOperands - 1);
    WindowAttrs::fields(self.window, visit);
    EpilogueCode::fields(self.epilogue, visit);
    EngineTactic::fields(self.choice, visit);
  }
};

/// Nothing when the region does not begin with an ordinary convolution.
std::optional<ConvRegion> read_region(const Graph& region) {
  std::optional<ConvRegion> conv = read_conv_region(region);
  return conv && !conv->transposed ? std::move(conv) : std::nullopt;
}

std::string reason_against(const Problem& problem, const ConvRegion& region) {
  const Node& node = region.node();
  const DType dtype = node.input(0)->type.dtype;
  if (!is_kernel_float(dtype)) return fmt::format("input is {}", name_of(dtype));
  if (std::string reason = reason_against_operands(problem.region, node); !reason.empty()) return reason;
  const size_t axes = region.window.kernel.size();
  if (axes < 1 || axes > 3) return fmt::format("{} spatial axes", axes);
  if (node.output()->type.shape.elements() == Dim(0)) return "empty result";
  if (!region.match) return region.match.refusal;
  return has_activation(region.match.activation) ? "" : "the library has no such activation";
}

ConvolutionCode code_of(const ConvRegion& region, EngineTactic choice = {}) {
  return {
      .x = region.code.input, .window = region.window, .epilogue = region.code.epilogue, .choice = std::move(choice)};
}

ConvolutionGraph convolution_of(const ConvolutionCode& code, const Dims& weights, const ConcreteType& input,
                                const ConcreteType& output) {
  ConvolutionGraph graph;
  graph.input = input;
  graph.output = output;
  graph.weights = weights;
  const size_t spatial = input.dims.size() - 2;
  const WindowAttrs& window = code.window;
  if (spatial == 1) graph.strides = graph.dilations = {1}, graph.before = graph.after = {0};
  for (size_t i = 0; i < spatial; ++i) {
    const auto [before, after] = window.padding(input.dims[2 + i], i);
    graph.strides.push_back(window.strides[i]);
    graph.dilations.push_back(window.dilations[i]);
    graph.before.push_back(before);
    graph.after.push_back(after);
  }
  graph.bias = code.epilogue.bias;
  graph.residual = code.epilogue.residual >= 0;
  graph.residual_after_activation = code.epilogue.residual_after_activation;
  graph.activation = code.epilogue.activation;
  return graph;
}

Tensor packed_weights(const ConvRegion& region, Layout layout) {
  const Tensor& weights = *region.node().input(1)->constant;
  const Tensor scaled = write_floats(weights.dtype(), weights.dims(), region.weights().span());
  TensorBuilder packed(weights.dtype(), weights.dims());
  convert_layout(scaled.bytes().data(), packed.bytes(), weights.dtype(), weights.dims(), Layout::linear, layout);
  return packed.finish();
}

class CudnnSource final : public TacticSource {
 public:
  std::string_view name() const override { return "cudnn"; }
  bool loads_slowly() const override { return true; }  // some engines are compiled then

  void propose(const Problem& problem, Candidates& out) const override {
    const std::optional<ConvRegion> region = read_region(problem.region);
    const bool attention = !region && is_attention(problem);
    if (!region && !attention) return;
    if (!cudnn_library().found()) return out.refuse("cudnn", cudnn_library().missing);
    if (!gpu_selected()) return out.refuse("cudnn", "there is no GPU to ask");
    if (attention) return propose_attention(problem, out);
    if (std::string reason = reason_against(problem, *region); !reason.empty())
      return out.refuse("convolution", std::move(reason));
    const Node& node = region->node();
    const ConvolutionCode code = code_of(*region);
    for (const Layout layout : {Layout::channels_last, Layout::linear}) {
      const DType dtype = node.input(0)->type.dtype;
      if (layout == Layout::linear && dtype != DType::f32) continue;
      const ConvolutionGraph graph =
          convolution_of(code, node.input(1)->constant->dims(), {dtype, node.input(0)->type.shape.values(), layout},
                         {dtype, node.output()->type.shape.values(), layout});
      offer(problem,
            graph_of(graph, cudnn_handle()).engines(dtype == DType::f32 && !problem.allowed.tf32 ? kAsked : kOffers),
            layout, dtype, out);
    }
  }

  Compiled compile(const Problem& problem, const Tactic& tactic) const override {
    if (tactic.name == kAttention) return compile_attention(problem, tactic);
    const ConvRegion region = *read_region(problem.region);
    Compiled compiled;
    compiled.constants.push_back(packed_weights(region, tactic.in[0]));
    if (const std::vector<float> bias = region.bias(); !bias.empty())
      compiled.constants.push_back(write_floats(region.node().output()->type.dtype, {region.code.channels}, bias));
    const Signed<ConvolutionCode> code{code_of(region, read_fields<EngineTactic>(tactic.params)),
                                       signature_of(problem, tactic, compiled.constants)};
    compiled.code = encode_code("convolution", write_fields(code), kConvolutionVersion);
    return compiled;
  }

 private:
  static void offer(const Problem& problem, const std::vector<EngineChoice>& engines, Layout layout, DType dtype,
                    Candidates& out) {
    size_t offered = 0;
    for (const EngineChoice& choice : engines) {
      if (dtype == DType::f32 && choice.tensor_cores && !problem.allowed.tf32) continue;
      out.offer({"cudnn",
                 "convolution",
                 write_fields(EngineTactic{.engine = choice.engine, .knobs = choice.knobs}),
                 std::vector<Layout>(problem.region.inputs().size(), layout),
                 {layout}});
      if (++offered == kOffers) return;
    }
    if (offered == 0) out.refuse("convolution", fmt::format("the library has no engine for it in {}", name_of(layout)));
  }
};

/// Whatever thread runs it uses its own handle, which carries the stream; the plan serves all handles of its GPU.
class ConvolutionKernel final : public CudaKernel {
 public:
  ConvolutionKernel(const ConvolutionGraph& graph, const ConvolutionCode& code)
      : plan_(ExecutionPlan::of(graph_of(graph, cudnn_handle()), code.choice.choice(), cudnn_handle())),
        bias_(graph.bias),
        x_(code.x),
        residual_(code.epilogue.residual) {
    HONE_CHECK(static_cast<int64_t>(plan_.workspace_bytes()) <= kMaxWorkspace, "it needs {} bytes of workspace",
               plan_.workspace_bytes());
  }

  size_t workspace_bytes() const override { return plan_.workspace_bytes(); }

  void enqueue(CUstream stream, const Bindings& bindings, bool) const override {
    const cudnnHandle_t handle = cudnn_handle();
    check(cudnn().cudnnSetStream(handle, stream), "choosing a stream");
    std::vector<int64_t> names;
    std::vector<void*> pointers;
    const auto bind = [&](Operand name, const void* pointer) {
      names.push_back(static_cast<int64_t>(name));
      pointers.push_back(const_cast<void*>(pointer));
    };
    bind(Operand::input, bindings.inputs[static_cast<size_t>(x_)]);
    bind(Operand::weights, bindings.constants[0]);
    if (bias_) bind(Operand::bias, bindings.constants[1]);
    if (residual_ >= 0) bind(Operand::residual, bindings.inputs[static_cast<size_t>(residual_)]);
    bind(Operand::output, bindings.outputs[0]);
    plan_.run(handle, names, pointers, bindings.workspace);
  }

 private:
  ExecutionPlan plan_;
  bool bias_;
  int64_t x_, residual_;
};

}  // namespace

const TacticSource& cudnn_source() {
  static const CudnnSource instance;
  return instance;
}

std::shared_ptr<const CudaKernel> load_cudnn(CudaDevice&, const Blob& blob, const KernelShapes& shapes) {
  const KernelCode decoded = decode_code(blob);
  if (decoded.family == kAttention) return load_attention(decoded, shapes);
  require_version(decoded, "cudnn", kConvolutionVersion);
  const auto [code, made] = read_fields<Signed<ConvolutionCode>>(decoded.attrs);
  require_signature(made, shapes);
  const std::vector<ConstantSpec> constants = constants_of(made);
  const int64_t inputs = static_cast<int64_t>(shapes.inputs.size()), residual = code.epilogue.residual;
  HONE_CHECK(code.x < inputs && residual < inputs && shapes.outputs.size() == 1 && !constants.empty(),
             "a convolution in the plan reads input {}", code.x);
  const ConcreteType &in = shapes.inputs[static_cast<size_t>(code.x)], &out = shapes.outputs[0];
  const auto& [weights_type, weights] = constants[0];
  const bool valid = in.dims.size() >= 3 && in.dims.size() <= 5 && out.dims.size() == in.dims.size() &&
                     weights.size() == in.dims.size() && is_kernel_float(in.dtype) && in.dtype == out.dtype &&
                     weights_type == in.dtype && spatial_of(weights) == code.window.kernel;
  HONE_CHECK(valid, "a convolution in the plan turns {} into {}", join_dims(in.dims), join_dims(out.dims));
  code.window.check(in.dims.size() - 2);
  if (code.epilogue.bias)
    HONE_CHECK(constants.size() == 2 && constants[1].dtype == out.dtype && constants[1].dims == (Dims{out.dims[1]}),
               "a convolution in the plan has no bias of {} filters", out.dims[1]);
  HONE_CHECK(residual < 0 || shapes.inputs[static_cast<size_t>(residual)] == out,
             "a convolution in the plan adds a tensor of another type");
  return std::make_shared<ConvolutionKernel>(convolution_of(code, weights, in, out), code);
}

}  // namespace hone::cuda
