// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/attention/tile_attention_kernel.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/jit/emitter.h"

namespace hone::cpu {
namespace {

constexpr int64_t kPackedBytes = kTilePixels * kTileRow;  // of 32 rows of 32 columns
constexpr int64_t kNoShift = 0;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

/// Pairs of columns of 16 rows, one row of pairs after another: what multiplies a tile of rows from the right.
void transpose_pairs(const std::byte* rows, std::byte* to) {
  for (int64_t row = 0; row < 16; ++row)
    for (int64_t pair = 0; pair < 16; ++pair)
      std::memcpy(to + pair * kTileRow + row * 4, rows + row * kTileRow + pair * 4, 4);
}

/// Two neighbouring rows' columns side by side: 16 columns in each half's row of pairs.
void interleave_rows(const std::byte* rows, std::byte* to) {
  for (int64_t pair = 0; pair < 16; ++pair) {
    uint16_t even[kTileDepth], odd[kTileDepth];
    std::memcpy(even, rows + 2 * pair * kTileRow, kTileRow);
    std::memcpy(odd, rows + (2 * pair + 1) * kTileRow, kTileRow);
    for (int64_t half = 0; half < 2; ++half) {
      uint32_t both[16];
      for (int64_t i = 0; i < 16; ++i) both[i] = even[16 * half + i] | uint32_t{odd[16 * half + i]} << 16;
      std::memcpy(to + half * kTileBytes + pair * kTileRow, both, kTileRow);
    }
  }
}

/// Rows of f32 as one block of 32 columns, in parts, after the other; the last may have fewer.
void pack_rows(const std::array<TilePack, 2>& packs, int parts, const float* from, int64_t rows, int64_t columns,
               std::byte* to) {
  for (int64_t column = 0; column < columns; column += kTileDepth, to += parts * kPackedBytes) {
    const TilePackArgs args{reinterpret_cast<const std::byte*>(from + column), to, rows};
    packs[columns - column < kTileDepth](&args);
  }
}

}  // namespace

TileAttentionKernel::TileAttentionKernel(const AttentionShape& shape, int64_t keys, int parts)
    : s_(shape), parts_(parts), step_bytes_(parts * kStepWeights) {
  block_ = std::min(round_up(keys, kTileDepth), round_up(s_.k.rows, kTileDepth));
  running_ = block_ < s_.k.rows;
  depth_blocks_ = ceil_div(s_.q.columns, kTileDepth);
  key_blocks_ = ceil_div(s_.k.rows, kTileDepth);
  value_panels_ = ceil_div(s_.v.columns, kTileChannels);
  weighted_stride_ = value_panels_ * kTileChannels;
  generate();
  measure_parts();
}

TileAttentionKernel::~TileAttentionKernel() = default;

void TileAttentionKernel::measure_parts() {
  part_bytes_ = {key_blocks_ * depth_blocks_ * step_bytes_,
                 value_panels_ * key_blocks_ * step_bytes_,
                 depth_blocks_ * parts_ * kPackedBytes,
                 block_ / kTileDepth * parts_ * kPackedBytes,
                 parts_ * kPackedBytes,
                 4 * kTilePixels * block_,
                 4 * kTilePixels * weighted_stride_,
                 4 * kTilePixels * SoftmaxCode::state_floats(Isa::avx512)};
  for (int64_t& bytes : part_bytes_) scratch_bytes_ += static_cast<size_t>(bytes = round_up(bytes, 64));
}

TileAttentionKernel::Scratch TileAttentionKernel::cut(float* scratch) const {
  std::array<std::byte*, 8> part{};
  auto* at = reinterpret_cast<std::byte*>(scratch);
  for (size_t i = 0; i < part.size(); ++i) {
    part[i] = at;
    at += part_bytes_[i];
  }
  const auto floats = [&](size_t i) { return reinterpret_cast<float*>(part[i]); };
  return {part[0], part[1], part[2], part[3], part[4], floats(5), floats(6), floats(7)};
}

void TileAttentionKernel::generate() {
  const int64_t last_keys = s_.k.rows % block_;
  const auto scale = static_cast<float>(double(s_.scale) * SoftmaxCode::unit(s_.mask.kind));
  std::vector<std::pair<TileMatmul*, size_t>> matmuls;
  std::vector<std::pair<TilePack*, size_t>> packs;
  const bool tiles = has_matrix_tile_instructions();
  size_t on = 0, off = 0;
  code_ = Emitter::generate(Isa::avx512, [&](Emitter& emitter) {
    const auto matmul = [&](Matmul& to, TileMatmulSpec spec) {
      for (size_t variant = 0; variant < 4; ++variant) {
        spec.pixels = variant / 2 == 0 ? 32 : 16;
        spec.channels = variant % 2 == 0 ? 32 : 16;
        spec.src_block = parts_ * kPackedBytes;
        spec.parts = parts_;
        spec.src_part = kPackedBytes;
        to.specs[variant] = spec;
        if (tiles) matmuls.emplace_back(&to.functions[variant], emit_tile_matmul(emitter, spec));
      }
    };
    const auto pack = [&](std::array<TilePack, 2>& to, int64_t columns, int64_t row_stride, float by) {
      for (const bool last : {false, true}) {
        const int64_t channels = last ? columns - (ceil_div(columns, kTileDepth) - 1) * kTileDepth : kTileDepth;
        packs.emplace_back(&to[last], emit_tile_pack(emitter, {.channels = static_cast<int>(channels),
                                                               .src_pixel = 4 * row_stride,
                                                               .scale = by,
                                                               .parts = parts_,
                                                               .dst_part = kPackedBytes}));
      }
    };
    matmul(scores_, {.channel_blocks = depth_blocks_, .sum_row = 4 * block_});
    for (const bool last : {false, true})
      matmul(results_[last], {.channel_blocks = ceil_div(last && last_keys != 0 ? last_keys : block_, kTileDepth),
                              .sum_row = 4 * weighted_stride_,
                              .accumulates = true});
    pack(query_packs_, s_.q.columns, s_.q.row_stride, scale);
    pack(key_packs_, s_.k.columns, s_.k.row_stride, 1);
    pack(value_packs_, s_.v.columns, s_.v.row_stride, 1);
    pack(weight_packs_, s_.k.rows, block_, 1);
    if (tiles) on = emit_tiles_on(emitter), off = emit_tiles_off(emitter);
  });
  for (const auto& [to, offset] : matmuls) *to = code_->entry<TileMatmul>(offset);
  for (const auto& [to, offset] : packs) *to = code_->entry<TilePack>(offset);
  if (tiles) on_ = code_->entry<TileSwitch>(on), off_ = code_->entry<TileSwitch>(off);
  const int64_t keys = std::min(block_, s_.k.rows);
  softmax_[0].emplace(SoftmaxSpec{keys, s_.v.columns, s_.mask.kind, running_}, Isa::avx512);
  if (last_keys != 0) softmax_[1].emplace(SoftmaxSpec{last_keys, s_.v.columns, s_.mask.kind, running_}, Isa::avx512);
}

void TileAttentionKernel::Matmul::run(int64_t rows, int64_t columns, const TileMatmulArgs& args) const {
  const size_t variant = (rows <= 16 ? 2 : 0) + (columns <= 16 ? 1 : 0);
  if (functions[variant] != nullptr) functions[variant](&args);
  else multiply_without_tiles(specs[variant], args);
}

void TileAttentionKernel::run(int worker, int workers, const AttentionArgs& args) const {
  const int64_t strips = ceil_div(s_.q.rows, kTilePixels);
  const Share share = share_of(s_.q.batch * s_.q.heads * strips, worker, workers);
  const Scratch scratch = cut(args.scratch);
  const float* packed_from = nullptr;
  if (on_ != nullptr) on_(&kFullTiles);
  for (int64_t item = share.begin; item < share.end; ++item) {
    const int64_t batch = item / strips / s_.q.heads, head = item / strips % s_.q.heads;
    const int64_t shared = head / (s_.q.heads / s_.k.heads);
    const float* keys = args.k + s_.k.offset(batch, shared, 0);
    if (keys != packed_from) pack(keys, args.v + s_.v.offset(batch, shared, 0), scratch);
    packed_from = keys;
    run_strip(batch, head, item % strips * kTilePixels, args, scratch);
  }
  if (off_ != nullptr) off_(nullptr);
}

void TileAttentionKernel::pack(const float* keys, const float* values, const Scratch& scratch) const {
  for (int64_t block = 0; block < key_blocks_; ++block) {
    const int64_t key = block * kTileDepth, rows = std::min(kTileDepth, s_.k.rows - key);
    // Rows behind the last key are zeros, so that they count for nothing.
    if (rows < kTileDepth) std::memset(scratch.rows, 0, static_cast<size_t>(parts_ * kPackedBytes));
    for (int64_t depth = 0; depth < depth_blocks_; ++depth) {
      const TilePackArgs args{reinterpret_cast<const std::byte*>(keys + key * s_.k.row_stride + depth * kTileDepth),
                              scratch.rows, rows};
      key_packs_[s_.k.columns - depth * kTileDepth < kTileDepth](&args);
      std::byte* to = scratch.keys + (block * depth_blocks_ + depth) * step_bytes_;
      for (int64_t tile = 0; tile < parts_ * kPackedBytes; tile += kTileBytes)
        transpose_pairs(scratch.rows + tile, to + tile);
    }
    for (int64_t panel = 0; panel < value_panels_; ++panel) {
      const TilePackArgs args{
          reinterpret_cast<const std::byte*>(values + key * s_.v.row_stride + panel * kTileChannels), scratch.rows,
          rows};
      value_packs_[s_.v.columns - panel * kTileChannels < kTileChannels](&args);
      std::byte* to = scratch.values + (panel * key_blocks_ + block) * step_bytes_;
      for (int64_t part = 0; part < parts_ * kPackedBytes; part += kPackedBytes)
        interleave_rows(scratch.rows + part, to + part);
    }
  }
}

void TileAttentionKernel::score(int64_t rows, int64_t key, int64_t keys, const Scratch& scratch) const {
  const std::byte* packed = scratch.keys + key / kTileDepth * depth_blocks_ * step_bytes_;
  for (int64_t column = 0; column < keys; column += kTileChannels, packed += depth_blocks_ * step_bytes_)
    scores_.run(rows, keys - column, {scratch.queries, packed, scratch.scores + column, &kNoShift, nullptr});
}

void TileAttentionKernel::weigh(int64_t rows, int64_t key, int64_t keys, const Scratch& scratch) const {
  pack_rows(weight_packs_, parts_, scratch.scores, rows, keys, scratch.weights);
  const Matmul& matmul = results_[keys != std::min(block_, s_.k.rows)];
  for (int64_t panel = 0; panel < value_panels_; ++panel) {
    const std::byte* packed = scratch.values + (panel * key_blocks_ + key / kTileDepth) * step_bytes_;
    matmul.run(rows, s_.v.columns - panel * kTileChannels,
               {scratch.weights, packed, scratch.weighted + panel * kTileChannels, &kNoShift, nullptr});
  }
}

void TileAttentionKernel::run_strip(int64_t batch, int64_t head, int64_t first, const AttentionArgs& args,
                                    const Scratch& scratch) const {
  constexpr int64_t kBytes = sizeof(float);
  const int64_t rows = std::min(kTilePixels, s_.q.rows - first);
  const float* mask = args.mask;
  if (mask) mask += batch * s_.mask.batch + head * s_.mask.head + first * s_.mask.row;
  SoftmaxArgs softmax{.scores = scratch.scores,
                      .state = scratch.state,
                      .values = scratch.weighted,
                      .result = args.y + s_.y.offset(batch, head, first),
                      .rows = rows,
                      .score_step = block_ * kBytes,
                      .mask_step = s_.mask.row * kBytes,
                      .value_step = weighted_stride_ * kBytes,
                      .result_step = s_.y.row_stride * kBytes};
  if (running_) SoftmaxCode::start(scratch.state, rows, Isa::avx512);
  std::fill_n(scratch.weighted, kTilePixels * weighted_stride_, 0.0f);
  pack_rows(query_packs_, parts_, args.q + s_.q.offset(batch, head, first), rows, s_.q.columns, scratch.queries);
  for (int64_t key = 0; key < s_.k.rows; key += block_) {
    const int64_t keys = std::min(block_, s_.k.rows - key);
    score(rows, key, keys, scratch);
    if (mask) softmax.mask = mask + (s_.mask.kind == MaskKind::full ? key : 0);
    (*softmax_[keys != std::min(block_, s_.k.rows)])(softmax);
    weigh(rows, key, keys, scratch);
  }
  softmax_[0]->finish(softmax);
}

}  // namespace hone::cpu
