// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/movement/transpose.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/movement/transpose.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/support/targets.h"

// NOLINTBEGIN(readability-identifier-naming): functions that exist once per instruction set are named as Highway names its
HWY_BEFORE_NAMESPACE();
namespace hone::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Four columns of `kRows` rows, of which each block of a vector has four.
template <int kRows>
HWY_INLINE auto column_part(const uint32_t* from, int64_t step) {
  if constexpr (kRows == 4) {
    return hn::LoadU(hn::Full128<uint32_t>(), from);
  } else {
    constexpr int kHalf = kRows / 2;
    const hn::FixedTag<uint32_t, kRows> d;
    return hn::Combine(d, column_part<kHalf>(from + kHalf * step, step), column_part<kHalf>(from, step));
  }
}

/// Four columns of `kRows` rows become four rows.
template <int kRows>
HWY_INLINE void move_tile(const uint32_t* from, int64_t from_step, uint32_t* to, int64_t to_step) {
  const hn::FixedTag<uint32_t, kRows> d;
  const hn::FixedTag<uint64_t, kRows / 2> pairs;
  const auto a = column_part<kRows>(from, from_step), b = column_part<kRows>(from + from_step, from_step),
             c = column_part<kRows>(from + 2 * from_step, from_step),
             e = column_part<kRows>(from + 3 * from_step, from_step);
  const auto ab0 = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)),
             ab1 = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b)),
             ce0 = hn::BitCast(pairs, hn::InterleaveLower(d, c, e)),
             ce1 = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab0, ce0)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab0, ce0)), d, to + to_step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab1, ce1)), d, to + 2 * to_step);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab1, ce1)), d, to + 3 * to_step);
}

/// Whole tiles of `kRows` rows from row `j` on; gives the row behind them. `columns` is a multiple of 4.
template <int kRows>
HWY_INLINE int64_t move_tiles(const TransposeArgs& args, int64_t i, int64_t columns, int64_t j) {
  for (; j + kRows <= args.rows; j += kRows)
    for (int64_t k = i; k < i + columns; k += 4)
      move_tile<kRows>(args.from + j * args.from_step + k, args.from_step, args.to + k * args.to_step + j,
                       args.to_step);
  return j;
}

void Transpose(const TransposeArgs& args) {
  constexpr int kRows = HWY_MAX_BYTES / sizeof(uint32_t) < 16 ? HWY_MAX_BYTES / sizeof(uint32_t) : 16;
  constexpr int64_t kLine = 16;
  for (int64_t i = 0; i < args.columns; i += kLine) {  // a line of each row, used while it is near
    const int64_t columns = std::min(kLine, args.columns - i), whole = columns / 4 * 4;
    int64_t j = move_tiles<kRows>(args, i, whole, 0);
    if constexpr (kRows > 4) j = move_tiles<4>(args, i, whole, j);
    const auto move_rest = [&](int64_t row, int64_t column) {
      for (; row < args.rows; ++row)
        for (int64_t k = column; k < i + columns; ++k)
          args.to[k * args.to_step + row] = args.from[row * args.from_step + k];
    };
    move_rest(j, i);
    if (whole < columns) move_rest(0, i + whole);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace hone::cpu
HWY_AFTER_NAMESPACE();
// NOLINTEND(readability-identifier-naming)

#if HWY_ONCE
namespace hone::cpu {

HWY_EXPORT(Transpose);

void (*transpose_words(Isa isa))(const TransposeArgs&) { return HWY_DISPATCH_TABLE(Transpose)[target_index(isa)]; }

}  // namespace hone::cpu
#endif
