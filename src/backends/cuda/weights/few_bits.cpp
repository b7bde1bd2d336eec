// SPDX-License-Identifier: Apache-2.0
//
// QuantizedLinear in f16 and bf16: constant weights of 4 or 8 bits are decoded in registers and multiplied on tensor cores. How many
// rows and columns a warp multiplies, and how many warps share a depth, is for the tuner to choose.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "backends/cuda/conv/filters.h"
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/rounding.h"
#include "backends/cuda/support/source_text.h"
#include "base/checked.h"
#include "ops/code_tables.h"
#include "regions/quantized_region.h"

namespace hone::cuda {
namespace {

constexpr size_t kOffers = 8;
constexpr int64_t kMostResults = 4;
constexpr int64_t kUnit = 16, kLanes = 32;  // of the depth, that one instruction multiplies; of a warp
constexpr int64_t kTile = 16, kRows = 8;    // columns and rows of one

struct FewBitsTactic {
  int64_t rows = 1, columns = 1;     // instructions' rows and columns that a warp multiplies
  int64_t warps_n = 1, warps_k = 4;  // of a block, side by side and sharing a depth
  static void fields(auto& self, auto& visit) {
    visit("rows", self.rows, 1, 8);
    visit("columns", self.columns, 1, 2);
    visit("warps_n", self.warps_n, 1, 8);
    visit("warps_k", self.warps_k, 1, 16);
  }
  int64_t warps() const { return warps_n * warps_k; }
  int64_t shared_bytes() const { return warps_k == 1 ? 0 : warps() * columns * rows * 4 * kLanes * 4; }
};
// Columns, warps side by side and warps that share a depth; the first is for every size.
constexpr std::array<FewBitsTactic, 9> kForms{{{0, 1, 1, 4},
                                               {0, 1, 1, 8},
                                               {0, 1, 1, 16},
                                               {0, 1, 2, 4},
                                               {0, 1, 4, 2},
                                               {0, 1, 8, 1},
                                               {0, 2, 1, 8},
                                               {0, 2, 2, 4},
                                               {0, 2, 4, 1}}};

/// How weights lie: [tile of 16 columns][load][lane][16 bytes], zeros where there are none.
struct Format {
  int64_t n = 1, k = 1, block = 1;
  int bits = 4;
  int64_t groups() const { return blocks_of(k, block); }
  int64_t group_units() const { return blocks_of(block, kUnit); }
  int64_t load_units() const { return 16 / bits; }
  int64_t loads() const { return blocks_of(groups() * group_units(), load_units()); }
  int64_t tiles() const { return blocks_of(n, kTile); }
  /// Units of a load that lie side by side in a lane's elements of x.
  int64_t span() const {
    if (groups() == 1) return load_units();
    return std::gcd(group_units(), load_units());
  }
  bool aligned() const { return k % kUnit == 0 && (groups() == 1 || block % kUnit == 0); }
};

enum class Decode { floats, nibbles, bytes, e4m3, e5m2, table };
constexpr const char* kDecodeNames[] = {"FLOATS", "NIBBLES", "BYTES", "E4M3", "E5M2", "TABLE"};

struct FewBitsParameters {
  static constexpr std::string_view kKernel = "few_bits";
  Reads x, weights, scales, zeros;
  EpilogueReads epilogue;
  std::array<Writes, kMostResults> y;
  int32_t rows = 0;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("weights", self.weights, "unsigned");
    visit("scales", self.scales, "Scale");
    visit("zeros", self.zeros, "ZeroPoint");
    EpilogueReads::fields(self.epilogue, visit);
    for (size_t i = 0; i < self.y.size(); ++i) visit("y" + std::to_string(i), self.y[i], "T");
    visit("rows", self.rows);
  }
};

struct FewBitsCode {
  int64_t x = 0;
  std::vector<int64_t> widths;  // columns of each result
  int64_t k = 1, block = 1;
  bool bytes = false;  // codes are of 8 bits, not 4
  bool zeros = false;  // groups have zero points
  FewBitsTactic choice;
  EpilogueCode epilogue;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, kMostOperands - 1);
    visit("widths", self.widths, 1, LinearCode::kMostColumns, kMostResults);
    visit("k", self.k, 1, LinearCode::kMostColumns);
    visit("block", self.block, 1, LinearCode::kMostColumns);
    visit("bytes", self.bytes);
    visit("zeros", self.zeros);
    FewBitsTactic::fields(self.choice, visit);
    EpilogueCode::fields(self.epilogue, visit);
  }
  int64_t n() const {
    int64_t n = 0;
    for (const int64_t count : widths) n += count;
    return n;
  }
  Format format() const { return {n(), k, block, bytes ? 8 : 4}; }
  /// Which constant the scales are.
  int64_t scales() const { return epilogue.bias ? 2 : 1; }
};

