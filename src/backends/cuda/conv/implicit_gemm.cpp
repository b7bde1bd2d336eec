// SPDX-License-Identifier: Apache-2.0
//
// Conv (channels last, one group) and Linear on tensor cores with Hone's own epilogues: any activation, and f32 sums up to the one
// rounding at the end; or, where operand and weights are codes, sums of integers up to there. Matmuls of one input (queries, keys and values) are one launch. Tiles and the number of blocks that share one are for the tuner to choose.
#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "backends/cuda/conv/filters.h"
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "base/checked.h"
#include "ops/weight_codes.h"
#include "ops/window.h"

namespace hone::cuda {
namespace {

constexpr size_t kOffers = 12;
constexpr int64_t kMostInCluster = 8;  // blocks that run together on every GPU that knows clusters

/// What a block of threads (CTA) computes, and how: its tile of the result, `k` of the inner axis at a time, by so many warps,
/// `warps_m` of them along m; and the software pipeline's stages, each a part of the operands in shared memory. Or by groups of four
/// warps, 64 rows each, whose instructions read shared memory themselves: rows of 128 bytes.
struct CtaTile {
  int64_t m, n, k, warps, warps_m, stages;
  bool groups = false;
};
constexpr std::array kTiles{
    CtaTile{64, 64, 32, 4, 2, 4},
    CtaTile{32, 64, 32, 4, 1, 4},
    CtaTile{64, 32, 32, 4, 2, 4},
    CtaTile{128, 64, 32, 4, 2, 4},
    CtaTile{128, 128, 32, 4, 2, 3},
    CtaTile{32, 32, 32, 4, 2, 6},
    CtaTile{64, 64, 64, 4, 2, 4},
    CtaTile{32, 64, 64, 4, 1, 4},
    CtaTile{64, 32, 64, 4, 2, 4},
    CtaTile{128, 64, 64, 4, 2, 3},
    CtaTile{128, 128, 64, 4, 2, 3},
    CtaTile{32, 32, 64, 4, 2, 6},
    CtaTile{128, 64, 64, 8, 4, 3},
    CtaTile{128, 128, 64, 8, 4, 3},
    CtaTile{64, 64, 64, 8, 2, 4},
    CtaTile{64, 64, 128, 8, 2, 3},
    CtaTile{.m = 128, .n = 256, .k = 64, .warps = 8, .warps_m = 8, .stages = 4, .groups = true},
    CtaTile{.m = 128, .n = 128, .k = 64, .warps = 8, .warps_m = 8, .stages = 5, .groups = true},
    CtaTile{.m = 64, .n = 256, .k = 64, .warps = 4, .warps_m = 4, .stages = 4, .groups = true},
    CtaTile{.m = 64, .n = 128, .k = 64, .warps = 4, .warps_m = 4, .stages = 4, .groups = true},
    CtaTile{.m = 128, .n = 64, .k = 64, .warps = 8, .warps_m = 8, .stages = 3, .groups = true},
    CtaTile{.m = 64, .n = 64, .k = 64, .warps = 4, .warps_m = 4, .stages = 3, .groups = true},
    CtaTile{.m = 128, .n = 128, .k = 64, .warps = 8, .warps_m = 8, .stages = 3, .groups = true}};
constexpr int64_t kSplits[] = {1, 2, 4, 8, 16};
constexpr size_t kOffersPerSplit = 4, kOffersWhole = 6;

/// Tiles are counted in halves: of codes there are twice as many along the inner axis.
int64_t shared_bytes(const CtaTile& tile) {
  constexpr int64_t kRow = 128, kAlignment = 1024;
  if (tile.groups) return (tile.m + tile.n) * kRow * tile.stages + kAlignment;
  return (tile.m + tile.n) * (tile.k + 8) * 2 * tile.stages;
}
/// Of the sums that wait for one block or thread to finish them.
int64_t waiting_bytes(const CtaTile& tile) { return tile.m * (tile.n + 8) * 4; }
/// Of operands and then sums: what else a block keeps lies behind.
int64_t working_bytes(const CtaTile& tile) { return round_up(std::max(shared_bytes(tile), waiting_bytes(tile)), 16); }

constexpr int64_t kMostMatmuls = 4;
constexpr int64_t kMostCodes = 1 << 17;  // whose products add up to 32 bits at most

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

/// What both kernels finish a sum with: of each matmul a result. Factors are what sums of codes are multiplied by and, where the
/// operand's zero point is no code of 0, what is added to them then, one of each a filter.
struct FinishParameters {
  EpilogueReads epilogue;
  Reads factors;
  std::array<Writes, kMostMatmuls> y;
  static void fields(auto& self, auto& visit) {
    EpilogueReads::fields(self.epilogue, visit);
    visit("factors", self.factors, "float");
    for (size_t i = 0; i < self.y.size(); ++i) visit("y" + std::to_string(i), self.y[i], "Result");
  }
};

struct MatmulParameters {
  static constexpr std::string_view kKernel = "implicit_gemm";
  Reads x, weights;
  FinishParameters finish;
  Writes partial;
  Images images;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("weights", self.weights, "T");
    FinishParameters::fields(self.finish, visit);
    visit("partial", self.partial, "float");
    visit("images", self.images);
  }
};

struct SumParameters {
  static constexpr std::string_view kKernel = "implicit_gemm_sum";
  Reads partial;
  FinishParameters finish;
  int32_t pixels = 0;
  static void fields(auto& self, auto& visit) {
    visit("partial", self.partial, "float");
    FinishParameters::fields(self.finish, visit);
    visit("pixels", self.pixels);
  }
};

struct ImplicitGemmTactic {
  int64_t tile = 0, splits = 1;  // of kTiles; blocks that share a tile
  static void fields(auto& self, auto& visit) {
    visit("tile", self.tile, 0, static_cast<int64_t>(kTiles.size()) - 1);
    visit("splits", self.splits, 1, kSplits[std::size(kSplits) - 1]);
  }
};

struct ImplicitGemmCode {
  int64_t x = 0, filters = 1;  // of all matmuls
  bool images = false;
  int64_t pixel = 1;  // of the image that the kernel takes for one
  ImplicitGemmTactic choice;
  bool cluster = false;  // the blocks that share a tile are one
  bool coded = false;    // operand and weights are codes
  bool keeps = false;    // a block's share of the residual in shared memory
  EpilogueCode epilogue;
  std::vector<double> numbers = {};
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, kMostOperands - 1);
    visit("filters", self.filters, 1, kMostSize);
    visit("images", self.images);
    visit("pixel", self.pixel, 1, kMostSize);
    ImplicitGemmTactic::fields(self.choice, visit);
    visit("cluster", self.cluster);
    visit("coded", self.coded);
    visit("keeps", self.keeps);
    EpilogueCode::fields(self.epilogue, visit);
    visit("numbers", self.numbers, StepNumbers::kMost);
  }
};

