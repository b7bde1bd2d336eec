// SPDX-License-Identifier: Apache-2.0
//
// MatMulInteger with constant weights, its sums exact, and what may follow them. Weights are kept signed (unsigned ones less 128), A
// as the tile wants it: unsigned bytes (signed ones plus 128) or words. With zero points z of A and w of a column, both of the kept
// form,
//
//     sum (a - z)(b - w) = sum a b + z (K w - sum b) - w sum a
//
// where the second term is what a column's sums begin with and the third, which few models have, needs the sums of A's rows.
#include <algorithm>
#include <cstring>

#include "backends/cpu/family.h"
#include "backends/cpu/quant/integer_tile.h"
#include "base/checked.h"
#include "ops/ops.h"
#include "regions/integer_region.h"

namespace hone::cpu {
namespace {

constexpr int kMostVectors = 4, kMostRows = 31;

int64_t round_up_to(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

struct Tile {
  IntegerDot dot = IntegerDot::words;
  int64_t rows = 1, vectors = 1;
  static void fields(auto& self, auto& visit) {
    visit("dot", self.dot);
    visit("rows", self.rows, 1, kMostRows);
    visit("vectors", self.vectors, 1, kMostVectors);
  }
  int64_t panel(Isa isa) const { return vectors * lanes_of(isa); }
};

struct IntegerMatmulCode {
  IntegerLinearCode linear;
  bool column_zeros = false;  // whether the weights have zero points in their signed form
  Tile tile;
  static void fields(auto& self, auto& visit) {
    IntegerLinearCode::fields(self.linear, visit);
    visit("column_zeros", self.column_zeros);
    Tile::fields(self.tile, visit);
  }
  int64_t steps() const { return (linear.k + step_of(tile.dot) - 1) / step_of(tile.dot); }
};

/// The weights, signed: [K, N].
struct SignedWeights {
  std::vector<int32_t> values, zeros;
  int64_t n = 0, k = 0;

  explicit SignedWeights(const Node& node) {
    const Tensor& b = *node.input(1)->constant;
    k = b.dims()[0], n = b.dims()[1];
    const int32_t shift = b.dtype() == DType::u8 ? 128 : 0;
    for (const int64_t value : b.integers()) values.push_back(static_cast<int32_t>(value) - shift);
    const std::vector<int64_t> zero =
        node.input(3) == nullptr ? std::vector<int64_t>{0} : node.input(3)->constant->integers();
    for (int64_t j = 0; j < n; ++j)
      zeros.push_back(static_cast<int32_t>(zero[zero.size() == 1 ? 0 : static_cast<size_t>(j)]) - shift);
  }
  int32_t at(int64_t p, int64_t j) const { return p < k && j < n ? values[static_cast<size_t>(p * n + j)] : 0; }
  bool has_zeros() const {
    return std::ranges::any_of(zeros, [](int32_t zero) { return zero != 0; });
  }
  /// K w - sum b of each column, wrapped around.
  std::vector<int32_t> leans() const {
    std::vector<int32_t> result;
    for (int64_t j = 0; j < n; ++j) {
      auto lean = static_cast<uint32_t>(k) * static_cast<uint32_t>(zeros[static_cast<size_t>(j)]);
      for (int64_t p = 0; p < k; ++p) lean -= static_cast<uint32_t>(at(p, j));
      result.push_back(static_cast<int32_t>(lean));
    }
    return result;
  }
};

template <typename T>
Tensor packed_weights(const SignedWeights& weights, const Tile& tile, int64_t panel) {
  const int64_t step = step_of(tile.dot), depth = round_up_to(weights.k, step), width = round_up_to(weights.n, panel);
  TensorBuilder builder(sizeof(T) == 1 ? DType::i8 : DType::i16, {width, depth});
  T* to = builder.data<T>().data();
  for (int64_t first = 0; first < width; first += panel)
    for (int64_t p = 0; p < depth; p += step)
      for (int64_t j = first; j < first + panel; ++j)
        for (int64_t i = 0; i < step; ++i) *to++ = static_cast<T>(weights.at(p + i, j));
  return builder.finish();
}

/// A value per column, and zeros up to whole panels.
template <typename T>
Tensor per_column(std::vector<T> values, int64_t padded) {
  values.resize(static_cast<size_t>(padded));
  return Tensor::of<T>({padded}, std::span<const T>(values));
}

/// Where the kernel's constants are, in this order; -1: there is none.
struct ConstantPlaces {
  int weights = 0, leans = 1, zeros = -1, factor = -1, bias = -1;
  explicit ConstantPlaces(const IntegerMatmulCode& code) {
    int next = 2;
    if (code.column_zeros) zeros = next++;
    if (code.linear.factor != Factor::none && code.linear.factor_input < 0) factor = next++;
    if (code.linear.epilogue.bias) bias = next++;
  }
  template <typename T>
  static const T* in(const Bindings& bindings, int place) {
    return place < 0 ? nullptr : static_cast<const T*>(bindings.constants[static_cast<size_t>(place)]);
  }
};

class IntegerMatmul final : public CpuKernel {
 public:
  IntegerMatmul(const IntegerMatmulCode& code, const KernelShapes& shapes, const CpuInfo& info)
      : code_(code),
        places_(code),
        signed_a_(input_type(shapes, code.linear.input).dtype == DType::i8),
        signed_zero_(code.linear.zero_input >= 0 && input_type(shapes, code.linear.zero_input).dtype == DType::i8),
        m_(elements(shapes.outputs[0].dims) / code.linear.n),
        panel_(code.tile.panel(info.isa)),
        padded_(round_up_to(code.linear.n, panel_)) {
    const bool bytes = code.tile.dot == IntegerDot::bytes;
    packs_ = !bytes || signed_a_ || code.linear.k % step_of(IntegerDot::bytes) != 0 || code.column_zeros;
    a_row_ = packs_ ? code.steps() * kStepBytes : code.linear.k;
    emit(info.isa);
  }

  size_t workspace_bytes() const override {
    return static_cast<size_t>(base_bytes() + (packs_ ? rows_bytes() + m_ * 4 : 0));
  }
  int phases() const override { return 2; }
  bool serial() const override { return m_ * code_.linear.n * code_.linear.k < kSmallWork; }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    if (phase == 0) prepare(worker, workers, bindings);
    else multiply(worker, workers, bindings);
  }

 private:
  static constexpr int64_t kSmallWork = 1 << 15;

  static const ConcreteType& input_type(const KernelShapes& shapes, int64_t i) {
    return shapes.inputs[static_cast<size_t>(i)];
  }
  template <typename T>
  static const T* input(const Bindings& bindings, int64_t i) {
    return i < 0 ? nullptr : static_cast<const T*>(bindings.inputs[static_cast<size_t>(i)]);
  }

  // The workspace: what sums begin with, packed rows, sums of rows.
  int64_t base_bytes() const { return round_up_to(padded_ * 4, 64); }
  int64_t rows_bytes() const { return round_up_to(m_ * a_row_, 64); }
  int32_t* base(const Bindings& bindings) const { return static_cast<int32_t*>(bindings.workspace); }
  std::byte* rows(const Bindings& bindings) const { return static_cast<std::byte*>(bindings.workspace) + base_bytes(); }
  uint32_t* row_sums(const Bindings& bindings) const {
    return reinterpret_cast<uint32_t*>(rows(bindings) + rows_bytes());
  }

  /// What packing adds to an element of A.
  int64_t added() const { return signed_a_ && code_.tile.dot == IntegerDot::bytes ? 128 : 0; }
  /// In the form in which A is multiplied.
  uint32_t zero(const Bindings& bindings) const {
    const void* given = input<void>(bindings, code_.linear.zero_input);
    const int64_t value = given == nullptr ? code_.linear.zero
                          : signed_zero_   ? *static_cast<const int8_t*>(given)
                                           : *static_cast<const uint8_t*>(given);
    return static_cast<uint32_t>(value + added());
  }

  void prepare(int worker, int workers, const Bindings& bindings) const {
    const auto* leans = ConstantPlaces::in<int32_t>(bindings, places_.leans);
    const uint32_t z = zero(bindings);
    const Share columns = share_of(padded_, worker, workers);
    for (int64_t j = columns.begin; j < columns.end; ++j)
      base(bindings)[j] = static_cast<int32_t>(z * static_cast<uint32_t>(leans[j]));
    if (!packs_) return;
    const Share share = share_of(m_, worker, workers);
    for (int64_t row = share.begin; row < share.end; ++row) {
      const auto* from = input<uint8_t>(bindings, code_.linear.input) + row * code_.linear.k;
      if (signed_a_) pack_row(reinterpret_cast<const int8_t*>(from), row, bindings);
      else pack_row(from, row, bindings);
    }
  }

  template <typename T>
  void pack_row(const T* from, int64_t row, const Bindings& bindings) const {
    std::byte* to = rows(bindings) + row * a_row_;
    if (code_.tile.dot == IntegerDot::bytes) write_row(from, reinterpret_cast<uint8_t*>(to));
    else write_row(from, reinterpret_cast<int16_t*>(to));
    if (!code_.column_zeros) return;
    uint32_t sum = 0;
    for (int64_t p = 0; p < code_.linear.k; ++p) sum += static_cast<uint32_t>(from[p] + added());
    row_sums(bindings)[row] = sum;
  }

  template <typename From, typename To>
  void write_row(const From* from, To* to) const {
    const int64_t k = code_.linear.k;
    const auto add = static_cast<int>(added());
    for (int64_t p = 0; p < k; ++p) to[p] = static_cast<To>(from[p] + add);
    std::fill(to + k, to + a_row_ / static_cast<int64_t>(sizeof(To)), To{0});
  }

  /// A worker takes blocks of rows panel by panel, whose weights stay near.
  void multiply(int worker, int workers, const Bindings& bindings) const {
    const int64_t blocks = (m_ + code_.tile.rows - 1) / code_.tile.rows;
    const Share share = share_of(padded_ / panel_ * blocks, worker, workers);
    const IntegerTileArgs whole = arguments(bindings);
    for (int64_t item = share.begin; item < share.end; ++item)
      multiply_tile(whole, item / blocks * panel_, item % blocks * code_.tile.rows);
  }

  /// Of the first tile.
  IntegerTileArgs arguments(const Bindings& bindings) const {
    const void* a = packs_ ? rows(bindings) : input<void>(bindings, code_.linear.input);
    const auto* factor = input<float>(bindings, code_.linear.factor_input);
    return {.tile = {.src = static_cast<const float*>(a),
                     .weights = ConstantPlaces::in<float>(bindings, places_.weights),
                     .dst = static_cast<float*>(bindings.outputs[0]),
                     .residual = input<float>(bindings, code_.linear.epilogue.residual),
                     .bias = ConstantPlaces::in<float>(bindings, places_.bias),
                     .prefetch = nullptr,
                     .rows = 0,
                     .flags = 0},
            .base = base(bindings),
            .zeros = ConstantPlaces::in<int32_t>(bindings, places_.zeros),
            .row_sums = row_sums(bindings),
            .factor = factor != nullptr ? factor : ConstantPlaces::in<float>(bindings, places_.factor),
            .steps = code_.steps()};
  }

  void multiply_tile(IntegerTileArgs args, int64_t column, int64_t row) const {
    const int64_t place = row * code_.linear.n + column, floats_of_row = a_row_ / 4;
    // Rows that are multiplied in place are whole steps, so floats count them.
    args.tile.src += row * floats_of_row;
    args.tile.weights += column * code_.steps();
    args.tile.dst += place;
    if (args.tile.residual != nullptr) args.tile.residual += place;
    if (args.tile.bias != nullptr) args.tile.bias += column;
    args.base += column;
    if (args.zeros != nullptr) args.zeros += column;
    args.row_sums += row;
    if (code_.linear.factor == Factor::columns) args.factor += column;
    tiles_[row + code_.tile.rows > m_ ? 1 : 0][column + panel_ > code_.linear.n ? 1 : 0](&args);
  }

  void emit(Isa isa) {
    std::array<std::array<size_t, 2>, 2> offsets{};
    emitter_ = Emitter::generate(isa, [&](Emitter& e) {
      for (const size_t last_row : {0, 1})
        for (const size_t last_column : {0, 1})
          offsets[last_row][last_column] = emit_integer_tile(e, spec_of(last_row == 1, last_column == 1, isa));
    });
    for (const size_t i : {0, 1})
      for (const size_t j : {0, 1}) tiles_[i][j] = emitter_->entry<IntegerTileFunction>(offsets[i][j]);
  }

  IntegerTileSpec spec_of(bool last_row, bool last_column, Isa isa) const {
    const int64_t left_rows = m_ % code_.tile.rows, left_columns = code_.linear.n % panel_, lanes = lanes_of(isa),
                  columns = last_column && left_columns != 0 ? left_columns : panel_;
    OutputSpec output;
    output.pixels = static_cast<int>(last_row && left_rows != 0 ? left_rows : code_.tile.rows);
    output.vectors = static_cast<int>((columns + lanes - 1) / lanes);
    output.tail = static_cast<int>(columns % lanes);
    output.dst_pixel = output.residual_pixel = code_.linear.n * 4;
    output.epilogue = code_.linear.epilogue.epilogue();
    return {.dot = code_.tile.dot,
            .output = output,
            .a_row = a_row_,
            .b_step = panel_ * kStepBytes,
            .column_zeros = code_.column_zeros,
            .factor = code_.linear.factor};
  }

  IntegerMatmulCode code_;
  ConstantPlaces places_;
  bool signed_a_, signed_zero_, packs_ = false;
  int64_t m_, panel_, padded_, a_row_ = 0;
  std::unique_ptr<Emitter> emitter_;
  IntegerTileFunction tiles_[2][2] = {};  // [of the last rows][of the last columns]
};

struct IntegerMatmulFamily {
  static constexpr std::string_view kName = "integer_matmul";
  static constexpr int kVersion = 1;
  static constexpr bool kPacksForIsa = true;
  static constexpr Cost kCost = {.arithmetic = 0.5, .operands = 2, .weights = 0.5};
  using Params = Tile;
  using Code = IntegerMatmulCode;

