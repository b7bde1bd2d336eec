// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/quant/integer_product_kernel.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/support/integer_loops.h"
#include "base/checked.h"

namespace hone::cpu {
namespace {

constexpr int64_t kRowsOfEnd = 8;        // sums of matrix tiles that are ended together
constexpr int64_t kSmallWork = 1 << 15;  // products that one worker should do alone
constexpr int64_t kSide = 16;            // steps and columns of a matrix tile of B
constexpr uint8_t kFlip = 0x80;
constexpr int64_t kOneTap = 0;

class ProductKernel : public CpuKernel {
 public:
  ProductKernel(const ProductShape& shape, const IntegerConfig& config, const IntegerProductCode& code,
                const KernelShapes& shapes, const CpuInfo& info)
      : s_(shape),
        config_(config),
        code_(code),
        loops_(integer_loops(info.isa)),
        lanes_(lanes_of(info.isa)),
        panel_(config.panel(info.isa)),
        panels_(ceil_divide(shape.n, panel_)),
        steps_(config.steps(shape.tile())),
        strips_(ceil_divide(shape.m, config.rows)),
        result_bytes_(static_cast<int64_t>(size_of(shapes.outputs[0].dtype))),
        residual_bytes_(code.sums.residual ? 1 : 4),
        flip_a_(shape.signed_a && config.dot != IntegerDot::words ? kFlip : uint8_t{0}),
        flip_b_(shape.signed_b ? uint8_t{0} : kFlip),
        workers_(info.workers) {
    zero_a_ = static_cast<uint32_t>(code.sums.zero + (flip_a_ != 0 ? 128 : 0));
    zero_b_ = static_cast<int32_t>(code.b_zero - (shape.signed_b ? 0 : 128));
    zeros_.assign(static_cast<size_t>(panel_), zero_b_);
  }

  size_t workspace_bytes() const override {
    return static_cast<size_t>(s_.b_matrices * matrix_bytes() + workers_ * strip_bytes());
  }
  int phases() const override { return 2; }
  bool serial() const override { return matrices() * s_.m * s_.n * s_.k < kSmallWork; }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    if (phase == 0) pack_b(worker, workers, bindings);
    else multiply(worker, workers, bindings);
  }

 protected:
  struct Strip {
    std::byte* rows;     // of A
    uint32_t* row_sums;  // of each
    int64_t first, count;
  };
  /// The arguments of the first tile of a panel and a strip.
  virtual void multiply_panel(const IntegerTileArgs& args, int64_t panel, const Strip& strip) const = 0;
  virtual void begin() const {}
  virtual void end() const {}

  bool is_last(int64_t panel) const { return panel == panels_ - 1; }
  int64_t row_bytes() const { return steps_ * kStepBytes; }

  IntegerTileSpec tile_spec(int rows, bool last_column) const {
    const int64_t left = s_.n % panel_, columns = last_column && left != 0 ? left : panel_;
    OutputSpec output;
    output.pixels = rows;
    output.vectors = static_cast<int>((columns + lanes_ - 1) / lanes_);
    output.tail = static_cast<int>(columns % lanes_);
    output.dst_pixel = s_.n * result_bytes_;
    output.residual_pixel = s_.n * residual_bytes_;
    output.epilogue = code_.epilogue.epilogue();
    IntegerTileSpec spec;
    spec.dot = config_.dot;
    spec.output = output;
    spec.a_row = row_bytes();
    spec.b_step = panel_ * kStepBytes;
    spec.steps = steps_;
    spec.column_zeros = zero_b_ != 0;
    spec.factor = code_.sums.factor;
    spec.bytes = {code_.sums.rounding, code_.sums.residual, code_.sums.result};
    return spec;
  }
  /// So many rows further.
  IntegerTileArgs below(IntegerTileArgs args, int64_t rows) const {
    advance(args.tile.src, rows * row_bytes());
    advance(args.tile.dst, rows * s_.n * result_bytes_);
    advance(args.tile.residual, rows * s_.n * residual_bytes_);
    args.row_sums += rows;
    return args;
  }

