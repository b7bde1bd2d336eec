// SPDX-License-Identifier: Apache-2.0
//
// Cast between any two numeric types, in whatever layout the tensor has; of floats that are rounded to a code's values before.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/rounding.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "regions/region_match.h"

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

/// The Cast of a region, and the rounding before it.
struct CastRegion {
  const Node *rounding = nullptr, *cast = nullptr;
  explicit CastRegion(const Problem& problem) {
    const std::vector<Node*> nodes = problem.region.nodes();
    const bool rounds =
        nodes.size() == 2 && nodes[0]->is(ops::fake_quantize) && nodes[1]->input(0) == nodes[0]->output();
    if ((nodes.size() != 1 && !rounds) || !nodes.back()->is(ops::cast)) return;
    if (problem.region.outputs().size() != 1 || problem.region.outputs()[0] != nodes.back()->output()) return;
    cast = nodes.back();
    if (rounds) rounding = nodes[0];
  }
  const Value& input() const { return *(rounding != nullptr ? rounding : cast)->input(0); }
  std::string text() const {
    if (rounding == nullptr) return "#define ROUNDED(x) (x)\n";
    return std::string(kernels::rounding) +
           fmt::format("#define ROUNDED(x) {}\n", rounding_call("as_float(x)", rounding_of(*rounding), real_text));
  }
};

struct CastFamily {
  static constexpr std::string_view kName = "cast";
  static constexpr int kVersion = 4;
  using Params = NoParams;
  using Code = CastCode;

  static void propose(const Problem& problem, Candidates& out) {
    const CastRegion region(problem);
    if (region.cast == nullptr) return;
    const Node* node = region.cast;
    if (!has_type_name(region.input().type.dtype) || !has_type_name(node->output()->type.dtype))
      return out.refuse(kName, "a type that the GPU does not have");
    if (region.rounding != nullptr && region.input().type.dtype == DType::f64)
      return out.refuse(kName, "rounds floats of 64 bits");
    if (region.input().is_constant() || problem.region.inputs().empty())
      return out.refuse(kName, "its input is a constant");
    const auto offer = [&](Layout layout) { out.offer({"cuda", std::string(kName), {}, {layout}, {layout}}); };
    offer(Layout::linear);
    const size_t rank = node->output()->type.shape.rank();
    if (rank >= 3 && rank <= 5) offer(Layout::channels_last);
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    const CastRegion region(problem);
    const DType from = region.input().type.dtype, to = region.cast->output()->type.dtype;
    const int64_t width = std::min(vector_width(from), vector_width(to));
    const std::string types =
        fmt::format("typedef {} From;\ntypedef {} To;\n#define V {}\n", type_name(from), type_name(to), width);
    return {{width}, types + region.text() + declare<CastParameters>() + kernels::cast};
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