  static void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
    const std::optional<IntegerLinearRegion> region = read_integer_linear_region(problem.region);
    if (!region) return;
    if (info.isa == Isa::scalar) return out.refuse(kName, "needs AVX2");
    if (!region->match) return out.refuse(kName, region->match.refusal);
    if (problem.symbolic.node_count() != problem.region.node_count())
      return out.refuse(kName, "an operand depends on the input's shape");
    const int64_t n = region->code.n, m = elements(region->node().output()->type.shape.values()) / n;
    for (const Tile& tile : tiles_for(m, n, info.isa, problem.device.byte_dots))
      out.offer({"cpu",
                 std::string(kName),
                 write_fields(tile),
                 std::vector<Layout>(problem.region.inputs().size(), Layout::linear),
                 {Layout::linear}});
  }

  static Built<Code> compile(const Problem& problem, const Params& tile, const Tactic&) {
    const IntegerLinearRegion region = *read_integer_linear_region(problem.region);
    const SignedWeights weights(region.node());
    const Code code{region.code, weights.has_zeros(), tile};
    const int64_t panel = tile.panel(cpu_info(problem.device).isa), padded = round_up_to(weights.n, panel);
    Built<Code> built{code};
    built.constants.push_back(tile.dot == IntegerDot::bytes ? packed_weights<int8_t>(weights, tile, panel)
                                                            : packed_weights<int16_t>(weights, tile, panel));
    built.constants.push_back(per_column(weights.leans(), padded));
    if (code.column_zeros) built.constants.push_back(per_column(weights.zeros, padded));
    if (const std::vector<float> factor = region.factor(); !factor.empty())
      built.constants.push_back(per_column(factor, static_cast<int64_t>(factor.size())));
    if (code.linear.epilogue.bias) built.constants.push_back(per_column(region.bias(), padded));
    return built;
  }

  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&, const CpuInfo& info) {
    const int64_t padded = round_up_to(code.linear.n, code.tile.panel(info.isa));
    std::vector<ConstantSpec> specs{
        {code.tile.dot == IntegerDot::bytes ? DType::i8 : DType::i16, {padded, code.steps() * step_of(code.tile.dot)}},
        {DType::i32, {padded}}};
    if (code.column_zeros) specs.push_back({DType::i32, {padded}});
    if (code.linear.factor != Factor::none && code.linear.factor_input < 0)
      specs.push_back({DType::f32, {code.linear.factors()}});
    if (code.linear.epilogue.bias) specs.push_back({DType::f32, {padded}});
    return specs;
  }

