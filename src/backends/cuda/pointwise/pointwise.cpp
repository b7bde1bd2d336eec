// SPDX-License-Identifier: Apache-2.0
//
// A fused chain of pointwise nodes as one pass over memory: its program becomes a few lines of C++ on scalars. Where all sizes
// are known they are constants of the code, so that the compiler turns divisions into products; elsewhere they are arguments.
#include <algorithm>
#include <cmath>
#include <variant>

#include "backends/cuda/family.h"
#include "backends/cuda/pointwise/formula.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "base/text.h"
#include "ops/ops.h"
#include "regions/pointwise_program.h"

namespace hone::cuda {
namespace {

constexpr size_t kMaxOperands = 8, kMaxNumbers = 16, kAxes = 6;

/// The walk, innermost axis last; axes that are not there have the size 1. The result's strides stand behind those of all operands.
struct Nest {
  static constexpr std::string_view kName = "Nest";
  int32_t sizes[kAxes] = {1, 1, 1, 1, 1, 1}, strides[kMaxOperands + 1][kAxes] = {};
  static void fields(auto& self, auto& visit) {
    visit("sizes", self.sizes);
    visit("strides", self.strides);
  }
};

/// Numbers that follow from the input shapes travel in the launch.
struct Numbers {
  static constexpr std::string_view kName = "Numbers";
  int64_t at[kMaxNumbers] = {};
  static void fields(auto& self, auto& visit) { visit("at", self.at); }
};

/// Operands follow from the program: pointers, or numbers.
struct PointwiseParameters {
  static constexpr std::string_view kKernel = "pointwise";
  struct Operand {
    std::string_view type;
    std::variant<Reads, Numbers> value;
  };
  std::vector<Operand> operands;
  Writes result;
  Nest nest;
  int32_t count = 0;
  static void fields(auto& self, auto& visit) {
    for (size_t k = 0; k < self.operands.size(); ++k) {
      const auto& [type, value] = self.operands[k];
      if (const Reads* pointer = std::get_if<Reads>(&value)) visit("p" + std::to_string(k), *pointer, type);
      else visit("n" + std::to_string(k), std::get<Numbers>(value));
    }
    visit("result", self.result, "Result");
    visit("nest_argument", self.nest);
    visit("count", self.count);
  }
};

struct PointwiseCode {
  PointwiseProgram program;
  int64_t width = 1;  // neighbours that a thread takes
  static void fields(auto& self, auto& visit) {
    PointwiseProgram::fields(self.program, visit);
    visit("width", self.width, 1, 16);
  }
};

/// What scalars are computed in: all operands decide, so that large integers stay exact, and whether a value in between is a float, as
/// between codes.
std::string_view compute_type(const PointwiseProgram& program, DType result, bool makes_floats) {
  const auto small = [](DType d) { return is_kernel_float(d) || d == DType::boolean || size_of(d) < 4; };
  const auto integral = [](DType d) { return is_integer(d) || d == DType::boolean; };
  bool all_small = small(result), all_integral = integral(result) && !makes_floats,
       any_float = is_float(result) || makes_floats;
  for (const PointwiseProgram::Operand& operand : program.operands) {
    all_small &= small(operand.dtype);
    all_integral &= integral(operand.dtype);
    any_float |= is_float(operand.dtype);
  }
  return all_integral ? "i64" : any_float && all_small ? "float" : "double";
}

/// Throws Error when there are more axes or operands than a launch can carry.
Nest nest_of(const LoopNest& loops) {
  HONE_CHECK(loops.sizes.size() <= kAxes && loops.strides.size() <= kMaxOperands,
             "a pointwise kernel walks {} axes of {} operands", loops.sizes.size(), loops.strides.size());
  Nest nest;
  const size_t shift = kAxes - loops.sizes.size();
  for (size_t axis = 0; axis < loops.sizes.size(); ++axis) {
    nest.sizes[shift + axis] = static_cast<int32_t>(loops.sizes[axis]);
    for (size_t k = 0; k < loops.strides.size(); ++k)
      nest.strides[k][shift + axis] = static_cast<int32_t>(loops.strides[k][axis]);
    nest.strides[loops.strides.size()][shift + axis] = static_cast<int32_t>(loops.result[axis]);
  }
  return nest;
}

/// How many neighbours of the innermost axis one thread may take: everything must be aligned and advance by 0 or 1.
int vector_width(const LoopNest& loops, const std::vector<DType>& types) {
  size_t widest = 1;
  for (const DType type : types) widest = std::max(widest, size_of(type));
  for (int width = static_cast<int>(16 / widest); width > 1; width /= 2) {
    bool fits = loops.sizes.back() % width == 0 && loops.result.back() == 1;
    for (size_t axis = 0; axis + 1 < loops.sizes.size(); ++axis) {
      fits &= loops.result[axis] % width == 0;
      for (const Dims& strides : loops.strides) fits &= strides.back() == 0 || strides[axis] % width == 0;
    }
    for (const Dims& strides : loops.strides) fits &= strides.back() == 0 || strides.back() == 1;
    if (fits) return width;
  }
  return 1;
}

std::vector<DType> element_types(const PointwiseProgram& program, DType result) {
  std::vector<DType> types{result};
  for (const PointwiseProgram::Operand& operand : program.operands) types.push_back(operand.dtype);
  return types;
}

std::string nest_text(const Nest& nest) {
  const auto list = [](const int32_t* values) {
    std::vector<std::string> texts;
    for (size_t axis = 0; axis < kAxes; ++axis) texts.push_back(std::to_string(values[axis]));
    return "{" + join(texts, ", ") + "}";
  };
  std::vector<std::string> strides;
  for (const auto& row : nest.strides) strides.push_back(list(row));
  return fmt::format("{{{}, {{{}}}}}", list(nest.sizes), join(strides, ", "));
}

/// A bitmap of the operands that advance along the innermost axis: known when the code is made, even where sizes are not.
struct Form {
  int width = 1;
  std::string fixed_nest;  // empty: an argument
};

Form form_of(const Problem& problem, const Tactic& tactic, const PointwiseProgram& program, DType result) {
  KernelShapes shapes;
  const Graph& region = problem.region;
  for (size_t i = 0; i < region.inputs().size(); ++i)
    shapes.inputs.push_back({region.inputs()[i]->type.dtype, region.inputs()[i]->type.shape.values(), tactic.in[i]});
  shapes.outputs.push_back({result, region.outputs()[0]->type.shape.values(), tactic.out[0]});
  for (const Value* value : problem.symbolic.inputs())
    if (!value->type.shape.is_static()) return {};
  const LoopNest loops = make_nest(shapes.outputs[0], operand_types(program, shapes));
  return {vector_width(loops, element_types(program, result)), nest_text(nest_of(loops))};
}

Numbers numbers_of(const std::vector<std::string>& texts, const SymbolValues& symbols) {
  HONE_CHECK(texts.size() <= kMaxNumbers, "a pointwise kernel in the plan reads {} numbers", texts.size());
  Numbers numbers;
  for (size_t i = 0; i < texts.size(); ++i) numbers.at[i] = Dim::parse(texts[i]).evaluate(symbols);
  return numbers;
}

/// Numbers are only evaluated where there are symbols to do so with.
PointwiseParameters parameters_of(const PointwiseProgram& program, const SymbolValues* symbols) {
  PointwiseParameters parameters{.operands = {}, .result = output(0)};
  for (const PointwiseProgram::Operand& operand : program.operands) {
    PointwiseParameters::Operand& added = parameters.operands.emplace_back();
    added.type = type_name(operand.dtype);
    if (operand.sizes.empty()) added.value = operand.constant ? constant(operand.index) : input(operand.index);
    else added.value = symbols == nullptr ? Numbers() : numbers_of(operand.sizes, *symbols);
  }
  return parameters;
}

std::string source_of(const PointwiseProgram& program, DType result, const Form& form, bool makes_floats) {
  const std::string_view type = compute_type(program, result, makes_floats);
  std::string scalars, declarations, loads;
  for (size_t k = 0; k < program.operands.size(); ++k) {
    const std::string_view element = type_name(program.operands[k].dtype);
    scalars += fmt::format("{}S o{}", k == 0 ? "" : ", ", k);
    if (!program.operands[k].sizes.empty()) loads += fmt::format("  const i64* p{0} = n{0}.at;\n", k);
    loads += fmt::format("  Vector<{0}, V> e{1};\n  const bool streams{1} = LOAD(e{1}, p{1}, {1});\n", element, k);
    declarations += fmt::format("{}convert<S>(e{}.at[streams{} ? i : 0])", k == 0 ? "" : ", ", k, k);
  }
  Declarations parameters;
  parameters.add_list(parameters_of(program, nullptr));
  std::string text =
      fmt::format("typedef {} S;\ntypedef {} Result;\n#define V {}\n#define OPERANDS {}\n#define AXES {}\n", type,
                  type_name(result), form.width, program.operands.size(), kAxes);
  if (!form.fixed_nest.empty()) text += fmt::format("#define FIXED_NEST {}\n", form.fixed_nest);
  text += parameters.text() + kernels::formula + kernels::pointwise;
  text += fmt::format("static inline S formula({}) {{\n{}}}\n", scalars, statements(program, type));
  text += fmt::format(
      "extern \"C\" __global__ void pointwise(POINTWISE_PARAMETERS) {{\n  BEGIN\n{}"
      "  Vector<Result, V> out;\n#pragma unroll\n  for (int i = 0; i < V; ++i) out.at[i] = "
      "convert<Result>(formula({}));\n  STORE(out)\n}}\n",
      loads, declarations);
  return text;
}

/// A result in bytes saturates, NaN as 0, before it is stored.
void saturate(PointwiseProgram& program, DType bytes) {
  const auto emit = [&](ExprKind kind, double number, int a = -1, int b = -1, int c = -1) {
    program.instructions.push_back({kind, number, {a, b, c}});
    return static_cast<int>(program.instructions.size()) - 1;
  };
  const int code = static_cast<int>(program.instructions.size()) - 1;
  const bool is_signed = bytes == DType::i8;
  const int high = emit(ExprKind::minimum, 0, code, emit(ExprKind::number, is_signed ? 127 : 255)),
            bounded = emit(ExprKind::maximum, 0, high, emit(ExprKind::number, is_signed ? -128 : 0));
  emit(ExprKind::select, 0, emit(ExprKind::is_nan, 0, code), emit(ExprKind::number, 0), bounded);
}

ProgramResult program_of(const Problem& problem) {
  ProgramResult result = make_program(problem);
  const Value* last = problem.region.outputs()[0];
  if (result.refusal.empty() && scales_bytes(problem.region) &&
      (last->type.dtype == DType::u8 || last->type.dtype == DType::i8))
    saturate(result.program, last->type.dtype);
  return result;
}

/// Whether floats of 8 bits are the codes of Hone's passes alone: what ONNX converts them by has rules of its own.
bool keeps_float8_to_codes(const Node* node) {
  const auto is_code = [](const Value* value) { return value != nullptr && value->type.dtype == DType::f8e4m3fn; };
  return node->is(ops::encode_float8) || node->is(ops::decode) ||
         (std::ranges::none_of(node->inputs, is_code) && std::ranges::none_of(node->outputs, is_code));
}

std::string reason_against(const Problem& problem, const ProgramResult& result) {
  if (!result.refusal.empty()) return result.refusal;
  if (result.program.operands.size() > kMaxOperands) return "too many operands";
  if (result.program.operands.empty()) return "nothing to read";
  const bool coded = std::ranges::all_of(problem.region.nodes(), keeps_float8_to_codes);
  const auto known = [&](DType dtype) { return has_type_name(dtype) || (coded && dtype == DType::f8e4m3fn); };
  if (!known(problem.region.outputs()[0]->type.dtype)) return "a type that the GPU does not have";
  for (const PointwiseProgram::Operand& operand : result.program.operands)
    if (!known(operand.dtype)) return "a type that the GPU does not have";
  for (const PointwiseProgram::Operand& operand : result.program.operands)
    if (operand.sizes.size() > kMaxNumbers) return "too many numbers";
  for (const Node* node : problem.region.nodes())
    if (node->op_name().starts_with("Bit")) return "works on bits";
  if (problem.region.outputs()[0]->type.shape.rank() > kAxes) return "too many axes";
  return {};
}

Tactic tactic_in(Layout layout, const Problem& problem) {
  const size_t rank = problem.region.outputs()[0]->type.shape.rank();
  std::vector<Layout> in;
  for (const Value* input : problem.region.inputs())
    in.push_back(input->type.shape.rank() == rank ? layout : Layout::linear);
  return {"cuda", "pointwise", {}, std::move(in), {layout}};
}

struct PointwiseFamily {
  static constexpr std::string_view kName = "pointwise";
  static constexpr int kVersion = 4;
  using Params = NoParams;
  using Code = PointwiseCode;

