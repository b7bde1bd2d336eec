// SPDX-License-Identifier: Apache-2.0
//
// TopK, ArgMax and ArgMin: the best elements of each line along an axis. A block sorts a line; single elements of lines that lie
// beside each other are found by a thread each.
#include <algorithm>
#include <bit>

#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/old.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

constexpr int64_t kBuffer = 4096;  // elements that a block sorts at once: 32 KB
constexpr int64_t kBeside = 32;    // lines beside each other that make a thread for each worth while

struct LinesArgument {
  int32_t n, inner, k, buffer, largest, last;
};

std::string reason_against(const Problem& problem, const Node& node) {
  const DType dtype = node.input(0)->type.dtype;
  if (!is_kernel_float(dtype) && dtype != DType::i32) return fmt::format("elements are {}", name_of(dtype));
  if (node.input(0)->is_constant()) return "the operand is constant";
  if (node.input(0)->type.shape.rank() == 0) return "the operand is a scalar";
  if (problem.symbolic.nodes().back()->input(0)->type.shape.elements() == Dim(0)) return "empty operand";
  if (problem.symbolic.node_count() != problem.region.node_count()) return "an operand depends on the input's shape";
  if (!node.is(ops::top_k)) return {};
  const Value* k = node.input(1);
  if (!k->is_constant()) return "k is not known";
  const int64_t count = k->constant->integer(0);
  return count >= 1 && count <= kBuffer / 2 ? "" : fmt::format("k is {}", count);
}

void propose(const Problem& problem, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !(node->is(ops::top_k) || node->is(ops::arg_max) || node->is(ops::arg_min))) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("top_k", std::move(reason));
  out.offer({"cuda",
             "top_k",
             {},
             std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
             std::vector<Layout>(problem.region.outputs().size(), Layout::linear)});
}

/// Which result of the region a value is; kNoPlace when nobody reads it.
int64_t result_of(const Problem& problem, const Value* value) {
  const auto& outputs = problem.region.outputs();
  const auto found = std::find(outputs.begin(), outputs.end(), value);
  return found == outputs.end() ? kNoPlace : found - outputs.begin();
}

Generated generate(const Problem& problem, const std::string&, const Tactic&) {
  const Node* node = problem.only();
  const bool sorted = node->is(ops::top_k);
  Generated result;
  result.attrs = {
      {"axis", node->attrs.integer("axis")},
      {"k", sorted ? node->input(1)->constant->integer(0) : int64_t{1}},
      {"largest", sorted ? node->attrs.integer("largest") : int64_t{node->is(ops::arg_max)}},
      {"last", sorted ? int64_t{0} : node->attrs.integer("select_last_index")},
      {"values", sorted ? result_of(problem, node->output(0)) : kNoPlace},
      {"places", result_of(problem, node->output(sorted ? 1 : 0))},
  };
  result.source = fmt::format("typedef {} T;\n", type_name(node->input(0)->type.dtype)) + kernels::top_k;
  return result;
}

std::shared_ptr<const CudaKernel> load(const OldContext& context) {
  const std::vector<ConcreteType>&inputs = context.shapes.inputs, &outputs = context.shapes.outputs;
  HONE_CHECK(!inputs.empty() && !inputs[0].dims.empty(), "a ranking kernel in the plan has no operand");
  const Dims& dims = inputs[0].dims;
  const size_t axis = normalize_axis(context.attrs.integer("axis"), dims.size());
  const int64_t count = elements(dims), n = dims[axis], k = context.attrs.integer("k");
  HONE_CHECK(k >= 1 && k <= kBuffer / 2, "a ranking kernel in the plan wants {} elements", k);
  if (k > n) throw Error(fmt::format("k is {} but the axis has {} elements", k, n));
  HONE_CHECK(count > 0 && n < int64_t{1} << 31, "a ranking kernel in the plan has an operand {}", join_dims(dims));
  const int64_t lines = count / n, inner = elements(std::span(dims).subspan(axis + 1));
  for (const ConcreteType& output : outputs)
    HONE_CHECK(elements(output.dims) == lines * k, "a ranking kernel in the plan contradicts its tensors");
  const LinesArgument argument{
      .n = static_cast<int32_t>(n),
      .inner = static_cast<int32_t>(inner),
      .k = static_cast<int32_t>(k),
      .buffer = static_cast<int32_t>(std::min<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)), kBuffer)),
      .largest = static_cast<int32_t>(context.attrs.integer("largest")),
      .last = static_cast<int32_t>(context.attrs.integer("last")),
  };
  const bool beside = k == 1 && inner >= kBeside;
  GridLaunch launch{.function = context.module->function(beside ? "top_k_beside" : "top_k_line"),
                    .grid = {beside ? blocks_of(lines, 256) : lines, 1, 1}};
  launch.arguments.input(0);
  for (const char* name : {"values", "places"}) {
    const int64_t place = bounded(context.attrs, name, kNoPlace, static_cast<int64_t>(outputs.size()) - 1);
    if (place < 0) launch.arguments.null();
    else launch.arguments.output(place);
  }
  launch.arguments.value(argument);
  if (beside) launch.arguments.value(lines);
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace

const CudaTactic tactics::top_k = describe_old<generate, load>("top_k", propose);

}  // namespace hone::cuda