/// The weights of all matmuls side by side.
QuantizedWeights joined_weights(const std::vector<QuantizedLinearRegion>& regions) {
  std::vector<QuantizedWeights> parts;
  QuantizedWeights all;
  all.n = 0;
  bool zeros = false;
  for (const QuantizedLinearRegion& region : regions) {
    parts.push_back(region.weights());
    all.n += parts.back().n;
    zeros |= !parts.back().zeros.empty();
  }
  all.k = parts[0].k, all.block = parts[0].block, all.bits = parts[0].bits, all.kind = parts[0].kind;
  all.integer_zeros = std::ranges::all_of(parts, &QuantizedWeights::integer_zeros);
  const auto append_rows = [&](auto& to, const auto& from, int64_t row, int64_t n) {
    if (from.empty()) to.resize(to.size() + static_cast<size_t>(n));
    else to.insert(to.end(), from.begin() + row * n, from.begin() + (row + 1) * n);
  };
  for (int64_t row = 0; row < all.k; ++row)
    for (const QuantizedWeights& part : parts) append_rows(all.codes, part.codes, row, part.n);
  for (int64_t group = 0; group < all.blocks(); ++group)
    for (const QuantizedWeights& part : parts) {
      append_rows(all.scales, part.scales, group, part.n);
      if (zeros) append_rows(all.zeros, part.zeros, group, part.n);
    }
  return all;
}

/// Codes as unsigned bits in the order in which a lane decodes them (few_bits.cuh).
class Packing {
 public:
  Packing(const QuantizedWeights& weights, const Format& format, Decode decode)
      : weights_(weights), format_(format), decode_(decode) {}

  Tensor codes() const {
    TensorBuilder packed(DType::u8, {format_.tiles(), format_.loads(), kLanes * 16});
    std::byte* to = packed.bytes();
    std::memset(to, 0, static_cast<size_t>(format_.tiles() * format_.loads() * kLanes * 16));
    for (int64_t tile = 0; tile < format_.tiles(); ++tile)
      for (int64_t load = 0; load < format_.loads(); ++load)
        for (int64_t lane = 0; lane < kLanes; ++lane, to += 16) write_lane(tile, load, lane, to);
    return packed.finish();
  }

  /// [tile][group][16 columns] of [group][column].
  std::vector<float> by_tiles(const std::vector<float>& values) const {
    std::vector<float> result(static_cast<size_t>(format_.tiles() * format_.groups() * kTile), 0.0F);
    for (int64_t group = 0; group < format_.groups(); ++group)
      for (int64_t j = 0; j < format_.n; ++j)
        result[static_cast<size_t>((j / kTile * format_.groups() + group) * kTile + j % kTile)] =
            values[static_cast<size_t>(group * format_.n + j)];
    return result;
  }

 private:
  void write_lane(int64_t tile, int64_t load, int64_t lane, std::byte* to) const {
    const int64_t word_units = format_.bits / 4, span = format_.span();
    for (int64_t unit = 0; unit < format_.load_units(); ++unit) {
      const int64_t all = load * format_.load_units() + unit, first = all - unit % span;  // of its span
      const int64_t group = format_.groups() == 1 ? 0 : first / format_.group_units();
      const int64_t local = (first - group * format_.group_units()) * kUnit + lane % 4 * 4 * span + unit % span * 4;
      std::array<uint32_t, 2> words{};
      for (int pair = 0; pair < 4; ++pair)
        for (int e = 0; e < 2; ++e)
          put(words, pair, e, code_at(group, local + pair / 2 * 2 + e, tile * kTile + lane / 4 + pair % 2 * 8));
      std::memcpy(to + unit * word_units * 4, words.data(), static_cast<size_t>(word_units * 4));
    }
  }
  uint32_t code_at(int64_t group, int64_t local, int64_t j) const {
    const int64_t p = group * format_.block + local;
    if (local >= format_.block || p >= format_.k || j >= format_.n) return 0;
    const int8_t code = weights_.codes[static_cast<size_t>(p * format_.n + j)];
    const int middle = format_.bits == 4 ? 8 : weights_.kind == CodeKind::integer ? 128 : 0;
    return static_cast<uint32_t>(code + middle) & (format_.bits == 4 ? 0xfU : 0xffU);
  }
  void put(std::array<uint32_t, 2>& words, int pair, int e, uint32_t code) const {
    if (format_.bits == 8) words[static_cast<size_t>(pair / 2)] |= code << (16 * (pair % 2) + 8 * e);
    else words[0] |= code << (decode_ == Decode::table ? 8 * pair + 4 * e : 4 * pair + 16 * e);
  }

