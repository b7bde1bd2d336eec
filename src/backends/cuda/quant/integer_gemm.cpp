// SPDX-License-Identifier: Apache-2.0
//
// MatMulInteger and ConvInteger (channels last, one group) with constant weights on tensor cores, and what may follow them: sums as
// they are, as floats, or as bytes again. Tiles are for the tuner to choose.
#include <algorithm>
#include <array>
#include <optional>

#include "backends/cuda/conv/filters.h"
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/rounding.h"
#include "backends/cuda/support/source_text.h"
#include "base/checked.h"
#include "regions/integer_region.h"

namespace hone::cuda {
namespace {

constexpr size_t kOffers = 8;
constexpr int64_t kPiece = 16, kLeastUnit = 4;  // bytes of weights and of an image that are fetched at once

/// What a block computes, and how: its tile of the result, `k` bytes of the inner axis at a time, by so many warps, `warps_m` of
/// them along m, in so many stages.
struct IntegerTile {
  int64_t m, n, k, warps, warps_m, stages;
  int64_t shared_bytes() const { return (m + n) * (k + 16) * stages; }
};
constexpr std::array kTiles{
    IntegerTile{64, 64, 64, 4, 2, 4},   IntegerTile{32, 64, 64, 4, 1, 4},   IntegerTile{32, 32, 128, 4, 2, 6},
    IntegerTile{64, 64, 128, 4, 2, 4},  IntegerTile{128, 64, 64, 4, 2, 4},  IntegerTile{128, 64, 128, 4, 2, 3},
    IntegerTile{128, 128, 64, 4, 2, 4}, IntegerTile{128, 128, 64, 8, 2, 4}, IntegerTile{128, 128, 128, 8, 4, 3},
    IntegerTile{128, 256, 64, 8, 2, 3}, IntegerTile{128, 256, 128, 8, 2, 3}};

struct Images {
  static constexpr std::string_view kName = "Images";
  int32_t pixels = 0, in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  static void fields(auto& self, auto& visit) {
    visit("pixels", self.pixels);
    visit("in_h", self.in_h);
    visit("in_w", self.in_w);
    visit("out_h", self.out_h);
    visit("out_w", self.out_w);
  }
};

struct GemmParameters {
  static constexpr std::string_view kKernel = "integer_gemm";
  Reads x, weights, base, lean, zero, factor, bias, residual;
  Writes y;
  Images images;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "A");
    visit("weights", self.weights, "signed char");
    visit("base", self.base, "int");
    visit("lean", self.lean, "int");
    visit("zero", self.zero, "A");
    visit("factor", self.factor, "float");
    visit("bias", self.bias, "float");
    visit("residual", self.residual, "Added");
    visit("y", self.y, "Result");
    visit("images", self.images);
  }
};

struct IntegerGemmTactic {
  int64_t tile = 0;  // of kTiles
  static void fields(auto& self, auto& visit) { visit("tile", self.tile, 0, static_cast<int64_t>(kTiles.size()) - 1); }
};

struct IntegerGemmCode {
  int64_t x = 0, filters = 1;
  bool images = false;
  IntegerGemmTactic choice;
  EpilogueCode epilogue;
  SumsCode sums;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, kMostOperands - 1);
    visit("filters", self.filters, 1, kMostSize);
    visit("images", self.images);
    IntegerGemmTactic::fields(self.choice, visit);
    EpilogueCode::fields(self.epilogue, visit);
    SumsCode::fields(self.sums, visit);
  }
};

/// What the family reads in a region: a convolution, or a matmul.
struct Anchors {
  explicit Anchors(const Graph& region)
      : conv(read_integer_conv_region(region)), linear(read_integer_linear_region(region)) {}
  bool found() const { return conv || linear; }
  const SumsRegion& region() const { return conv ? static_cast<const SumsRegion&>(*conv) : *linear; }
  const EpilogueCode& epilogue() const { return conv ? conv->code.conv.epilogue : linear->code.epilogue; }
  const SumsCode& sums() const { return conv ? conv->code.sums : linear->code.sums; }
  int64_t filters() const { return conv ? conv->code.conv.channels : linear->code.n; }
  int64_t taps() const { return conv ? elements(conv->code.conv.filter) : 1; }
  int64_t channels() const { return conv ? region().node().input(1)->type.shape[1].value() : linear->code.k; }