/// The weight's sizes as a matmul sees them.
struct Filters {
  int64_t count, taps, channels;
};

/// Windows that lie side by side without padding (the patches of a vision transformer): a row of one is contiguous, channels
/// last, so that the image is one of wider pixels. Few channels become enough this way.
bool reads_patches(const ConvRegion& region) {
  const WindowAttrs& window = region.window;
  if (window.kernel.size() != 2) return false;
  const int64_t channels = region.node().input(1)->constant->dims()[1], columns = window.kernel[1],
                width = region.node().input(0)->type.shape[3].value();
  return channels % 8 != 0 && channels * columns % 8 == 0 && window.strides[1] == columns && window.dilations[1] == 1 &&
         window.pads[1] == 0 && window.pads[3] == 0 && width % columns == 0;
}

Filters filters_of(const ConvRegion& region) {
  const int64_t channels = region.node().input(1)->constant->dims()[1];
  const Dims& kernel = region.window.kernel;
  if (reads_patches(region)) return {region.code.channels, kernel[0], channels * kernel[1]};
  return {region.code.channels, elements(kernel), channels};
}

/// What the family reads in a region: a convolution, or matmuls of one input.
struct Anchors {
  explicit Anchors(const Graph& region)
      : conv(read_conv_region(region, Roundings::codes)), linears(read_linear_regions(region, Roundings::codes)) {
    if (conv && conv->transposed) conv.reset();
  }
  bool found() const { return conv || !linears.empty(); }
  const RegionMatch& match() const { return conv ? conv->match : linears[0].match; }
  const Node& node() const { return *match().anchor; }
  const Decoding& coding() const { return match().operand_codes; }
  bool coded() const { return static_cast<bool>(coding()); }
  DType floats() const { return node().output()->type.dtype; }
  /// Operands that are fetched at once: 16 bytes.
  int64_t piece() const { return coded() ? kCodesAtOnce : 8; }
  const EpilogueCode& epilogue() const { return conv ? conv->code.epilogue : linears[0].code.epilogue; }
  bool patches() const { return conv && reads_patches(*conv); }
  int64_t matmuls() const { return conv ? 1 : static_cast<int64_t>(linears.size()); }
  /// Of one of the matmuls.
  Filters filters() const { return conv ? filters_of(*conv) : Filters{linears[0].code.n, 1, linears[0].code.k}; }
  Layout layout() const { return conv ? Layout::channels_last : Layout::linear; }

