// SPDX-License-Identifier: Apache-2.0
//
// Direct f32 convolution with generated code: NHWC output, NHWC or NCHW input, weights packed by pack_conv_weights().
// A kernel knows its exact shape. It is immutable; every worker of a team calls run() at the same time with its own number.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "backends/cpu/conv/strips.h"
#include "backends/cpu/jit/isa.h"
#include "regions/epilogue.h"
#include "tensor/dtype.h"

namespace hone::cpu {

class Emitter;
struct TileArgs;
struct TileSpec;

enum class SrcLayout { nhwc, nchw };

struct ConvShape {
  int64_t n = 1, ic = 1, ih = 1, iw = 1, oc = 1, kh = 1, kw = 1;
  int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int64_t groups = 1;
  SrcLayout src_layout = SrcLayout::nhwc;
  // Elements from one pixel to the next where a tensor is a slice of a wider one; 0 means dense. NHWC only.
  int64_t src_pixel_stride = 0, dst_pixel_stride = 0, residual_pixel_stride = 0;

  // The same from one row, and from one image, of dst and residual to the next.
  int64_t dst_row_stride = 0, residual_row_stride = 0, dst_image_stride = 0, residual_image_stride = 0;

  int64_t oh() const { return (ih + pad_top + pad_bottom - dilation_h * (kh - 1) - 1) / stride_h + 1; }
  int64_t ow() const { return (iw + pad_left + pad_right - dilation_w * (kw - 1) - 1) / stride_w + 1; }
  int64_t src_stride() const { return src_pixel_stride ? src_pixel_stride : ic; }
  int64_t dst_stride() const { return dst_pixel_stride ? dst_pixel_stride : oc; }
  int64_t residual_stride() const { return residual_pixel_stride ? residual_pixel_stride : oc; }
  int64_t group_ic() const { return ic / groups; }
  int64_t group_oc() const { return oc / groups; }
  int64_t dst_row() const { return dst_row_stride ? dst_row_stride : ow() * dst_stride(); }
  int64_t residual_row() const { return residual_row_stride ? residual_row_stride : ow() * residual_stride(); }
  int64_t dst_image() const { return dst_image_stride ? dst_image_stride : oh() * dst_row(); }
  int64_t residual_image() const { return residual_image_stride ? residual_image_stride : oh() * residual_row(); }
  double flops() const {
    return 2.0 * double(n) * double(oh()) * double(ow()) * double(oc) * double(group_ic()) * double(kh) * double(kw);
  }
  bool operator==(const ConvShape&) const = default;
};

/// Types that packed weights may be rounded to; they are widened when they are loaded.
enum class NarrowType { bf16, f16 };
inline constexpr std::array<std::string_view, 2> kNarrowTypeNames = {"bf16", "f16"};
constexpr const auto& field_names(NarrowType) { return kNarrowTypeNames; }

/// What a tuner may choose. All counts; 0 means "all of it".
struct ConvConfig {
  int pixels = 14;  // output pixels of a register tile (of one row); of a GEMM rows of A
  int vectors = 2;  // vectors of output channels of a register tile
  int depth = 0;    // input channels per pass; more than one pass accumulates through dst
  int panels =
      1;  // panels of output channels that a worker takes through the image together (their weights stay in L2)
  /// Bring the next panels' weights into L2 while working on these. Not a tuner's choice: off only where a kernel has just packed
  /// them.
  bool prefetch = true;
  std::optional<NarrowType> narrow = {};  // how packed weights are kept, where not as f32
  static void fields(auto& self, auto& visit) {
    visit("pixels", self.pixels, 1, 64);
    visit("vectors", self.vectors, 1, 16);
    visit("depth", self.depth, 0, 1 << 24);
    visit("panels", self.panels, 0, 1 << 24);
    visit("weights", self.narrow);
  }
  DType weights() const {
    if (!narrow) return DType::f32;
    return *narrow == NarrowType::f16 ? DType::f16 : DType::bf16;
  }
  bool operator==(const ConvConfig&) const = default;
  /// Output channels of a packed panel on this instruction set.
  int64_t panel_channels(Isa isa) const { return int64_t{vectors} * lanes_of(isa); }
};

/// The best guesses, best first, one to four of them. `workers` is the size of the team.
std::vector<ConvConfig> conv_candidates(const ConvShape& shape, Isa isa, int workers);

struct ConvArgs {
  const float* src = nullptr;
  const float* weights = nullptr;   // packed, of the type ConvConfig::weights()
  const float* bias = nullptr;      // packed; only with Epilogue::bias
  const float* residual = nullptr;  // only with Epilogue::residual; see accumulates_in_dst()
  float* dst = nullptr;
};

class ConvKernel {
 public:
  ConvKernel(const ConvShape& shape, const Epilogue& epilogue, const ConvConfig& config, Isa isa);
  ~ConvKernel();
  ConvKernel(ConvKernel&&) noexcept;

  void run(int worker, int workers, const ConvArgs& args) const noexcept;

  /// True when dst is written before the residual is read: they may then not be the same buffer.
  bool accumulates_in_dst() const;
  size_t code_bytes() const;

  /// B as the caller has it (row-major, N contiguous) instead of packed panels; see gemm_kernel.h.
  struct InPlaceWeights {
    int64_t row_stride = 0;
  };
  ConvKernel(const ConvShape& shape, const Epilogue& epilogue, const ConvConfig& config, Isa isa,
             InPlaceWeights in_place);

 private:
  friend class BatchedGemmKernel;
  using Function = void (*)(const TileArgs*);
  struct DepthBlock {
    int64_t begin, size;
    int variant;
  };  // a range of input channels

  void make_depth_blocks();
  TileSpec tile_spec(const DepthBlock& depth, const TileClass& tile_class, bool last_panel) const;
  void generate();
  /// The work items are panel-block major: item = block * strip_count() + strip. A worker's first item is where its share of
  /// the work begins; blocks weigh as many vectors as they compute.
  int64_t first_item(int worker, int workers) const noexcept;
  int64_t strip_count() const { return image_rows_ * int64_t(strips_.size()); }
  void run_range(int64_t begin, int64_t end, const ConvArgs& args) const noexcept;
  void run_all(const ConvArgs& args) const noexcept;
  void run_strips(int64_t block, const DepthBlock& depth, int64_t first, int64_t last,
                  const ConvArgs& args) const noexcept;

  ConvShape shape_;
  Epilogue epilogue_;
  ConvConfig config_;
  Isa isa_;
  int64_t in_place_stride_ = 0;
  int64_t panel_ = 0;  // output channels of a panel
  int64_t group_panels_ = 0, panels_ = 0, blocks_ = 0, block_panels_ = 0;
  int64_t image_rows_ = 0;                                                                 // n * oh
  int64_t src_pixel_ = 0, src_channel_ = 0, src_row_ = 0, src_image_ = 0, src_group_ = 0;  // strides, elements
  int64_t dst_row_ = 0, dst_image_ = 0, residual_row_ = 0, residual_image_ = 0;
  std::vector<Strip> strips_;  // of one output row
  std::vector<TileClass> classes_;
  std::vector<FilterRows> rows_;  // of one image
  std::vector<DepthBlock> depth_blocks_;
  std::vector<int64_t> vectors_before_;  // vectors in the blocks before each block; one more than there are blocks
  std::vector<Function> functions_;      // [depth variant][last panel of a group][tile class]
  std::unique_ptr<Emitter> code_;
};

}  // namespace hone::cpu