  template <typename T>
  static void advance(T*& pointer, int64_t bytes) {
    if (pointer != nullptr) pointer = reinterpret_cast<T*>(reinterpret_cast<intptr_t>(pointer) + bytes);
  }

  ProductShape s_;
  IntegerConfig config_;

 private:
  int64_t matrices() const { return static_cast<int64_t>(s_.a_matrix.size()); }
  // The workspace: of every matrix of B what its sums begin with and its panels; then of every worker a strip of A and its sums.
  int64_t padded() const { return panels_ * panel_; }
  int64_t base_bytes() const { return round_up(padded() * 4, 64); }
  int64_t matrix_bytes() const { return base_bytes() + padded() * row_bytes(); }
  int64_t sums_bytes() const { return round_up(config_.rows * 4, 64); }
  int64_t strip_bytes() const { return sums_bytes() + round_up(config_.rows * row_bytes(), 64); }
  std::byte* matrix_of(const Bindings& bindings, int64_t matrix) const {
    return static_cast<std::byte*>(bindings.workspace) + matrix * matrix_bytes();
  }

  /// Where in a panel the columns of a step begin, `run` of them side by side; in steps.
  int64_t run() const { return config_.dot == IntegerDot::tiles ? kSide : panel_; }
  int64_t place(int64_t step, int64_t column) const {
    if (config_.dot != IntegerDot::tiles) return step * panel_ + column;
    return (step / kSide * (panel_ / kSide) + column / kSide) * kSide * kSide + step % kSide * kSide;
  }

  void pack_b(int worker, int workers, const Bindings& bindings) const {
    const auto* b = static_cast<const uint8_t*>(bindings.inputs[static_cast<size_t>(code_.b)]);
    const Share share = share_of(s_.b_matrices * panels_, worker, workers);
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t matrix = item / panels_, first = item % panels_ * panel_, count = std::min(panel_, s_.n - first);
      std::byte* to = matrix_of(bindings, matrix);
      auto* base = reinterpret_cast<uint32_t*>(to) + first;
      auto* panel = reinterpret_cast<uint32_t*>(to + base_bytes() + first * row_bytes());
      std::fill_n(base, panel_, 0U);
      if (count < panel_) std::memset(panel, 0, static_cast<size_t>(panel_ * row_bytes()));
      const uint8_t* from = b + matrix * s_.n * s_.k + first * (s_.transposed_b ? s_.k : 1);
      if (s_.transposed_b) pack_columns(from, count, panel, base);
      else pack_rows(from, count, panel, base);
      for (int64_t j = 0; j < count; ++j) {  // sums of signed bytes are those of unsigned ones less 128 each
        const uint32_t sum = base[j] - static_cast<uint32_t>(s_.k) * 128;
        base[j] = zero_a_ * (static_cast<uint32_t>(s_.k) * static_cast<uint32_t>(zero_b_) - sum);
      }
    }
  }

  uint8_t flip_to_unsigned() const { return flip_b_ ^ kFlip; }

  void pack_rows(const uint8_t* b, int64_t count, uint32_t* panel, uint32_t* sums) const {
    for (int64_t row = 0; row < s_.k; ++row) loops_.add(b + row * s_.n, count, flip_to_unsigned(), sums);
    const int64_t step_rows = step_of(config_.dot);
    uint8_t nothing[kSide * IntegerConfig::kMostVectors];  // becomes zero
    std::ranges::fill(nothing, flip_b_);
    for (int64_t step = 0; step < steps_; ++step)
      for (int64_t column = 0; column < count; column += run()) {
        const uint8_t* rows[4];
        for (int64_t i = 0; i < step_rows; ++i) {
          const int64_t row = step * step_rows + i;
          rows[i] = row < s_.k ? b + row * s_.n + column : nothing;
        }
        const auto join = config_.dot == IntegerDot::words ? loops_.join_words : loops_.join_bytes;
        join(rows, std::min(run(), count - column), flip_b_, panel + place(step, column));
      }
  }

