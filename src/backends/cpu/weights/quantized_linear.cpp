// SPDX-License-Identifier: Apache-2.0
//
// y[..., N] = epilogue(x[..., K] W) with weights W of 4 or 8 bits - integers, floats, places in a table - in f32. Few rows take as long as the weights take to be read, so
// codes stay codes until they are in registers: there they become floats, or the elements of x are split into bytes (digits), four
// products of which are added up at once. Many rows take as long as the products: a panel is unpacked to f32 once for some
// hundred rows, and the matmul of f32 takes it from there.
#include <algorithm>
#include <cstring>

#include "backends/cpu/conv/convolution.h"
#include "backends/cpu/family.h"
#include "backends/cpu/jit/tile_code.h"
#include "backends/cpu/matmul/gemm_kernel.h"
#include "backends/cpu/weights/digit_tile.h"
#include "backends/cpu/weights/quantized_panels.h"
#include "backends/cpu/weights/quantized_tile.h"
#include "base/checked.h"
#include "regions/quantized_region.h"

namespace hone::cpu {
namespace {

constexpr int kMostVectors = 8, kMostRows = 28;
constexpr int64_t kFewRows = 32, kManyRows = 6;  // of which there is an offer in the other way too
constexpr size_t kMostResults = 4;               // of matmuls of one x
constexpr int64_t kUnpackedFor = 128;            // rows, whose x stays in L2 beside a panel

struct QuantizedTile {
  bool unpacks = false;
  bool digits = false;  // an element of x is split into bytes
  bool dots = false;    // of bytes, by VNNI
  int64_t rows = 1, vectors = 1;
  static void fields(auto& self, auto& visit) {
    visit("unpacks", self.unpacks);
    visit("digits", self.digits);
    visit("dots", self.dots);
    visit("rows", self.rows, 1, kMostRows);
    visit("vectors", self.vectors, 1, kMostVectors);
  }
  int64_t panel(Isa isa) const { return vectors * lanes_of(isa); }
  bool fits(Isa isa, const QuantizedFormat& format) const {
    const auto r = static_cast<int>(rows), v = static_cast<int>(vectors);
    if (unpacks) return !digits && v <= kMostUnpacked && tile_fits(isa, r, v);
    // Where digits cannot say what x is, floats do.
    if (digits && (format.bits != 4 || format.kind != CodeKind::integer || !digit_tile_fits(isa, r, v))) return false;
    return quantized_tile_fits(isa, format, r, v);
  }
};

struct QuantizedLinearCode {
  LinearCode linear;
  std::vector<int64_t> columns;  // of each result, where several matmuls have one x; linear.n is their sum
  int64_t block = 1;
  bool bytes = false;  // codes are of 8 bits, not 4
  CodeKind kind = CodeKind::integer;
  ZeroPoints zeros = ZeroPoints::none;
  QuantizedTile tile;
  static void fields(auto& self, auto& visit) {
    LinearCode::fields(self.linear, visit);
    visit("columns", self.columns, 1, LinearCode::kMostColumns, kMostResults);
    visit("block", self.block, 1, LinearCode::kMostColumns);
    visit("bytes", self.bytes);
    visit("kind", self.kind);
    visit("zeros", self.zeros);
    QuantizedTile::fields(self.tile, visit);
  }
  /// Columns of a result.
  int64_t columns_of(size_t result) const { return columns.empty() ? linear.n : columns[result]; }
  size_t results() const { return std::max<size_t>(columns.size(), 1); }
  QuantizedFormat format() const {
    return {.k = linear.k, .block = block, .bits = bytes ? 8 : 4, .kind = kind, .zeros = zeros};
  }
};

// ---- Kernels ----

/// What both ways share: x with its blocks filled up.
class QuantizedLinear : public CpuKernel {
 public:
  QuantizedLinear(const QuantizedLinearCode& code, int64_t rows, Isa isa)
      : code_(code), format_(code.format()), m_(rows), panel_(code.tile.panel(isa)) {
    x_row_ = format_.padded_k();
    pads_ = x_row_ != code.linear.k;
  }

