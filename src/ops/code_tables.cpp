// SPDX-License-Identifier: Apache-2.0

#include "ops/code_tables.h"

#include "base/error.h"

namespace hone {
namespace {

constexpr float kE2m1[16] = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                             -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};
constexpr float kFp4[16] = {0.0F,  5.208333333e-03F,  0.66666667F,  1.0F,  0.33333333F,  0.5F,  0.16666667F,  0.25F,
                            -0.0F, -5.208333333e-03F, -0.66666667F, -1.0F, -0.33333333F, -0.5F, -0.16666667F, -0.25F};
constexpr float kNf4[16] = {-1.0F,
                            -0.6961928009986877F,
                            -0.5250730514526367F,
                            -0.39491748809814453F,
                            -0.28444138169288635F,
                            -0.18477343022823334F,
                            -0.09105003625154495F,
                            0.0F,
                            0.07958029955625534F,
                            0.16093020141124725F,
                            0.24611230194568634F,
                            0.33791524171829224F,
                            0.44070982933044434F,
                            0.5626170039176941F,
                            0.7229568362236023F,
                            1.0F};

}  // namespace

std::span<const float, 16> code_table(std::string_view name) {
  if (name == "e2m1") return kE2m1;
  if (name == "fp4") return kFp4;
  HONE_CHECK(name == "nf4", "there is no table of codes '{}'; there are e2m1, fp4 and nf4", name);
  return kNf4;
}

}  // namespace hone
