// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/matmul/matrix_tiles.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "backends/cpu/jit/emitter.h"
#include "base/error.h"

namespace hone::cpu {
namespace {

constexpr int64_t kSourceInCache =
    512 << 10;                            // bytes of a block of strips: half of what the smallest such L2 leaves free
constexpr int64_t kPackedTogether = 128;  // pixels of a row that one worker packs at once
constexpr int64_t kStepFloats = kStepWeights / 2;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// What rounding a step of weights to bf16 leaves of each, into the step behind it, whose end is returned. An infinity goes there whole:
/// it meets only the pixels' largest parts.
float* split_step(float* step) {
  constexpr float kMost = 0x1.fep127F;
  float* rest = step + kStepFloats;
  for (int64_t i = 0; i < kStepFloats; ++i) {
    const float whole = step[i];
    step[i] = bfloat_to_float(float_to_bfloat(std::isnan(whole) ? 0 : std::clamp(whole, -kMost, kMost)));
    rest[i] = whole - step[i];
  }
  return rest + kStepFloats;
}

/// Without a filter and its padding, rows and images follow each other as if they were one row.
ConvShape flattened(ConvShape s) {
  const bool plain = s.kh == 1 && s.kw == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 &&
                     s.pad_left == 0 && s.pad_bottom == 0 && s.pad_right == 0;
  if (!plain) return s;
  s.iw *= s.n * s.ih;
  s.n = s.ih = 1;
  return s;
}

}  // namespace

size_t tiled_weight_count(const ConvShape& s, int parts) {
  return static_cast<size_t>(ceil_div(s.oc, kTileChannels) * kTileChannels * s.kh * s.kw * ceil_div(s.ic, kTileDepth) *
                             kTileDepth * parts);
}

void tile_weights(const float* weights, const FilterStrides& strides, const ConvShape& s, int parts, float* tiled) {
  for (int64_t panel = 0; panel < s.oc; panel += kTileChannels)
    for (int64_t tap = 0; tap < s.kh * s.kw; ++tap)
      for (int64_t block = 0; block < s.ic; block += kTileDepth) {
        float* step = tiled;
        for (int64_t half = panel; half < panel + kTileChannels; half += 16)
          for (int64_t pair = block; pair < block + kTileDepth; pair += 2)
            for (int64_t oc = half; oc < half + 16; ++oc)
              for (int64_t ic = pair; ic < pair + 2; ++ic)
                *tiled++ = oc < s.oc && ic < s.ic ? weights[oc * strides.oc + ic * strides.ic + tap * strides.tap] : 0;
        for (int part = 1; part < parts; ++part, step += kStepFloats) tiled = split_step(step);
      }
}

MatrixTileKernel::MatrixTileKernel(const ConvShape& shape, const Epilogue& epilogue, DType src, DType dst, int parts,
                                   int workers)
    : shape_(flattened(shape)), src_(src), dst_(dst), parts_(parts) {
  HONE_ASSERT(shape.groups == 1 && shape.src_layout == SrcLayout::nhwc, "tiles multiply whole pixels");
  HONE_ASSERT(parts == 1 || src == DType::f32, "there is nothing to cut into parts");
  lay_out();
  generate(epilogue, workers);
}

MatrixTileKernel::~MatrixTileKernel() = default;

void MatrixTileKernel::lay_out() {
  const ConvShape& s = shape_;
  blocks_ = ceil_div(s.ic, kTileDepth);
  panels_ = ceil_div(s.oc, kTileChannels);
  plane_rows_ = s.oh() + (s.kh - 1) * s.dilation_h / s.stride_h;
  plane_columns_ = s.ow() + (s.kw - 1) * s.dilation_w / s.stride_w;
  const bool gapless = plane_columns_ == s.ow();
  pixels_ = (s.oh() - 1) * plane_columns_ + s.ow();
  result_columns_ = gapless ? pixels_ : s.ow();
  strips_ = ceil_div(pixels_, kTilePixels);
  panel_bytes_ = s.kh * s.kw * blocks_ * parts_ * kStepWeights;
  const bool plain = s.kh * s.kw == 1 && s.n == 1 && s.ih == 1 && s.stride_w == 1 && s.ow() == s.iw && s.pad_left == 0;
  in_place_ = plain && src_ == DType::bf16 && s.ic % kTileDepth == 0 && pixels_ >= kTilePixels;
  part_bytes_ = in_place_ ? kTileRow : plane_rows_ * plane_columns_ * kTileRow;
  block_bytes_ = parts_ * part_bytes_;
  plane_bytes_ = blocks_ * block_bytes_;
  HONE_CHECK(block_bytes_ <= std::numeric_limits<int32_t>::max(), "{} pixels are too many for matrix tiles",
             part_bytes_ / kTileRow);
  std::map<std::pair<int64_t, int64_t>, int64_t> numbers;
  for (int64_t y = 0; y < s.kh; ++y)
    for (int64_t x = 0; x < s.kw; ++x) {
      const int64_t row = y * s.dilation_h, column = x * s.dilation_w;
      const Plane wanted{row % s.stride_h, column % s.stride_w};
      const auto [entry, fresh] = numbers.try_emplace({wanted.row, wanted.column}, std::ssize(planes_));
      if (fresh) planes_.push_back(wanted);
      taps_.push_back(entry->second * plane_bytes_ +
                      (row / s.stride_h * plane_columns_ + column / s.stride_w) * kTileRow);
    }
  image_bytes_ = plane_bytes_ * static_cast<int64_t>(planes_.size());
  // The last strip's surplus rows lie behind the last plane.
  if (!in_place_) workspace_bytes_ = static_cast<size_t>(s.n * image_bytes_ + kTilePixels * kTileRow);
  block_strips_ = std::max<int64_t>(1, kSourceInCache / (kTilePixels * kTileRow * blocks_ * parts_));
}

TileMatmulSpec MatrixTileKernel::matmul_spec(int variant, int64_t strips_of_panel) const {
  TileMatmulSpec spec;
  spec.pixels = variant / 2 == 0 ? 32 : 16;
  spec.channels = variant % 2 == 0 ? 32 : 16;
  spec.taps = static_cast<int64_t>(taps_.size());
  spec.channel_blocks = blocks_;
  spec.src_pixel = in_place_ ? shape_.ic * 2 : kTileRow;
  spec.src_block = block_bytes_;
  spec.parts = parts_;
  spec.src_part = part_bytes_;
  // While a panel passes its strips, the next one's weights come into L2; where there are many strips nobody waits for them.
  const int64_t lines = parts_ * kStepWeights / 64;
  if (strips_of_panel < lines) spec.prefetch_lines = static_cast<int>(ceil_div(lines, strips_of_panel));
  return spec;
}

void MatrixTileKernel::generate(const Epilogue& epilogue, int workers) {
  const ConvShape& s = shape_;
  const int64_t all_strips = s.n * strips_;
  // Weights that outweigh the pixels are read by one worker each.
  split_strips_ =
      panels_ * panel_bytes_ < all_strips * kTilePixels * kTileRow * blocks_ * parts_ && all_strips >= 2 * workers;
  for (int variant = 0; variant < 4; ++variant)
    specs_.push_back(matmul_spec(variant, split_strips_ ? ceil_div(all_strips, workers) : all_strips));
  const auto last_of = [](int64_t count, int64_t size) {
    return static_cast<int>(count - (ceil_div(count, size) - 1) * size);
  };
  TileOutputSpec output{.channels = kTileChannels,
                        .type = dst_,
                        .dst_pixel = s.oc * static_cast<int64_t>(size_of(dst_)),
                        .epilogue = epilogue};
  TilePackSpec pack{.channels = kTileDepth,
                    .type = src_,
                    .src_pixel = s.ic * s.stride_w * static_cast<int64_t>(size_of(src_)),
                    .parts = parts_,
                    .dst_part = part_bytes_};
  const bool tiles = has_matrix_tile_instructions();
  std::vector<size_t> matmuls;
  size_t outputs[2], packs[2], on = 0, off = 0;
  code_ = Emitter::generate(Isa::avx512, [&](Emitter& emitter) {
    if (tiles) {
      for (const TileMatmulSpec& spec : specs_) matmuls.push_back(emit_tile_matmul(emitter, spec));
      on = emit_tiles_on(emitter);
      off = emit_tiles_off(emitter);
    }
    for (int last = 0; last < 2; ++last) {
      if (last == 1) output.channels = last_of(s.oc, kTileChannels), pack.channels = last_of(s.ic, kTileDepth);
      outputs[last] = emit_tile_output(emitter, output);
      packs[last] = emit_tile_pack(emitter, pack);
    }
  });
  for (const size_t offset : matmuls) matmuls_.push_back(code_->entry<TileMatmul>(offset));
  matmuls_.resize(specs_.size());
  for (int last = 0; last < 2; ++last) {
    outputs_[last] = code_->entry<TileOutputRow>(outputs[last]);
    packs_[last] = code_->entry<TilePack>(packs[last]);
  }
  if (tiles) on_ = code_->entry<TileSwitch>(on), off_ = code_->entry<TileSwitch>(off);
}

void MatrixTileKernel::pack(int worker, int workers, const MatrixTileArgs& args) const noexcept {
  const int64_t planes = static_cast<int64_t>(planes_.size()), chunks = ceil_div(plane_columns_, kPackedTogether);
  const int64_t items = shape_.n * planes * plane_rows_ * chunks;
  for (int64_t item = items * worker / workers; item < items * (worker + 1) / workers; ++item) {
    const int64_t chunk = item % chunks, row = item / chunks % plane_rows_, image_plane = item / chunks / plane_rows_;
    const int64_t begin = chunk * kPackedTogether;
    pack_row(image_plane / planes, image_plane % planes, row,
             {begin, std::min(begin + kPackedTogether, plane_columns_)}, args);
  }
}

void MatrixTileKernel::pack_row(int64_t image, int64_t plane, int64_t row, Range columns,
                                const MatrixTileArgs& args) const noexcept {
  const ConvShape& s = shape_;
  const Plane& p = planes_[static_cast<size_t>(plane)];
  const int64_t y = row * s.stride_h + p.row - s.pad_top, shift = p.column - s.pad_left;
  // Columns of the plane whose source column c * stride + shift exists; none in a row of padding.
  const bool inside = y >= 0 && y < s.ih;
  const auto first_at_least = [&](int64_t x) { return x <= shift ? 0 : ceil_div(x - shift, s.stride_w); };
  const int64_t begin = inside ? std::clamp(first_at_least(0), columns.begin, columns.end) : columns.end;
  const int64_t end = inside ? std::clamp(first_at_least(s.iw), begin, columns.end) : columns.end;
  const auto size = static_cast<int64_t>(size_of(src_));
  const auto* src =
      static_cast<const std::byte*>(args.src) + ((image * s.ih + y) * s.iw + begin * s.stride_w + shift) * s.ic * size;
  auto* dst = static_cast<std::byte*>(args.workspace) + image * image_bytes_ + plane * plane_bytes_ +
              (row * plane_columns_) * kTileRow;
  for (int64_t block = 0; block < blocks_; ++block, dst += block_bytes_) {
    const auto clear = [&](int64_t from, int64_t to) {
      for (int part = 0; from < to && part < parts_; ++part)
        std::memset(dst + part * part_bytes_ + from * kTileRow, 0, static_cast<size_t>((to - from) * kTileRow));
    };
    clear(columns.begin, begin);
    clear(end, columns.end);
    if (begin == end) continue;
    const TilePackArgs pack{src + block * kTileDepth * size, dst + begin * kTileRow, end - begin};
    packs_[block == blocks_ - 1](&pack);
  }
}

void MatrixTileKernel::multiply(int worker, int workers, const MatrixTileArgs& args) const noexcept {
  const int64_t strips = shape_.n * strips_;
  if (on_ != nullptr) on_(&kFullTiles);
  if (split_strips_) {
    multiply_block({strips * worker / workers, strips * (worker + 1) / workers}, {0, panels_}, args);
  } else {
    const int64_t units = strips * panels_, end = units * (worker + 1) / workers;
    for (int64_t unit = units * worker / workers; unit < end;) {
      const int64_t panel = unit / strips, first = unit % strips, last = std::min(strips, first + end - unit);
      multiply_block({first, last}, {panel, panel + 1}, args);
      unit += last - first;
    }
  }
  if (off_ != nullptr) off_(nullptr);
}

void MatrixTileKernel::multiply_block(Range strips, Range panels, const MatrixTileArgs& args) const noexcept {
  for (int64_t first = strips.begin; first < strips.end; first += block_strips_)
    for (int64_t panel = panels.begin; panel < panels.end; ++panel)
      for (int64_t strip = first; strip < std::min(first + block_strips_, strips.end); ++strip)
        multiply_tile(strip, panel, args);
}

void MatrixTileKernel::multiply_tile(int64_t strip, int64_t panel, const MatrixTileArgs& args) const noexcept {
  const int64_t image = strip / strips_, in_image = strip % strips_;
  const Range wanted{in_image * kTilePixels, std::min((in_image + 1) * kTilePixels, pixels_)};
  // In place nothing may be read behind the source: the last strip begins before its first result.
  const int64_t first = in_place_ ? std::min(wanted.begin, pixels_ - kTilePixels) : wanted.begin;
  const size_t variant = (wanted.end - first <= 16 ? 2 : 0) + (shape_.oc - panel * kTileChannels <= 16 ? 1 : 0);
  const TileMatmulSpec& spec = specs_[variant];
  alignas(64) float sums[kTilePixels * kTileChannels];
  const auto* weights = static_cast<const std::byte*>(args.weights) + panel * panel_bytes_;
  const auto* src = static_cast<const std::byte*>(in_place_ ? args.src : args.workspace) + image * image_bytes_ +
                    first * spec.src_pixel;
  const int64_t step_share = in_image % (parts_ * kStepWeights / 64) * spec.prefetch_lines * 64 * spec.taps * blocks_;
  const TileMatmulArgs matmul{src, weights, sums, taps_.data(), weights + panel_bytes_ + step_share};
  if (matmuls_[variant] != nullptr) matmuls_[variant](&matmul);
  else multiply_without_tiles(spec, matmul);
  store_rows(image, wanted, panel, sums + (wanted.begin - first) * kTileChannels, args);
}

/// Without what was computed between the end of a row of results and the next row's begin.
void MatrixTileKernel::store_rows(int64_t image, Range pixels, int64_t panel, const float* sums,
                                  const MatrixTileArgs& args) const noexcept {
  const int64_t pitch = result_columns_ == pixels_ ? pixels_ : plane_columns_, channel = panel * kTileChannels;
  const auto size = static_cast<int64_t>(size_of(dst_));
  for (int64_t pixel = pixels.begin; pixel < pixels.end;) {
    const int64_t row = pixel / pitch, column = pixel % pitch;
    const bool between = column >= result_columns_;
    const int64_t count = std::min((between ? pitch : result_columns_) - column, pixels.end - pixel);
    if (!between) {
      const int64_t at = (((image * shape_.oh() + row) * shape_.ow() + column) * shape_.oc + channel) * size;
      const TileOutputArgs output{
          sums, static_cast<std::byte*>(args.dst) + at,
          args.residual != nullptr ? static_cast<const std::byte*>(args.residual) + at : nullptr,
          args.bias != nullptr ? args.bias + channel : nullptr, count};
      outputs_[panel == panels_ - 1](&output);
    }
    sums += count * kTileChannels;
    pixel += count;
  }
}

}  // namespace hone::cpu
