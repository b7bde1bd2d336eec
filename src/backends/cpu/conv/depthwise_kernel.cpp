// SPDX-License-Identifier: Apache-2.0
//
// Rows of the output outermost, so that the few input rows they share stay in cache; then strips, then
// channel blocks: neighbouring blocks lie side by side in memory.

#include "backends/cpu/conv/depthwise_kernel.h"

#include <algorithm>

#include "backends/cpu/conv/depthwise_code.h"
#include "backends/cpu/jit/tile_code.h"
#include "base/error.h"

namespace hone::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

DepthwiseKernel::~DepthwiseKernel() = default;
DepthwiseKernel::DepthwiseKernel(DepthwiseKernel&&) noexcept = default;

DepthwiseKernel::DepthwiseKernel(const ConvShape& shape, const Epilogue& epilogue, const DepthwiseConfig& config,
                                 Isa isa, DType type)
    : shape_(shape), type_(type), block_(config.block_channels(isa)), blocks_(ceil_div(shape.oc, block_)) {
  const ConvShape& s = shape_;
  HONE_ASSERT(s.groups == s.ic && s.ic == s.oc && s.src_layout == SrcLayout::nhwc, "not a depthwise convolution");
  HONE_ASSERT(tile_fits(isa, config.pixels, config.vectors), "tile {}x{}", config.pixels, config.vectors);
  accumulates_in_dst_ =
      epilogue.residual_after_activation && ends_through_memory(isa, config.pixels, config.vectors, epilogue, type);
  RowStrips cut = cut_row(s, config.pixels);
  strips_ = std::move(cut.strips);
  classes_ = std::move(cut.classes);
  rows_ = filter_rows(s);

  const auto size = static_cast<int64_t>(size_of(type));
  std::vector<size_t> offsets;
  code_ = Emitter::generate(isa, [&](Emitter& emitter) {
    for (int last_block = 0; last_block < 2; ++last_block)
      for (const TileClass& tile_class : classes_) {
        const int64_t channels = last_block ? s.oc - (blocks_ - 1) * block_ : block_;
        DepthwiseSpec d;
        d.tile = tile_class;
        d.pixels = tile_class.pixels;
        d.vectors = int(ceil_div(channels, lanes_of(isa)));
        d.tail = int(channels % lanes_of(isa));
        d.stride = int(s.stride_w);
        d.dilation = int(s.dilation_w);
        d.src_pixel = size * s.src_stride();
        d.src_row = size * s.src_stride() * s.iw * s.dilation_h;
        d.block_bytes = 4 * block_;
        d.dst_pixel = size * s.dst_stride();
        d.residual_pixel = size * s.residual_stride();
        d.type = type;
        d.epilogue = epilogue;
        offsets.push_back(emit_depthwise_tile(emitter, d));
      }
  });
  for (size_t offset : offsets) functions_.push_back(code_->entry<Function>(offset));
}

void DepthwiseKernel::run(int worker, int workers, const ConvArgs& args) const noexcept {
  const ConvShape& s = shape_;
  const int64_t strips = int64_t(strips_.size());
  const int64_t items = s.n * s.oh() * strips * blocks_, end = items * (worker + 1) / workers;
  const int64_t image = s.ih * s.iw * s.src_stride();
  int64_t item = items * worker / workers;
  int64_t block = item % blocks_, x = item / blocks_ % strips, row = item / blocks_ / strips;
  const auto size = static_cast<int64_t>(size_of(type_));
  const auto at = [&](auto* tensor, int64_t element) {
    using Pointer = decltype(tensor);
    return reinterpret_cast<Pointer>(reinterpret_cast<intptr_t>(tensor) + element * size);
  };
  TileArgs t{};
  while (item < end) {
    const Strip& strip = strips_[size_t(x)];
    const FilterRows& filter = rows_[size_t(row % s.oh())];
    const int64_t column = strip.column * s.stride_w - s.pad_left, pixel = row * s.ow() + strip.column;
    const int64_t src = row / s.oh() * image + (filter.src_row * s.iw + column) * s.src_stride();
    t.rows = filter.count;
    for (; block < blocks_ && item < end; ++block, ++item) {
      const int64_t channel = block * block_;
      t.src = at(args.src, src + channel);
      t.weights = args.weights + channel * s.kh * s.kw + filter.first * s.kw * block_;
      if (args.bias) t.bias = args.bias + channel;
      t.dst = at(args.dst, pixel * s.dst_stride() + channel);
      if (args.residual) t.residual = at(args.residual, pixel * s.residual_stride() + channel);
      functions_[(block == blocks_ - 1 ? classes_.size() : 0) + size_t(strip.tile_class)](&t);
    }
    block = 0;
    if (++x == strips) {
      x = 0;
      ++row;
    }
  }
}

}  // namespace hone::cpu