  const QuantizedWeights& weights_;
  const Format format_;
  const Decode decode_;
};

/// Integers become floats by their bits where codes less zero points are exact in the type.
Decode decode_of(const QuantizedWeights& weights, DType dtype) {
  if (is_table(weights.kind)) return Decode::table;
  if (weights.kind != CodeKind::integer)
    return dtype != DType::f16 ? Decode::floats : weights.kind == CodeKind::e4m3 ? Decode::e4m3 : Decode::e5m2;
  if (!weights.zeros.empty() && !weights.integer_zeros) return Decode::floats;
  const float middle = weights.bits == 4 ? 8 : 128, most = dtype == DType::f16 ? 1023 : 127;
  const bool small =
      std::ranges::all_of(weights.zeros, [&](float zero) { return zero >= -middle && zero + middle <= most; });
  if (!small) return Decode::floats;
  if (weights.bits == 4) return Decode::nibbles;
  return dtype == DType::f16 ? Decode::bytes : Decode::floats;
}

/// What a code stands for, as an expression of `code`.
std::string number_text(const QuantizedWeights& weights) {
  std::string body;
  switch (weights.kind) {
    case CodeKind::integer: body = fmt::format("(float)((int)code - {})", weights.bits == 4 ? 8 : 128); break;
    case CodeKind::e4m3: body = "__uint_as_float((code & 0x80) << 24 | (code & 0x7f) << 20) * 0x1p120f"; break;
    case CodeKind::e5m2: body = "__uint_as_float((code & 0x80) << 24 | (code & 0x7f) << 21) * 0x1p112f"; break;
    default: body = "codes[code]";
  }
  std::string text = "static inline float number_of(unsigned code) {\n";
  if (is_table(weights.kind)) {
    text += "  const float codes[16] = {";
    for (const float value : code_table(table_name(weights.kind))) text += real_text(value) + ", ";
    text += "};\n";
  }
  return text + fmt::format("  return {};\n}}\n", body);
}

/// Scales are rounded to halves where these have their range, and they are many.
DType scale_type(const std::vector<float>& scales, int64_t groups) {
  constexpr float kLeast = 0x1p-14F, kMost = 65504.0F;
  const bool fit = std::ranges::all_of(
      scales, [](float scale) { return scale == 0 || (std::fabs(scale) >= kLeast && std::fabs(scale) <= kMost); });
  return fit && groups > 1 ? DType::f16 : DType::f32;
}

Tensor zeros_of(const std::vector<float>& zeros, const Dims& dims, bool integers) {
  if (!integers) return Tensor::of<float>(dims, std::span<const float>(zeros));
  TensorBuilder bytes(DType::i8, dims);
  std::ranges::transform(zeros, bytes.data<int8_t>().begin(), [](float zero) { return static_cast<int8_t>(zero); });
  return bytes.finish();
}

/// Which result a column is of, and where in it.
std::string results_text(const std::vector<int64_t>& columns) {
  std::string text =
      "struct Results {\n  T *a, *b, *c, *d;\n};\n"
      "static inline T* place(const Results& results, i64 row, int column) {\n";
  int64_t begin = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string there = fmt::format("results.{} + row * {} + column - {}", "abcd"[i], columns[i], begin);
    begin += columns[i];
    text += i + 1 == columns.size() ? fmt::format("  return {};\n}}\n", there)
                                    : fmt::format("  if (column < {}) return {};\n", begin, there);
  }
  return text;
}

std::string reason_against(const Problem& problem, const std::vector<QuantizedLinearRegion>& regions) {
  const QuantizedLinearRegion& first = regions[0];
  const DType dtype = first.node().input(0)->type.dtype;
  if (dtype != DType::f16 && dtype != DType::bf16) return fmt::format("input is {}", name_of(dtype));
  if (!first.match) return first.match.refusal;
  if (regions.size() > kMostResults) return fmt::format("{} matmuls of one input", regions.size());
  if (problem.symbolic.node_count() != problem.region.node_count()) return "an operand depends on the input's shape";
  return {};
}