  void pack_columns(const uint8_t* b, int64_t count, uint32_t* panel, uint32_t* sums) const {
    const int64_t step_rows = step_of(config_.dot), whole = s_.k / step_rows;
    for (int64_t j = 0; j < count; ++j, b += s_.k) {
      sums[j] = loops_.sum(b, s_.k, flip_to_unsigned());
      uint32_t* to = panel + j % run();
      const int64_t column = j / run() * run();
      for (int64_t step = 0; step < whole; ++step) to[place(step, column)] = step_at(b + step * step_rows, step_rows);
      for (int64_t step = whole; step < steps_; ++step)
        to[place(step, column)] = step_at(b + step * step_rows, std::max<int64_t>(0, s_.k - step * step_rows));
    }
  }

  /// The elements of a column that count; the others are zero.
  uint32_t step_at(const uint8_t* from, int64_t count) const {
    uint32_t step = 0;
    if (config_.dot != IntegerDot::words) {
      if (count == kStepBytes) std::memcpy(&step, from, kStepBytes);
      else
        for (int64_t i = 0; i < count; ++i) step |= static_cast<uint32_t>(from[i]) << 8 * i;
      return step ^ (count == kStepBytes ? flip_b_ * 0x01010101U : flip_b_ * 0x01010101U & ((1U << 8 * count) - 1));
    }
    for (int64_t i = 0; i < count; ++i)
      step |= static_cast<uint32_t>(static_cast<uint16_t>(int16_t{static_cast<int8_t>(from[i] ^ flip_b_)})) << 16 * i;
    return step;
  }

  void multiply(int worker, int workers, const Bindings& bindings) const {
    std::byte* own =
        static_cast<std::byte*>(bindings.workspace) + s_.b_matrices * matrix_bytes() + worker * strip_bytes();
    Strip strip{own + sums_bytes(), reinterpret_cast<uint32_t*>(own), 0, 0};
    const Share share = share_of(matrices() * strips_, worker, workers);
    begin();
    for (int64_t item = share.begin; item < share.end; ++item) {
      const int64_t matrix = item / strips_;
      strip.first = item % strips_ * config_.rows;
      strip.count = std::min(config_.rows, s_.m - strip.first);
      copy_rows(strip, matrix, bindings);
      const std::byte* b = matrix_of(bindings, s_.b_matrix[static_cast<size_t>(matrix)]);
      for (int64_t panel = 0; panel < panels_; ++panel)
        multiply_panel(arguments(strip, matrix, panel, b, bindings), panel, strip);
    }
    end();
  }

  void copy_rows(const Strip& strip, int64_t matrix, const Bindings& bindings) const {
    const uint8_t* from = static_cast<const uint8_t*>(bindings.inputs[static_cast<size_t>(code_.a)]) +
                          (s_.a_matrix[static_cast<size_t>(matrix)] * s_.m + strip.first) * s_.k;
    const int64_t element = kStepBytes / step_of(config_.dot);
    std::byte* to = strip.rows;
    for (int64_t row = 0; row < strip.count; ++row, from += s_.k, to += row_bytes()) {
      if (element == 1) loops_.copy(from, s_.k, flip_a_, reinterpret_cast<uint8_t*>(to));
      else (s_.signed_a ? loops_.widen_i8 : loops_.widen_u8)(from, s_.k, reinterpret_cast<int16_t*>(to));
      std::memset(to + s_.k * element, 0, static_cast<size_t>(row_bytes() - s_.k * element));
      if (zero_b_ == 0) continue;
      strip.row_sums[row] = loops_.sum(from, s_.k, s_.signed_a ? kFlip : uint8_t{0});
      if (s_.signed_a && flip_a_ == 0) strip.row_sums[row] -= static_cast<uint32_t>(s_.k) * 128;
    }
  }

