// SPDX-License-Identifier: Apache-2.0
//
// Layout conversion, element by element.
#include "tensor/layout.h"

#include <cstring>

#include "base/checked.h"

namespace hone {
namespace {

/// Element offset of logical (n, c, s): s counts the flattened spatial positions.
int64_t offset_of(Layout layout, int64_t channels, int64_t area, int64_t n, int64_t c, int64_t s) {
  const int64_t block = channel_block(layout);
  if (is_channels_last(layout)) return (n * area + s) * round_up(channels, block) + c;
  if (!is_blocked(layout)) return (n * channels + c) * area + s;
  return ((n * ceil_divide(channels, block) + c / block) * area + s) * block + c % block;
}

}  // namespace

void convert_layout(const std::byte* source, std::byte* target, DType dtype, std::span<const int64_t> dims, Layout from,
                    Layout to) {
  const auto bytes = static_cast<size_t>(byte_size(dtype, dims, to));
  if (same_bytes(dims, from, to)) {
    std::memcpy(target, source, bytes);
    return;
  }
  const auto size = static_cast<int64_t>(size_of(dtype));
  const int64_t channels = dims[1], area = elements(dims.subspan(2));
  if (channel_block(to) > 1) std::memset(target, 0, bytes);
  for (int64_t n = 0; n < dims[0]; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t s = 0; s < area; ++s)
        std::memcpy(target + offset_of(to, channels, area, n, c, s) * size,
                    source + offset_of(from, channels, area, n, c, s) * size, static_cast<size_t>(size));
}

}  // namespace hone