  std::optional<IntegerConvRegion> conv;
  std::optional<IntegerLinearRegion> linear;
};

std::string reason_against(const Problem& problem, const Anchors& anchors) {
  if (const SumsRegion& region = anchors.region(); !region.match) return region.match.refusal;
  if (problem.symbolic.node_count() != problem.region.node_count()) return "an operand depends on the input's shape";
  if (anchors.conv) {
    const ConvCode& conv = anchors.conv->code.conv;
    if (conv.groups != 1) return "groups";
    if (conv.filter.size() != 1 && conv.filter.size() != 2) return fmt::format("{} spatial axes", conv.filter.size());
    if (conv.padding != Padding::given) return "padding depends on the size";
  }
  if (anchors.channels() % kLeastUnit != 0) return fmt::format("{} channels", anchors.channels());
  return {};
}

/// The weights without zero points; nothing where they are then no bytes.
std::optional<SignedWeights> plain_weights(const SumsRegion& region) {
  SignedWeights weights(region.node());
  weights.take_off_zeros();
  const bool bytes =
      std::ranges::all_of(weights.values, [](int32_t value) { return value == static_cast<int8_t>(value); });
  return bytes ? std::optional(std::move(weights)) : std::nullopt;
}

/// Weights, what sums begin with, what a zero point that is given is multiplied by, factor and bias; the last three where there
/// are such.
std::vector<Tensor> constants_for(const Anchors& anchors, const SignedWeights& weights) {
  const SumsRegion& region = anchors.region();
  const SumsCode& sums = anchors.sums();
  const int64_t filters = anchors.filters();
  const int64_t depth = weights.taps * weights.depth, row = round_up(depth, kPiece);
  TensorBuilder rows(DType::i8, {filters, row});
  const std::span<int8_t> to = rows.data<int8_t>();
  std::ranges::fill(to, int8_t{0});
  for (int64_t j = 0; j < filters; ++j)
    for (int64_t k = 0; k < depth; ++k)
      to[static_cast<size_t>(j * row + k)] = static_cast<int8_t>(weights.values[static_cast<size_t>(j * depth + k)]);
  std::vector<Tensor> constants{rows.finish()};
  std::vector<int32_t> base = region.addends(filters), leans;
  for (int64_t j = 0; j < filters; ++j) {
    const uint32_t lean = weights.lean(j), first = static_cast<uint32_t>(base[static_cast<size_t>(j)]);
    leans.push_back(static_cast<int32_t>(lean));
    base[static_cast<size_t>(j)] = static_cast<int32_t>(first + static_cast<uint32_t>(sums.zero) * lean);
  }
  constants.push_back(Tensor::of<int32_t>({filters}, std::span<const int32_t>(base)));
  if (sums.zero_input >= 0) constants.push_back(Tensor::of<int32_t>({filters}, std::span<const int32_t>(leans)));
  append_bias(region.factor(), constants);
  append_bias(region.bias(filters), constants);
  return constants;
}

/// Sizes of the window as switches: always two spatial axes.
std::string window_text(const Anchors& anchors) {
  Dims kernel{1, 1}, strides{1, 1}, dilations{1, 1}, pads{0, 0};
  if (anchors.conv) {
    const ConvCode& conv = anchors.conv->code.conv;
    const size_t shift = 2 - conv.filter.size();
    for (size_t i = 0; i < conv.filter.size(); ++i)
      kernel[shift + i] = conv.filter[i], strides[shift + i] = conv.strides[i],
                     dilations[shift + i] = conv.dilations[i], pads[shift + i] = conv.pads[i];
  }
  std::string text = fmt::format("#define TAPS {}\n#define TAPS_W {}\n", kernel[0] * kernel[1], kernel[1]);
  const char* names[] = {"H", "W"};
  for (size_t i = 0; i < 2; ++i)
    text += fmt::format("#define STRIDE_{0} {1}\n#define DILATION_{0} {2}\n#define PAD_{0} {3}\n", names[i], strides[i],
                        dilations[i], pads[i]);
  return text;
}

