// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

// Sums of a few hundred numbers in another order than the reference.
const CheckOptions kSizes{
    .tolerance = 2e-5, .seed = 8, .tuned = {{"N", 2}}, .run = {{{"N", 2}}, {{"N", 1}}, {{"N", 3}}}};

int check_one(std::string_view family, const std::string& input, const std::string& body,
              std::string_view dtype = "f32") {
  return check_tactics(fmt::format("(%x: {}[{}]) {{\n{}\n return %y\n}}", dtype, input, body), family, kSizes);
}

/// In every type that the kernels read; 0 when one of them is not offered.
int check_floats(std::string_view family, const std::string& input, const std::string& body) {
  return std::min(check_one(family, input, body), check_one(family, input, body, "bf16"));
}

TEST(SoftmaxTactic, AlongEveryAxis) {
  for (const char* op : {"Softmax", "LogSoftmax"})
    for (const int axis : {0, 1, 2, 3})
      for (const char* shape : {"N,5,7,9", "N,16,8,32", "N,1,1,1", "N,3,70,2"})
        EXPECT_GT(check_floats("softmax", shape, fmt::format(" %y = {}(%x) {{axis={}}}", op, axis)), 0);
}

TEST(SoftmaxTactic, OnRowsAroundAVector) {
  for (const int n : {1, 2, 7, 8, 15, 16, 17, 31, 33, 127, 1000})
    EXPECT_GT(check_floats("softmax", fmt::format("N,{}", n), " %y = Softmax(%x) {axis=-1}"), 0);
}

TEST(NormalizationTactic, OverTheInnermostAxes) {
  for (const char* dtype : {"f32", "bf16"})
    for (const int n : {1, 7, 16, 33, 768, 3000}) {
      const std::string scale = fmt::format(
          " %s = constant {1}[{0}]!0123456789abcdef0123456789abcdef\n %b = constant "
          "{1}[{0}]!1123456789abcdef0123456789abcdef\n",
          n, dtype);
      for (const char* body : {" %y = LayerNormalization(%x, %s, %b) {axis=-1, epsilon=1e-05}",
                               " %y = LayerNormalization(%x, %s) {axis=-1, epsilon=1e-05}",
                               " %y = RMSNormalization(%x, %s) {axis=-1, epsilon=1e-05}"})
        EXPECT_GT(check_one("normalization", fmt::format("N,5,{}", n), scale + body, dtype), 0);
    }
}

TEST(PoolTactic, WindowsOfAllKinds) {
  const auto pool = [](const char* op, const char* attrs) { return fmt::format(" %y = {}(%x) {{{}}}", op, attrs); };
  for (const char* shape : {"N,3,9,11", "N,64,12,7", "N,17,10,10"}) {
    for (const char* attrs :
         {"kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0], dilations=[1, 1]",
          "kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], dilations=[1, 1]",
          "kernel_shape=[5, 5], strides=[1, 1], pads=[2, 2, 2, 2], dilations=[1, 1]",
          "kernel_shape=[3, 2], strides=[1, 3], pads=[0, 1, 2, 0], dilations=[2, 1]",
          "kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1], dilations=[1, 1], ceil_mode=1"}) {
      EXPECT_GT(check_floats("pool", shape, pool("MaxPool", attrs)), 0);
      EXPECT_GT(check_floats("pool", shape, pool("AveragePool", attrs)), 0);
      EXPECT_GT(check_floats("pool", shape, pool("AveragePool", fmt::format("{}, count_include_pad=1", attrs).c_str())),
                0);
    }
  }
  EXPECT_GT(
      check_floats("pool", "N,5,12", pool("MaxPool", "kernel_shape=[3], strides=[2], pads=[1, 1], dilations=[1]")), 0);
  EXPECT_GT(
      check_floats("pool", "N,5,6,7,8",
                   pool("AveragePool",
                        "kernel_shape=[2, 3, 2], strides=[2, 1, 2], pads=[0, 1, 0, 0, 1, 0], dilations=[1, 1, 1]")),
      0);
}

TEST(ReduceTactic, EveryOperatorOverEveryAxis) {
  for (const char* op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare"})
    for (const char* axes :
         {"1]{0", "1]{1", "1]{2", "1]{-1", "2]{2, 3", "2]{0, 2", "2]{1, 3", "3]{0, 1, 2", "4]{0, 1, 2, 3"})
      for (const int keep : {0, 1})
        EXPECT_GT(
            check_floats("reduce", "N,19,5,7",
                         fmt::format(" %a = constant i64[{}}}\n %y = {}(%x, %a) {{keepdims={}}}", axes, op, keep)),
            0)
            << op << axes;
}

TEST(ReduceTactic, GlobalPools) {
  for (const char* shape : {"N,3,9,11", "N,160,7,7", "N,5,1,1", "N,4,130"}) {
    EXPECT_GT(check_floats("reduce", shape, " %y = GlobalAveragePool(%x)"), 0);
    EXPECT_GT(check_floats("reduce", shape, " %y = GlobalMaxPool(%x)"), 0);
    for (const int p : {1, 2})
      EXPECT_GT(check_floats("reduce", shape, fmt::format(" %y = GlobalLpPool(%x) {{p={}}}", p)), 0);
  }
}

TEST(GatherTactic, TakesRowsByIndex) {
  for (const int axis : {0, 1, 2})
    EXPECT_GT(check_tactics(fmt::format("(%x: f32[5,6,7]) {{\n %i = constant i64[2,2]{{0, 3, -1, 1}}\n %y = Gather(%x, "
                                        "%i) {{axis={}}}\n return %y\n}}",
                                        axis),
                            "gather", kSizes),
              0);
  EXPECT_GT(check_tactics("(%i: i64[N,9]) {\n %t = constant f32[50,33]!0123456789abcdef0123456789abcdef\n %y = "
                          "Gather(%t, %i) {axis=0}\n return %y\n}",
                          "gather", kSizes),
            0);
}

}  // namespace
}  // namespace hone::cpu
