// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/conv/strips.h"

#include <algorithm>
#include <map>

#include "backends/cpu/conv/conv_kernel.h"

namespace hone::cpu {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

RowStrips cut_row(const ConvShape& s, int64_t pixels) {
  RowStrips row;
  const int64_t count = ceil_div(s.ow(), pixels);
  std::map<std::vector<int64_t>, int> classes;
  int64_t column = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = s.ow() / count + (i < s.ow() % count);
    TileClass c{int(size), {}};
    std::vector<int64_t> key{size};
    for (int64_t tap = 0; tap < s.kw; ++tap) {
      const int64_t first = column * s.stride_w - s.pad_left + tap * s.dilation_w;
      const int64_t begin = first >= 0 ? 0 : std::min(size, ceil_div(-first, s.stride_w));
      const int64_t end = first >= s.iw ? 0 : std::min(size, ceil_div(s.iw - first, s.stride_w));
      c.columns.push_back({int(begin), int(end)});
      key.insert(key.end(), {begin, end});
    }
    const auto [entry, fresh] = classes.try_emplace(std::move(key), int(classes.size()));
    if (fresh) row.classes.push_back(std::move(c));
    row.strips.push_back({column, entry->second});
    column += size;
  }
  return row;
}

std::vector<FilterRows> filter_rows(const ConvShape& s) {
  std::vector<FilterRows> rows;
  for (int64_t row = 0; row < s.oh(); ++row) {
    const int64_t first = row * s.stride_h - s.pad_top;
    const int64_t begin = first >= 0 ? 0 : std::min(s.kh, ceil_div(-first, s.dilation_h));
    const int64_t end = first >= s.ih ? 0 : std::min(s.kh, ceil_div(s.ih - first, s.dilation_h));
    const int64_t count = std::max<int64_t>(0, end - begin);
    rows.push_back({count ? first + begin * s.dilation_h : 0, count ? begin : 0, count});
  }
  return rows;
}

}  // namespace hone::cpu
