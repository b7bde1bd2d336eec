// SPDX-License-Identifier: Apache-2.0
//
// Layer, RMS, instance and group normalisation: a block per row; statistics in f32 whatever the tensor's type. Rows whose length
// is fixed and not too long stay in registers between the passes.
#include <algorithm>

#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/old.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

bool over_rows(const Node& node) { return node.is(ops::layer_normalization) || node.is(ops::rms_normalization); }

std::string reason_against(const Problem& problem, const Node& node) {
  if (std::string reason = reason_not_float(problem, node); !reason.empty()) return reason;
  const Shape& x = node.input(0)->type.shape;
  Dim n = x[1];
  if (over_rows(node)) {
    n = 1;
    for (size_t i = normalize_axis(node.attrs.integer("axis"), x.rank()); i < x.rank(); ++i) n = n * x[i];
  }
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (node.input(i) != nullptr &&
        (node.input(i)->type.shape.elements() != n || node.input(i)->type.dtype != node.input(0)->type.dtype))
      return "scale or bias is broadcast";
  return {};
}

void propose(const Problem& problem, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr ||
      !(over_rows(*node) || node->is(ops::instance_normalization) || node->is(ops::group_normalization)))
    return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("normalization", std::move(reason));
  out.offer({"cuda",
             "normalization",
             {},
             std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
             {Layout::linear}});
}

/// How a row is spread over lanes of a warp; no lanes where it does not stay in registers.
struct RowForm {
  int64_t n = 0, width = 1, lanes = 0;
};

constexpr int64_t kMostPerLane = 64;

RowForm row_form(const Problem& problem) {
  const std::vector<Node*> nodes = problem.symbolic.nodes();
  const auto at = std::find_if(nodes.begin(), nodes.end(), [](const Node* node) { return over_rows(*node); });
  if (at == nodes.end()) return {};
  const Node* symbolic = *at;
  const Shape& shape = symbolic->input(0)->type.shape;
  RowForm form{.n = 1};
  for (size_t i = normalize_axis(symbolic->attrs.integer("axis"), shape.rank()); i < shape.rank(); ++i) {
    if (!shape[i].is_constant()) return {};
    form.n *= shape[i].value();
  }
  for (form.width = 16 / static_cast<int64_t>(size_of(symbolic->output()->type.dtype)); form.n % form.width != 0;)
    form.width /= 2;
  if (form.n == 0 || form.n > 32 * kMostPerLane) return {};
  for (form.lanes = 1; form.lanes < 32 && form.lanes * form.width < form.n;) form.lanes *= 2;
  return form;
}

Generated generate(const Problem& problem, const std::string&, const Tactic&) {
  const Node* node = problem.only();
  Generated result;
  result.source = fmt::format("typedef {} T;\n#define CENTRED {}\n", type_name(node->output()->type.dtype),
                              !node->is(ops::rms_normalization));
  const RowForm form = row_form(problem);
  if (form.lanes > 0) {
    const auto varies = [](const Value* value) { return value != nullptr && !value->is_constant(); };
    result.source += fmt::format("#define ROW {}\n#define V {}\n#define LANES {}\n#define CONSTANT_SCALE {:d}\n",
                                 form.n, form.width, form.lanes, !varies(node->input(1)) && !varies(node->input(2)));
  }
  result.source += kernels::normalization;
  result.attrs = {{"epsilon", node->attrs.real("epsilon")},
                  {"axis", over_rows(*node) ? node->attrs.integer("axis") : int64_t{0}},
                  {"lanes", form.lanes}};
  if (!over_rows(*node))
    result.attrs.set("groups", node->is(ops::group_normalization) ? node->attrs.integer("num_groups") : int64_t{0});
  result.attrs.set("x", old_place_of(problem, node->input(0), result.constants));
  result.attrs.set("scale", old_place_of(problem, node->input(1), result.constants));
  result.attrs.set("bias", old_place_of(problem, node->input(2), result.constants));
  return result;
}

struct Rows {
  int64_t count = 1, n = 1, groups = 1, step = 0, inner = 1;
};

