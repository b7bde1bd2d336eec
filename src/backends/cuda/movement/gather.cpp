// SPDX-License-Identifier: Apache-2.0
//
// Gather and GatherND: rows copied by index or by position, in units of up to 16 bytes.
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/old.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

constexpr size_t kMaxDepth = 8;

struct PositionsArgument {
  int32_t depth, sizes[kMaxDepth];
  int64_t steps[kMaxDepth], in_batch, batch_step;
};

std::string reason_against(const Problem& problem, const Node& node) {
  if (problem.region.outputs().size() != 1) return "more than one result is used";
  if (is_object(node.input(0)->type.dtype)) return "gathers objects";
  const DType index = node.input(1)->type.dtype;
  if (index != DType::i64 && index != DType::i32) return fmt::format("indices are {}", name_of(index));
  if (problem.symbolic.nodes().back()->input(0)->type.shape.elements() == Dim(0)) return "empty operand";
  if (problem.symbolic.node_count() != problem.region.node_count()) return "an operand depends on the input's shape";
  if (node.input(0)->is_constant() && node.input(1)->is_constant()) return "both operands are constant";
  const Shape& indices = node.input(1)->type.shape;
  if (node.is(ops::gather_nd) && indices[indices.rank() - 1].value() > int64_t{kMaxDepth})
    return fmt::format("positions have more than {} entries", kMaxDepth);
  return {};
}

void propose(const Problem& problem, const OpDef& op, const char* family, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !node->is(op)) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse(family, std::move(reason));
  out.offer(
      {"cuda", family, {}, std::vector<Layout>(problem.region.inputs().size(), Layout::linear), {Layout::linear}});
}
void propose_gather(const Problem& problem, Candidates& out) { propose(problem, ops::gather, "gather", out); }
void propose_gather_nd(const Problem& problem, Candidates& out) { propose(problem, ops::gather_nd, "gather_nd", out); }

Generated generate(const Problem& problem, const char* attribute, const char* source) {
  const Node* node = problem.only();
  Generated result;
  result.attrs.set(attribute, node->attrs.integer(attribute));
  set_place(result, problem, "data", node->input(0));
  set_place(result, problem, "indices", node->input(1));
  result.source = fmt::format("typedef {} Index;\n", type_name(node->input(1)->type.dtype)) + source;
  return result;
}
Generated generate_gather(const Problem& problem, const std::string&, const Tactic&) {
  return generate(problem, "axis", kernels::gather);
}
Generated generate_gather_nd(const Problem& problem, const std::string&, const Tactic&) {
  return generate(problem, "batch_dims", kernels::gather_nd);
}

std::shared_ptr<const CudaKernel> load_gather(const OldContext& context) {
  HONE_CHECK(context.shapes.outputs.size() == 1, "a gathering kernel in the plan has {} results",
             context.shapes.outputs.size());
  const Dims data = dims_of(context, "data"), indices = dims_of(context, "indices");
  const size_t axis = normalize_axis(context.attrs.integer("axis"), data.size());
  const int64_t outer = elements(std::span(data).first(axis)), behind = elements(std::span(data).subspan(axis + 1)),
                row = behind * static_cast<int64_t>(size_of(context.shapes.outputs[0].dtype));
  const int64_t n = data[axis], count = elements(indices);
  HONE_CHECK(
      n > 0 && count > 0 && row > 0 && elements(context.shapes.outputs[0].dims) == elements(Dims{outer, count, behind}),
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

std::shared_ptr<const CudaKernel> load_gather_nd(const OldContext& context) {
  HONE_CHECK(context.shapes.outputs.size() == 1, "a gathering kernel in the plan has {} results",
             context.shapes.outputs.size());
  const Dims data = dims_of(context, "data"), indices = dims_of(context, "indices");
  HONE_CHECK(!indices.empty() && indices.back() >= 1 && indices.back() <= int64_t{kMaxDepth},
             "a gathering kernel in the plan has indices {}", join_dims(indices));
  const auto batch = static_cast<size_t>(bounded(context.attrs, "batch_dims", 0, static_cast<int64_t>(data.size())));
  const auto depth = static_cast<size_t>(indices.back());
  HONE_CHECK(batch < indices.size() && batch + depth <= data.size(),
             "a gathering kernel in the plan has data {} and indices {}", join_dims(data), join_dims(indices));
  const auto element = static_cast<int64_t>(size_of(context.shapes.outputs[0].dtype));
  const int64_t row = elements(std::span(data).subspan(batch + depth)) * element;
  const int64_t batches = elements(std::span(data).first(batch)), positions = elements(indices) / indices.back();
  HONE_CHECK(elements(data) > 0 && positions > 0 && positions % batches == 0 &&
                 context.shapes.outputs[0].bytes() == elements(Dims{positions, row}),
             "a gathering kernel in the plan contradicts its tensors");
  int64_t unit = 16;
  while (row % unit != 0) unit /= 2;
  PositionsArgument argument{.depth = static_cast<int32_t>(depth)};
  const Dims strides = strides_of(data);
  for (size_t i = 0; i < depth; ++i) {
    argument.sizes[i] = static_cast<int32_t>(data[batch + i]);
    argument.steps[i] = strides[batch + i] * element / unit;
  }
  argument.in_batch = positions / batches;
  argument.batch_step = elements(data) / batches * element / unit;
  const int64_t total = positions * (row / unit);
  GridLaunch launch{.function = context.module->function(fmt::format("gather_nd_{}", unit)),
                    .grid = {blocks_of(total, 256), 1, 1}};
  launch.arguments.place(context.attrs.integer("data")).place(context.attrs.integer("indices")).output(0);
  launch.arguments.value(argument).value(static_cast<int32_t>(row / unit)).value(total);
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace

const CudaTactic tactics::gather = describe_old<generate_gather, load_gather>("gather", propose_gather);
const CudaTactic tactics::gather_nd = describe_old<generate_gather_nd, load_gather_nd>("gather_nd", propose_gather_nd);

}  // namespace hone::cuda
