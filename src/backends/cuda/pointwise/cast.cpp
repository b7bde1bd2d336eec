// SPDX-License-Identifier: Apache-2.0
//
// Cast between any two numeric types, in whatever layout the tensor has.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

struct CastParameters {
  static constexpr std::string_view kKernel = "cast";
  Reads from;
  Writes to;
  int32_t count = 0;
  static void fields(auto& self, auto& visit) {
    visit("from", self.from, "From");
    visit("to", self.to, "To");
    visit("count", self.count);
  }
};

struct CastCode {
  int64_t width = 1;  // neighbours that a thread takes
  static void fields(auto& self, auto& visit) { visit("width", self.width, 1, 16); }
};

struct CastFamily {
  static constexpr std::string_view kName = "cast";
  static constexpr int kVersion = 3;
  using Params = NoParams;
  using Code = CastCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !node->is(ops::cast)) return;
    if (!has_type_name(node->input(0)->type.dtype) || !has_type_name(node->output()->type.dtype))
      return out.refuse(kName, "a type that the GPU does not have");
    if (node->input(0)->is_constant() || problem.region.inputs().empty())
      return out.refuse(kName, "its input is a constant");
    const auto offer = [&](Layout layout) { out.offer({"cuda", std::string(kName), {}, {layout}, {layout}}); };
    offer(Layout::linear);
    const size_t rank = node->output()->type.shape.rank();
    if (rank >= 3 && rank <= 5) offer(Layout::channels_last);
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    const Node* node = problem.only();
    const DType from = node->input(0)->type.dtype, to = node->output()->type.dtype;
    const int64_t width = std::min(vector_width(from), vector_width(to));
    const std::string types =
        fmt::format("typedef {} From;\ntypedef {} To;\n#define V {}\n", type_name(from), type_name(to), width);
    return {{width}, types + declare<CastParameters>() + kernels::cast};
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(context.shapes.inputs.size() == 1 && context.shapes.outputs.size() == 1 &&
                   context.shapes.inputs[0].dims == context.shapes.outputs[0].dims,
               "a cast in the plan changes the size");
    const int64_t count = elements(context.shapes.outputs[0].dims);
    HONE_CHECK(count < int64_t{1} << 31, "a cast in the plan has {} elements", count);
    const CastParameters parameters{.from = input(0), .to = output(0), .count = static_cast<int32_t>(count)};
    return single(context,
                  launch_of(*context.module, parameters, {{blocks_of(std::max<int64_t>(count, 1), 256 * code.width)}}));
  }
};

}  // namespace

const CudaTactic tactics::cast = describe<CastFamily>();

}  // namespace hone::cuda
