// SPDX-License-Identifier: Apache-2.0
//
// Softmax and LogSoftmax along any axis, in any dense layout: a block per row, or a thread where rows are short.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/rounding.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cuda {
namespace {

struct SoftmaxParameters {
  static constexpr std::string_view kKernel = "softmax";
  Reads x;
  Writes y;
  int32_t n = 0, inner = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("y", self.y, "Result");
    visit("n", self.n);
    visit("inner", self.inner);
  }
};

struct ByThreadParameters {
  static constexpr std::string_view kKernel = "softmax_by_thread";
  SoftmaxParameters common;
  int32_t rows = 0;
  static void fields(auto& self, auto& visit) {
    SoftmaxParameters::fields(self.common, visit);
    visit("rows", self.rows);
  }
};

struct SoftmaxCode {
  int64_t axis = -1;
  static void fields(auto& self, auto& visit) { visit("axis", self.axis, -kMostAxes, kMostAxes - 1); }
};

struct SoftmaxFamily {
  static constexpr std::string_view kName = "softmax";
  static constexpr int kVersion = 5;
  using Params = NoParams;
  using Code = SoftmaxCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = read_rounded(problem).node;
    if (node == nullptr || !(node->is(ops::softmax) || node->is(ops::log_softmax))) return;
    if (std::string reason = reason_not_float(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_layouts(problem, "cuda", kName, out);
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    const RoundedNode rounded = read_rounded(problem);
    const Node* node = rounded.node;
    const std::string switches = fmt::format("typedef {} T;\n#define LOG {}\n", type_name(node->output()->type.dtype),
                                             node->is(ops::log_softmax));
    return {{.axis = node->attrs.integer("axis")},
            switches + declare<SoftmaxParameters, ByThreadParameters>() + rounding_text(rounded) + kernels::softmax};
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(context.shapes.inputs.size() == 1 && context.shapes.inputs == context.shapes.outputs &&
                   !context.shapes.inputs[0].dims.empty(),
               "a softmax in the plan changes its tensor's type");
    const ConcreteType& type = context.shapes.inputs[0];
    const Dims dims = physical_dims(type);
    const size_t axis = physical_axis(normalize_axis(code.axis, dims.size()), type);
    const int64_t inner = elements(std::span(dims).subspan(axis + 1));
    const int64_t n = dims[axis], rows = n == 0 ? 0 : elements(dims) / n;
    HONE_CHECK(rows > 0 && n * inner < int64_t{1} << 31, "a softmax in the plan has {} rows", rows);
    const SoftmaxParameters parameters{
        .x = input(0), .y = output(0), .n = static_cast<int32_t>(n), .inner = static_cast<int32_t>(inner)};
    constexpr int64_t kShort = 128, kSideBySide = 8;
    if (n <= kShort && inner >= kSideBySide) {
      const ByThreadParameters by_thread{parameters, static_cast<int32_t>(rows)};
      return single(context, launch_of(*context.module, by_thread, {{blocks_of(rows, 128)}, 128}));
    }
    const unsigned threads = n <= 64 ? 32 : n <= 512 ? 128 : 256;
    return single(context, launch_of(*context.module, parameters, {{rows}, threads}));
  }
};

}  // namespace

const CudaTactic tactics::softmax = describe<SoftmaxFamily>();

}  // namespace hone::cuda