/// Loads that a warp waits for, times the rounds of all processors; rows cost products, and sharing a depth a meeting.
double cost_of(const FewBitsTactic& choice, const Format& format, int64_t m, int64_t processors) {
  constexpr double kResidentWarps = 32;
  const int64_t blocks = blocks_of(format.tiles(), choice.warps_n * choice.columns) * blocks_of(m, choice.rows * kRows);
  const double rounds = std::max(1.0, static_cast<double>(blocks * choice.warps()) /
                                          (kResidentWarps * static_cast<double>(std::max<int64_t>(processors, 1))));
  const auto loads = static_cast<double>(blocks_of(format.loads(), choice.warps_k));
  return rounds * (loads * static_cast<double>(choice.columns) * (2 + static_cast<double>(choice.rows)) +
                   2 * static_cast<double>(choice.warps_k) + 8);
}

std::vector<FewBitsTactic> choices(const Format& format, int64_t m, int64_t processors) {
  constexpr int64_t kMostShared = 96 << 10, kMostSums = 8;  // fours that a lane adds up
  std::vector<FewBitsTactic> list;
  for (const int64_t rows : {1, 2, 4, 8}) {
    const int64_t needed = blocks_of(m, kRows);
    if (rows > 1 && rows >= 2 * needed) continue;  // half of them would do
    if (rows * 4 < std::min<int64_t>(needed, 8)) continue;
    for (size_t i = 0; i < kForms.size(); ++i) {
      FewBitsTactic form = kForms[i];
      form.rows = rows;
      const bool fits = form.shared_bytes() <= kMostShared && form.rows * form.columns <= kMostSums;
      const bool busy = form.warps_k <= format.loads() && form.warps_n * form.columns < 2 * format.tiles();
      if (fits && (busy || i == 0)) list.push_back(form);
    }
  }
  std::ranges::stable_sort(list, {},
                           [&](const FewBitsTactic& choice) { return cost_of(choice, format, m, processors); });
  if (list.size() > kOffers) list.resize(kOffers);
  return list;
}

struct FewBitsFamily {
  static constexpr std::string_view kName = "few_bits";
  static constexpr int kVersion = 3;
  using Params = FewBitsTactic;
  using Code = FewBitsCode;

  static void propose(const Problem& problem, Candidates& out) {
    const std::vector<QuantizedLinearRegion> regions = read_quantized_linear_regions(problem.region);
    if (regions.empty()) return;
    if (std::string reason = reason_against(problem, regions); !reason.empty())
      return out.refuse(kName, std::move(reason));
    const Code code = code_of(problem, regions);
    const int64_t m = elements(regions[0].node().output()->type.shape.values()) / code.widths[0];
    for (const FewBitsTactic& choice : choices(code.format(), m, problem.device.workers))
      out.offer({"cuda", std::string(kName), write_fields(choice),
                 std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
                 std::vector<Layout>(problem.region.outputs().size(), Layout::linear)});
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params& params, const Tactic&) {
    const std::vector<QuantizedLinearRegion> regions = read_quantized_linear_regions(problem.region);
    const DType dtype = regions[0].node().input(0)->type.dtype;
    QuantizedWeights weights = joined_weights(regions);
    Built<Code> built;
    built.code = code_of(problem, regions);
    built.code.choice = params;
    built.code.zeros = !weights.zeros.empty();
    const Format format = built.code.format();
    const Decode decode = decode_of(weights, dtype);
    if (decode == Decode::e4m3)
      for (float& scale : weights.scales) scale *= 0x1p8F;
    const Packing packing(weights, format, decode);
    built.constants.push_back(packing.codes());
    append_bias(regions[0].bias(), built.constants);
    const DType scales = scale_type(weights.scales, format.groups());
    const Dims groups{format.tiles(), format.groups(), kTile};
    built.constants.push_back(write_floats(scales, groups, packing.by_tiles(weights.scales)));
    if (!weights.zeros.empty())
      built.constants.push_back(zeros_of(packing.by_tiles(weights.zeros), groups, weights.integer_zeros));
    built.source = switches_text(built.code, dtype, decode, scales, weights) + number_text(weights) +
                   results_text(built.code.widths) + declare<FewBitsParameters>() +
                   epilogue_text(regions[0].match, built.code.epilogue) + kernels::few_bits;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const Format format = code.format();
    const FewBitsTactic& choice = code.choice;
    const int64_t rows = rows_of(code, context);
    require_constants(code, context);
    FewBitsParameters parameters{.x = input(code.x),
                                 .weights = constant(0),
                                 .scales = constant(code.scales()),
                                 .zeros = {},
                                 .epilogue = epilogue_reads(code.epilogue, context, format.n),
                                 .y = {},
                                 .rows = static_cast<int32_t>(rows)};
    if (code.zeros) parameters.zeros = constant(code.scales() + 1);
    for (size_t i = 0; i < code.widths.size(); ++i) parameters.y[i] = output(static_cast<int64_t>(i));
    return single(
        context,
        launch_of(*context.module, parameters,
                  {{blocks_of(format.tiles(), choice.warps_n * choice.columns), blocks_of(rows, choice.rows * kRows)},
                   static_cast<unsigned>(choice.warps() * kLanes),
                   static_cast<unsigned>(choice.shared_bytes())}));
  }