  std::optional<ConvRegion> conv;
  std::vector<LinearRegion> linears;  // none where it is a convolution
};

/// The weights' codes; nothing where they are none.
std::optional<WeightCodes> codes_of(const Anchors& anchors) {
  const size_t axis = anchors.conv || anchors.linears[0].transposed ? 0 : 1;
  return weight_codes(*anchors.node().input(1)->constant, axis);
}

std::string reason_against(const ConvRegion& region) {
  const size_t axes = region.window.kernel.size();
  if (axes != 1 && axes != 2) return fmt::format("{} spatial axes", axes);
  if (region.code.groups != 1) return "groups";
  if (region.window.auto_pad != "NOTSET") return "padding depends on the size";
  return {};
}

std::string reason_against(const Problem& problem, const Anchors& anchors) {
  const Node& node = anchors.node();
  const DType dtype = node.input(0)->type.dtype;
  const bool fits = dtype == DType::f16 || dtype == DType::bf16 || (anchors.coded() && dtype == DType::f32);
  if (!fits) return fmt::format("input is {}", name_of(dtype));
  if (std::string reason = reason_against_operands(problem.region, node); !reason.empty()) return reason;
  if (node.output()->type.shape.elements() == Dim(0)) return "empty result";
  if (anchors.conv)
    if (std::string reason = reason_against(*anchors.conv); !reason.empty()) return reason;
  // What is true at the opt sizes has to hold at all: the width decides whether patches fill it.
  if (anchors.patches())
    for (const Value* input : problem.symbolic.inputs())
      if (input->type.shape.rank() == 4 && !input->type.shape[3].is_constant()) return "the width is not fixed";
  if (const Filters filters = anchors.filters(); filters.channels % anchors.piece() != 0)
    return fmt::format("{} channels", filters.channels);
  if (!anchors.match()) return anchors.match().refusal;
  if (!anchors.coded()) return {};
  if (anchors.filters().taps * anchors.filters().channels > kMostCodes) return "sums beyond 32 bits";
  return codes_of(anchors) ? "" : "codes, and weights that are none";
}

int64_t pixels_of(const Anchors& anchors) {
  return elements(anchors.node().output()->type.shape.values()) / anchors.filters().count;
}

struct Choice {
  size_t tile;
  int64_t splits;
  double cost;
};

/// Microseconds, roughly, on a GPU of the H100's kind: the parts' way from the second-level cache to a processor or to all of
/// them, the matmuls, or the waiting of one block, whichever takes longest. Good enough to leave most choices out.
double cost_of(const CtaTile& tile, int64_t steps, int64_t blocks, int64_t splits, int64_t processors) {
  const auto rounds = static_cast<double>(blocks_of(blocks, std::max<int64_t>(processors, 1)));
  const auto count = static_cast<double>(steps);
  const double bytes = count * static_cast<double>((tile.m + tile.n) * tile.k * 2);
  const double own = rounds * bytes / 70e3, all = static_cast<double>(blocks) * bytes / 5e6;
  const double rate = tile.groups ? 7e6 : 4.5e6;
  const double matmuls = rounds * count * static_cast<double>(2 * tile.m * tile.n * tile.k) / rate;
  const double resident = static_cast<double>(std::clamp<int64_t>((220 << 10) / shared_bytes(tile), 1, 8));
  const double waiting = (0.9 + 0.12 * count) * std::max(1.0, rounds / resident);
  return std::max({own, all, matmuls, waiting}) + (splits == 1 ? 0.0 : splits <= kMostInCluster ? 1.0 : 3.0);
}

