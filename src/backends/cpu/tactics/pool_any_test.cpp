// SPDX-License-Identifier: Apache-2.0
//
// Pools of any element type, against the reference.
#include <fmt/format.h>

#include "backends/cpu/tactic_check.h"

namespace hone::cpu {
namespace {

const CheckOptions kSizes{
    .tolerance = 2e-5, .seed = 15, .tuned = {{"N", 2}}, .run = {{{"N", 2}}, {{"N", 1}}, {{"N", 5}}}};

struct Windows {
  const char *shape, *attrs;
};
constexpr Windows kWindows[] = {
    {"N,3,19,21", "kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0], dilations=[1, 1]"},
    {"N,3,19,21", "kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], dilations=[1, 1]"},
    {"N,5,12,7", "kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2], dilations=[1, 1]"},
    {"N,5,12,7", "kernel_shape=[3, 2], strides=[1, 3], pads=[0, 1, 2, 0], dilations=[2, 1]"},
    {"N,3,10,10", "kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1], dilations=[1, 1], ceil_mode=1"},
    {"N,3,10,11", "kernel_shape=[3, 2], strides=[2, 2], pads=[0, 0, 0, 0], dilations=[1, 1], auto_pad=\"SAME_LOWER\""},
    {"N,40,120", "kernel_shape=[3], strides=[2], pads=[1, 1], dilations=[3]"},
    {"N,2,50,50", "kernel_shape=[49, 49], strides=[1, 1], pads=[0, 0, 0, 0], dilations=[1, 1]"},
    {"N,5,6,7,8", "kernel_shape=[2, 3, 2], strides=[2, 1, 2], pads=[0, 1, 0, 0, 1, 0], dilations=[1, 1, 1]"}};

TEST(PoolAnyTactic, RootsOfSumsOfPowers) {
  for (const char* type : {"f32", "bf16", "f16", "f64"})
    for (const auto& [shape, attrs] : kWindows)
      for (const int p : {1, 2, 3})
        EXPECT_GT(check_tactics(fmt::format("(%x: {}[{}]) {{\n %y = LpPool(%x) {{{}, p={}}}\n return %y\n}}", type,
                                            shape, attrs, p),
                                "pool_any", kSizes),
                  0);
}

}  // namespace
}  // namespace hone::cpu
