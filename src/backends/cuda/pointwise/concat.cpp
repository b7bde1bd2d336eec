// SPDX-License-Identifier: Apache-2.0
//
// A Concat and the pointwise nodes that alone read it, besides constants along the same axis: what a dense block puts together,
// normalises and activates is read once and written once.
#include <algorithm>
#include <numeric>

#include "backends/cuda/family.h"
#include "backends/cuda/pointwise/formula.h"
#include "backends/cuda/support/divisor.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "regions/pointwise_program.h"
#include "regions/region_match.h"

namespace hone::cuda {
namespace {

constexpr int64_t kMostSources = 64, kMostConstants = 8, kMostEach = 4;
constexpr unsigned kThreads = 256;
static_assert(kMostSources + kMostConstants + 3 <= static_cast<int64_t>(Arguments::kMost));

/// Where each source's share of the result lies, in vectors of a row: a run of them from `firsts` on. `inner` elements have one
/// position along the axis, a row `total`.
struct JoinedParts {
  static constexpr std::string_view kName = "JoinedParts";
  Divisor runs[kMostSources], inner;
  int32_t first_blocks[kMostSources] = {}, firsts[kMostSources] = {}, counts[kMostSources] = {}, total = 0;
  static void fields(auto& self, auto& visit) {
    visit("runs", self.runs);
    visit("inner", self.inner);
    visit("first_blocks", self.first_blocks);
    visit("firsts", self.firsts);
    visit("counts", self.counts);
    visit("total", self.total);
  }
};

struct ConcatParameters {
  static constexpr std::string_view kKernel = "concat";
  std::vector<Reads> from;
  std::vector<DType> constants;
  Writes result;
  JoinedParts parts;
  int32_t each = 1;
  static void fields(auto& self, auto& visit) {
    for (size_t i = 0; i < self.from.size(); ++i) visit("x" + std::to_string(i), self.from[i], "T");
    for (size_t k = 0; k < self.constants.size(); ++k)
      visit("c" + std::to_string(k), constant(static_cast<int64_t>(k)), type_name(self.constants[k]));
    visit("result", self.result, "Result");
    visit("parts", self.parts);
    visit("each", self.each);
  }
};

struct ConcatCode {
  PointwiseProgram program;  // operand 0: what is joined
  Dims sources;              // inputs, one behind the other
  int64_t axis = 0, width = 1;
  bool stream = false;
  static void fields(auto& self, auto& visit) {
    PointwiseProgram::fields(self.program, visit);
    visit("sources", self.sources, 0, kMostSources - 1, kMostSources);
    visit("axis", self.axis, 0, kMostAxes - 1);
    visit("width", self.width, 1, 16);
    visit("stream", self.stream);
  }
};

/// The node that such a region begins with, or null.
const Node* concat_of(const Graph& region) {
  const std::vector<Node*> nodes = region.nodes();
  return nodes.size() > 1 && nodes[0]->is(ops::concat) && nodes.back()->op->is_pointwise() ? nodes[0] : nullptr;
}

size_t axis_of(const Node& concat) {
  return normalize_axis(concat.attrs.integer("axis"), concat.output()->type.shape.rank());
}

/// Whether there is one number for every position along the axis.
bool lies_along(const Dims& constant, size_t axis, size_t rank, int64_t size) {
  for (size_t i = 0; i < constant.size(); ++i)
    if (constant[i] != (rank - constant.size() + i == axis ? size : 1)) return false;
  return constant.size() + axis >= rank;
}

std::string reason_against(const Problem& problem, const Node& concat, const ProgramResult& made) {
  if (!made.refusal.empty()) return made.refusal;
  const TensorType &joined = concat.output()->type, &last = problem.symbolic.outputs()[0]->type;
  if (!is_kernel_float(joined.dtype) || !is_kernel_float(last.dtype)) return "types that are no floats";
  if (concat.inputs.size() > kMostSources) return fmt::format("{} tensors", concat.inputs.size());
  for (const Value* value : concat.inputs)
    if (input_index(problem.symbolic, value) < 0) return "joins constants";
  if (made.program.operands.size() > 1 + kMostConstants) return "too many constants";
  const size_t axis = axis_of(concat);
  for (size_t k = 1; k < made.program.operands.size(); ++k) {
    const PointwiseProgram::Operand& operand = made.program.operands[k];
    if (!operand.constant || !operand.sizes.empty() || !is_kernel_float(operand.dtype)) return "reads another tensor";
    if (!joined.shape[axis].is_constant() ||
        !lies_along(operand.constant_dims, axis, joined.shape.rank(), joined.shape[axis].value()))
      return "constants of several axes";
  }
  return {};
}

/// What is known of a tensor in some layout; sizes that are not count as 1.
ConcreteType known_type(const TensorType& type, Layout layout) {
  Dims dims;
  for (const Dim& dim : type.shape) dims.push_back(dim.is_constant() ? dim.value() : 1);
  return {type.dtype, std::move(dims), layout};
}

/// Elements that have one position along the axis.
int64_t inner_of(const ConcreteType& type, size_t axis) {
  const Dims sizes = physical_dims(type);
  const auto behind = sizes.begin() + static_cast<std::ptrdiff_t>(physical_axis(axis, type)) + 1;
  return std::accumulate(behind, sizes.end(), int64_t{1}, std::multiplies<>());
}

/// Of a row of several sources: whether neighbours have neighbouring positions, and how many of them a thread may take of each.
struct Neighbours {
  bool stream = false;
  int64_t width = 1;
};

bool fits(const std::vector<ConcreteType>& sources, size_t axis, const Neighbours& choice) {
  return std::ranges::all_of(sources, [&](const ConcreteType& type) {
    const int64_t inner = inner_of(type, axis);
    return choice.stream ? inner == 1 && type.dims[axis] % choice.width == 0 : inner % choice.width == 0;
  });
}

/// One where sizes of a row are not known yet.
Neighbours neighbours_of(const Problem& problem, const Node& concat, Layout layout) {
  const size_t axis = axis_of(concat);
  std::vector<ConcreteType> sources;
  bool known = true;
  for (const Value* value : concat.inputs) {
    sources.push_back(known_type(value->type, layout));
    for (size_t i = 0; i < value->type.shape.rank(); ++i)
      known &= value->type.shape[i].is_constant() || physical_axis(i, sources[0]) < physical_axis(axis, sources[0]);
  }
  if (!known) return {};
  const size_t bytes = std::max(size_of(sources[0].dtype), size_of(problem.region.outputs()[0]->type.dtype));
  Neighbours choice{inner_of(sources[0], axis) == 1, 16 / static_cast<int64_t>(bytes)};
  while (choice.width > 1 && !fits(sources, axis, choice)) choice.width /= 2;
  return choice;
}

/// A block's source, the last that begins before it.
std::string pick_text(size_t sources) {
  std::string text;
  for (size_t i = 1; i < sources; ++i)
    text += fmt::format(
        "  if ((int)blockIdx.x >= parts.first_blocks[{0}]) from = x{0}, first_block = parts.first_blocks[{0}], "
        "first = parts.firsts[{0}], count = parts.counts[{0}], run = parts.runs[{0}]; \\\n",
        i);
  return text;
}

/// The formula of V neighbours, whose constants are read together where they lie so.
std::string formula_text(const PointwiseProgram& program, bool stream) {
  std::string loads, arguments = "convert<S>(held[i].at[k])";
  for (size_t k = 1; k < program.operands.size(); ++k) {
    const std::string_view type = type_name(program.operands[k].dtype);
    const size_t c = k - 1;
    if (stream)
      loads += fmt::format(
          "  const Vector<{0}, V> e{1} = *reinterpret_cast<const Vector<{0}, V>*>(c{1} + position); \\\n", type, c);
    else loads += fmt::format("  const {} e{} = c{}[position]; \\\n", type, c, c);
    arguments += fmt::format(", convert<S>(e{}{})", c, stream ? ".at[k]" : "");
  }
  return loads +
         fmt::format("  _Pragma(\"unroll\") for (int k = 0; k < V; ++k) out.at[k] = convert<Result>(formula({}));",
                     arguments);
}

std::string source_of(const ConcatCode& code, const ConcatParameters& parameters, DType joined, DType result) {
  std::string scalars = "S o0";
  for (size_t k = 1; k < code.program.operands.size(); ++k) scalars += fmt::format(", S o{}", k);
  Declarations declarations;
  declarations.add_list(parameters);
  return fmt::format("typedef float S;\ntypedef {} T;\ntypedef {} Result;\n#define V {}\n#define MOST_EACH {}\n",
                     type_name(joined), type_name(result), code.width, kMostEach) +
         declarations.text() + kernels::division + kernels::formula +
         fmt::format("static inline S formula({}) {{\n{}}}\n#define PICK \\\n{}\n#define FORMULA \\\n{}\n", scalars,
                     statements(code.program, "float"), pick_text(code.sources.size()),
                     formula_text(code.program, code.stream)) +
         kernels::concat;
}

ConcatParameters parameters_of(const ConcatCode& code) {
  ConcatParameters parameters;
  for (const int64_t source : code.sources) parameters.from.push_back(input(source));
  for (size_t k = 1; k < code.program.operands.size(); ++k)
    parameters.constants.push_back(code.program.operands[k].dtype);
  parameters.result = output(0);
  return parameters;
}

/// The types of what is joined. Throws Error where they do not make up the result.
std::vector<ConcreteType> sources_of(const ConcatCode& code, const KernelShapes& shapes) {
  HONE_CHECK(shapes.outputs.size() == 1 && code.axis < static_cast<int64_t>(shapes.outputs[0].dims.size()),
             "a concatenation in the plan has {} results", shapes.outputs.size());
  const ConcreteType& result = shapes.outputs[0];
  const auto axis = static_cast<size_t>(code.axis);
  std::vector<ConcreteType> sources;
  int64_t total = 0;
  for (const int64_t source : code.sources) {
    HONE_CHECK(source < static_cast<int64_t>(shapes.inputs.size()), "a concatenation in the plan reads input {}",
               source);
    const ConcreteType& type = shapes.inputs[static_cast<size_t>(source)];
    Dims as_result = type.dims;
    if (axis < as_result.size()) total += std::exchange(as_result[axis], result.dims[axis]);
    HONE_CHECK(as_result == result.dims && type.layout == result.layout && type.dtype == shapes.inputs[0].dtype,
               "a concatenation in the plan joins {} to {}", join_dims(type.dims), join_dims(result.dims));
    sources.push_back(type);
  }
  HONE_CHECK(total == result.dims[axis], "a concatenation in the plan joins {} of {}", total, join_dims(result.dims));
  return sources;
}

struct ConcatFamily {
  static constexpr std::string_view kName = "concat";
  static constexpr int kVersion = 1;
  using Params = NoParams;
  using Code = ConcatCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* concat = concat_of(problem.symbolic);
    if (concat == nullptr) return;
    if (std::string reason = reason_against(problem, *concat, make_program_behind(problem, *concat)); !reason.empty())
      return out.refuse(kName, std::move(reason));
    const size_t rank = concat->output()->type.shape.rank();
    for (const Layout layout : {Layout::linear, Layout::channels_last})
      if (layout == Layout::linear || (rank >= 3 && rank <= 5))
        out.offer(
            {"cuda", std::string(kName), {}, std::vector<Layout>(problem.region.inputs().size(), layout), {layout}});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic& tactic) {
    const Node& concat = *concat_of(problem.symbolic);
    ProgramResult made = make_program_behind(problem, concat);
    const Neighbours neighbours = neighbours_of(problem, concat, tactic.out[0]);
    Code code{.program = std::move(made.program),
              .sources = {},
              .axis = static_cast<int64_t>(axis_of(concat)),
              .width = neighbours.width,
              .stream = neighbours.stream};
    for (const Value* value : concat.inputs) code.sources.push_back(input_index(problem.symbolic, value));
    std::string source =
        source_of(code, parameters_of(code), concat.output()->type.dtype, problem.region.outputs()[0]->type.dtype);
    return {std::move(code), std::move(source), std::move(made.constants)};
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    require_constants(context.shapes, program_constants(code.program));
    const std::vector<ConcreteType> sources = sources_of(code, context.shapes);
    const ConcreteType& result = context.shapes.outputs[0];
    const auto axis = static_cast<size_t>(code.axis);
    HONE_CHECK(fits(sources, axis, {code.stream, code.width}), "a concatenation in the plan takes {} elements at once",
               code.width);
    ConcatParameters parameters = parameters_of(code);
    JoinedParts& parts = parameters.parts;
    const int64_t all = elements(result.dims), inner = inner_of(result, axis), total = inner * result.dims[axis];
    HONE_CHECK(all < int64_t{1} << 31, "a concatenation in the plan makes {} elements", all);
    parameters.each = static_cast<int32_t>(context.fills(all / code.width / kMostEach) ? kMostEach : 1);
    parts.inner = Divisor(inner);
    parts.total = static_cast<int32_t>(total);
    int64_t first = 0, blocks = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      const int64_t run = inner * sources[i].dims[axis] / code.width;
      const int64_t count = elements(sources[i].dims) / code.width;
      parts.runs[i] = Divisor(run);
      parts.first_blocks[i] = static_cast<int32_t>(blocks);
      parts.firsts[i] = static_cast<int32_t>(first);
      parts.counts[i] = static_cast<int32_t>(count);
      first += run;
      blocks += blocks_of(count, kThreads * parameters.each);
    }
    return single(context, launch_of(*context.module, parameters, {{std::max<int64_t>(blocks, 1)}, kThreads}));
  }
};

}  // namespace

const CudaTactic tactics::concat = describe<ConcatFamily>();

}  // namespace hone::cuda
