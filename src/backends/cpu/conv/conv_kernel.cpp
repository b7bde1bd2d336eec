// SPDX-License-Identifier: Apache-2.0
//
// The loop nest around the generated tiles, outermost first:
//
//   block of output-channel panels   (their weights stay in L2)
//     block of input channels        (usually one; partial sums pass through dst)
//       strip of output pixels       (its input stays in L1)
//         panel
//
// Output rows are cut into strips of nearly equal length. Strips with the same length and the same padding share their code.
// Work items (block, strip) are dealt out in contiguous ranges of nearly equal work.

#include "backends/cpu/conv/conv_kernel.h"

#include <algorithm>
#include <map>

#include "backends/cpu/conv/pack.h"
#include "backends/cpu/conv/strips.h"
#include "backends/cpu/jit/tile_code.h"
#include "base/error.h"

namespace hone::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A 1x1 convolution without padding or stride is a GEMM over all pixels of the batch: one long row.
ConvShape flattened(ConvShape s) {
  const bool pointwise = s.kh == 1 && s.kw == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 &&
                         s.pad_left == 0 && s.pad_bottom == 0 && s.pad_right == 0 && s.src_layout == SrcLayout::nhwc &&
                         !s.dst_row_stride && !s.residual_row_stride && !s.dst_image_stride && !s.residual_image_stride;
  if (!pointwise) return s;
  s.iw *= s.ih * s.n;
  s.ih = s.n = 1;
  return s;
}

}  // namespace

ConvKernel::~ConvKernel() = default;
ConvKernel::ConvKernel(ConvKernel&&) noexcept = default;

ConvKernel::ConvKernel(const ConvShape& shape, const Epilogue& epilogue, const ConvConfig& config, Isa isa)
    : ConvKernel(shape, epilogue, config, isa, InPlaceWeights{}) {}

ConvKernel::ConvKernel(const ConvShape& shape, const Epilogue& epilogue, const ConvConfig& config, Isa isa,
                       InPlaceWeights in_place)
    : shape_(flattened(shape)), epilogue_(epilogue), config_(config), isa_(isa), in_place_stride_(in_place.row_stride) {
  const ConvShape& s = shape_;
  HONE_ASSERT(s.groups > 0 && s.ic % s.groups == 0 && s.oc % s.groups == 0, "{} and {} channels in {} groups", s.ic,
              s.oc, s.groups);
  HONE_ASSERT(s.oh() > 0 && s.ow() > 0, "empty output");
  HONE_ASSERT(tile_fits(isa, config.pixels, config.vectors), "tile {}x{}", config.pixels, config.vectors);
  panel_ = config.panel_channels(isa);
  group_panels_ = ceil_div(s.group_oc(), panel_);
  panels_ = group_panels_ * s.groups;
  block_panels_ = config.panels > 0 ? std::min<int64_t>(config.panels, panels_) : panels_;
  blocks_ = ceil_div(panels_, block_panels_);
  image_rows_ = s.n * s.oh();

  const bool nhwc = s.src_layout == SrcLayout::nhwc;
  src_pixel_ = nhwc ? s.src_stride() : 1;
  src_channel_ = nhwc ? 1 : s.ih * s.iw;
  src_row_ = s.iw * src_pixel_;
  src_image_ = nhwc ? s.ih * src_row_ : s.ic * s.ih * s.iw;
  src_group_ = s.group_ic() * src_channel_;
  dst_row_ = s.dst_row();
  dst_image_ = s.dst_image();
  residual_row_ = s.residual_row();
  residual_image_ = s.residual_image();
  vectors_before_.push_back(0);
  for (int64_t block = 0; block < blocks_; ++block) {
    int64_t vectors = 0;
    for (int64_t panel = block * block_panels_; panel < std::min(panels_, (block + 1) * block_panels_); ++panel)
      vectors += ceil_div(std::min(panel_, s.group_oc() - panel % group_panels_ * panel_), lanes_of(isa));
    vectors_before_.push_back(vectors_before_.back() + vectors);
  }

  RowStrips cut = cut_row(s, config.pixels);
  strips_ = std::move(cut.strips);
  classes_ = std::move(cut.classes);
  rows_ = filter_rows(s);
  make_depth_blocks();
  generate();
}

size_t ConvKernel::code_bytes() const { return code_->getSize(); }