/// The best few for every number of splits, most promising first. A block's filters are of one of the matmuls.
std::vector<Choice> choices(int64_t pixels, const Filters& filters, int64_t matmuls, int64_t piece, bool groups,
                            int processors) {
  const int64_t depth = filters.taps * filters.channels * 8 / piece;  // in halves
  const auto cheaper = [](const Choice& a, const Choice& b) { return a.cost < b.cost; };
  std::vector<Choice> list;
  for (const int64_t splits : kSplits) {
    std::vector<Choice> own;
    for (size_t i = 0; i < kTiles.size(); ++i) {
      const CtaTile& tile = kTiles[i];
      const int64_t steps = blocks_of(depth, tile.k);
      if (tile.groups && (!groups || splits > 1)) continue;
      if (matmuls > 1 && filters.count / matmuls % tile.n != 0) continue;
      if (splits > 1 && (filters.count % 2 != 0 || steps / splits < 1)) continue;
      if (splits > kMostInCluster && splits * pixels * filters.count > int64_t{1} << 24) continue;
      const int64_t blocks = blocks_of(pixels, tile.m) * blocks_of(filters.count, tile.n) * splits;
      if (splits > 1 && blocks > 8 * std::max(processors, 1)) continue;
      own.push_back({i, splits, cost_of(tile, blocks_of(steps, splits), blocks, splits, processors)});
    }
    std::stable_sort(own.begin(), own.end(), cheaper);
    if (const size_t most = splits == 1 ? kOffersWhole : kOffersPerSplit; own.size() > most) own.resize(most);
    list.insert(list.end(), own.begin(), own.end());
  }
  std::stable_sort(list.begin(), list.end(), cheaper);
  if (list.size() > kOffers) list.resize(kOffers);
  return list;
}

/// Sizes of the window as switches: always two spatial axes.
std::string window_text(const Anchors& anchors) {
  Dims kernel{1, 1}, strides{1, 1}, dilations{1, 1}, pads{0, 0};
  if (anchors.conv) {
    const WindowAttrs& window = anchors.conv->window;
    const size_t shift = 2 - window.kernel.size();
    for (size_t i = 0; i < window.kernel.size(); ++i)
      kernel[shift + i] = window.kernel[i], strides[shift + i] = window.strides[i],
                     dilations[shift + i] = window.dilations[i], pads[shift + i] = window.pads[i];
    if (anchors.patches()) kernel[1] = strides[1] = 1;
  }
  std::string text = fmt::format("#define TAPS {}\n#define TAPS_W {}\n", kernel[0] * kernel[1], kernel[1]);
  const char* names[] = {"H", "W"};
  for (size_t i = 0; i < 2; ++i)
    text += fmt::format("#define STRIDE_{0} {1}\n#define DILATION_{0} {2}\n#define PAD_{0} {3}\n", names[i], strides[i],
                        dilations[i], pads[i]);
  return text;
}

/// The filters of several matmuls, one after the other.
Tensor joined_rows(const std::vector<LinearRegion>& linears) {
  if (linears.size() == 1) return filter_rows(linears[0]);
  std::vector<Tensor> parts;
  for (const LinearRegion& linear : linears) parts.push_back(filter_rows(linear));
  Dims dims = parts[0].dims();
  dims[0] *= static_cast<int64_t>(parts.size());
  TensorBuilder joined(parts[0].dtype(), dims);
  std::byte* at = joined.bytes();
  for (const Tensor& part : parts) {
    std::memcpy(at, part.bytes().data(), part.bytes().size());
    at += part.bytes().size();
  }
  return joined.finish();
}

