// SPDX-License-Identifier: Apache-2.0
//
// Reductions over any axes, and the global pools, which are reductions over the spatial axes. In the order in which the bytes
// lie, neighbouring axes that share their fate are one.
#include <algorithm>
#include <array>
#include <optional>

#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "regions/reduce_axes.h"

namespace hone::cuda {
namespace {

constexpr size_t kAxes = 4;

/// Innermost last; those that are not there have the size 1.
struct Axes {
  static constexpr std::string_view kName = "Axes";
  int32_t sizes[kAxes] = {1, 1, 1, 1}, strides[kAxes] = {};
  static void fields(auto& self, auto& visit) {
    visit("sizes", self.sizes);
    visit("strides", self.strides);
  }
};

struct ReduceParameters {
  static constexpr std::string_view kKernel = "reduce_by";
  Reads x;
  Writes y;
  Axes kept, reduced;
  int32_t results = 0, count = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("y", self.y, "T");
    visit("kept", self.kept);
    visit("reduced", self.reduced);
    visit("results", self.results);
    visit("count", self.count);
  }
};

struct ColumnsParameters {
  static constexpr std::string_view kKernel = "reduce_columns";
  Reads x;
  Writes y;
  int32_t count = 0, inner = 0, lanes = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("y", self.y, "T");
    visit("count", self.count);
    visit("inner", self.inner);
    visit("lanes", self.lanes);
  }
};

struct RowsParameters {
  static constexpr std::string_view kKernel = "reduce_rows";
  Reads x;
  Writes y;
  int32_t count = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("y", self.y, "T");
    visit("count", self.count);
  }
};

struct ReduceCode {
  ReducedAxes reduced;
  bool clusters = false;  // the machine code has the kernel that shares a walk
  static void fields(auto& self, auto& visit) {
    ReducedAxes::fields(self.reduced, visit);
    visit("clusters", self.clusters);
  }
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

/// Sums of i32 wrap around as those of i64 do in their low half.
bool adds_integers(const Node& node) {
  const DType dtype = node.input(0)->type.dtype;
  return node.is(ops::reduce_sum) && (dtype == DType::i32 || dtype == DType::i64);
}

Axes axes_of(const std::vector<AxisRun>& runs, bool reduced) {
  Axes axes;
  size_t at = kAxes;
  for (size_t i = runs.size(); i-- > 0;) {
    if (runs[i].reduced != reduced) continue;
    HONE_CHECK(at > 0, "a reduction in the plan has more than {} runs of axes", kAxes);
    axes.sizes[--at] = static_cast<int32_t>(runs[i].size);
    axes.strides[at] = static_cast<int32_t>(runs[i].stride);
  }
  return axes;
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

constexpr unsigned kThreads = 256;  // that walk rows or columns
constexpr unsigned kMany = 512;     // that walk columns in a cluster: so few blocks have to ask for much at once
constexpr int64_t kTogether = 8;    // blocks of a cluster

/// Bytes of a block's shared memory: a sum for each thread and element.
unsigned bytes_of_sums(unsigned threads, int64_t elements, DType dtype) {
  return threads * static_cast<unsigned>(elements * (dtype == DType::i32 || dtype == DType::i64 ? 8 : 4));
}

/// Whether all that a result is made of lies together, in whole vectors.
bool are_rows(const std::vector<AxisRun>& axes, DType dtype) {
  const bool last =
      !axes.empty() && axes.back().reduced && (axes.size() == 1 || (axes.size() == 2 && !axes[0].reduced));
  return last && axes.back().size % vector_width(dtype) == 0;
}

GridLaunch launch_rows(const LoadContext& context, int64_t rows, int64_t count, DType dtype, bool clusters) {
  const int64_t vectors = count / vector_width(dtype);
  const bool together = clusters && rows < 2 * context.processors && vectors >= kTogether * kThreads;
  const RowsParameters parameters{.x = input(0), .y = output(0), .count = static_cast<int32_t>(count)};
  return launch_of(
      *context.module, parameters,
      {{rows, 1, together ? kTogether : 1}, vectors <= 64 ? 32u : kThreads, bytes_of_sums(kThreads, 1, dtype)},
      together ? "_together" : "");
}

GridLaunch launch_columns(const LoadContext& context, const Columns& columns, DType dtype, bool clusters) {
  const int64_t vectors = columns.inner / vector_width(dtype);
  int64_t lanes = 1;
  while (lanes < 32 && lanes < vectors) lanes *= 2;
  // Of long walks few lanes, so that more processors have some: memory gives 32 bytes at once.
  const bool shares = clusters && columns.count >= kTogether * kThreads;
  while (shares && lanes > 2 && kTogether * blocks_of(vectors, lanes) * columns.outer < context.processors) lanes /= 2;
  const int64_t across = blocks_of(vectors, lanes);
  // Sharing pays where blocks are few and walks long: it ends with two meetings of a microsecond.
  const bool together =
      clusters && across * columns.outer < context.processors && columns.count >= kTogether * (kThreads / lanes);
  const unsigned threads = together ? kMany : kThreads;
  const ColumnsParameters parameters{.x = input(0),
                                     .y = output(0),
                                     .count = static_cast<int32_t>(columns.count),
                                     .inner = static_cast<int32_t>(columns.inner),
                                     .lanes = static_cast<int32_t>(lanes)};
  return launch_of(
      *context.module, parameters,
      {{across, columns.outer, together ? kTogether : 1}, threads, bytes_of_sums(threads, vector_width(dtype), dtype)},
      together ? "_together" : "");
}

struct ReduceFamily {
  static constexpr std::string_view kName = "reduce";
  static constexpr int kVersion = 6;
  using Params = NoParams;
  using Code = ReduceCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || find_row(*node) == nullptr) return;
    if (std::string reason = adds_integers(*node) ? reason_not_unary(problem, *node) : reason_not_float(problem, *node);
        !reason.empty())
      return out.refuse(kName, std::move(reason));
    const std::optional<Dims> axes = reduced_axes(*node);
    if (!axes) return out.refuse(kName, "axes are not constant");
    offer_reductions(problem, *axes, "cuda", out);
  }