bool ConvKernel::accumulates_in_dst() const {
  return depth_blocks_.size() > 1 ||
         (epilogue_.residual_after_activation && ends_through_memory(isa_, config_.pixels, config_.vectors, epilogue_));
}

void ConvKernel::make_depth_blocks() {
  const int64_t total = shape_.group_ic(), block = depth_block_size(total, config_.depth);
  for (int64_t begin = 0; begin < total; begin += block) {
    const int64_t size = std::min(block, total - begin);
    depth_blocks_.push_back({begin, size, size == block ? 0 : 1});
  }
}

TileSpec ConvKernel::tile_spec(const DepthBlock& depth, const TileClass& tile_class, bool last_panel) const {
  const ConvShape& s = shape_;
  const int64_t lanes = lanes_of(isa_);
  const int64_t channels = last_panel ? s.group_oc() - (group_panels_ - 1) * panel_ : panel_;
  TileSpec t;
  t.pixels = tile_class.pixels;
  t.vectors = int(ceil_div(channels, lanes));
  t.tail = int(channels % lanes);
  t.depth = depth.size;
  t.src_pixel = 4 * src_pixel_ * s.stride_w;
  t.src_channel = 4 * src_channel_;
  t.src_row = 4 * src_row_ * s.dilation_h;
  const auto weight_bytes = static_cast<int64_t>(size_of(config_.weights()));
  t.weights = config_.weights();
  t.weights_channel = weight_bytes * (in_place_stride_ ? in_place_stride_ : panel_);
  t.weights_row = t.weights_channel * depth.size * s.kw;
  t.weights_in_place = in_place_stride_ != 0;
  t.blocked = depth_blocks_.size() > 1;
  t.dst_pixel = 4 * s.dst_stride();
  t.residual_pixel = 4 * s.residual_stride();
  t.epilogue = epilogue_;
  bool unpadded = true;
  for (int64_t column = 0; column < s.kw; ++column) {
    const auto [begin, end] = tile_class.columns[size_t(column)];
    t.taps.push_back({4 * src_pixel_ * column * s.dilation_w, t.weights_channel * depth.size * column, begin, end});
    unpadded &= begin == 0 && end == t.pixels;
  }
  // Neighbouring pixels without gaps: the columns of the filter and the channels are one contiguous run.
  if (unpadded && s.dilation_w == 1 && src_channel_ == 1 && src_pixel_ == depth.size) {
    t.depth = depth.size * s.kw;
    t.taps.resize(1);
  }
  // The next panel's weights, spread over the strips of this one.
  const int64_t bytes = weight_bytes * s.kh * s.kw * depth.size * panel_;
  if (config_.prefetch && !in_place_stride_) t.prefetch_lines = prefetch_lines(t, s.kh, strip_count(), bytes);
  return t;
}

void ConvKernel::generate() {
  std::map<size_t, size_t> offsets;  // index in functions_ → offset in the code
  code_ = Emitter::generate(isa_, [&](Emitter& emitter) {
    for (const DepthBlock& depth : depth_blocks_)
      for (size_t last_panel = group_panels_ == 1; last_panel < 2; ++last_panel)
        for (size_t c = 0; c < classes_.size(); ++c) {
          const size_t index = (size_t(depth.variant) * 2 + last_panel) * classes_.size() + c;
          if (!offsets.contains(index)) offsets[index] = emit_tile(emitter, tile_spec(depth, classes_[c], last_panel));
        }
  });
  functions_.assign(4 * classes_.size(), nullptr);
  for (const auto& [index, offset] : offsets) functions_[index] = code_->entry<Function>(offset);
}

int64_t ConvKernel::first_item(int worker, int workers) const noexcept {
  const int64_t target = vectors_before_.back() * strip_count() * worker / workers;
  int64_t block = 0;
  while (block < blocks_ && vectors_before_[size_t(block) + 1] * strip_count() <= target) ++block;
  if (block == blocks_) return blocks_ * strip_count();
  const int64_t vectors = vectors_before_[size_t(block) + 1] - vectors_before_[size_t(block)];
  return block * strip_count() + (target - vectors_before_[size_t(block)] * strip_count()) / vectors;
}

void ConvKernel::run(int worker, int workers, const ConvArgs& args) const noexcept {
  run_range(first_item(worker, workers), first_item(worker + 1, workers), args);
}