  static std::shared_ptr<const CpuKernel> load(const Code& code, const KernelShapes& shapes, const CpuInfo& info) {
    code.linear.require_operands(shapes);
    const Tile& tile = code.tile;
    HONE_CHECK(tile.dot == IntegerDot::words || has_byte_dots(info.isa),
               "a layer in the plan adds up products of bytes (VNNI), which this processor does not");
    HONE_CHECK(integer_tile_fits(info.isa, tile.dot, static_cast<int>(tile.rows), static_cast<int>(tile.vectors)),
               "an integer matmul in the plan has tiles of {} by {} vectors", tile.rows, tile.vectors);
    const int64_t rows = elements(shapes.outputs[0].dims) / code.linear.n;
    require_sizes(Dims{rows + tile.rows, code.steps() * kStepBytes});  // what is packed
    HONE_CHECK(tile.rows * std::max(code.steps() * kStepBytes, code.linear.n * 4) < INT32_MAX,
               "an integer matmul in the plan has rows of {} and {}", code.linear.k, code.linear.n);
    return std::make_shared<IntegerMatmul>(code, shapes, info);
  }

 private:
  /// Of one to four vectors, as many rows as there are registers for.
  static std::vector<Tile> tiles_for(int64_t m, int64_t n, Isa isa, bool byte_dots) {
    const IntegerDot dot = byte_dots ? IntegerDot::bytes : IntegerDot::words;
    const int64_t wanted = (n + lanes_of(isa) - 1) / lanes_of(isa);
    std::vector<Tile> tiles;
    for (int vectors = kMostVectors; vectors >= 1; --vectors) {
      if (vectors > wanted || (vectors == 1 && wanted > 1)) continue;
      int rows = kMostRows;
      while (!integer_tile_fits(isa, dot, rows, vectors)) --rows;
      tiles.push_back({dot, std::min<int64_t>(rows, m), vectors});
    }
    return tiles;
  }
};

}  // namespace

const CpuTactic tactics::integer_matmul = describe<IntegerMatmulFamily>();

}  // namespace hone::cpu