/// The code of a float `x`, as a float.
std::string code_text(const Quantization& to) {
  const bool is_signed = to.dtype == DType::i8;
  return fmt::format("fminf(fmaxf(nearest_step(x, {0}, 1.0f / {0}, 512.0f) + {1}.0f, {2}.0f), {3}.0f)",
                     real_text(to.scale), to.zero, is_signed ? -128 : 0, is_signed ? 127 : 255);
}

/// finish(x, residual): all that follows the bias.
std::string finish_text(const Anchors& anchors) {
  const SumsCode& sums = anchors.sums();
  const EpilogueCode& epilogue = anchors.epilogue();
  const auto of_code = [](const char* code, const Quantization& type) {
    return fmt::format("({} - {}.0f) * {}", code, type.zero, real_text(type.scale));
  };
  const bool added = epilogue.residual >= 0, early = !added || epilogue.residual_after_activation;
  std::string text = std::string(kernels::rounding) + activation_text(epilogue.activation) + kernels::activation +
                     "static inline Result finish(float x, float residual) {\n";
  if (early) text += "  x = activate(x);\n";
  if (sums.rounding)
    text += fmt::format("  x = {};\n  x = {};\n", code_text(sums.rounding), of_code("x", sums.rounding));
  if (added && sums.residual) text += fmt::format("  residual = {};\n", of_code("residual", sums.residual));
  if (added) text += "  x = x + residual;\n";
  if (!early) text += "  x = activate(x);\n";
  return text + fmt::format("  return (Result){};\n}}\n", sums.result ? code_text(sums.result) : "x");
}

/// How a unit of an image is copied: only whole pieces pass the first-level cache by.
std::string fetch_text(int64_t unit) {
  return fmt::format("#define UNIT {0}\n#define FETCH_UNIT \"cp.async.{1}.shared.global [%0], [%1], {0};\"\n", unit,
                     unit == kPiece ? "cg" : "ca");
}

std::string switches_text(const Problem& problem, const Anchors& anchors, const IntegerTile& tile) {
  const Node& node = anchors.region().node();
  const SumsCode& sums = anchors.sums();
  const EpilogueCode& epilogue = anchors.epilogue();
  const DType a = node.input(0)->type.dtype, result = problem.region.outputs()[0]->type.dtype;
  return fmt::format("typedef {} A;\n#define A_TYPE \"{}\"\ntypedef {} Result;\ntypedef {} Added;\n", type_name(a),
                     a == DType::u8 ? "u8" : "s8", type_name(result),
                     type_name(epilogue.residual >= 0 ? sums.residual.dtype : DType::f32)) +
         fmt::format(
             "#define BM {}\n#define BN {}\n#define BK {}\n#define WARPS {}\n#define WARPS_M {}\n#define "
             "STAGES {}\n#define CHANNELS {}\n#define FILTERS {}\n",
             tile.m, tile.n, tile.k, tile.warps, tile.warps_m, tile.stages, anchors.channels(), anchors.filters()) +
         fmt::format(
             "#define ZERO {}u\n#define ZERO_GIVEN {:d}\n#define FACTORS {}\n#define HAS_BIAS {:d}\n#define "
             "HAS_RESIDUAL {:d}\n",
             (static_cast<uint32_t>(sums.zero) & 0xff) * 0x01010101U, sums.zero_input >= 0,
             sums.factors(anchors.filters()), epilogue.bias, epilogue.residual >= 0) +
         window_text(anchors) + fetch_text(unit_of(anchors.channels()));
}

/// Rounds of all processors times what a block computes in one: small tiles ask for more of their operands.
double cost_of(const IntegerTile& tile, int64_t pixels, int64_t filters, int64_t processors) {
  const int64_t blocks = blocks_of(pixels, tile.m) * blocks_of(filters, tile.n);
  const auto rounds = static_cast<double>(blocks_of(blocks, std::max<int64_t>(processors, 1)));
  return rounds * static_cast<double>(tile.m * tile.n + 48 * (tile.m + tile.n));
}

std::vector<int64_t> choices(int64_t pixels, int64_t filters, int processors) {
  std::vector<int64_t> list;
  for (size_t i = 0; i < kTiles.size(); ++i) list.push_back(static_cast<int64_t>(i));
  std::ranges::stable_sort(
      list, {}, [&](int64_t i) { return cost_of(kTiles[static_cast<size_t>(i)], pixels, filters, processors); });
  list.resize(std::min(list.size(), kOffers));
  return list;
}

