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
// Work items (block, strip) are dealt out in contiguous ranges, so workers differ by at most one item.

#include "backends/cpu/jit/conv_kernel.h"

#include <algorithm>
#include <map>

#include "backends/cpu/jit/pack.h"
#include "backends/cpu/jit/tile_code.h"
#include "base/error.h"

namespace hone::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// A 1x1 convolution without padding or stride is a GEMM over all pixels of the batch: one long row.
ConvShape flattened(ConvShape s) {
  const bool pointwise = s.kh == 1 && s.kw == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 && s.pad_left == 0 &&
                         s.pad_bottom == 0 && s.pad_right == 0 && s.src_layout == SrcLayout::nhwc;
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

ConvKernel::ConvKernel(const ConvShape& shape, const Epilogue& epilogue, const ConvConfig& config, Isa isa, InPlaceWeights in_place)
    : shape_(flattened(shape)), epilogue_(epilogue), config_(config), isa_(isa), in_place_stride_(in_place.row_stride) {
  const ConvShape& s = shape_;
  HONE_ASSERT(s.groups > 0 && s.ic % s.groups == 0 && s.oc % s.groups == 0, "{} and {} channels in {} groups", s.ic, s.oc, s.groups);
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
  make_strips();
  make_rows();
  make_depth_blocks();
  generate();
}

size_t ConvKernel::code_bytes() const { return code_->getSize(); }

void ConvKernel::make_strips() {
  const ConvShape& s = shape_;
  const int64_t count = ceil_div(s.ow(), config_.pixels);
  std::map<std::vector<int64_t>, int> classes;
  int64_t column = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = s.ow() / count + (i < s.ow() % count);
    // Per tap, the pixels whose input column lies inside the image.
    std::vector<int64_t> key{size};
    for (int64_t tap = 0; tap < s.kw; ++tap) {
      const int64_t first = column * s.stride_w - s.pad_left + tap * s.dilation_w;
      const int64_t begin = first >= 0 ? 0 : ceil_div(-first, s.stride_w);
      const int64_t end = first >= s.iw ? 0 : ceil_div(s.iw - first, s.stride_w);
      key.push_back(std::clamp<int64_t>(begin, 0, size));
      key.push_back(std::clamp<int64_t>(end, 0, size));
    }
    const auto [entry, fresh] = classes.try_emplace(std::move(key), int(classes.size()));
    if (fresh) class_ranges_.push_back(entry->first);
    strips_.push_back({column, entry->second});
    column += size;
  }
  tile_classes_ = int(classes.size());
}

void ConvKernel::make_rows() {
  const ConvShape& s = shape_;
  for (int64_t row = 0; row < s.oh(); ++row) {
    const int64_t first = row * s.stride_h - s.pad_top;
    const int64_t begin = first >= 0 ? 0 : std::min(s.kh, ceil_div(-first, s.dilation_h));
    const int64_t end = first >= s.ih ? 0 : std::min(s.kh, ceil_div(s.ih - first, s.dilation_h));
    const int64_t taps = std::max<int64_t>(0, end - begin);
    rows_.push_back({taps ? first + begin * s.dilation_h : 0, taps ? begin : 0, taps});
  }
}

void ConvKernel::make_depth_blocks() {
  const int64_t total = shape_.group_ic(), block = depth_block_size(total, config_.depth);
  for (int64_t begin = 0; begin < total; begin += block) {
    const int64_t size = std::min(block, total - begin);
    depth_blocks_.push_back({begin, size, size == block ? 0 : 1});
  }
}

void ConvKernel::generate() {
  const ConvShape& s = shape_;
  code_ = std::make_unique<Emitter>(isa_);
  const int64_t lanes = lanes_of(isa_);
  std::map<int64_t, size_t> offsets;  // index in functions_ → offset
  functions_.assign(size_t(4 * tile_classes_), nullptr);

  for (const DepthBlock& block : depth_blocks_)
    for (int last_panel = 0; last_panel < 2; ++last_panel)
      for (int tile_class = 0; tile_class < tile_classes_; ++tile_class) {
        const int64_t index = (block.variant * 2 + last_panel) * tile_classes_ + tile_class;
        const int64_t channels = last_panel ? s.group_oc() - (group_panels_ - 1) * panel_ : panel_;
        if ((!last_panel && group_panels_ == 1) || offsets.contains(index)) continue;
        const std::vector<int64_t>& range = class_ranges_[size_t(tile_class)];
        TileSpec t;
        t.pixels = int(range[0]);
        t.vectors = int(ceil_div(channels, lanes));
        t.tail = int(channels % lanes);
        t.depth = block.size;
        t.src_pixel = 4 * src_pixel_ * s.stride_w;
        t.src_channel = 4 * src_channel_;
        t.src_row = 4 * src_row_ * s.dilation_h;
        t.weights_channel = 4 * (in_place_stride_ ? in_place_stride_ : panel_);
        t.weights_row = t.weights_channel * block.size * s.kw;
        t.weights_in_place = in_place_stride_ != 0;
        t.blocked = depth_blocks_.size() > 1;
        t.dst_pixel = 4 * s.dst_stride();
        t.residual_pixel = 4 * s.residual_stride();
        t.epilogue = epilogue_;
        bool unpadded = true;
        for (int64_t tap = 0; tap < s.kw; ++tap) {
          t.taps.push_back({4 * src_pixel_ * tap * s.dilation_w, t.weights_channel * block.size * tap,
                            int(range[size_t(1 + 2 * tap)]), int(range[size_t(2 + 2 * tap)])});
          unpadded &= t.taps.back().begin == 0 && t.taps.back().end == t.pixels;
        }
        // Neighbouring pixels without gaps: the columns of the filter and the channels are one contiguous run.
        if (unpadded && s.dilation_w == 1 && src_channel_ == 1 && src_pixel_ == block.size) {
          t.depth = block.size * s.kw;
          t.taps.resize(1);
        }
        t.prefetch_lines = prefetch_lines(t);
        offsets[index] = emit_tile(*code_, t);
      }
  code_->finish();
  for (const auto& [index, offset] : offsets) functions_[size_t(index)] = code_->entry<Function>(offset);
}

