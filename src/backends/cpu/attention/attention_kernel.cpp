// SPDX-License-Identifier: Apache-2.0
//
// The loops, outermost first:
//
//   group of queries          (their weighted values stay in L2)
//     block of keys, values   (packed, from L2)
//       block of queries      (scores stay in L1 between matmul, softmax and matmul)

#include "backends/cpu/attention/attention_kernel.h"

#include <algorithm>

#include "base/error.h"

namespace hone::cpu {
namespace {

constexpr int64_t kGroup = 192;            // queries at most: 48 KB of weighted values of 64 columns
constexpr int64_t kCopied = 16;            // queries that pay for a copy of the values
constexpr int64_t kValueBytes = 24 << 10;  // of a block of values that stays in the first-level cache

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

GemmConfig best_config(const BatchedGemmShape& shape, Isa isa) {
  return batched_gemm_candidates(shape, isa, 1).front();
}

}  // namespace

AttentionShape attention_shape(const AttentionLayer& layer) {
  AttentionShape shape{layer.q, layer.k, layer.v, layer.y, {}, layer.scale};
  if (!layer.mask) return shape;
  const Dims& strides = layer.mask->strides;
  const bool full = layer.mask->dims[3] == layer.k.rows;
  shape.mask = {strides[0], strides[1], strides[2], full ? MaskKind::full : MaskKind::per_row};
  return shape;
}

AttentionArgs attention_args(const AttentionLayer& layer, const Bindings& bindings, float* scratch) {
  const auto floats = [&](const hone::OperandCode& operand) {
    return static_cast<const float*>(operand.find(bindings));
  };
  return {.q = floats(layer.q_operand),
          .k = floats(layer.k_operand),
          .v = floats(layer.v_operand),
          .mask = layer.mask ? floats(layer.mask_operand) : nullptr,
          .y = static_cast<float*>(bindings.outputs[0]),
          .scratch = scratch};
}

AttentionKernel::AttentionKernel(const AttentionShape& shape, const AttentionBlock& block, Isa isa, int workers)
    : s_(shape),
      isa_(isa),
      weighted_stride_(round_up(shape.v.columns, lanes_of(isa))),
      values_in_place_(shape.v.row_stride == shape.v.columns || shape.q.rows < kCopied) {
  choose_blocks(block, workers);
  generate();
  int64_t panels = 0;
  for (int64_t key = 0; key < s_.k.rows; key += block_.keys)
    panels +=
        static_cast<int64_t>(matmuls(block_.rows, std::min(block_.keys, s_.k.rows - key)).scores.scratch_floats());
  part_floats_ = {panels, values_in_place_ ? 0 : s_.v.rows * s_.v.columns, block_.rows * score_stride_,
                  group_ * weighted_stride_, group_ * SoftmaxCode::state_floats(isa)};
  for (int64_t& floats : part_floats_) scratch_floats_ += static_cast<size_t>(floats = round_up(floats, 16));
}

void AttentionKernel::choose_blocks(const AttentionBlock& block, int workers) {
  // Groups for all workers, of even sizes.
  const int64_t rows = s_.q.rows, heads = s_.q.batch * s_.q.heads;
  const int64_t wanted = std::min(ceil_div(2 * workers, heads), ceil_div(rows, 16));
  group_ = ceil_div(rows, std::max(ceil_div(rows, kGroup), wanted));
  block_.rows = ceil_div(group_, ceil_div(group_, block.rows));
  group_ = round_up(group_, block_.rows);
  groups_ = ceil_div(rows, group_);
  block_.keys = std::min(block.keys, s_.k.rows);
}

void AttentionKernel::generate() {
  const auto scale = static_cast<float>(double(s_.scale) * SoftmaxCode::unit(s_.mask.kind));
  const auto scores = [&](int64_t rows, int64_t keys) {
    return BatchedGemmShape{
        .matrix = {.m = rows, .n = keys, .k = s_.q.columns, .lda = s_.q.row_stride, .ldc = score_stride_},
        .ldb = s_.k.row_stride,
        .transposed_b = true,
        .scale = scale};
  };
  // All blocks share the packed keys, so they share the tile.
  GemmConfig tile = best_config(scores(block_.rows, block_.keys), isa_);
  tile.prefetch = false;  // packed keys are near already
  block_.keys = std::min(round_up(block_.keys, tile.panel_channels(isa_)), s_.k.rows);
  running_ = block_.keys < s_.k.rows;
  score_stride_ = round_up(block_.keys, 16);
  const auto add = [&](int64_t rows, int64_t keys) {
    const BatchedGemmShape result{.matrix = {.m = rows,
                                             .n = s_.v.columns,
                                             .k = keys,
                                             .lda = score_stride_,
                                             .ldc = weighted_stride_,
                                             .ld_residual = weighted_stride_},
                                  .ldb = value_stride()};
    GemmConfig config = best_config(result, isa_);
    const int64_t depth = std::max<int64_t>(32, kValueBytes / 4 / config.panel_channels(isa_) / 8 * 8);
    if (!running_ && keys >= 3 * depth) config.depth = static_cast<int>(depth);
    matmuls_[(rows != block_.rows) * 2 + (keys != block_.keys)].emplace(
        Matmuls{BatchedGemmKernel(scores(rows, keys), {}, tile, isa_),
                BatchedGemmKernel(result, {.residual = running_}, config, isa_)});
  };
  const int64_t last_rows = s_.q.rows % block_.rows, last_keys = s_.k.rows % block_.keys;
  for (const int64_t rows : {block_.rows, last_rows})
    for (const int64_t keys : {block_.keys, last_keys})
      if (rows != 0 && keys != 0) add(rows, keys);
  softmax_[0].emplace(SoftmaxSpec{block_.keys, s_.v.columns, s_.mask.kind, running_}, isa_);
  if (last_keys != 0) softmax_[1].emplace(SoftmaxSpec{last_keys, s_.v.columns, s_.mask.kind, running_}, isa_);
}

AttentionKernel::Scratch AttentionKernel::cut(float* scratch) const {
  std::array<float*, 5> part{};
  for (size_t i = 0; i < part.size(); ++i) {
    part[i] = scratch;
    scratch += part_floats_[i];
  }
  return {part[0], part[1], part[2], part[3], part[4]};
}

void AttentionKernel::run(int worker, int workers, const AttentionArgs& args) const {
  const Share share = share_of(s_.q.batch * s_.q.heads * groups_, worker, workers);
  const Scratch scratch = cut(args.scratch);
  const float* packed_from = nullptr;
  for (int64_t item = share.begin; item < share.end; ++item) {
    const int64_t batch = item / groups_ / s_.q.heads, head = item / groups_ % s_.q.heads;
    const float* keys = args.k + s_.k.offset(batch, shared_head(head), 0);
    if (keys != packed_from) pack(keys, args.v + s_.v.offset(batch, shared_head(head), 0), scratch);
    packed_from = keys;
    run_item(batch, head, item % groups_, args, scratch);
  }
}

void AttentionKernel::pack(const float* keys, const float* values, const Scratch& scratch) const {
  for (int64_t key = 0; key < s_.k.rows; key += block_.keys)
    matmuls(block_.rows, std::min(block_.keys, s_.k.rows - key))
        .scores.pack(keys + key * s_.k.row_stride, scratch.keys + key * s_.k.columns);
  if (values_in_place_) return;
  for (int64_t row = 0; row < s_.v.rows; ++row)
    std::copy_n(values + row * s_.v.row_stride, s_.v.columns, scratch.values + row * s_.v.columns);
}

void AttentionKernel::run_item(int64_t batch, int64_t head, int64_t group, const AttentionArgs& args,
                               const Scratch& scratch) const {
  constexpr int64_t kBytes = sizeof(float);
  const int64_t first = group * group_, rows = std::min(group_, s_.q.rows - first);
  const int64_t state_floats = SoftmaxCode::state_floats(isa_);
  const float* mask = args.mask;
  if (mask) mask += batch * s_.mask.batch + head * s_.mask.head + first * s_.mask.row;
  const float* values = values_in_place_ ? args.v + s_.v.offset(batch, shared_head(head), 0) : scratch.values;
  SoftmaxArgs softmax{.rows = rows,
                      .score_step = score_stride_ * kBytes,
                      .mask_step = s_.mask.row * kBytes,
                      .value_step = weighted_stride_ * kBytes,
                      .result_step = s_.y.row_stride * kBytes};
  if (running_) {
    SoftmaxCode::start(scratch.state, rows, isa_);
    std::fill_n(scratch.weighted, rows * weighted_stride_, 0.0f);
  }
  for (int64_t key = 0; key < s_.k.rows; key += block_.keys) {
    const int64_t keys = std::min(block_.keys, s_.k.rows - key);
    for (int64_t row = 0; row < rows; row += block_.rows) {
      softmax.rows = std::min(block_.rows, rows - row);
      softmax.scores = scratch.scores;
      softmax.values = scratch.weighted + row * weighted_stride_;
      softmax.state = scratch.state + row * state_floats;
      if (mask) softmax.mask = mask + row * s_.mask.row + (s_.mask.kind == MaskKind::full ? key : 0);
      const Matmuls& block = matmuls(softmax.rows, keys);
      block.scores.run_one({.a = args.q + s_.q.offset(batch, head, first + row),
                            .c = scratch.scores,
                            .scratch = scratch.keys + key * s_.k.columns});
      (*softmax_[keys != block_.keys])(softmax);
      block.result.run_one({.a = scratch.scores,
                            .b = values + key * value_stride(),
                            .residual = running_ ? softmax.values : nullptr,
                            .c = softmax.values});
    }
  }
  softmax.rows = rows;
  softmax.values = scratch.weighted;
  softmax.state = scratch.state;
  softmax.result = args.y + s_.y.offset(batch, head, first);
  softmax_[0]->finish(softmax);
}

}  // namespace hone::cpu