void ConvKernel::run_range(int64_t begin, int64_t end, const ConvArgs& args) const noexcept {
  while (begin < end) {
    const int64_t block = begin / strip_count(), first = begin % strip_count();
    const int64_t count = std::min(end - begin, strip_count() - first);
    for (const DepthBlock& depth : depth_blocks_) run_strips(block, depth, first, first + count, args);
    begin += count;
  }
}

void ConvKernel::run_all(const ConvArgs& args) const noexcept {
  for (int64_t block = 0; block < blocks_; ++block)
    for (const DepthBlock& depth : depth_blocks_) run_strips(block, depth, 0, strip_count(), args);
}

void ConvKernel::run_strips(int64_t block, const DepthBlock& depth, int64_t first, int64_t last,
                            const ConvArgs& args) const noexcept {
  const ConvShape& s = shape_;
  const int64_t panel_begin = block * block_panels_, panel_end = std::min(panels_, panel_begin + block_panels_);
  const int64_t weights_row = panel_ * depth.size * s.kw;
  const int64_t panel_weights = s.group_ic() * s.kh * s.kw * panel_;
  const bool first_depth = depth.begin == 0, last_depth = depth.begin + depth.size == s.group_ic();
  const int64_t next_panel = (last_depth ? block_panels_ : 0);
  const int64_t next_depth = (last_depth ? 0 : depth.begin + depth.size);
  const auto weight_bytes = static_cast<int64_t>(size_of(config_.weights()));
  const auto weights_at = [&](int64_t element) {
    return reinterpret_cast<const float*>(reinterpret_cast<const std::byte*>(args.weights) + weight_bytes * element);
  };
  const bool prefetches = config_.prefetch && !in_place_stride_;
  const int64_t line = 64 / weight_bytes,
                share = prefetches ? ceil_div(panel_ * depth.size * s.kh * s.kw, line * (last - first)) * line : 0;

  TileArgs t{};
  t.flags = int64_t{first_depth} * kFirstBlock | int64_t{last_depth} * kLastBlock;
  // Quotients are carried along, or known to be zero: a division takes as long as a good part of a small tile.
  int64_t x = 0, image = 0, in_image = 0, first_group = 0, first_in_group = panel_begin;
  if (first != 0) {
    const int64_t row = first / int64_t(strips_.size());
    x = first % int64_t(strips_.size());
    image = row / int64_t(rows_.size());
    in_image = row % int64_t(rows_.size());
  }
  if (s.groups > 1) {
    first_group = panel_begin / group_panels_;
    first_in_group = panel_begin % group_panels_;
  }
  for (int64_t strip = first; strip < last; ++strip) {
    const Strip& column = strips_[size_t(x)];
    const FilterRows& r = rows_[size_t(in_image)];
    const float* src = args.src + image * src_image_ + r.src_row * src_row_ +
                       (column.column * s.stride_w - s.pad_left) * src_pixel_ + depth.begin * src_channel_;
    int64_t group = first_group, in_group = first_in_group;
    for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
      const int64_t channel = group * s.group_oc() + in_group * panel_;
      t.src = src + group * src_group_;
      t.weights = weights_at(in_place_stride_
                                 ? depth.begin * in_place_stride_ + in_group * panel_
                                 : panel * panel_weights + depth.begin * s.kh * s.kw * panel_ + r.first * weights_row);
      t.rows = r.count;
      t.dst = args.dst + image * dst_image_ + in_image * dst_row_ + column.column * s.dst_stride() + channel;
      if (args.residual)
        t.residual = args.residual + image * residual_image_ + in_image * residual_row_ +
                     column.column * s.residual_stride() + channel;
      if (args.bias) t.bias = args.bias + panel * panel_;
      if (prefetches)
        t.prefetch = weights_at((panel + next_panel) * panel_weights + next_depth * s.kh * s.kw * panel_ +
                                (strip - first) * share);
      const size_t variant =
          (size_t(depth.variant) * 2 + (in_group == group_panels_ - 1)) * classes_.size() + size_t(column.tile_class);
      functions_[variant](&t);
      if (++in_group == group_panels_) in_group = 0, ++group;
    }
    if (++x == int64_t(strips_.size())) {
      x = 0;
      if (++in_image == int64_t(rows_.size())) in_image = 0, ++image;
    }
  }
}

}  // namespace hone::cpu
