// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/movement/transpose.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

TEST(Transpose, MovesEveryElementAndNothingBeside) {
  constexpr uint32_t kUntouched = 0xffffffff;
  for (const Isa isa : check::isas())
    for (const int64_t rows : {1, 3, 4, 7, 8, 15, 16, 24, 37})
      for (const int64_t columns : {1, 3, 4, 5, 16, 18, 35}) {
        const int64_t from_step = columns + 2, to_step = rows + 3;
        std::vector<uint32_t> from(static_cast<size_t>(rows * from_step)),
            to(static_cast<size_t>(columns * to_step), kUntouched), wanted = to;
        std::iota(from.begin(), from.end(), 0U);
        for (int64_t j = 0; j < rows; ++j)
          for (int64_t i = 0; i < columns; ++i)
            wanted[static_cast<size_t>(i * to_step + j)] = from[static_cast<size_t>(j * from_step + i)];
        transpose_words(isa)({from.data(), from_step, rows, columns, to.data(), to_step});
        EXPECT_EQ(to, wanted) << rows << " rows of " << columns << " " << to_string(isa);
      }
}

}  // namespace
}  // namespace hone::cpu