Rows rows_of(const Attrs& attrs, const Dims& dims) {
  Rows rows;
  const int64_t total = elements(dims);
  if (!attrs.has("groups")) {
    for (size_t i = normalize_axis(attrs.integer("axis"), dims.size()); i < dims.size(); ++i) rows.n *= dims[i];
  } else {
    HONE_CHECK(dims.size() >= 2 && dims[1] > 0, "a normalization in the plan works on {}", join_dims(dims));
    rows.groups = attrs.integer("groups") == 0 ? dims[1] : attrs.integer("groups");
    HONE_CHECK(rows.groups > 0 && dims[1] % rows.groups == 0, "a normalization in the plan has {} groups", rows.groups);
    rows.step = dims[1] / rows.groups;
    rows.inner = std::max<int64_t>(total / std::max<int64_t>(dims[0] * dims[1], 1), 1);
    rows.n = rows.step * rows.inner;
  }
  HONE_CHECK(rows.n > 0 && rows.n < int64_t{1} << 31, "a normalization in the plan has rows of {}", rows.n);
  rows.count = total / rows.n;
  return rows;
}

/// A scale or bias of as many elements as the kernel reads.
void require_parameters(const OldContext& context, const char* name, int64_t count) {
  const int64_t place = bounded(context.attrs, name, kNoPlace, static_cast<int64_t>(context.shapes.inputs.size()) - 1);
  if (place == kNoPlace) return;
  const Dims dims =
      place >= 0 ? context.shapes.inputs[static_cast<size_t>(place)].dims : constant_dims(context.attrs, -1 - place);
  HONE_CHECK(elements(dims) == count, "a normalization in the plan has {} of {} for rows of {}", name, join_dims(dims),
             count);
}

std::shared_ptr<const CudaKernel> load(const OldContext& context) {
  const int64_t x = context.attrs.integer("x");
  HONE_CHECK(x >= 0 && x < static_cast<int64_t>(context.shapes.inputs.size()),
             "a normalization in the plan has no input");
  const Dims& dims = context.shapes.inputs[static_cast<size_t>(x)].dims;
  const Rows rows = rows_of(context.attrs, dims);
  const int64_t parameters = context.attrs.has("groups") ? dims[1] : rows.n;
  for (const char* name : {"scale", "bias"}) require_parameters(context, name, parameters);
  HONE_CHECK(context.shapes.outputs.size() == 1 && context.shapes.outputs[0].dims == dims,
             "a normalization in the plan changes the size of {}", join_dims(dims));
  if (const int64_t lanes = context.attrs.integer("lanes"); lanes > 0) {
    HONE_CHECK(lanes <= 32, "a normalization in the plan spreads rows over {} lanes", lanes);
    // Few rows: a warp to a block, so that every processor has some.
    const int64_t threads = rows.count * lanes < 128 * context.processors ? 32 : 128;
    GridLaunch launch{.function = context.module->function("normalization_row"),
                      .grid = {blocks_of(rows.count, threads / lanes), 1, 1},
                      .block = static_cast<unsigned>(threads)};
    launch.arguments.input(x);
    add_place(launch.arguments, context.attrs.integer("scale"));
    add_place(launch.arguments, context.attrs.integer("bias"));
    launch.arguments.output(0)
        .value(static_cast<int32_t>(rows.count))
        .value(static_cast<float>(context.attrs.real("epsilon")));
    return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
  }
  GridLaunch launch{.function = context.module->function("normalization"),
                    .grid = {rows.count, 1, 1},
                    .block = rows.n <= 64     ? 32u
                             : rows.n <= 256  ? 64u
                             : rows.n <= 2048 ? 128u
                                              : 512u};
  launch.arguments.input(x);
  add_place(launch.arguments, context.attrs.integer("scale"));
  add_place(launch.arguments, context.attrs.integer("bias"));
  launch.arguments.output(0);
  for (const int64_t number : {rows.n, rows.groups, rows.step, rows.inner})
    launch.arguments.value(static_cast<int32_t>(number));
  launch.arguments.value(static_cast<float>(context.attrs.real("epsilon")));
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace

const CudaTactic tactics::normalization = describe_old<generate, load>("normalization", propose);

}  // namespace hone::cuda
