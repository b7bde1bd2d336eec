// SPDX-License-Identifier: Apache-2.0
//
// Depthwise convolution, NHWC, one filter per channel (groups = ic = oc). Vectors run over channels; a register tile is a run of
// output pixels of one row, and every input vector is loaded once for all the filter columns that use it.
#pragma once

#include "backends/cpu/conv/conv_kernel.h"

namespace hone::cpu {

struct DepthwiseConfig {
  int pixels = 7;
  int vectors = 1;
  static void fields(auto& self, auto& visit) {
    visit("pixels", self.pixels, 1, 64);
    visit("vectors", self.vectors, 1, 16);
  }
  bool operator==(const DepthwiseConfig&) const = default;
  /// Channels of a packed block (pack_depthwise_weights; the bias is packed with groups 1 and this panel).
  int64_t block_channels(Isa isa) const { return int64_t{vectors} * lanes_of(isa); }
};

std::vector<DepthwiseConfig> depthwise_candidates(const ConvShape& shape, Isa isa, int workers);

class DepthwiseKernel {
 public:
  /// `type`, f32 or bf16, is that of input, residual and result; ConvArgs has their addresses.
  DepthwiseKernel(const ConvShape& shape, const Epilogue& epilogue, const DepthwiseConfig& config, Isa isa,
                  DType type = DType::f32);
  ~DepthwiseKernel();
  DepthwiseKernel(DepthwiseKernel&&) noexcept;
  void run(int worker, int workers, const ConvArgs& args) const noexcept;
  bool accumulates_in_dst() const { return accumulates_in_dst_; }

 private:
  using Function = void (*)(const TileArgs*);

  ConvShape shape_;
  DType type_;
  int64_t block_ = 0, blocks_ = 0;
  bool accumulates_in_dst_ = false;
  std::vector<Strip> strips_;
  std::vector<TileClass> classes_;
  std::vector<FilterRows> rows_;
  std::vector<Function> functions_;  // [last block][tile class]
  std::unique_ptr<Emitter> code_;
};

}  // namespace hone::cpu