  size_t workspace_bytes() const override { return pads_ ? static_cast<size_t>(round_up(m_ * x_row_ * 4, 64)) : 0; }
  int phases() const override { return pads_ ? 2 : 1; }
  bool serial() const override { return m_ * code_.linear.n * code_.linear.k < kSmallWork; }

  std::span<const std::byte> read_first(int worker, int workers,
                                        std::span<const void* const> constants) const override {
    const Share share = share_of(panels(), worker, workers);
    const int64_t bytes = panel_ * format_.column_bytes();
    return {static_cast<const std::byte*>(constants[0]) + share.begin * bytes,
            static_cast<size_t>((share.end - share.begin) * bytes)};
  }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    if (phase + 1 < phases()) prepare_x(worker, workers, bindings);
    else multiply(worker, workers, bindings);
  }

 protected:
  virtual void multiply(int worker, int workers, const Bindings& bindings) const = 0;
  /// A worker takes blocks of rows.
  virtual void prepare_x(int worker, int workers, const Bindings& bindings) const {
    if (!pads_) return;
    const int64_t blocks = format_.blocks();
    const Share share = share_of(m_ * blocks, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) pad_block(item / blocks, item % blocks, bindings);
  }

  const QuantizedLinearCode& code() const { return code_; }
  const QuantizedFormat& format() const { return format_; }
  int64_t rows() const { return m_; }
  int64_t panel() const { return panel_; }
  int64_t panels() const { return (code_.linear.n + panel_ - 1) / panel_; }
  int64_t x_row() const { return x_row_; }
  int64_t columns_of(bool last_panel) const { return last_panel ? code_.linear.n - (panels() - 1) * panel_ : panel_; }

  const float* given_x(const Bindings& bindings) const {
    return floats(bindings.inputs[static_cast<size_t>(code_.linear.input)]);
  }
  const float* x(const Bindings& bindings) const {
    return pads_ ? static_cast<const float*>(bindings.workspace) : given_x(bindings);
  }

  static const float* floats(const void* memory) { return static_cast<const float*>(memory); }
  const std::byte* weights(const Bindings& bindings, int64_t panel) const {
    return static_cast<const std::byte*>(bindings.constants[0]) + panel * panel_ * format_.column_bytes();
  }
  const float* bias(const Bindings& bindings, int64_t panel) const {
    return code_.linear.epilogue.bias ? floats(bindings.constants[1]) + panel * panel_ : nullptr;
  }
  /// Where a row and panel begin.
  struct Place {
    size_t result;
    int64_t offset;  // in it
  };
  Place place(int64_t row, int64_t panel) const {
    size_t result = 0;
    int64_t column = panel * panel_;
    for (; result + 1 < code_.results() && column >= code_.columns[result]; ++result) column -= code_.columns[result];
    return {result, row * code_.columns_of(result) + column};
  }
  const float* residual(const Bindings& bindings, const Place& place) const {
    const int64_t input = code_.linear.epilogue.residual;
    return input < 0 ? nullptr : floats(bindings.inputs[static_cast<size_t>(input)]) + place.offset;
  }
  float* result(const Bindings& bindings, const Place& place) const {
    return static_cast<float*>(bindings.outputs[place.result]) + place.offset;
  }

 private:
  static constexpr int64_t kSmallWork = 1 << 15;

  void pad_block(int64_t row, int64_t block, const Bindings& bindings) const {
    const int64_t begin = block * format_.block, size = std::min(format_.block, format_.k - begin);
    const float* from = given_x(bindings) + row * format_.k + begin;
    const int64_t unit = QuantizedFormat::kUnit;
    float* to = static_cast<float*>(bindings.workspace) + row * x_row_ + block * round_up(format_.block, unit);
    std::copy_n(from, size, to);
    std::fill(to + size, to + round_up(size, unit), 0.0F);
  }