  IntegerTileArgs arguments(const Strip& strip, int64_t matrix, int64_t panel, const std::byte* b,
                            const Bindings& bindings) const {
    const int64_t column = panel * panel_, place = (matrix * s_.m + strip.first) * s_.n + column;
    const bool factor = code_.sums.factor != Factor::none;
    const auto constant = [&](size_t i, bool per_column) {
      return static_cast<const float*>(bindings.constants[i]) + (per_column ? column : 0);
    };
    IntegerTileArgs args{.tile = {.src = reinterpret_cast<const float*>(strip.rows),
                                  .weights = reinterpret_cast<const float*>(b + base_bytes() + column * row_bytes()),
                                  .dst = static_cast<float*>(bindings.outputs[0]),
                                  .residual = nullptr,
                                  .bias = code_.epilogue.bias ? constant(factor ? 1 : 0, true) : nullptr,
                                  .prefetch = nullptr,
                                  .rows = 0,
                                  .flags = 0},
                         .base = reinterpret_cast<const int32_t*>(b) + column,
                         .zeros = zeros_.data(),
                         .row_sums = strip.row_sums,
                         .factor = factor ? constant(0, code_.sums.factor == Factor::columns) : nullptr,
                         .taps = &kOneTap,
                         .sums = nullptr};
    if (code_.epilogue.residual >= 0)
      args.tile.residual = static_cast<const float*>(bindings.inputs[static_cast<size_t>(code_.epilogue.residual)]);
    advance(args.tile.dst, place * result_bytes_);
    advance(args.tile.residual, place * residual_bytes_);
    return args;
  }

  IntegerProductCode code_;
  IntegerLoops loops_;
  int64_t lanes_, panel_, panels_, steps_, strips_, result_bytes_, residual_bytes_;
  uint8_t flip_a_, flip_b_;
  uint32_t zero_a_ = 0;
  int32_t zero_b_ = 0;
  std::vector<int32_t> zeros_;  // of a panel's columns
  int workers_;
};

/// Sums in vector registers.
class VectorProduct final : public ProductKernel {
 public:
  VectorProduct(const ProductShape& shape, const IntegerConfig& config, const IntegerProductCode& code,
                const KernelShapes& shapes, const CpuInfo& info)
      : ProductKernel(shape, config, code, shapes, info) {
    const int64_t left = shape.m % config.rows;
    size_t offsets[2][2] = {};
    emitter_ = Emitter::generate(info.isa, [&](Emitter& e) {
      for (const bool last_row : {false, true})
        for (const bool last_column : {false, true})
          offsets[last_row][last_column] = emit_integer_tile(
              e, tile_spec(static_cast<int>(last_row && left != 0 ? left : config.rows), last_column));
    });
    for (const size_t i : {0, 1})
      for (const size_t j : {0, 1}) tiles_[i][j] = emitter_->entry<IntegerTileFunction>(offsets[i][j]);
  }

 private:
  void multiply_panel(const IntegerTileArgs& args, int64_t panel, const Strip& strip) const override {
    tiles_[strip.count < config_.rows ? 1 : 0][is_last(panel) ? 1 : 0](&args);
  }

  std::unique_ptr<Emitter> emitter_;
  IntegerTileFunction tiles_[2][2] = {};  // [of the last rows][of the last columns]
};