/// [filter][tap][channel] of codes.
Tensor code_rows(const Anchors& anchors, const WeightCodes& weights) {
  const Filters filters = anchors.filters();
  TensorBuilder rows(DType::i8, {filters.count, filters.taps, filters.channels});
  const std::span<int8_t> to = rows.data<int8_t>();
  const bool columns = !anchors.conv && !anchors.linears[0].transposed;  // [channel][filter] in the model
  for (int64_t f = 0, at = 0; f < filters.count; ++f)
    for (int64_t t = 0; t < filters.taps; ++t)
      for (int64_t c = 0; c < filters.channels; ++c)
        to[static_cast<size_t>(at++)] = weights.codes[static_cast<size_t>(
            columns ? c * filters.count + f : (f * filters.channels + c) * filters.taps + t)];
  return rows.finish();
}

/// Of each filter what its sums are multiplied by; behind them, what a zero point takes off.
Tensor factors_of(const Anchors& anchors, const WeightCodes& weights, const Tensor& rows) {
  const Decoding& coding = anchors.coding();
  const auto filters = static_cast<size_t>(anchors.filters().count);
  const std::span<const int8_t> codes = rows.data<int8_t>();
  std::vector<float> factors(2 * filters);
  for (size_t f = 0; f < filters; ++f) {
    const std::span<const int8_t> row = codes.subspan(f * codes.size() / filters, codes.size() / filters);
    factors[f] = coding.scale * weights.scales[f] * anchors.match().scale;
    factors[filters + f] = -factors[f] * coding.zero * static_cast<float>(std::accumulate(row.begin(), row.end(), 0));
  }
  return Tensor::of<float>({2, anchors.filters().count}, std::span<const float>(factors));
}

/// Weights of all matmuls, their bias where there is one, and the factors of codes.
std::vector<Tensor> constants_for(const Anchors& anchors) {
  std::vector<Tensor> constants;
  const std::optional<WeightCodes> codes = anchors.coded() ? codes_of(anchors) : std::nullopt;
  if (codes) constants.push_back(code_rows(anchors, *codes));
  else constants.push_back(anchors.conv ? filter_rows(*anchors.conv) : joined_rows(anchors.linears));
  std::vector<float> bias;
  if (anchors.conv) bias = anchors.conv->bias();
  for (const LinearRegion& linear : anchors.linears)
    for (const float value : linear.bias()) bias.push_back(value);
  append_bias(bias, constants);
  if (codes) constants.push_back(factors_of(anchors, *codes, constants[0]));
  return constants;
}

/// Whether groups of four warps multiply on all of them.
bool has_warp_groups(const std::vector<std::string>& architectures) {
  return std::ranges::all_of(architectures, [](const std::string& name) { return name == "sm_90"; });
}

/// multiply_group(): 64 rows by all columns of the tile, 32 bytes of the inner axis.
std::string group_text(const CtaTile& tile, bool coded, std::string_view type) {
  const int64_t sums = tile.n / 2;
  std::string list, operands;
  for (int64_t i = 0; i < sums; ++i) {
    list += fmt::format("{}%{}", i == 0 ? "" : ", ", i);
    operands += fmt::format("{}\"+{}\"(c[{}][{}])", i == 0 ? "" : ", ", coded ? 'r' : 'f', i / 4, i % 4);
  }
  const std::string types = coded ? "k32.s32.s8.s8" : fmt::format("k16.f32.{0}.{0}", type);
  const std::string name = fmt::format("adds_{}_{}", coded ? "s8" : type, tile.n);
  return fmt::format(
      "static inline void multiply_group(Sum (*c)[4], unsigned long long a, unsigned long long b) {{\n  asm volatile("
      "\"{{.reg .pred {0}; setp.ne.b32 {0}, %{1}, 0; wgmma.mma_async.sync.aligned.m64n{2}{3} {{{4}}}, %{5}, %{6}, "
      "{0}{7};}}\""
      " : {8} : \"l\"(a), \"l\"(b), \"r\"(1));\n}}\n",
      name, sums + 2, tile.n, types, list, sums, sums + 1, coded ? "" : ", 1, 1, 0, 0", operands);
}