  QuantizedLinearCode code_;
  QuantizedFormat format_;
  int64_t m_, panel_, x_row_ = 0;
  bool pads_ = false;
};

/// Tiles for all rows but the last few, and of each for all panels but the last one.
class TileFunctions {
 public:
  template <typename Emit>
  TileFunctions(Isa isa, Emit&& emit) {
    std::array<std::array<size_t, 2>, 2> offsets{};
    emitter_ = Emitter::generate(isa, [&](Emitter& e) {
      for (const size_t last_row : {0, 1})
        for (const size_t last_panel : {0, 1}) offsets[last_row][last_panel] = emit(e, last_row == 1, last_panel == 1);
    });
    for (const size_t i : {0, 1})
      for (const size_t j : {0, 1}) tiles_[i][j] = emitter_->entry<TileFunction>(offsets[i][j]);
  }
  TileFunction at(bool last_row, bool last_panel) const { return tiles_[last_row ? 1 : 0][last_panel ? 1 : 0]; }

 private:
  std::unique_ptr<Emitter> emitter_;
  TileFunction tiles_[2][2] = {};
};

/// Codes become floats in the registers of the tile.
class FewRows : public QuantizedLinear {
 public:
  FewRows(const QuantizedLinearCode& code, int64_t rows, Isa isa) : QuantizedLinear(code, rows, isa) {
    for (size_t result = 0; result < code.results(); ++result)
      floats_.push_back(std::make_unique<TileFunctions>(isa, [&](Emitter& e, bool last_row, bool last_panel) {
        return emit_quantized_tile(e, spec_of(result, last_row, last_panel, isa));
      }));
  }

 protected:
  int64_t blocks() const { return (rows() + code().tile.rows - 1) / code().tile.rows; }

  QuantizedTileSpec spec_of(size_t result, bool last_row, bool last_panel, Isa isa) const {
    const int64_t left = rows() % code().tile.rows, columns = columns_of(last_panel), lanes = lanes_of(isa);
    OutputSpec output;
    output.pixels = static_cast<int>(last_row && left != 0 ? left : code().tile.rows);
    output.vectors = static_cast<int>((columns + lanes - 1) / lanes);
    output.tail = static_cast<int>(columns % lanes);
    output.dst_pixel = output.residual_pixel = code().columns_of(result) * 4;
    output.epilogue = code().linear.epilogue.epilogue();
    return {.format = format(), .output = output, .panel = panel(), .x_row = x_row() * 4};
  }

  /// A worker takes panels one after the other, as they lie in memory, each through all rows.
  void multiply(int worker, int workers, const Bindings& bindings) const override {
    const Share share = share_of(panels() * blocks(), worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t at = item / blocks(), block = item % blocks(), row = block * code().tile.rows;
      const Place to = place(row, at);
      multiply_tile({to.result, block, at},
                    {.src = x(bindings) + row * x_row(),
                     .weights = reinterpret_cast<const float*>(weights(bindings, at)),
                     .dst = result(bindings, to),
                     .residual = residual(bindings, to),
                     .bias = bias(bindings, at),
                     .prefetch = nullptr,
                     .rows = 0,
                     .flags = 0},
                    workers, bindings);
    }
  }
  struct Tile {
    size_t result;
    int64_t block, panel;
  };
  virtual void multiply_tile(const Tile& tile, const TileArgs& args, int, const Bindings&) const {
    function(floats_, tile)(&args);
  }

  using ResultFunctions = std::vector<std::unique_ptr<TileFunctions>>;  // of each result
  TileFunction function(const ResultFunctions& functions, const Tile& tile) const {
    return functions[tile.result]->at(tile.block + 1 == blocks(), tile.panel + 1 == panels());
  }

 private:
  ResultFunctions floats_;
};

/// x becomes digits first. Rows that digits cannot say are multiplied as floats.
class DigitRows final : public FewRows {
 public:
  DigitRows(const QuantizedLinearCode& code, int64_t rows, const CpuInfo& info)
      : FewRows(code, rows, info.isa), split_(split_digits(info.isa)), workers_(info.workers) {
    for (size_t result = 0; result < code.results(); ++result)
      tiles_.push_back(std::make_unique<TileFunctions>(info.isa, [&](Emitter& e, bool last_row, bool last_panel) {
        QuantizedTileSpec tile = spec_of(result, last_row, last_panel, info.isa);
        tile.x_row = digit_row();
        return emit_digit_tile(e, {tile, code.tile.dots});
      }));
  }

