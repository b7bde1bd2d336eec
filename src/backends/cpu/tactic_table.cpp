// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/tactic_table.h"

namespace hone::cpu {
namespace {

constexpr const CpuTactic* kTactics[] = {
    &tactics::winograd,       &tactics::conv,       &tactics::depthwise_conv,
    &tactics::conv_transpose, &tactics::linear,     &tactics::matmul,
    &tactics::attention,      &tactics::pointwise,  &tactics::pointwise_blocks,
    &tactics::copy,           &tactics::softmax,    &tactics::normalization,
    &tactics::pool,           &tactics::pool_any,   &tactics::reduce,
    &tactics::gather,         &tactics::scatter,    &tactics::generate,
    &tactics::cast,           &tactics::resize,     &tactics::recurrent,
    &tactics::along_axis,     &tactics::reduce_any, &tactics::quantization,
    &tactics::bitwise,        &tactics::group_norm, &tactics::neighbour_norm,
    &tactics::einsum,         &tactics::roi_align,  &tactics::reverse,
    &tactics::tile_linear,    &tactics::tile_conv,  &tactics::tile_attention,
};

}  // namespace

std::span<const CpuTactic* const> cpu_tactics() { return kTactics; }

CpuInfo cpu_info(const DeviceInfo& device) {
  const std::optional<Isa> isa = isa_from_string(device.architecture);
  HONE_CHECK(isa.has_value(), "{} is not a processor", device.name);
  return {*isa, device.workers};
}

}  // namespace hone::cpu
