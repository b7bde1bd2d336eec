// SPDX-License-Identifier: Apache-2.0
//
// Gather along an axis: rows copied by index, in units of up to 16 bytes.
#include "backends/cuda/kernels/embedded.h"
#include "backends/cuda/tactics/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

std::string reason_against(const Problem& problem, const Node& node) {
  if (problem.region.outputs().size() != 1) return "more than one result is used";
  if (is_object(node.input(0)->type.dtype)) return "gathers objects";
  const DType index = node.input(1)->type.dtype;
  if (index != DType::i64 && index != DType::i32) return fmt::format("indices are {}", name_of(index));
  if (problem.symbolic.nodes().back()->input(0)->type.shape.elements() == Dim(0)) return "empty operand";
  if (problem.symbolic.node_count() != problem.region.node_count()) return "an operand depends on the input's shape";
  if (node.input(0)->is_constant() && node.input(1)->is_constant()) return "both operands are constant";
  return {};
}

void propose(const Problem& problem, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !node->is(ops::gather)) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("gather", std::move(reason));
  out.offer(
      {"cuda", "gather", {}, std::vector<Layout>(problem.region.inputs().size(), Layout::linear), {Layout::linear}});
}

Generated generate(const Problem& problem, const std::string&, const Tactic&) {
  const Node* node = problem.only();
  Generated result;
  result.attrs.set("axis", node->attrs.integer("axis"));
  for (const auto& [name, value] : {std::pair{"data", node->input(0)}, std::pair{"indices", node->input(1)}}) {
    result.attrs.set(name, place_of(problem, value, result.constants));
    result.attrs.set(std::string(name) + "_dims", value->is_constant() ? value->constant->dims() : Dims());
  }
  result.source = fmt::format("typedef {} Index;\n", type_name(node->input(1)->type.dtype)) + kernels::gather;
  return result;
}

std::shared_ptr<const CudaKernel> load(const LoadContext& context) {
  HONE_CHECK(context.shapes.outputs.size() == 1, "a gathering kernel in the plan has {} results",
             context.shapes.outputs.size());
  const auto dims_of = [&](const char* name) {
    const int64_t place = context.attrs.integer(name);
    HONE_CHECK(place < static_cast<int64_t>(context.shapes.inputs.size()),
               "a gathering kernel in the plan reads input {}", place);
    return place >= 0 ? context.shapes.inputs[static_cast<size_t>(place)].dims
                      : context.attrs.integers(std::string(name) + "_dims");
  };
  const Dims data = dims_of("data"), indices = dims_of("indices");
  const size_t axis = normalize_axis(context.attrs.integer("axis"), data.size());
  int64_t outer = 1, row = static_cast<int64_t>(size_of(context.shapes.outputs[0].dtype));
  for (size_t i = 0; i < axis; ++i) outer *= data[i];
  for (size_t i = axis + 1; i < data.size(); ++i) row *= data[i];
  const int64_t n = data[axis], count = elements(indices);
  HONE_CHECK(n > 0 && count > 0 && row > 0 && context.shapes.outputs[0].bytes() == outer * count * row,
             "a gathering kernel in the plan contradicts its tensors");
  int64_t unit = 16;
  while (row % unit != 0) unit /= 2;
  const int64_t total = outer * count * (row / unit);
  GridLaunch launch{.function = context.module->function(fmt::format("gather_{}", unit)),
                    .grid = {blocks_of(total, 256), 1, 1}};
  launch.arguments.place(context.attrs.integer("data")).place(context.attrs.integer("indices")).output(0);
  launch.arguments.value(static_cast<int32_t>(n))
      .value(static_cast<int32_t>(row / unit))
      .value(static_cast<int32_t>(count))
      .value(total);
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace

const CudaTactic tactics::gather = {"gather", propose, generate, load};

}  // namespace hone::cuda