struct IntegerGemmFamily {
  static constexpr std::string_view kName = "integer_gemm";
  static constexpr int kVersion = 1;
  using Params = IntegerGemmTactic;
  using Code = IntegerGemmCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Anchors anchors(problem.region);
    if (!anchors.found()) return;
    if (std::string reason = reason_against(problem, anchors); !reason.empty())
      return out.refuse(kName, std::move(reason));
    if (!plain_weights(anchors.region())) return out.refuse(kName, "weights less their zero points are no bytes");
    const auto layout = [&](const Value* value) {
      return anchors.conv && value->type.shape.rank() == anchors.conv->code.conv.filter.size() + 2
                 ? Layout::channels_last
                 : Layout::linear;
    };
    std::vector<Layout> layouts;
    for (const Value* input : problem.region.inputs()) layouts.push_back(layout(input));
    const int64_t pixels =
        elements(anchors.region().node().output()->type.shape.values()) / std::max<int64_t>(anchors.filters(), 1);
    for (const int64_t tile : choices(pixels, anchors.filters(), problem.device.workers))
      out.offer(
          {"cuda", std::string(kName), write_fields(Params{tile}), layouts, {layout(problem.region.outputs()[0])}});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params& params, const Tactic&) {
    const Anchors anchors(problem.region);
    const Node& node = anchors.region().node();
    Built<Code> built;
    built.constants = constants_for(anchors, *plain_weights(anchors.region()));
    built.code = {.x = input_index(problem.region, node.input(0)),
                  .filters = anchors.filters(),
                  .images = anchors.conv.has_value(),
                  .choice = params,
                  .epilogue = anchors.epilogue(),
                  .sums = anchors.sums()};
    built.source = switches_text(problem, anchors, kTiles[static_cast<size_t>(params.tile)]) +
                   declare<GemmParameters>() + finish_text(anchors) + kernels::integer_gemm;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const Place x{PlaceKind::input, code.x};
    const Dims& in = context.dims_of(x);
    code.sums.require_operands(code.epilogue, code.filters, context.shapes);
    const Dims& out = context.shapes.outputs[0].dims;
    const int64_t pixels = elements(out) / code.filters;
    HONE_CHECK(pixels > 0 && pixels < int64_t{1} << 31 && pixels * code.filters == elements(out) && !in.empty(),
               "an integer matmul in the plan makes {} of {} filters", join_dims(out), code.filters);
    Images images{.pixels = static_cast<int32_t>(pixels)};
    if (code.images) images.in_w = static_cast<int32_t>(in.back()), images.out_w = static_cast<int32_t>(out.back());
    if (code.images && in.size() == 4 && out.size() == 4)
      images.in_h = static_cast<int32_t>(in[2]), images.out_h = static_cast<int32_t>(out[2]);
    const IntegerTile& tile = kTiles[static_cast<size_t>(code.choice.tile)];
    return single(context, launch_of(*context.module, parameters_of(code, images),
                                     {{blocks_of(code.filters, tile.n), blocks_of(pixels, tile.m)},
                                      static_cast<unsigned>(32 * tile.warps),
                                      static_cast<unsigned>(tile.shared_bytes())}));
  }

 private:
  static GemmParameters parameters_of(const Code& code, const Images& images) {
    const SumsCode& sums = code.sums;
    GemmParameters parameters{
        .x = input(code.x), .weights = constant(0), .base = constant(1), .y = output(0), .images = images};
    int64_t next = 2;
    if (sums.zero_input >= 0) parameters.zero = input(sums.zero_input), parameters.lean = constant(next++);
    if (sums.factor_input >= 0) parameters.factor = input(sums.factor_input);
    else if (sums.factor != Factor::none) parameters.factor = constant(next++);
    if (code.epilogue.bias) parameters.bias = constant(next);
    if (code.epilogue.residual >= 0) parameters.residual = input(code.epilogue.residual);
    return parameters;
  }
};

}  // namespace

const CudaTactic tactics::integer_gemm = describe<IntegerGemmFamily>();

}  // namespace hone::cuda