  static Built<Code> generate(const Problem& problem, const std::string& architecture, const Params&, const Tactic&) {
    const Node* node = problem.only();
    const Row* row = find_row(*node);
    const bool integers = adds_integers(*node);
    std::string source = integers ? "typedef i64 Sum;\n#define NUMBER(x) ((Sum)(x))\n"
                                  : "typedef float Sum;\n#define NUMBER(x) as_float(x)\n";
    source += fmt::format("typedef {} T;\nstatic inline float square(float x) {{ return x * x; }}\n",
                          type_name(node->output()->type.dtype));
    source += fmt::format("#define FIRST {}\n#define EACH(x) {}\n#define JOIN(a, b) {}\n#define LAST(a, n) {}\n",
                          integers ? "0" : row->first, row->each, row->join, row->last);
    const bool clusters = has_clusters(architecture) && !integers;  // which tell each other floats
    source += fmt::format("#define V {}\n#define CLUSTER {:d}\n#define AXES {}\n",
                          vector_width(node->output()->type.dtype), clusters, kAxes);
    source += declare<ReduceParameters, RowsParameters, ColumnsParameters>() + kernels::reduce;
    return {{.reduced = {*reduced_axes(*node)}, .clusters = clusters}, source};
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(context.shapes.inputs.size() == 1 && context.shapes.outputs.size() == 1,
               "a reduction in the plan has {} inputs", context.shapes.inputs.size());
    const ConcreteType& in = context.shapes.inputs[0];
    const std::vector<AxisRun> runs = merged_axes(in, code.reduced.axes);
    const int64_t total = elements(in.dims), results = elements(context.shapes.outputs[0].dims);
    HONE_CHECK(results > 0 && total % results == 0 && total < int64_t{1} << 31,
               "a reduction in the plan has {} results", results);
    int64_t kept = 1;
    for (const AxisRun& run : runs) kept *= run.reduced ? 1 : run.size;
    HONE_CHECK(kept == results, "a reduction in the plan has {} results of {}", results, kept);
    if (const std::optional<Columns> columns = columns_of(runs, in.dtype))
      return single(context, launch_columns(context, *columns, in.dtype, code.clusters));
    const int64_t count = total / results;
    if (are_rows(runs, in.dtype)) return single(context, launch_rows(context, results, count, in.dtype, code.clusters));
    const ReduceParameters parameters{.x = input(0),
                                      .y = output(0),
                                      .kept = axes_of(runs, false),
                                      .reduced = axes_of(runs, true),
                                      .results = static_cast<int32_t>(results),
                                      .count = static_cast<int32_t>(count)};
    if (runs.empty() || runs.back().reduced || count > 4096)
      return single(context, launch_of(*context.module, parameters, {{results}, count <= 256 ? 32u : 256u}, "_block"));
    return single(context, launch_of(*context.module, parameters, {{blocks_of(results, 64)}, 64}, "_thread"));
  }
};

}  // namespace

const CudaTactic tactics::reduce = describe<ReduceFamily>();

}  // namespace hone::cuda
