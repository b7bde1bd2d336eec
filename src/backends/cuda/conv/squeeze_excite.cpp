// SPDX-License-Identifier: Apache-2.0
//
// Squeeze and excitation in one launch: three kernels of a few microseconds otherwise, each waiting for the one before.
#include "regions/squeeze_excite.h"

#include "backends/cuda/conv/filters.h"
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone::cuda {
namespace {

constexpr int64_t kMostChannels = 2560, kMostBetween = 1024;  // what a block's own memory holds
constexpr int64_t kThreads = 512, kBlocksTogether = 8;

struct SqueezeExciteParameters {
  static constexpr std::string_view kKernel = "squeeze_excite";
  Reads x, squeeze, squeeze_bias, excite, excite_bias;
  Writes y;
  int32_t pixels = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("squeeze", self.squeeze, "T");
    visit("squeeze_bias", self.squeeze_bias, "float");
    visit("excite", self.excite, "T");
    visit("excite_bias", self.excite_bias, "float");
    visit("y", self.y, "T");
    visit("pixels", self.pixels);
  }
};

struct SqueezeExciteCode {
  int64_t blocks = 1, channels = 1, results = 1;  // that share an image
  static void fields(auto& self, auto& visit) {
    visit("blocks", self.blocks, 1, kBlocksTogether);
    visit("channels", self.channels, 1, kMostChannels);
    visit("results", self.results, 1, kMostSize);
  }
};

Tensor weights_of(const Node& conv, bool transposed) {
  const Tensor& weights = *conv.input(1)->constant;
  const int64_t to = weights.dims()[0], from = weights.dims()[1];
  if (!transposed) return weights;
  const Floats source(weights);
  std::vector<float> turned(static_cast<size_t>(to * from));
  for (int64_t t = 0; t < to; ++t)
    for (int64_t f = 0; f < from; ++f) turned[static_cast<size_t>(f * to + t)] = source[t * from + f];
  return write_floats(weights.dtype(), {from, to}, turned);
}

Tensor bias_of(const Node& conv) {
  const int64_t count = conv.input(1)->constant->dims()[0];
  std::vector<float> bias(static_cast<size_t>(count), 0.0f);
  if (conv.input(2) != nullptr) {
    const Floats source(*conv.input(2)->constant);
    for (int64_t i = 0; i < count; ++i) bias[static_cast<size_t>(i)] = source[i];
  }
  return Tensor::of<float>({count}, std::span<const float>(bias));
}

/// The steps as a function of a sum, with an activate() of its own.
std::string steps_as(std::string_view name, const std::vector<EpilogueStep>& steps) {
  Activation activation;
  std::string text;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind == EpilogueStep::Kind::activation) activation = steps[i].activation;
    text += fmt::format("  sum = {};\n", step_text(steps[i], i, real_text));
  }
  return fmt::format(
             "#define activate activate_{0}\n#define logistic logistic_{0}\n{1}{2}static inline float {0}(float sum) "
             "{{\n{3}  return sum;\n}}\n",
             name, activation_text(activation, Digits::of_floats), kernels::activation, text) +
         "#undef activate\n#undef logistic\n#undef ACTIVATION\n#undef ALPHA\n#undef BETA\n#undef DIGITS\n";
}

struct SqueezeExciteFamily {
  static constexpr std::string_view kName = "squeeze_excite";
  static constexpr int kVersion = 6;
  using Params = NoParams;
  using Code = SqueezeExciteCode;

  static void propose(const Problem& problem, Candidates& out) {
    const std::optional<SqueezeExcite> found = read_squeeze_excite(problem.region);
    if (!found) return;
    const DType dtype = found->pool->input(0)->type.dtype;
    if (!is_kernel_float(dtype)) return out.refuse(kName, fmt::format("input is {}, not a float", name_of(dtype)));
    if (found->channels() > kMostChannels || found->between() > kMostBetween)
      return out.refuse(kName, fmt::format("{} channels by way of {}", found->channels(), found->between()));
    if (!has_clusters(problem.device.architecture))
      return out.refuse(kName, "blocks of this GPU cannot share an image");
    for (const Layout layout : {Layout::channels_last, Layout::linear})
      if (layout == Layout::linear || found->channels() % vector_width(dtype) == 0)
        out.offer({"cuda", std::string(kName), {}, {layout}, {layout}});
  }

  static Built<Code> generate(const Problem& problem, const std::string& architecture, const Params&,
                              const Tactic& tactic) {
    const SqueezeExcite found = *read_squeeze_excite(problem.region);
    const DType dtype = found.pool->input(0)->type.dtype;
    const Code code{.blocks = has_clusters(architecture) ? kBlocksTogether : 1,
                    .channels = found.channels(),
                    .results = found.results()};
    std::string source = fmt::format("typedef {} T;\n#define V {}\n#define BLOCKS {}\n#define THREADS {}\n",
                                     type_name(dtype), vector_width(dtype), code.blocks, kThreads);
    source += fmt::format("#define CHANNELS {}\n#define BETWEEN {}\n#define RESULTS {}\n#define CHANNELS_LAST {:d}\n",
                          found.channels(), found.between(), found.results(), tactic.in[0] == Layout::channels_last);
    source += kernels::rounding + steps_as("pooled", found.pooled) + steps_as("squeezed", found.squeezed) +
              steps_as("excited", found.excited);
    source += declare<SqueezeExciteParameters>() + kernels::squeeze_excite;
    return {code,
            source,
            {weights_of(*found.squeeze, false), bias_of(*found.squeeze), weights_of(*found.excite, true),
             bias_of(*found.excite)}};
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(context.shapes.inputs.size() == 1 && context.shapes.outputs.size() == 1,
               "a squeeze and excitation in the plan has {} inputs", context.shapes.inputs.size());
    const Dims &in = context.shapes.inputs[0].dims, &out = context.shapes.outputs[0].dims;
    HONE_CHECK(in.size() >= 3 && out.size() == in.size() && in[0] == out[0] && in[1] == code.channels &&
                   elements(out) == out[0] * code.results && out[0] < 65536 && elements(in) < int64_t{1} << 31,
               "a squeeze and excitation in the plan turns {} into {}", join_dims(in), join_dims(out));
    const SqueezeExciteParameters parameters{.x = input(0),
                                             .squeeze = constant(0),
                                             .squeeze_bias = constant(1),
                                             .excite = constant(2),
                                             .excite_bias = constant(3),
                                             .y = output(0),
                                             .pixels = static_cast<int32_t>(elements(spatial_of(in)))};
    return single(context,
                  launch_of(*context.module, parameters, {{code.blocks, out[0]}, static_cast<unsigned>(kThreads)}));
  }
};

}  // namespace

const CudaTactic tactics::squeeze_excite = describe<SqueezeExciteFamily>();

}  // namespace hone::cuda
