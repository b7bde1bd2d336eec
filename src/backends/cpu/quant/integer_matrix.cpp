// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/quant/integer_matrix.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"

namespace hone::cpu {
namespace {

constexpr int64_t kRowsOfEnd = 8;     // sums that are ended together
constexpr int64_t kFewProducts = 16;  // of a tile's row, which has 64
constexpr int64_t kFewColumns = 16;
constexpr int64_t kMostOfPixel = 512;          // bytes of a pixel that is copied where its tile ends behind its tensor
constexpr int64_t kSourceInCache = 512 << 10;  // bytes of A that pass the panels
constexpr int64_t kWeightsInL1 = 20 << 10;     // of panels that pass a strip together

/// The pixels of a result that are one row of tiles: so many, of which each `pitch` begin with `width` that count.
struct Line {
  int64_t pixels, pitch, width;
  int64_t rows() const { return ceil_divide(pixels, pitch); }  // of the result
  /// Of the tiles' rows that count.
  double use() const {
    return static_cast<double>(rows() * width) / static_cast<double>(round_up(pixels, kTilePixels / 2));
  }
};

/// All rows of an image where their windows lie at even distances.
std::optional<Line> joined_rows(const IntegerShape& s) {
  if (s.out.size() != 2) return std::nullopt;
  const int64_t width = s.out[1], between = s.strides[0] * s.span(1), pitch = between / s.strides[1];
  if (between % s.strides[1] != 0 || pitch < width) return std::nullopt;
  return Line{(s.out[0] - 1) * pitch + width, pitch, width};
}

Line line_of(const IntegerShape& shape) {
  const int64_t width = shape.out.back();
  const Line row{width, width, width};
  const std::optional<Line> joined = joined_rows(shape);
  return joined && joined->use() > row.use() ? *joined : row;
}

/// A that is multiplied in place ends where its tensor ends: the last tile begins earlier instead, and is copied where a run ends
/// behind its pixel.
bool ends_within(const IntegerShape& shape) {
  const int64_t stride = shape.groups * shape.depth * shape.strides.back();
  const bool is_within = shape.depth % kTileRow == 0 || (shape.taps() == 1 && stride <= kMostOfPixel);
  return shape.out.size() == 1 && shape.out[0] >= kTilePixels && is_within;
}

IntegerPack::Copy copy_of(const IntegerShape& shape, const IntegerSums& sums) {
  if (sums.column_zeros) return IntegerPack::Copy::with_window_sums;
  return ends_within(shape) ? IntegerPack::Copy::where_needed : IntegerPack::Copy::always;
}

class MatrixKernel final : public IntegerKernel {
 public:
  MatrixKernel(const IntegerShape& shape, const IntegerSums& sums, const KernelShapes& shapes)
      : IntegerKernel(shape, kIntegerTiles, sums, shapes, Isa::avx512, copy_of(shape, sums)), line_(line_of(shape)) {
    lines_ = shape.images * elements(shape.out) / (line_.width * line_.rows());
    strips_ = ceil_divide(line_.pixels, kTilePixels);
    if (pack_.phases() > 0) slack_ = static_cast<size_t>(kTilePixels * pack_.stride() + kTileRow);
    emit();
  }