/// What the multiplying instructions call their types, in C++ and in their names.
std::string types_text(const Anchors& anchors) {
  const std::string_view type = type_name(anchors.floats());
  if (!anchors.coded())
    return fmt::format("typedef {0} T;\n#define CODED 0\n#define HAS_ZERO 0\n#define MMA_TYPE \"{0}\"\n", type);
  return fmt::format("typedef signed char T;\n#define CODED 1\n#define HAS_ZERO {:d}\n", anchors.coding().zero != 0);
}

Images images_of(const ImplicitGemmCode& code, const Dims& in, const Dims& out, int64_t filters) {
  Images images{.pixels = static_cast<int32_t>(elements(out) / filters)};
  if (!code.images) return images;
  images.in_w = static_cast<int32_t>(in.back() / code.pixel);
  images.out_w = static_cast<int32_t>(out.back());
  if (in.size() == 4) images.in_h = static_cast<int32_t>(in[2]), images.out_h = static_cast<int32_t>(out[2]);
  return images;
}

/// KEEPS_ADDED.
bool keeps_residual(const Anchors& anchors, const CtaTile& tile, const ImplicitGemmTactic& choice) {
  const RegionMatch& match = anchors.match();
  return match.residual_codes && choice.splits == 1 && (match.encodes || tile.groups) &&
         anchors.filters().count % 16 == 0 && anchors.matmuls() == 1;
}