  size_t workspace_bytes() const override {
    return FewRows::workspace_bytes() + static_cast<size_t>(round_up(rows() * digit_row(), 64) + workers_ * blocks());
  }
  int phases() const override { return 2; }

 private:
  int64_t digit_row() const {
    return format().blocks() * DigitFormat::kHeadBytes + format().all_units() * DigitFormat::kUnitBytes;
  }
  int64_t block_bytes() const {
    return DigitFormat::kHeadBytes + format().units(format().block) * DigitFormat::kUnitBytes;
  }
  std::byte* digits(const Bindings& bindings) const {
    return static_cast<std::byte*>(bindings.workspace) + FewRows::workspace_bytes();
  }
  /// Of each worker and block of rows: whether it saw elements that digits cannot say.
  std::byte* failed(const Bindings& bindings, int64_t worker) const {
    return digits(bindings) + round_up(rows() * digit_row(), 64) + worker * blocks();
  }

  void prepare_x(int worker, int workers, const Bindings& bindings) const override {
    FewRows::prepare_x(worker, workers, bindings);
    std::byte* failures = failed(bindings, worker);
    std::fill_n(failures, blocks(), std::byte{0});
    const int64_t count = format().blocks();
    const Share share = share_of(rows() * count, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t row = item / count, at = item % count, begin = at * format().block;
      std::byte* to = digits(bindings) + row * digit_row() + at * block_bytes();
      if (!split_(given_x(bindings) + row * format().k + begin, std::min(format().block, format().k - begin), to))
        failures[row / code().tile.rows] = std::byte{1};
    }
  }

  void multiply_tile(const Tile& tile, const TileArgs& args, int workers, const Bindings& bindings) const override {
    for (int64_t worker = 0; worker < workers; ++worker)
      if (failed(bindings, worker)[tile.block] != std::byte{0})
        return FewRows::multiply_tile(tile, args, workers, bindings);
    TileArgs own = args;
    own.src = reinterpret_cast<const float*>(digits(bindings) + tile.block * code().tile.rows * digit_row());
    function(tiles_, tile)(&own);
  }

  SplitDigits split_;
  int64_t workers_;
  ResultFunctions tiles_;
};

/// Panels become floats in a worker's own memory, for some hundred rows at a time.
class ManyRows final : public QuantizedLinear {
 public:
  ManyRows(const QuantizedLinearCode& code, int64_t rows, const CpuInfo& info)
      : QuantizedLinear(code, rows, info.isa), workers_(info.workers) {
    const int64_t parts = (rows + kUnpackedFor - 1) / kUnpackedFor;
    chunk_ = round_up((rows + parts - 1) / parts, code.tile.rows);
    chunks_ = (rows + chunk_ - 1) / chunk_;
    size_t offset = 0;
    emitter_ = Emitter::generate(
        info.isa, [&](Emitter& e) { offset = emit_unpack(e, format(), static_cast<int>(code.tile.vectors)); });
    unpack_ = emitter_->entry<UnpackFunction>(offset);
    const GemmConfig config{static_cast<int>(code.tile.rows), static_cast<int>(code.tile.vectors), 0, 1,
                            false /* prefetch */};
    for (const bool last_chunk : {false, true})
      for (const bool last_panel : {false, true})
        matmuls_.emplace_back(shape_of(last_chunk, last_panel), code.linear.epilogue.epilogue(), config, info.isa);
  }

  size_t workspace_bytes() const override {
    return QuantizedLinear::workspace_bytes() + static_cast<size_t>(workers_ * unpacked() * 4);
  }

 private:
  int64_t unpacked() const { return format().padded_k() * panel(); }

  GemmShape shape_of(bool last_chunk, bool last_panel) const {
    return {.m = last_chunk ? rows() - (chunks_ - 1) * chunk_ : chunk_,
            .n = columns_of(last_panel),
            .k = x_row(),
            .ldc = code().linear.n,
            .ld_residual = code().linear.n};
  }

