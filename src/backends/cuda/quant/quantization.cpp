// SPDX-License-Identifier: Apache-2.0
//
// QuantizeLinear and DequantizeLinear that stand alone, between floats and integers: by one scale, one for each index of an axis, or
// one for each block along it.
#include <algorithm>

#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "regions/region_match.h"

namespace hone::cuda {
namespace {

constexpr int64_t kMostAxis = 64;

/// `count` scales along an axis of `length`, `inner` elements apart; `shared` where those of a thread have the same.
struct Scales {
  static constexpr std::string_view kName = "Scales";
  int64_t elements = 0, inner = 1, length = 1, block = 0, count = 1;
  int32_t shared = 1;
  static void fields(auto& self, auto& visit) {
    visit("elements", self.elements);
    visit("inner", self.inner);
    visit("length", self.length);
    visit("block", self.block);
    visit("count", self.count);
    visit("shared", self.shared);
  }
};

struct QuantizationParameters {
  static constexpr std::string_view kKernel = "quantization";
  Reads x, scale, zero;
  Writes y;
  Scales scales;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "X");
    visit("scale", self.scale, "S");
    visit("zero", self.zero, "Z");
    visit("y", self.y, "Y");
    visit("scales", self.scales);
  }
};

struct QuantizationCode {
  int64_t x = 0;  // which of the inputs
  GivenPlace scale;
  bool zero = false;  // whether there are zero points, the last constant
  int64_t axis = 1;
  int64_t block = 0;  // elements along the axis that share a scale; 0: one scale for each index
  int64_t width = 4;  // elements of a thread
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, Place::kMost - 1);
    GivenPlace::fields(self.scale, visit, "scale");
    visit("zero_points", self.zero);
    visit("axis", self.axis, -kMostAxis, kMostAxis - 1);
    visit("block", self.block, 0, kMostSize);
    visit("width", self.width, 1, 16);
  }
};

std::string reason_against(const Node& node) {
  const bool quantizes = node.is(ops::quantize_linear);
  const DType from = node.input(0)->type.dtype, to = node.output()->type.dtype, scale = node.input(1)->type.dtype;
  const DType floats = quantizes ? from : to, codes = quantizes ? to : from;
  if (node.input(0)->is_constant()) return "its input is a constant";
  if (node.inputs.size() > 2 && node.input(2) != nullptr && !node.input(2)->is_constant())
    return "the zero point is no constant";
  if (!is_kernel_float(floats) || !is_kernel_float(scale)) return fmt::format("floats are {}", name_of(floats));
  const bool known = codes == DType::i8 || codes == DType::u8 || codes == DType::i16 || codes == DType::u16;
  if (!known && (quantizes || codes != DType::i32)) return fmt::format("codes are {}", name_of(codes));
  return {};
}

/// Ends of the codes' type.
std::pair<int64_t, int64_t> range_of(DType codes) {
  const int64_t bits = static_cast<int64_t>(size_of(codes)) * 8, half = int64_t{1} << (bits - 1);
  const bool is_signed = codes == DType::i8 || codes == DType::i16 || codes == DType::i32;
  return is_signed ? std::pair{-half, half - 1} : std::pair{int64_t{0}, 2 * half - 1};
}

/// So many elements that the wider of the two types makes 16 bytes.
int64_t width_of(DType from, DType to) { return 16 / static_cast<int64_t>(std::max(size_of(from), size_of(to))); }

Scales scales_of(const QuantizationCode& code, const Dims& x, int64_t scales) {
  Scales result{.elements = elements(x)};
  if (scales == 1) return result;
  const size_t axis = normalize_axis(code.axis, x.size());
  result.inner = elements(std::span(x).subspan(axis + 1));
  result.length = x[axis];
  result.block = code.block;
  const int64_t outer = elements(std::span(x).first(axis));
  result.count = code.block == 0 ? result.length : blocks_of(result.length, code.block);
  const int64_t expected = code.block == 0 ? result.length : outer * result.count * result.inner;
  HONE_CHECK(scales == expected && code.block <= result.length, "a quantisation in the plan has {} scales for {}",
             scales, join_dims(x));
  const int64_t stretch = code.block == 0 ? result.inner : result.inner == 1 ? code.block : 1;
  const bool whole = code.block == 0 || result.length % code.block == 0;
  result.shared = stretch % code.width == 0 && whole;
  return result;
}