 private:
  void emit() {
    for (int variant = 0; variant < 4; ++variant) specs_[variant] = matmul_spec(variant);
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

  TileMatmulSpec matmul_spec(int variant) const {
    TileMatmulSpec spec;
    spec.pixels = variant / 2 == 0 ? 32 : 16;
    spec.channels = variant % 2 == 0 ? 32 : 16;
    spec.taps = static_cast<int64_t>(pack_.taps().size());
    spec.channel_blocks = steps_ * kStepBytes / kTileRow / spec.taps;
    spec.src_pixel = pack_.stride();
    spec.src_block = kTileRow;
    spec.bytes = spec.begins = true;
    // While a panel passes its strips, the next one's weights come into L2; where there are many strips nobody waits for them.
    constexpr int64_t kLines = kStepWeights / 64;
    if (const int64_t strips = lines_ * strips_; strips < kLines)
      spec.prefetch_lines = static_cast<int>(ceil_divide(kLines, strips));
    return spec;
  }

  void multiply(int worker, int workers, const IntegerTileArgs& whole) const override {
    if (on_ != nullptr) on_(&kFullTiles);
    const int64_t strips = lines_ * strips_, strip_bytes = kTilePixels * pack_.stride();
    constexpr int64_t kByFar = 2;
    const bool by_panels = kByFar * strips * strip_bytes < weight_bytes() || strips < 2 * workers;
    if (by_panels) multiply_weights(whole, share_of(strips * s_.groups * panels_, worker, workers));
    else multiply_strips(whole, share_of(strips, worker, workers), std::max<int64_t>(1, kSourceInCache / strip_bytes));
    if (off_ != nullptr) off_(nullptr);
  }

  /// Where the weights outweigh A by far, all of A passes by each panel.
  void multiply_weights(const IntegerTileArgs& whole, const Share& share) const {
    const int64_t strips = lines_ * strips_;
    for (int64_t item = share.begin; item < share.end; ++item) multiply_tile(whole, item / strips, item % strips);
  }

  /// Strips that stay in cache pass by as many panels as do.
  void multiply_strips(const IntegerTileArgs& whole, const Share& share, int64_t together) const {
    const int64_t panels = s_.groups * panels_, abreast = std::max<int64_t>(1, kWeightsInL1 / panel_bytes());
    for (int64_t first = share.begin; first < share.end; first += together)
      for (int64_t panel = 0; panel < panels; panel += abreast)
        for (int64_t strip = first; strip < std::min(first + together, share.end); ++strip)
          for (int64_t next = panel; next < std::min(panel + abreast, panels); ++next)
            multiply_tile(whole, next, strip);
  }

  int64_t panel_bytes() const { return panel_ * steps_ * kStepBytes; }

  void multiply_tile(const IntegerTileArgs& whole, int64_t panel, int64_t strip) const {
    const int64_t line = strip / strips_, begin = strip % strips_ * kTilePixels,
                  end = std::min(begin + kTilePixels, line_.pixels),
                  first = pack_.phases() > 0 ? begin : std::min(begin, line_.pixels - kTilePixels);
    const int64_t columns = is_last(panel) ? s_.columns - (panels_ - 1) * panel_ : panel_;
    const int variant = (end - first <= 16 ? 2 : 0) + (columns <= 16 ? 1 : 0);
    alignas(64) int32_t sums[kTilePixels * kTileChannels];
    IntegerTileArgs args = at(whole, panel, 0);
    const std::byte* src =
        reinterpret_cast<const std::byte*>(args.tile.src) + place(line, panel / panels_) + first * pack_.stride();
    alignas(64) std::byte copy[kTilePixels * kMostOfPixel + kTileRow];
    if (pack_.phases() == 0 && s_.depth % kTileRow != 0) src = within(src, (panel / panels_) * s_.depth, first, copy);
    const auto* weights = reinterpret_cast<const std::byte*>(args.tile.weights);
    const int64_t passed =
        strip % (kStepWeights / 64) * specs_[variant].prefetch_lines * panel_bytes() / (kStepWeights / 64);
    const TileMatmulArgs matmul{src,
                                weights,
                                reinterpret_cast<float*>(sums),
                                pack_.taps().data(),
                                weights + panel_bytes() + passed,
                                reinterpret_cast<const std::byte*>(args.base)};
    if (matmuls_[variant] != nullptr) matmuls_[variant](&matmul);
    else multiply_without_tiles(specs_[variant], matmul);
    end_rows(whole, panel, line, {begin, end}, sums + (begin - first) * kTileChannels);
  }

  /// The tile's pixels, which are copied where it would read behind the end of A.
  const std::byte* within(const std::byte* src, int64_t channel, int64_t first, std::byte* copy) const {
    const int64_t left = pack_.image_bytes() - channel - first * pack_.stride();
    if (left >= (kTilePixels - 1) * pack_.stride() + steps_ * kStepBytes) return src;
    std::memcpy(copy, src, static_cast<size_t>(std::min(left, kTilePixels * pack_.stride())));
    return copy;
  }

  /// Of A, in bytes.
  int64_t place(int64_t line, int64_t group) const { return pack_.place(line * line_.rows(), group); }

  /// Those that count.
  void end_rows(const IntegerTileArgs& whole, int64_t panel, int64_t line, const Share& pixels,
                const int32_t* sums) const {
    const bool joined = line_.pitch < line_.pixels;
    int64_t row = joined ? pixels.begin / line_.pitch : 0, x = pixels.begin - row * line_.pitch;
    for (int64_t at_pixel = pixels.begin; at_pixel < pixels.end; ++row, x = 0) {
      const int64_t next = std::min((row + 1) * line_.pitch, pixels.end),
                    count = std::min(line_.width - x, next - at_pixel);
      if (count > 0)
        end_row(at(whole, panel, (line * line_.rows() + row) * line_.width + x), panel,
                sums + (at_pixel - pixels.begin) * kTileChannels, count);
      at_pixel = next;
    }
  }

  void end_row(IntegerTileArgs args, int64_t panel, const int32_t* sums, int64_t count) const {
    const IntegerTileFunction* ends = ends_[is_last(panel) ? 1 : 0];
    args.sums = sums;
    for (; count > kRowsOfEnd; count -= kRowsOfEnd) {
      ends[kRowsOfEnd - 1](&args);
      pass(args, kRowsOfEnd);
    }
    ends[count - 1](&args);
  }

  Line line_;
  int64_t lines_ = 1, strips_ = 1;
  TileMatmulSpec specs_[4];  // [32 or 16 pixels][32 or 16 columns]
  TileMatmul matmuls_[4] = {};
  TileSwitch on_ = nullptr, off_ = nullptr;
  IntegerTileFunction ends_[2][kRowsOfEnd] = {};  // [of the last columns][rows]
  std::unique_ptr<Emitter> emitter_;
};

}  // namespace

bool fills_matrix_tiles(const IntegerShape& shape) {
  return shape.run() * shape.depth >= kFewProducts && shape.columns >= kFewColumns && shape.in.size() <= 2;
}

bool is_matrix_config(const IntegerConfig& config) {
  return config.rows == kIntegerTiles.rows && config.vectors == kIntegerTiles.vectors;
}

bool matrix_ends_fit(const EpilogueCode& epilogue, bool to_bytes) {
  return !to_bytes ||
         !ends_through_memory(Isa::avx512, kRowsOfEnd, static_cast<int>(kIntegerTiles.vectors), epilogue.epilogue());
}

std::shared_ptr<const CpuKernel> make_matrix_kernel(const IntegerShape& shape, const IntegerSums& sums,
                                                    const KernelShapes& shapes) {
  return std::make_shared<MatrixKernel>(shape, sums, shapes);
}

}  // namespace hone::cpu