  static void propose(const Problem& problem, Candidates& out) {
    // What is computed between bytes would have to round as the reference does, to the last bit.
    if (!is_pointwise_region(problem.region) || (scales_bytes(problem.region) && problem.only() == nullptr)) return;
    if (std::string reason = reason_against(problem, program_of(problem)); !reason.empty())
      return out.refuse(kName, std::move(reason));
    out.offer(tactic_in(Layout::linear, problem));
    const size_t rank = problem.region.outputs()[0]->type.shape.rank();
    if (rank >= 3 && rank <= 5) out.offer(tactic_in(Layout::channels_last, problem));
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic& tactic) {
    ProgramResult result = program_of(problem);
    const DType type = problem.region.outputs()[0]->type.dtype;
    const Form form = form_of(problem, tactic, result.program, type);
    const bool makes_floats = std::ranges::any_of(
        problem.region.nodes(), [](const Node* node) { return is_float(node->output()->type.dtype); });
    std::string source = source_of(result.program, type, form, makes_floats);
    return {{std::move(result.program), form.width}, std::move(source), std::move(result.constants)};
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const PointwiseProgram& program = code.program;
    require_constants(context.shapes, program_constants(program));
    HONE_CHECK(context.shapes.outputs.size() == 1 && program.operands.size() <= kMaxOperands,
               "a pointwise kernel in the plan has {} operands", program.operands.size());
    const LoopNest loops = make_nest(context.shapes.outputs[0], operand_types(program, context.shapes));
    const int64_t count = elements(loops.sizes) / code.width;
    HONE_CHECK(loops.sizes.back() % code.width == 0 && count < int64_t{1} << 31,
               "a pointwise kernel in the plan has {} results", elements(loops.sizes));
    PointwiseParameters parameters = parameters_of(program, &context.shapes.symbols);
    parameters.nest = nest_of(loops);
    parameters.count = static_cast<int32_t>(count);
    const unsigned threads = count < 132 * 256 ? 128 : 256;
    return single(context,
                  launch_of(*context.module, parameters, {{blocks_of(std::max<int64_t>(count, 1), threads)}, threads}));
  }
};

}  // namespace

const CudaTactic tactics::pointwise = describe<PointwiseFamily>();

}  // namespace hone::cuda
