// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/conv/filters.h"

#include <algorithm>
#include <span>

#include "backends/cuda/pointwise/formula.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/rounding.h"
#include "backends/cuda/support/source_text.h"
#include "ops/support.h"

namespace hone::cuda {

EpilogueReads epilogue_reads(const EpilogueCode& code, const LoadContext& context, int64_t filters,
                             const std::vector<double>& numbers) {
  EpilogueReads reads;
  HONE_CHECK(numbers.size() <= StepNumbers::kMost, "a convolution in the plan has {} numbers", numbers.size());
  std::ranges::copy(numbers, reads.numbers.at);
  if (code.bias) {
    const Place bias{PlaceKind::constant, 1};
    HONE_CHECK(elements(context.dims_of(bias)) == filters, "a convolution in the plan adds {} to {} filters",
               join_dims(context.dims_of(bias)), filters);
    reads.bias = bias.pointer();
  }
  if (code.residual >= 0) {
    const Place residual{PlaceKind::input, code.residual};
    const Dims& dims = context.dims_of(residual);
    HONE_CHECK(dims == context.shapes.outputs.at(0).dims, "a convolution in the plan adds a tensor of {}",
               join_dims(dims));
    reads.residual = residual.pointer();
  }
  return reads;
}

namespace {

/// Numbers in the order in which they are asked for, and where each will lie.
class NumberList {
 public:
  std::string text(float value) {
    numbers.push_back(value);
    return fmt::format("numbers.at[{}]", numbers.size() - 1);
  }
  std::vector<double> numbers;
};

/// The element type of a tensor that may be codes, and the function that makes a float of one.
std::string tensor_text(const char* type, const char* function, DType floats, const Decoding& coding,
                        NumberList& list) {
  std::string value = "as_float(x)", switches;
  if (coding) {
    const std::string zero = list.text(coding.zero), scale = list.text(coding.scale);
    value = coding.codes == DType::i8 ? fmt::format("((float)x - {}) * {}", zero, scale)
                                      : fmt::format("as_float(x) * {}", scale);
    if (type == std::string_view("Added"))
      switches = fmt::format("#define ADDED_ZERO {}\n#define ADDED_SCALE {}\n", zero, scale);
  }
  return fmt::format("typedef {0} {1};\nstatic inline float {2}({1} x, const StepNumbers& numbers) {{ return {3}; }}\n",
                     type_name(coding ? coding.codes : floats), type, function, value) +
         switches;
}

/// The text of a region's operand, its residual and its steps, in which it names its numbers.
struct RegionTexts {
  explicit RegionTexts(const RegionMatch& match) {
    const DType floats = match.anchor->output()->type.dtype;
    operand = tensor_text("Operand", "operand", floats, match.operand_codes, list);
    added = tensor_text("Added", "added", floats, match.residual_codes, list);
    if (match.residual_codes) added_scale = fmt::format("numbers.at[{}]", list.numbers.size() - 1);
    for (size_t i = 0; i < match.steps.size(); ++i) {
      const EpilogueStep& step = match.steps[i];
      const size_t first = list.numbers.size();
      const std::string text = step_text(step, i, [&](float value) { return list.text(value); });
      if (saturates(step)) {  // its numbers, in the order in which its text names them
        summed = steps;
        per_one = fmt::format("numbers.at[{}]", first);
        low = fmt::format("numbers.at[{}]", first + 1);
        zero = fmt::format("numbers.at[{}]", list.numbers.size() - 1);
      }
      steps += fmt::format("  sum = {};\n", text);
    }
  }
  /// Whether its codes end where 8 bits do, and NaN becomes the lowest.
  static bool saturates(const EpilogueStep& step) {
    const Rounding& to = step.rounding;
    return step.kind == EpilogueStep::Kind::encoding && to.low + step.zero >= -128 && to.high + step.zero == 127 &&
           to.of_nan == to.low;
  }
  NumberList list;
  std::string operand, added, added_scale, steps;
  std::string summed, per_one, low, zero;  // the steps before an encoding that saturates, and that one's numbers
};

}  // namespace

Tensor filter_rows(const ConvRegion& region) {
  const Tensor& weights = *region.node().input(1)->constant;
  const Floats source = region.weights();
  const Dims& dims = weights.dims();
  const bool transposed = region.transposed;
  const int64_t groups = region.code.groups, filters = region.code.channels, taps = elements(region.window.kernel);
  const int64_t channels = transposed ? dims[0] / groups : dims[1], group_filters = filters / groups;
  std::vector<float> packed(source.size());
  for (int64_t f = 0; f < filters; ++f)
    for (int64_t t = 0; t < taps; ++t)
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t from = transposed
                                 ? ((f / group_filters * channels + c) * group_filters + f % group_filters) * taps + t
                                 : (f * channels + c) * taps + t;
        packed[static_cast<size_t>((f * taps + t) * channels + c)] = source[from];
      }
  return write_floats(weights.dtype(), {filters, taps, channels}, packed);
}

Tensor filter_rows(const LinearRegion& region) {
  const DType dtype = region.node().input(1)->constant->dtype();
  const int64_t n = region.code.n, k = region.code.k;
  const Floats source = region.weights();
  if (region.transposed) return write_floats(dtype, {n, 1, k}, source.span());
  std::vector<float> rows(source.size());
  for (int64_t row = 0; row < k; ++row)
    for (int64_t column = 0; column < n; ++column)
      rows[static_cast<size_t>(column * k + row)] = source[row * n + column];
  return write_floats(dtype, {n, 1, k}, rows);
}

