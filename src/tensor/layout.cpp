// SPDX-License-Identifier: Apache-2.0
//
// Layout conversion, element by element along the rows of spatial positions.
#include "tensor/layout.h"

#include <cstring>

#include "base/checked.h"

namespace hone {
namespace {

/// Where the elements of logical (n, c) lie, one spatial position behind the other.
struct Row {
  int64_t first, step;
};

Row row_of(Layout layout, int64_t channels, int64_t area, int64_t n, int64_t c) {
  const int64_t block = channel_block(layout);
  if (is_channels_last(layout)) return {n * area * round_up(channels, block) + c, round_up(channels, block)};
  if (!is_blocked(layout)) return {(n * channels + c) * area, 1};
  return {(n * ceil_divide(channels, block) + c / block) * area * block + c % block, block};
}

template <size_t kBytes>
void copy_row(const std::byte* source, Row from, std::byte* target, Row to, int64_t count) {
  constexpr auto kSize = static_cast<int64_t>(kBytes);
  source += from.first * kSize, target += to.first * kSize;
  for (int64_t s = 0; s < count; ++s) std::memcpy(target + s * to.step * kSize, source + s * from.step * kSize, kBytes);
}

using CopyRow = void(const std::byte*, Row, std::byte*, Row, int64_t);

CopyRow& copy_row_of(size_t bytes) {
  switch (bytes) {
    case 1: return copy_row<1>;
    case 2: return copy_row<2>;
    case 4: return copy_row<4>;
    default: return copy_row<8>;
  }
}

}  // namespace

void convert_layout(const std::byte* source, std::byte* target, DType dtype, std::span<const int64_t> dims, Layout from,
                    Layout to) {
  const auto bytes = static_cast<size_t>(byte_size(dtype, dims, to));
  if (same_bytes(dims, from, to)) {
    if (bytes > 0) std::memcpy(target, source, bytes);
    return;
  }
  CopyRow& copy = copy_row_of(size_of(dtype));
  const int64_t channels = dims[1], area = elements(dims.subspan(2));
  if (channel_block(to) > 1) std::memset(target, 0, bytes);
  for (int64_t n = 0; n < dims[0]; ++n)
    for (int64_t c = 0; c < channels; ++c)
      copy(source, row_of(from, channels, area, n, c), target, row_of(to, channels, area, n, c), area);
}

}  // namespace hone