  void multiply(int worker, int workers, const Bindings& bindings) const override {
    float* floats =
        reinterpret_cast<float*>(static_cast<std::byte*>(bindings.workspace) + QuantizedLinear::workspace_bytes()) +
        worker * unpacked();
    const Share share = share_of(chunks_ * panels(), worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t chunk = item / panels(), at = item % panels();
      const Place first = place(chunk * chunk_, at);
      unpack_(weights(bindings, at), floats);
      const GemmKernel& matmul = matmuls_[(chunk + 1 == chunks_ ? 2U : 0U) + (at + 1 == panels() ? 1U : 0U)];
      matmul.run(0, 1,
                 {x(bindings) + chunk * chunk_ * x_row(), floats, bias(bindings, at), residual(bindings, first),
                  result(bindings, first)});
    }
  }

  int64_t workers_, chunk_ = 1, chunks_ = 1;
  std::unique_ptr<Emitter> emitter_;
  UnpackFunction unpack_ = nullptr;
  std::vector<GemmKernel>
      matmuls_;  // of all but the last chunk, of the last; of each, all but the last panel, the last
};

// ---- The family ----

struct QuantizedLinearFamily {
  static constexpr std::string_view kName = "quantized_linear";
  static constexpr int kVersion = 4;
  static constexpr bool kPacksForIsa = true;
  using Params = QuantizedTile;
  using Code = QuantizedLinearCode;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::vector<QuantizedLinearRegion> regions = read_quantized_linear_regions(problem.region);
    if (regions.empty()) return;
    const QuantizedLinearRegion* region = &regions[0];
    if (info.isa == Isa::scalar) return out.refuse(kName, "needs AVX2");
    if (const DType dtype = region->node().input(0)->type.dtype; dtype != DType::f32)
      return out.refuse(kName, fmt::format("input is {}, not f32", name_of(dtype)));
    if (!region->match) return out.refuse(kName, region->match.refusal);
    if (regions.size() > kMostResults) return out.refuse(kName, "so many matmuls of one input");
    if (problem.symbolic.node_count() != problem.region.node_count())
      return out.refuse(kName, "an operand depends on the input's shape");
    // Of zero points it is known that there may be some.
    const QuantizedFormat format{.bits = bits_of(region->node().input(1)->type.dtype) == 8 ? 8 : 4,
                                 .kind = region->kind(),
                                 .zeros = region->may_have_zeros() ? ZeroPoints::bytes : ZeroPoints::none};
    const int64_t n = region->code.n, m = elements(region->node().output()->type.shape.values()) / n;
    std::vector<QuantizedTile> tiles;
    if (m <= kFewRows) add_few(tiles, m, n, format, info.isa);
    if (m <= kFewRows && format.bits == 4 && format.kind == CodeKind::integer && block_of(*region) <= kMostDigitRows)
      add_digits(tiles, m, n, problem.device);
    if (m >= kManyRows) add_many(tiles, {.m = m, .n = n, .k = region->code.k}, info);
    if (regions.size() > 1) {
      // A panel is of one result, and few rows are what waits for memory.
      std::erase_if(tiles, [&](const QuantizedTile& tile) {
        return tile.unpacks || std::ranges::any_of(regions, [&](const QuantizedLinearRegion& one) {
                 return one.code.n % tile.panel(info.isa) != 0;
               });
      });
      if (tiles.empty()) return out.refuse(kName, "several matmuls, for whose columns or rows there is no tile");
    }
    const std::vector<Layout> in(problem.region.inputs().size(), Layout::linear), results(regions.size(), in[0]);
    for (const QuantizedTile& tile : tiles) out.offer({"cpu", std::string(kName), write_fields(tile), in, results});
  }

  static Cost cost(const Problem&, const Params& tile, const Tactic&) {
    if (tile.unpacks) return {.arithmetic = 1.6, .operands = 2, .weights = 1};
    if (tile.digits) return {.arithmetic = 0.3 + 0.4 / static_cast<double>(tile.rows), .operands = 2, .weights = 0.4};
    return {.arithmetic = 1.5 + 3.0 / static_cast<double>(tile.rows), .operands = 2, .weights = 0.5};
  }