void append_bias(const std::vector<float>& bias, std::vector<Tensor>& constants) {
  if (!bias.empty())
    constants.push_back(Tensor::of<float>({static_cast<int64_t>(bias.size())}, std::span<const float>(bias)));
}

std::string window_text(const WindowAttrs& window) {
  std::string text;
  const char* names[] = {"H", "W"};
  for (size_t i = 0; i < 2; ++i)
    text +=
        fmt::format("#define KERNEL_{0} {1}\n#define STRIDE_{0} {2}\n#define DILATION_{0} {3}\n#define PAD_{0} {4}\n",
                    names[i], window.kernel[i], window.strides[i], window.dilations[i], window.pads[i]);
  return text;
}

std::string activation_text(const Activation& activation, Digits digits) {
  return fmt::format("#define ACTIVATION {}\n#define ALPHA {}\n#define BETA {}\n#define DIGITS {}\n",
                     static_cast<int>(activation.kind), real_text(activation.alpha), real_text(activation.beta),
                     static_cast<int>(digits));
}

std::string step_text(const EpilogueStep& step, size_t place, const NumberText& number) {
  switch (step.kind) {
    case EpilogueStep::Kind::activation: return "activate(sum)";
    case EpilogueStep::Kind::residual: return "sum + residual";
    case EpilogueStep::Kind::bias: return "sum + late_bias";
    case EpilogueStep::Kind::formula: return fmt::format("formula_{}(sum)", place);
    case EpilogueStep::Kind::encoding: return encoding_call("sum", step.rounding, step.zero, number);
    case EpilogueStep::Kind::scaling: return fmt::format("sum * {}", number(1 / step.rounding.scale));
    case EpilogueStep::Kind::rounding: break;
  }
  return rounding_call("sum", step.rounding, number);
}

std::string formulas_text(const std::vector<EpilogueStep>& steps) {
  std::string text;
  for (size_t i = 0; i < steps.size(); ++i)
    if (steps[i].kind == EpilogueStep::Kind::formula)
      text += fmt::format("static inline float formula_{}(float o0) {{\n{}}}\n", i,
                          statements(formula_of(steps[i].nodes, steps[i].from), "float"));
  return text.empty() ? text : std::string("typedef float S;\n") + kernels::formula + text;
}

std::vector<double> step_numbers(const RegionMatch& match) { return RegionTexts(match).list.numbers; }

std::string operand_text(const RegionMatch& match) { return RegionTexts(match).operand; }

std::string epilogue_text(const RegionMatch& match, const EpilogueCode& epilogue) {
  const RegionTexts texts(match);
  const DType result = match.encodes ? match.codes : match.anchor->output()->type.dtype;
  const Digits digits = match.encodes                                      ? Digits::of_codes
                        : match.anchor->output()->type.dtype == DType::f32 ? Digits::of_floats
                                                                           : Digits::of_halves;
  const char* four = match.encodes && result != DType::i8 ? "four_of_e4m3" : "codes_of";
  return fmt::format("typedef {} Result;\n#define ENCODES {:d}\n#define FOUR_CODES {}\n#define ADDS_CODES {:d}\n",
                     type_name(result), match.encodes, four, static_cast<bool>(match.residual_codes)) +
         texts.added +
         fmt::format("#define HAS_BIAS {}\n#define LATE_BIAS {}\n#define HAS_RESIDUAL {}\n", epilogue.bias,
                     match.late_bias, epilogue.residual >= 0) +
         activation_text(epilogue.activation, digits) + kernels::activation + kernels::rounding +
         formulas_text(match.steps) +
         fmt::format(
             "static inline float finish(float sum, float residual, const StepNumbers& numbers, float late_bias "
             "= 0) {{\n{}  return sum;\n}}\n",
             texts.steps);
}

std::optional<float> codes_per_one(const RegionMatch& match) {
  if (match.steps.empty() || !RegionTexts::saturates(match.steps.back())) return std::nullopt;
  const auto adds = [](const EpilogueStep& step) {
    return step.kind == EpilogueStep::Kind::residual || step.kind == EpilogueStep::Kind::bias;
  };
  if (!std::ranges::all_of(std::span(match.steps).first(match.steps.size() - 1), adds)) return std::nullopt;
  return 1 / match.steps.back().rounding.scale;
}

std::string unrounded_text(const RegionMatch& match, bool in_steps) {
  const RegionTexts texts(match);
  if (texts.zero.empty()) return "#define SATURATES 0\n#define IN_STEPS 0\n";
  std::string text =
      fmt::format("#define SATURATES 1\n#define IN_STEPS {:d}\n#define ENCODED_ZERO {}\n#define ENCODED_LOW {}\n",
                  in_steps, texts.zero, texts.low);
  if (in_steps && match.residual_codes)
    text += fmt::format("#undef ADDED_SCALE\n#define ADDED_SCALE ({} * {})\n", texts.added_scale, texts.per_one);
  return text + fmt::format(
                    "static inline float finish_unrounded(float sum, float residual, const StepNumbers& numbers, float "
                    "late_bias) {{\n{}  return {};\n}}\n",
                    texts.summed, in_steps ? "sum" : fmt::format("fmaxf(sum * {}, {})", texts.per_one, texts.low));
}

}  // namespace hone::cuda
