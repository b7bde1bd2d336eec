// SPDX-License-Identifier: Apache-2.0
//
// Reductions over any axes, and the global pools, which are reductions over the spatial axes. In the order in which the bytes
// lie, neighbouring axes that share their fate are one.
#include <algorithm>
#include <array>
#include <optional>

#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/old.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "regions/reduce_axes.h"

namespace hone::cuda {
namespace {

constexpr size_t kAxes = 4;
struct AxesArgument {
  int32_t sizes[kAxes], strides[kAxes];
};

struct Row {
  const OpDef* op;
  std::string_view first, each, join, last;
};
constexpr std::string_view kSum = "((a) + (b))", kSame = "(x)", kPlain = "(a)", kMean = "((a) / (n))";
const std::array kOperators = {
    Row{&ops::reduce_sum, "0.0f", kSame, kSum, kPlain},
    Row{&ops::reduce_mean, "0.0f", kSame, kSum, kMean},
    Row{&ops::reduce_max, "(-INFINITY_F)", kSame, "fmaxf(a, b)", kPlain},
    Row{&ops::reduce_min, "INFINITY_F", kSame, "fminf(a, b)", kPlain},
    Row{&ops::reduce_prod, "1.0f", kSame, "((a) * (b))", kPlain},
    Row{&ops::reduce_l1, "0.0f", "fabsf(x)", kSum, kPlain},
    Row{&ops::reduce_l2, "0.0f", "square(x)", kSum, "sqrtf(a)"},
    Row{&ops::reduce_sum_square, "0.0f", "square(x)", kSum, kPlain},
    Row{&ops::reduce_log_sum, "0.0f", kSame, kSum, "logf(a)"},
    Row{&ops::global_average_pool, "0.0f", kSame, kSum, kMean},
    Row{&ops::global_max_pool, "(-INFINITY_F)", kSame, "fmaxf(a, b)", kPlain},
};

const Row* find_row(const Node& node) {
  for (const Row& row : kOperators)
    if (node.is(*row.op)) return &row;
  return nullptr;
}

void propose(const Problem& problem, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || find_row(*node) == nullptr) return;
  if (std::string reason = reason_not_float(problem, *node); !reason.empty())
    return out.refuse("reduce", std::move(reason));
  const std::optional<Dims> axes = reduced_axes(*node);
  if (!axes) return out.refuse("reduce", "axes are not constant");
  offer_reductions(problem, *axes, "cuda", out);
}

Generated generate(const Problem& problem, const std::string& architecture, const Tactic&) {
  const Node* node = problem.only();
  const Row* row = find_row(*node);
  std::string source = fmt::format("typedef {} T;\nstatic inline float square(float x) {{ return x * x; }}\n",
                                   type_name(node->output()->type.dtype));
  source += fmt::format("#define FIRST {}\n#define EACH(x) {}\n#define JOIN(a, b) {}\n#define LAST(a, n) {}\n",
                        row->first, row->each, row->join, row->last);
  const bool clusters = has_clusters(architecture);
  source += fmt::format("#define V {}\n#define CLUSTER {:d}\n", vector_width(node->output()->type.dtype), clusters);
  return {{{"axes", *reduced_axes(*node)}, {"clusters", int64_t{clusters}}}, source + kernels::reduce, {}};
}

AxesArgument axes_argument(const std::vector<AxisRun>& axes, bool reduced) {
  AxesArgument argument{};
  std::fill(std::begin(argument.sizes), std::end(argument.sizes), 1);
  size_t at = kAxes;
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].reduced != reduced) continue;
    HONE_CHECK(at > 0, "a reduction in the plan has more than {} runs of axes", kAxes);
    argument.sizes[--at] = static_cast<int32_t>(axes[i].size);
    argument.strides[at] = static_cast<int32_t>(axes[i].stride);
  }
  return argument;
}

/// [outer][reduced][inner] with whole vectors of the inner axis.
struct Columns {
  int64_t outer = 1, count = 0, inner = 0;
};
std::optional<Columns> columns_of(const std::vector<AxisRun>& axes, DType dtype) {
  if (axes.size() < 2 || axes.size() > 3 || axes.back().reduced || !axes[axes.size() - 2].reduced) return std::nullopt;
  const Columns columns{
      .outer = axes.size() == 3 ? axes[0].size : 1, .count = axes[axes.size() - 2].size, .inner = axes.back().size};
  const bool fits = columns.inner % vector_width(dtype) == 0 && columns.outer < 65536;
  return fits ? std::optional(columns) : std::nullopt;
}

std::shared_ptr<const CudaKernel> load_columns(const OldContext& context, const Columns& columns, DType dtype) {
  const int64_t vectors = columns.inner / vector_width(dtype);
  int64_t lanes = 1;
  while (lanes < 32 && lanes < vectors) lanes *= 2;
  const int64_t blocks = blocks_of(vectors, lanes) * columns.outer;
  // Sharing pays where blocks are few and walks long: it ends with two meetings of a microsecond.
  const bool together =
      context.attrs.integer("clusters") != 0 && blocks < context.processors && columns.count >= 8 * (256 / lanes);
  GridLaunch launch{.function = context.module->function(together ? "reduce_columns_together" : "reduce_columns"),
                    .grid = {blocks_of(vectors, lanes), columns.outer, together ? 8 : 1}};
  launch.arguments.input(0).output(0);
  for (const int64_t number : {columns.count, columns.inner, lanes})
    launch.arguments.value(static_cast<int32_t>(number));
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

std::shared_ptr<const CudaKernel> load(const OldContext& context) {
  HONE_CHECK(context.shapes.inputs.size() == 1 && context.shapes.outputs.size() == 1,
             "a reduction in the plan has {} inputs", context.shapes.inputs.size());
  const std::vector<AxisRun> axes = merged_axes(context.shapes.inputs[0], context.attrs.integers("axes"));
  const int64_t total = elements(context.shapes.inputs[0].dims), results = elements(context.shapes.outputs[0].dims);
  HONE_CHECK(results > 0 && total % results == 0 && total < int64_t{1} << 31, "a reduction in the plan has {} results",
             results);
  const int64_t count = total / results;
  int64_t kept = 1;
  for (const AxisRun& axis : axes) kept *= axis.reduced ? 1 : axis.size;
  HONE_CHECK(kept == results, "a reduction in the plan has {} results of {}", results, kept);
  const DType dtype = context.shapes.inputs[0].dtype;
  if (const std::optional<Columns> columns = columns_of(axes, dtype)) return load_columns(context, *columns, dtype);
  const bool rows = axes.empty() || axes.back().reduced || count > 4096;
  GridLaunch launch{.function = context.module->function(rows ? "reduce_by_block" : "reduce_by_thread")};
  launch.arguments.input(0)
      .output(0)
      .value(axes_argument(axes, false))
      .value(axes_argument(axes, true))
      .value(static_cast<int32_t>(results))
      .value(static_cast<int32_t>(count));
  launch.block = rows ? (count <= 256 ? 32u : 256u) : 64u;
  launch.grid.x = rows ? results : blocks_of(results, launch.block);
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace

const CudaTactic tactics::reduce = describe_old<generate, load>("reduce", propose);

}  // namespace hone::cuda