/// Sums on matrix tiles.
class MatrixProduct final : public ProductKernel {
 public:
  MatrixProduct(const ProductShape& shape, const IntegerProductCode& code, const KernelShapes& shapes,
                const CpuInfo& info)
      : ProductKernel(shape, kIntegerTiles, code, shapes, info) {
    for (int variant = 0; variant < 4; ++variant) {
      specs_[variant].pixels = variant / 2 == 0 ? 32 : 16;
      specs_[variant].channels = variant % 2 == 0 ? 32 : 16;
      specs_[variant].channel_blocks = row_bytes() / kTileRow;
      specs_[variant].src_pixel = row_bytes();
      specs_[variant].src_block = kTileRow;
      specs_[variant].bytes = specs_[variant].begins = true;
    }
    emit();
  }

 private:
  void emit() {
    const bool tiles = has_byte_tile_instructions();
    size_t matmuls[4] = {}, ends[2][kRowsOfEnd] = {}, on = 0, off = 0;
    emitter_ = Emitter::generate(Isa::avx512, [&](Emitter& e) {
      for (int variant = 0; tiles && variant < 4; ++variant) matmuls[variant] = emit_tile_matmul(e, specs_[variant]);
      if (tiles) on = emit_tiles_on(e), off = emit_tiles_off(e);
      for (const bool last_column : {false, true})
        for (int rows = 1; rows <= kRowsOfEnd; ++rows) {
          IntegerTileSpec spec = tile_spec(rows, last_column);
          spec.sum_row = kTileChannels * 4;
          ends[last_column][rows - 1] = emit_integer_tile(e, spec);
        }
    });
    for (int variant = 0; tiles && variant < 4; ++variant)
      matmuls_[variant] = emitter_->entry<TileMatmul>(matmuls[variant]);
    if (tiles) on_ = emitter_->entry<TileSwitch>(on), off_ = emitter_->entry<TileSwitch>(off);
    for (const size_t i : {0, 1})
      for (size_t rows = 0; rows < kRowsOfEnd; ++rows)
        ends_[i][rows] = emitter_->entry<IntegerTileFunction>(ends[i][rows]);
  }

  void begin() const override {
    if (on_ != nullptr) on_(&kFullTiles);
  }
  void end() const override {
    if (off_ != nullptr) off_(nullptr);
  }

  void multiply_panel(const IntegerTileArgs& args, int64_t panel, const Strip& strip) const override {
    const int64_t left = s_.n - panel * kTileChannels;
    const int variant = (strip.count <= 16 ? 2 : 0) + (left <= 16 ? 1 : 0);
    alignas(64) int32_t sums[kTilePixels * kTileChannels];
    const TileMatmulArgs matmul{
        strip.rows, reinterpret_cast<const std::byte*>(args.tile.weights), reinterpret_cast<float*>(sums), &kOneTap,
        nullptr,    reinterpret_cast<const std::byte*>(args.base)};
    if (matmuls_[variant] != nullptr) matmuls_[variant](&matmul);
    else multiply_without_tiles(specs_[variant], matmul);
    for (int64_t row = 0; row < strip.count; row += kRowsOfEnd) {
      IntegerTileArgs at = below(args, row);
      at.sums = sums + row * kTileChannels;
      ends_[is_last(panel) ? 1 : 0][std::min(kRowsOfEnd, strip.count - row) - 1](&at);
    }
  }

  TileMatmulSpec specs_[4];  // [32 or 16 rows][32 or 16 columns]
  TileMatmul matmuls_[4] = {};
  TileSwitch on_ = nullptr, off_ = nullptr;
  IntegerTileFunction ends_[2][kRowsOfEnd] = {};  // [of the last columns][rows]
  std::unique_ptr<Emitter> emitter_;
};

}  // namespace

std::shared_ptr<const CpuKernel> make_product_kernel(const ProductShape& shape, const IntegerConfig& config,
                                                     const IntegerProductCode& code, const KernelShapes& shapes,
                                                     const CpuInfo& info) {
  if (config.dot == IntegerDot::tiles) return std::make_shared<MatrixProduct>(shape, code, shapes, info);
  return std::make_shared<VectorProduct>(shape, config, code, shapes, info);
}

}  // namespace hone::cpu