struct QuantizationFamily {
  static constexpr std::string_view kName = "quantization";
  static constexpr int kVersion = 1;
  using Params = NoParams;
  using Code = QuantizationCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !(node->is(ops::quantize_linear) || node->is(ops::dequantize_linear))) return;
    if (std::string reason = reason_against(*node); !reason.empty()) return out.refuse(kName, std::move(reason));
    const std::vector<Layout> linear(problem.region.inputs().size(), Layout::linear);
    out.offer({"cuda", std::string(kName), {}, linear, {Layout::linear}});
    const size_t rank = node->output()->type.shape.rank();
    if (node->input(1)->type.shape.elements() == Dim(1) && problem.region.inputs().size() == 1 && rank >= 3 &&
        rank <= 5)
      out.offer({"cuda", std::string(kName), {}, {Layout::channels_last}, {Layout::channels_last}});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic&) {
    const Node& node = *problem.only();
    const Value *x = node.input(0), *scale = node.input(1), *zero = node.inputs.size() > 2 ? node.input(2) : nullptr;
    const DType from = x->type.dtype, to = node.output()->type.dtype;
    const bool quantizes = node.is(ops::quantize_linear);
    const auto [low, high] = range_of(quantizes ? to : from);
    Built<Code> built;
    built.code = {.x = input_index(problem.region, x),
                  .scale = place_of(problem, scale, built.constants),
                  .zero = zero != nullptr,
                  .axis = std::clamp(node.attrs.integer("axis"), -kMostAxis, kMostAxis - 1),
                  .block = std::max<int64_t>(node.attrs.integer("block_size"), 0),
                  .width = width_of(from, to)};
    if (zero != nullptr) built.constants.push_back(*zero->constant);
    built.source = fmt::format("typedef {} X;\ntypedef {} Y;\ntypedef {} S;\ntypedef {} Z;\n#define V {}\n",
                               type_name(from), type_name(to), type_name(scale->type.dtype),
                               type_name(zero == nullptr ? DType::i8 : zero->type.dtype), built.code.width) +
                   fmt::format("#define QUANTIZES {:d}\n#define HAS_ZERO {:d}\n#define LOW {}.0f\n#define HIGH {}.0f\n",
                               quantizes, zero != nullptr, low, high) +
                   declare<QuantizationParameters>() + kernels::quantization;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const Dims& x = context.dims_of({PlaceKind::input, code.x});
    HONE_CHECK(context.shapes.outputs.size() == 1 && context.shapes.outputs[0].dims == x,
               "a quantisation in the plan changes the size of {}", join_dims(x));
    const int64_t scales = elements(context.dims_of(code.scale));
    const auto zero = static_cast<int64_t>(context.constants.size()) - 1;
    HONE_CHECK(!code.zero || (zero >= 0 && elements(context.constants.back().dims) == scales),
               "a quantisation in the plan has other zero points than scales");
    const QuantizationParameters parameters{.x = input(code.x),
                                            .scale = code.scale.pointer(),
                                            .zero = code.zero ? constant(zero) : Reads{},
                                            .y = output(0),
                                            .scales = scales_of(code, x, scales)};
    const int64_t blocks = blocks_of(std::max<int64_t>(elements(x), 1), 256 * code.width);
    return single(context, launch_of(*context.module, parameters, {{blocks}}));
  }
};

}  // namespace

const CudaTactic tactics::quantization = describe<QuantizationFamily>();

}  // namespace hone::cuda
