// SPDX-License-Identifier: Apache-2.0
//
// Pools of any element type, against the reference.
#include <fmt/format.h>

#include "backends/cpu/pool/pool_axes.h"
#include "backends/cpu/support/tactic_testing.h"

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

/// Few different numbers, so that many are equal; among floats some that are none.
CheckOptions with_ties() {
  CheckOptions options = kSizes;
  options.inputs = [](const Graph& graph) {
    const TensorType& type = graph.inputs()[0]->type;
    const Tensor whole = random_tensor(DType::i8, type.shape.values(), 3, type.dtype == DType::u8 ? 0 : -6, 6);
    TensorBuilder builder(type.dtype, type.shape.values());
    visit(type.dtype, [&]<typename T>() {
      for (int64_t i = 0; i < whole.size(); ++i) {
        const double value = is_float(type.dtype) && i % 41 == 7 ? NAN : static_cast<double>(whole.integer(i));
        if constexpr (std::is_same_v<T, double>) builder.data<T>()[static_cast<size_t>(i)] = value;
        else if constexpr (!std::is_same_v<T, bool>)
          builder.data<T>()[static_cast<size_t>(i)] = T(static_cast<float>(value));
      }
    });
    return std::vector{builder.finish()};
  };
  return options;
}

TEST(PoolAnyTactic, LargestWithTheirIndices) {
  for (const char* type : {"f32", "bf16", "f64", "u8"})
    for (const auto& [shape, attrs] : kWindows)
      for (const int order : {0, 1})
        for (const char* results : {"%y, %i", "%i"})
          EXPECT_GT(
              check_tactics(fmt::format("(%x: {}[{}]) {{\n %y, %i = MaxPool(%x) {{{}, storage_order={}}}\n return "
                                        "{}\n}}",
                                        type, shape, attrs, order, results),
                            "pool_any", with_ties()),
              0);
}

TEST(PoolAnyTactic, LargestOfOtherTypesThanPoolReads) {
  for (const char* type : {"f16", "f64", "i8", "u8"})
    for (const auto& [shape, attrs] : kWindows)
      EXPECT_GT(
          check_tactics(fmt::format("(%x: {}[{}]) {{\n %y = MaxPool(%x) {{{}}}\n return %y\n}}", type, shape, attrs),
                        "pool_any", with_ties()),
          0);
}

TEST(PoolAxes, RefuseMoreResultsThanWindowsBegin) {
  WindowAttrs window({{"kernel_shape", Dims{3}}, {"strides", Dims{2}}, {"pads", Dims{1, 1}}}, 1, {});
  EXPECT_EQ(pool_axis(window, 0, 7, 4).spans.size(), 4u);
  EXPECT_EQ(pool_axis(window, 0, 7, 5).spans.size(), 5u);  // the last begins in the padding
  EXPECT_THROW(pool_axis(window, 0, 7, 6), Error);
  EXPECT_THROW(pool_axis(window, 0, 7, int64_t{1} << 32), Error);
  EXPECT_TRUE(pool_axis(window, 0, 0, 0).spans.empty());
}

}  // namespace
}  // namespace hone::cpu