  static Built<Code> compile(const Problem& problem, const Params& tile, const Tactic&) {
    const std::vector<QuantizedLinearRegion> regions = read_quantized_linear_regions(problem.region);
    std::vector<QuantizedWeights> weights;
    for (const QuantizedLinearRegion& region : regions) weights.push_back(region.weights());
    Code code{regions[0].code, {}, weights[0].block, weights[0].bits == 8, weights[0].kind, zeros_of(weights), tile};
    if (regions.size() > 1) {
      code.linear.n = 0;
      for (const QuantizedWeights& one : weights) code.columns.push_back(one.n), code.linear.n += one.n;
    }
    const int64_t panel = tile.panel(cpu_info(problem.device).isa);
    TensorBuilder packed(DType::u8, {round_up(code.linear.n, panel), code.format().column_bytes()});
    std::byte* to = packed.bytes();
    for (const QuantizedWeights& one : weights) to = write_panels(one, code.format(), panel, to);
    return {code, with_packed_bias(packed.finish(), regions[0].bias(), code.linear.n, 1, panel)};
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&, const CpuInfo& info) {
    const int64_t panel = code.tile.panel(info.isa), n = code.linear.n;
    return with_packed_bias({DType::u8, {round_up(n, panel), code.format().column_bytes()}}, code.linear.epilogue, n, 1,
                            panel);
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    const QuantizedTile& tile = code.tile;
    if (code.columns.empty()) code.linear.require_operands(shapes);
    else require_results(code, shapes, tile.panel(info.isa));
    const QuantizedFormat format = code.format();
    HONE_CHECK(code.block <= code.linear.k, "a matmul in the plan has {} rows in blocks of {}", code.linear.k,
               code.block);
    HONE_CHECK(is_table(code.kind) ? !code.bytes : code.kind == CodeKind::integer || code.bytes,
               "a matmul of few bits in the plan has codes of {} bits that are {}", format.bits,
               field_names(code.kind)[static_cast<size_t>(code.kind)]);
    HONE_CHECK(code.kind == CodeKind::integer || code.zeros == ZeroPoints::none,
               "a matmul of few bits in the plan has zero points of floats");
    HONE_CHECK(tile.fits(info.isa, format), "a matmul of few bits in the plan has tiles of {} by {} vectors", tile.rows,
               tile.vectors);
    const int64_t rows = elements(shapes.outputs[0].dims) / code.columns_of(0);
    HONE_CHECK(rows > 0, "a matmul in the plan has no rows");
    require_sizes(Dims{rows + info.workers * tile.panel(info.isa), format.padded_k() + format.blocks()});
    const int64_t heads = format.blocks() * DigitFormat::kHeadBytes;
    HONE_CHECK(tile.rows * (std::max(format.padded_k(), code.linear.n) * 4 + heads) < INT32_MAX,
               "a matmul of few bits in the plan has rows of {} and {}", code.linear.k, code.linear.n);
    if (tile.unpacks) return std::make_shared<ManyRows>(code, rows, info);
    HONE_CHECK(!tile.digits || code.block <= kMostDigitRows, "a matmul of few bits in the plan has blocks of {}",
               code.block);
    HONE_CHECK(!tile.dots || has_byte_dots(info.isa),
               "a matmul in the plan adds up products of bytes (VNNI), which this processor does not do");
    if (tile.digits) return std::make_shared<DigitRows>(code, rows, info);
    return std::make_shared<FewRows>(code, rows, info.isa);
  }

 private:
  /// The form that says all of them.
  static ZeroPoints zeros_of(const std::vector<QuantizedWeights>& weights) {
    ZeroPoints zeros = ZeroPoints::none;
    for (const QuantizedWeights& one : weights) {
      if (one.zeros.empty()) continue;
      if (!one.integer_zeros) return ZeroPoints::floats;
      zeros = ZeroPoints::bytes;
    }
    return zeros;
  }