struct ImplicitGemmFamily {
  static constexpr std::string_view kName = "implicit_gemm";
  static constexpr int kVersion = 5;
  using Params = ImplicitGemmTactic;
  using Code = ImplicitGemmCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Anchors anchors(problem.region);
    if (!anchors.found()) return;
    if (std::string reason = reason_against(problem, anchors); !reason.empty())
      return out.refuse(kName, std::move(reason));
    const int64_t matmuls = anchors.matmuls();
    if (matmuls > kMostMatmuls) return out.refuse(kName, fmt::format("{} matmuls", matmuls));
    Filters filters = anchors.filters();
    filters.count *= matmuls;
    for (const Choice& choice : choices(pixels_of(anchors), filters, matmuls, anchors.piece(),
                                        has_warp_groups(architectures_of(problem)), problem.device.workers))
      out.offer({"cuda", std::string(kName),
                 write_fields(Params{.tile = static_cast<int64_t>(choice.tile), .splits = choice.splits}),
                 std::vector<Layout>(problem.region.inputs().size(), anchors.layout()),
                 std::vector<Layout>(problem.region.outputs().size(), anchors.layout())});
  }

  static Built<Code> generate(const Problem& problem, const std::string& architecture, const Params& params,
                              const Tactic&) {
    const Anchors anchors(problem.region);
    const Node& node = anchors.node();
    const Filters filters = anchors.filters();
    const CtaTile& tile = kTiles[static_cast<size_t>(params.tile)];
    Built<Code> built;
    built.constants = constants_for(anchors);
    built.code = {.x = input_index(problem.region, undecoded(node.input(0))),
                  .filters = filters.count * anchors.matmuls(),
                  .images = anchors.conv.has_value(),
                  .pixel = anchors.patches() ? anchors.conv->window.kernel[1] : 1,
                  .choice = params,
                  .cluster = params.splits > 1 && params.splits <= kMostInCluster && has_clusters(architecture),
                  .coded = anchors.coded(),
                  .keeps = keeps_residual(anchors, tile, params),
                  .epilogue = anchors.epilogue(),
                  .numbers = step_numbers(anchors.match())};
    built.source = types_text(anchors) +
                   fmt::format("#define WARP_GROUPS {:d}\ntypedef {} Sum;\n#define KEPT_AT {}\n", tile.groups,
                               anchors.coded() ? "int" : "float", working_bytes(tile)) +
                   (tile.groups ? group_text(tile, anchors.coded(), type_name(anchors.floats())) : std::string()) +
                   fmt::format(
                       "#define BM {}\n#define BN {}\n#define BK {}\n#define WARPS {}\n#define WARPS_M {}\n"
                       "#define STAGES {}\n#define SPLITS {}\n#define CLUSTER {:d}\n",
                       tile.m, tile.n, tile.k * anchors.piece() / 8, tile.warps, tile.warps_m, tile.stages,
                       params.splits, built.code.cluster);
    built.source += fmt::format("#define CHANNELS {}\n#define FILTERS {}\n#define ROW_FILTERS {}\n", filters.channels,
                                built.code.filters, filters.count) +
                    window_text(anchors) + declare<MatmulParameters, SumParameters>() +
                    epilogue_text(anchors.match(), built.code.epilogue) + kernels::ends + kernels::implicit_gemm;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const Place x{PlaceKind::input, code.x};
    const Dims& in = context.dims_of(x);
    const auto matmuls = static_cast<int64_t>(context.shapes.outputs.size());
    HONE_CHECK(matmuls > 0 && matmuls <= kMostMatmuls && code.filters % matmuls == 0,
               "a matmul in the plan makes {} results of {} filters", matmuls, code.filters);
    HONE_CHECK(!context.constants.empty() && context.constants[0].dims.front() == code.filters,
               "a matmul in the plan has no weights of {} filters", code.filters);
    const Dims& out = context.shapes.outputs[0].dims;
    for (const ConcreteType& result : context.shapes.outputs)
      HONE_CHECK(result.dims == out && result.dtype == context.shapes.outputs[0].dtype, "matmuls in the plan differ");
    const Place factors{code.coded ? PlaceKind::constant : PlaceKind::none, code.epilogue.bias ? 2 : 1};
    HONE_CHECK(!code.coded || elements(context.dims_of(factors)) == 2 * code.filters,
               "a matmul in the plan has no factors of {} filters", code.filters);
    HONE_CHECK(!in.empty() && !out.empty() && (!code.images || in.back() % code.pixel == 0),
               "a convolution in the plan reads patches of {}", code.pixel);
    const Images images = images_of(code, in, out, code.filters / matmuls);
    FinishParameters finish{.epilogue = epilogue_reads(code.epilogue, context, code.filters, code.numbers),
                            .factors = factors.pointer(),
                            .y = {}};
    for (int64_t i = 0; i < matmuls; ++i) finish.y[static_cast<size_t>(i)] = output(i);
    std::vector<GridLaunch> launches{launch_matmul(code, context, finish, images)};
    const int64_t splits = code.choice.splits;
    if (splits == 1 || code.cluster) return std::make_shared<GridKernel>(context.module, std::move(launches));
    require_sizes(Dims{splits, matmuls, elements(out)});
    const SumParameters sum{.partial = from_workspace(), .finish = finish, .pixels = images.pixels};
    launches.push_back(launch_of(*context.module, sum, {{blocks_of(matmuls * elements(out) / 2, 128)}, 128}));
    return std::make_shared<GridKernel>(context.module, std::move(launches),
                                        static_cast<size_t>(splits * matmuls * elements(out)) * sizeof(float));
  }

 private:
  static GridLaunch launch_matmul(const Code& code, const LoadContext& context, const FinishParameters& finish,
                                  const Images& images) {
    const CtaTile& tile = kTiles[static_cast<size_t>(code.choice.tile)];
    const bool vectors = tile.groups || context.shapes.outputs[0].dtype == DType::i8;
    const bool waits = code.cluster || (vectors && code.choice.splits == 1);
    const int64_t working = std::max(shared_bytes(tile), waits ? waiting_bytes(tile) : 0);
    const int64_t shared = code.keeps ? working_bytes(tile) + tile.m * tile.n : working;
    const MatmulParameters parameters{
        .x = input(code.x), .weights = constant(0), .finish = finish, .partial = to_workspace(), .images = images};
    return launch_of(*context.module, parameters,
                     {{blocks_of(code.filters, tile.n), blocks_of(images.pixels, tile.m), code.choice.splits},
                      static_cast<unsigned>(32 * tile.warps),
                      static_cast<unsigned>(shared)});
  }
};

}  // namespace

const CudaTactic tactics::implicit_gemm = describe<ImplicitGemmFamily>();

}  // namespace hone::cuda