/// Spreads the next panel's weights over the strips of this one.
int ConvKernel::prefetch_lines(const TileSpec& tile) const {
  if (!config_.prefetch || in_place_stride_) return 0;
  const int64_t bytes = 4 * shape_.kh * shape_.kw * tile.depth / int64_t(tile.taps.size()) * int64_t(tile.taps.size()) * panel_;
  const int64_t strips = std::max<int64_t>(1, strip_count());
  const int64_t steps = shape_.kh * int64_t(tile.taps.size()) * std::max<int64_t>(1, tile.depth / 4);
  return int(std::clamp<int64_t>(ceil_div(bytes / 64, strips * steps), 1, 8));
}

void ConvKernel::run(int worker, int workers, const ConvArgs& args) const noexcept {
  const int64_t items = blocks_ * strip_count();
  run_range(items * worker / workers, items * (worker + 1) / workers, args);
}

void ConvKernel::run_range(int64_t begin, int64_t end, const ConvArgs& args) const noexcept {
  while (begin < end) {
    const int64_t block = begin / strip_count(), first = begin % strip_count();
    const int64_t count = std::min(end - begin, strip_count() - first);
    for (const DepthBlock& depth : depth_blocks_) run_strips(block, depth, first, first + count, args);
    begin += count;
  }
}

void ConvKernel::run_strips(int64_t block, const DepthBlock& depth, int64_t first, int64_t last, const ConvArgs& args) const noexcept {
  const ConvShape& s = shape_;
  const int64_t panel_begin = block * block_panels_, panel_end = std::min(panels_, panel_begin + block_panels_);
  const int64_t weights_row = panel_ * depth.size * s.kw;
  const int64_t panel_weights = s.group_ic() * s.kh * s.kw * panel_;
  const bool first_depth = depth.begin == 0, last_depth = depth.begin + depth.size == s.group_ic();
  const int64_t next_panel = (last_depth ? block_panels_ : 0);
  const int64_t next_depth = (last_depth ? 0 : depth.begin + depth.size);
  const int64_t share = ceil_div(panel_ * depth.size * s.kh * s.kw, 16 * (last - first)) * 16;  // whole cache lines

  TileArgs t{};
  t.flags = int64_t{first_depth} * kFirstBlock | int64_t{last_depth} * kLastBlock;
  int64_t row = first / int64_t(strips_.size()), x = first % int64_t(strips_.size());
  for (int64_t strip = first; strip < last; ++strip) {
    const Strip& column = strips_[size_t(x)];
    const int64_t image = row / int64_t(rows_.size());
    const Row& r = rows_[size_t(row % int64_t(rows_.size()))];
    const float* src = args.src + image * src_image_ + r.src_row * src_row_ + (column.column * s.stride_w - s.pad_left) * src_pixel_ +
                       depth.begin * src_channel_;
    const int64_t pixel = row * s.ow() + column.column;
    for (int64_t panel = panel_begin; panel < panel_end; ++panel) {
      const int64_t group = panel / group_panels_, in_group = panel % group_panels_;
      const int64_t channel = group * s.group_oc() + in_group * panel_;
      t.src = src + group * src_group_;
      t.weights = in_place_stride_ ? args.weights + depth.begin * in_place_stride_ + in_group * panel_
                                   : args.weights + panel * panel_weights + depth.begin * s.kh * s.kw * panel_ + r.first_tap * weights_row;
      t.rows = r.taps;
      t.dst = args.dst + pixel * s.dst_stride() + channel;
      t.residual = args.residual + pixel * s.residual_stride() + channel;
      t.bias = args.bias + panel * panel_;
      t.prefetch = args.weights + (panel + next_panel) * panel_weights + next_depth * s.kh * s.kw * panel_ + (strip - first) * share;
      const int variant = (depth.variant * 2 + (in_group == group_panels_ - 1)) * tile_classes_ + column.tile_class;
      functions_[size_t(variant)](&t);
    }
    if (++x == int64_t(strips_.size())) {
      x = 0;
      ++row;
    }
  }
}

}  // namespace hone::cpu