  /// Of several matmuls, which have no epilogue.
  static void require_results(const Code& code, const KernelShapes& shapes, int64_t panel) {
    const LinearCode& linear = code.linear;
    HONE_CHECK(!code.tile.unpacks && !linear.epilogue.bias && linear.epilogue.residual < 0 &&
                   linear.input < static_cast<int64_t>(shapes.inputs.size()) &&
                   shapes.outputs.size() == code.columns.size(),
               "matmuls of one input in the plan have {} results", shapes.outputs.size());
    const ConcreteType& x = shapes.inputs[static_cast<size_t>(linear.input)];
    int64_t columns = 0;
    for (size_t i = 0; i < code.columns.size(); ++i) {
      const ConcreteType& y = shapes.outputs[i];
      columns += code.columns[i];
      for (const ConcreteType* type : {&x, &y})
        HONE_CHECK(type->dtype == DType::f32 && type->layout == Layout::linear && !type->dims.empty(),
                   "matmuls of one input in the plan have an operand that is not f32 in linear layout");
      HONE_CHECK(x.dims.back() == linear.k && y.dims.back() == code.columns[i] && code.columns[i] % panel == 0 &&
                     elements(x.dims) / linear.k == elements(y.dims) / code.columns[i],
                 "matmuls of one input in the plan take {} to {}", join_dims(x.dims), join_dims(y.dims));
    }
    HONE_CHECK(columns == linear.n, "matmuls of one input in the plan have {} columns, not {}", columns, linear.n);
  }

  /// Of several widths, as many rows as there are registers for.
  static void add_few(std::vector<QuantizedTile>& tiles, int64_t m, int64_t n, const QuantizedFormat& format, Isa isa) {
    const int64_t wanted = (n + lanes_of(isa) - 1) / lanes_of(isa);
    for (int64_t vectors = kMostVectors; vectors >= 1; --vectors) {
      QuantizedTile tile{.rows = std::min<int64_t>(m, kMostRows), .vectors = vectors};
      while (tile.rows > 0 && !tile.fits(isa, format)) --tile.rows;
      const bool wide = vectors > 1 && vectors > wanted;
      const bool repeats = !tiles.empty() && tiles.back().rows == tile.rows && vectors > 2 && vectors % 4 != 0;
      if (tile.rows > 0 && !wide && !repeats) tiles.push_back(tile);
    }
  }

  static int64_t block_of(const QuantizedLinearRegion& region) {
    return std::min(region.node().attrs.integer("block_size"), region.code.k);
  }

  /// As many rows as there are registers for; where vectors are short also without VNNI, which few of them have.
  static void add_digits(std::vector<QuantizedTile>& tiles, int64_t m, int64_t n, const DeviceInfo& device) {
    const Isa isa = cpu_info(device).isa;
    const int64_t wanted = (n + lanes_of(isa) - 1) / lanes_of(isa);
    for (const bool dots : {true, false}) {
      if (dots ? !device.byte_dots : device.byte_dots && isa == Isa::avx512) continue;
      for (int64_t vectors = std::min<int64_t>(kMostVectors, wanted); vectors >= 1; --vectors) {
        QuantizedTile tile{.digits = true, .dots = dots, .rows = std::min<int64_t>(m, kMostRows), .vectors = vectors};
        while (tile.rows > 0 && !tile.fits(isa, {.zeros = ZeroPoints::bytes})) --tile.rows;
        if (tile.rows > 0) tiles.push_back(tile);
      }
    }
  }

  static void add_many(std::vector<QuantizedTile>& tiles, const GemmShape& shape, const CpuInfo& info) {
    for (const GemmConfig& config : gemm_candidates(shape, info.isa, info.workers)) {
      const QuantizedTile tile{.unpacks = true, .rows = config.pixels, .vectors = config.vectors};
      const bool known = std::ranges::any_of(tiles, [&](const QuantizedTile& other) {
        return other.unpacks && other.rows == tile.rows && other.vectors == tile.vectors;
      });
      if (!known && tile.fits(info.isa, {})) tiles.push_back(tile);
    }
  }
};

}  // namespace

const CpuTactic tactics::quantized_linear = describe<QuantizedLinearFamily>();

}  // namespace hone::cpu
