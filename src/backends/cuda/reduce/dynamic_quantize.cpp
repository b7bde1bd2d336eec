// SPDX-License-Identifier: Apache-2.0
//
// DynamicQuantizeLinear, and the same with the codes as floats (DynamicFakeQuantize): the limits of a tensor, then its codes.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

constexpr int64_t kTogether = 8, kThreads = 1024;  // blocks of a cluster, and threads of each
constexpr int64_t kTurns = 4;  // vectors of one of them; beyond, all processors are worth a second kernel
constexpr int64_t kBlocksPerProcessor = 2;

struct QuantizeParameters {
  static constexpr std::string_view kKernel = "dynamic_quantize";
  Reads x;
  Writes y, scale, zero;
  int64_t count = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("y", self.y, "Result");
    visit("scale", self.scale, "float");
    visit("zero", self.zero, "unsigned char");
    visit("count", self.count);
  }
};

struct LimitsParameters {
  static constexpr std::string_view kKernel = "dynamic_quantize_limits";
  Reads x;
  Writes by_block;
  int64_t count = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("by_block", self.by_block, "float");
    visit("count", self.count);
  }
};

struct WriteParameters {
  static constexpr std::string_view kKernel = "dynamic_quantize_write";
  QuantizeParameters common;
  Reads by_block;
  static void fields(auto& self, auto& visit) {
    QuantizeParameters::fields(self.common, visit);
    visit("by_block", self.by_block, "float");
  }
};

struct DynamicQuantizeCode {
  int64_t blocks = 1;                        // of the cluster
  int64_t codes = 0, scale = -1, zero = -1;  // which results; -1: nobody reads them
  static void fields(auto& self, auto& visit) {
    visit("blocks", self.blocks, 1, kTogether);
    visit("codes", self.codes, 0, 2);
    visit("scale", self.scale, -1, 2);
    visit("zero", self.zero, -1, 2);
  }
};

std::string reason_against(const Problem& problem, const Node& node) {
  if (!is_kernel_float(node.input(0)->type.dtype))
    return fmt::format("input is {}, not a float", name_of(node.input(0)->type.dtype));
  if (node.input(0)->is_constant()) return "its input is a constant";
  if (result_of(problem, node.output(0)) < 0) return "nobody reads its codes";
  return problem.region.inputs()[0]->type.shape.elements() == Dim(0) ? "empty operand" : "";
}

struct DynamicQuantizeFamily {
  static constexpr std::string_view kName = "dynamic_quantize";
  static constexpr int kVersion = 3;
  using Params = NoParams;
  using Code = DynamicQuantizeCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !(node->is(ops::dynamic_quantize_linear) || node->is(ops::dynamic_fake_quantize))) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    const size_t rank = node->input(0)->type.shape.rank(), results = problem.region.outputs().size();
    for (const Layout layout : {Layout::linear, Layout::channels_last}) {
      if (layout == Layout::channels_last && (rank < 3 || rank > 5)) continue;
      std::vector<Layout> to(results, Layout::linear);
      to[static_cast<size_t>(result_of(problem, node->output(0)))] = layout;
      out.offer({"cuda", std::string(kName), {}, {layout}, std::move(to)});
    }
  }

  static Built<Code> generate(const Problem& problem, const std::string& architecture, const Params&, const Tactic&) {
    const Node& node = *problem.only();
    const bool codes = node.is(ops::dynamic_quantize_linear);
    const Code code{.blocks = has_clusters(architecture) ? kTogether : 1,
                    .codes = result_of(problem, node.output(0)),
                    .scale = codes ? result_of(problem, node.output(1)) : -1,
                    .zero = codes ? result_of(problem, node.output(2)) : -1};
    const DType dtype = node.input(0)->type.dtype;
    return {code, fmt::format("typedef {} T;\n#define V {}\n#define CODES {:d}\n#define BLOCKS {}\n#define TURNS {}\n",
                              type_name(dtype), vector_width(dtype), codes, code.blocks, kTurns) +
                      declare<QuantizeParameters, LimitsParameters, WriteParameters>() + kernels::rounding +
                      kernels::dynamic_quantize};
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const std::vector<ConcreteType>&inputs = context.shapes.inputs, &outputs = context.shapes.outputs;
    const auto results = static_cast<int64_t>(outputs.size());
    HONE_CHECK(inputs.size() == 1 && code.codes < results && code.scale < results && code.zero < results,
               "a quantisation in the plan has {} results", results);
    const int64_t count = elements(inputs[0].dims);
    HONE_CHECK(count > 0 && elements(outputs[static_cast<size_t>(code.codes)].dims) == count,
               "a quantisation in the plan changes the size of {}", join_dims(inputs[0].dims));
    const QuantizeParameters parameters{.x = input(0),
                                        .y = output(code.codes),
                                        .scale = result_pointer(code.scale),
                                        .zero = result_pointer(code.zero),
                                        .count = count};
    const int64_t width = vector_width(inputs[0].dtype);
    if (count <= code.blocks * kThreads * kTurns * width)
      return single(context, launch_of(*context.module, parameters, {{code.blocks}, kThreads}));
    const int64_t blocks =
        std::min(blocks_of(count, 256 * width), kBlocksPerProcessor * std::max(context.processors, 1));
    std::vector<GridLaunch> launches{
        launch_of(*context.module, LimitsParameters{input(0), to_workspace(), count}, {{blocks}})};
    launches.push_back(launch_of(*context.module, WriteParameters{parameters, from_workspace()}, {{blocks}}));
    return std::make_shared<GridKernel>(context.module, std::move(launches),
                                        static_cast<size_t>(2 * blocks) * sizeof(float));
  }
};

}  // namespace

const CudaTactic tactics::dynamic_quantize = describe<DynamicQuantizeFamily>();

}  // namespace hone::cuda
