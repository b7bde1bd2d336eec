// SPDX-License-Identifier: Apache-2.0
//
// How an output image is cut into runs of pixels that share generated code, and which filter rows count for an output row.
#pragma once

#include <cstdint>
#include <vector>

namespace hone::cpu {

struct ConvShape;

/// A run of output pixels of one row.
struct Strip {
  int64_t column;
  int tile_class;
};

/// Strips of one class have the same length and see the same padding, so they share their code.
struct TileClass {
  int pixels;
  struct Range {
    int begin, end;
  };  // pixels for which this filter column lies inside the image
  std::vector<Range> columns;
};

struct RowStrips {
  std::vector<Strip> strips;
  std::vector<TileClass> classes;
};

/// Cuts a row into the fewest strips of at most `pixels`, of nearly equal length.
RowStrips cut_row(const ConvShape& shape, int64_t pixels);

/// The filter rows that lie inside the image for one output row.
struct FilterRows {
  int64_t src_row, first, count;
};

std::vector<FilterRows> filter_rows(const ConvShape& shape);

}  // namespace hone::cpu
