// SPDX-License-Identifier: Apache-2.0
//
// Range between numbers of which only the end may follow from the input's shape: how many there are is known when a kernel is
// loaded. A GPU that made positions itself waits for no host.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

struct RangeParameters {
  static constexpr std::string_view kKernel = "range";
  Reads start, step;
  Writes y;
  int64_t count = 0;
  static void fields(auto& self, auto& visit) {
    visit("start", self.start, "T");
    visit("step", self.step, "T");
    visit("y", self.y, "T");
    visit("count", self.count);
  }
};

const Place kStart{PlaceKind::constant, 0}, kStep{PlaceKind::constant, 1};

std::string reason_against(const Problem& problem, const Node& node) {
  const DType dtype = node.output()->type.dtype;
  if (!has_type_name(dtype) || dtype == DType::f16 || dtype == DType::bf16)
    return fmt::format("numbers are {}", name_of(dtype));
  const Node& symbolic = *problem.symbolic.nodes().back();
  if (!symbolic.input(0)->is_constant() || !symbolic.input(2)->is_constant()) return "start or step is no constant";
  return {};
}

std::string_view number_name(DType dtype) {
  return dtype == DType::f64 ? "double" : dtype == DType::f32 ? "float" : "unsigned long long";
}

struct RangeFamily {
  static constexpr std::string_view kName = "range";
  static constexpr int kVersion = 1;
  using Params = NoParams;
  using Code = NoParams;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !node->is(ops::range)) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    out.offer({"cuda",
               std::string(kName),
               {},
               std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
               {Layout::linear}});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    const Node& node = *problem.only();
    const DType dtype = node.output()->type.dtype;
    Built<Code> built;
    built.constants = {*node.input(0)->constant, *node.input(2)->constant};
    built.source = fmt::format("typedef {} T;\ntypedef {} Number;\n", type_name(dtype), number_name(dtype)) +
                   declare<RangeParameters>() + kernels::range;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code&, const LoadContext& context) {
    HONE_CHECK(context.shapes.outputs.size() == 1 && context.shapes.outputs[0].dims.size() == 1,
               "a range in the plan has {} results", context.shapes.outputs.size());
    const int64_t count = context.shapes.outputs[0].dims[0];
    HONE_CHECK(count > 0, "a range in the plan has {} numbers", count);
    for (const Place& place : {kStart, kStep})
      HONE_CHECK(elements(context.dims_of(place)) == 1, "a range in the plan begins at or steps by {} numbers",
                 join_dims(context.dims_of(place)));
    const RangeParameters parameters{
        .start = kStart.pointer(), .step = kStep.pointer(), .y = output(0), .count = count};
    return single(context, launch_of(*context.module, parameters, {{blocks_of(count, 256)}}));
  }
};

}  // namespace

const CudaTactic tactics::range = describe<RangeFamily>();

}  // namespace hone::cuda