 private:
  /// Throws Error where operand and results do not fit together.
  static int64_t rows_of(const Code& code, const LoadContext& context) {
    constexpr int64_t kMostWarps = 32;
    const Dims& in = context.dims_of({PlaceKind::input, code.x});
    HONE_CHECK(!in.empty() && in.back() == code.k && code.block <= code.k && code.choice.warps() <= kMostWarps,
               "a matmul of few bits in the plan reads {} and has a depth of {}", join_dims(in), code.k);
    const int64_t rows = elements(in) / code.k;
    HONE_CHECK(rows > 0 && rows < int64_t{1} << 31, "a matmul of few bits in the plan has {} rows", rows);
    require_sizes(Dims{rows + code.choice.rows * kRows, std::max(code.n(), code.k)});
    HONE_CHECK(!code.widths.empty() && context.shapes.outputs.size() == code.widths.size(),
               "a matmul of few bits in the plan has {} results", context.shapes.outputs.size());
    for (size_t i = 0; i < code.widths.size(); ++i) {
      const Dims& dims = context.shapes.outputs[i].dims;
      HONE_CHECK(!dims.empty() && dims.back() == code.widths[i] && elements(dims) == rows * code.widths[i],
                 "a matmul of few bits in the plan makes {} of {} columns", join_dims(dims), code.widths[i]);
    }
    return rows;
  }

  static void require_constants(const Code& code, const LoadContext& context) {
    const Format format = code.format();
    const Dims weights{format.tiles(), format.loads(), kLanes * 16}, groups{format.tiles(), format.groups(), kTile};
    const auto scales = static_cast<size_t>(code.scales()), count = scales + (code.zeros ? 2 : 1);
    HONE_CHECK(context.constants.size() == count && context.constants[0].dims == weights,
               "a matmul of few bits in the plan has other weights");
    for (size_t i = scales; i < count; ++i)
      HONE_CHECK(context.constants[i].dims == groups, "a matmul of few bits in the plan has scales of {}",
                 join_dims(context.constants[i].dims));
  }

  static Code code_of(const Problem& problem, const std::vector<QuantizedLinearRegion>& regions) {
    const Node& node = regions[0].node();
    Code code{.x = input_index(problem.region, node.input(0)),
              .widths = {},
              .k = regions[0].code.k,
              .block = std::min(node.attrs.integer("block_size"), regions[0].code.k),
              .bytes = bits_of(node.input(1)->type.dtype) == 8,
              .choice = {},
              .epilogue = regions[0].code.epilogue};
    for (const QuantizedLinearRegion& region : regions) code.widths.push_back(region.code.n);
    return code;
  }

  static std::string switches_text(const Code& code, DType dtype, Decode decode, DType scales,
                                   const QuantizedWeights& weights) {
    const Format format = code.format();
    std::string text;
    for (size_t i = 0; i < std::size(kDecodeNames); ++i)
      text += fmt::format("#define DECODE_{} {}\n", kDecodeNames[i], i);
    return text +
           fmt::format("typedef {0} T;\n#define MMA_TYPE \"{0}\"\n#define IS_BF16 {1:d}\ntypedef {2} Scale;\n",
                       type_name(dtype), dtype == DType::bf16, type_name(scales)) +
           fmt::format("typedef {} ZeroPoint;\n#define ZEROS {:d}\n#define DECODE {}\n",
                       weights.integer_zeros ? "signed char" : "float", !weights.zeros.empty(),
                       static_cast<int>(decode)) +
           fmt::format(
               "#define COLUMNS {}\n#define DEPTH {}\n#define BLOCK {}\n#define GROUPS {}\n#define GROUP_UNITS "
               "{}\n#define BITS "
               "{}\n#define SPAN {}\n#define ALIGNED {:d}\n",
               format.n, format.k, format.block, format.groups(), format.group_units(), format.bits, format.span(),
               format.aligned()) +
           fmt::format("#define ROW_TILES {}\n#define COLUMN_TILES {}\n#define WARPS_N {}\n#define WARPS_K {}\n",
                       code.choice.rows, code.choice.columns, code.choice.warps_n, code.choice.warps_k);
  }
};

}  // namespace

const CudaTactic tactics::few_bits = describe<FewBitsFamily>();

}  // namespace hone::cuda
