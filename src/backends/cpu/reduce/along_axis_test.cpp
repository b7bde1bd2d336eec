// SPDX-License-Identifier: Apache-2.0
//
// Families that reduce, rank or normalise along axes, against the reference.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backends/cpu/reduce/row_folds.h"
#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

const CheckOptions kSizes{
    .tolerance = 2e-5, .seed = 14, .tuned = {{"N", 2}}, .run = {{{"N", 2}}, {{"N", 1}}, {{"N", 5}}}};
constexpr const char* kTypes[] = {"f32", "f16", "bf16", "f64", "i8", "u8", "i32", "i64", "u64"};

/// Many equal numbers, both signs.
CheckOptions with_ties(double tolerance = 2e-5) {
  CheckOptions options = kSizes;
  options.tolerance = tolerance;
  options.inputs = [](const Graph& graph) {
    const TensorType& type = graph.inputs()[0]->type;
    const bool is_unsigned =
        type.dtype == DType::u8 || type.dtype == DType::u16 || type.dtype == DType::u32 || type.dtype == DType::u64;
    const Tensor whole = random_tensor(DType::i8, type.shape.values(), 3, is_unsigned ? 0 : -6, 6);
    TensorBuilder builder(type.dtype, type.shape.values());
    visit(type.dtype, [&]<typename T>() {
      for (int64_t i = 0; i < whole.size(); ++i) {
        if constexpr (std::is_same_v<T, bool>) builder.data<T>()[static_cast<size_t>(i)] = whole.integer(i) > 0;
        else builder.data<T>()[static_cast<size_t>(i)] = T(static_cast<float>(whole.integer(i)));
      }
    });
    return std::vector{builder.finish()};
  };
  return options;
}

TEST(AlongAxisTactic, BestElements) {
  for (const char* type : kTypes)
    for (const char* op : {"ArgMax", "ArgMin"})
      for (const int axis : {0, 1, -1})
        for (const int last : {0, 1})
          EXPECT_GT(check_tactics(fmt::format("(%x: {}[N,13,9]) {{\n %y = {}(%x) {{axis={}, keepdims={}, "
                                              "select_last_index={}}}\n return %y\n}}",
                                              type, op, axis, last, last),
                                  "along_axis", with_ties()),
                    0);
}

TEST(AlongAxisTactic, BestElementsOfLongRows) {
  for (const char* op : {"ArgMax", "ArgMin"})
    for (const int last : {0, 1})
      EXPECT_GT(check_tactics(fmt::format("(%x: f32[N,3,{}]) {{\n %y = {}(%x) {{axis=-1, keepdims=0, "
                                          "select_last_index={}}}\n return %y\n}}",
                                          200 + last, op, last),
                              "along_axis", with_ties()),
                0);
}

/// As the operator is defined: element by element, a number replaced by what beats it.
int64_t place_of(const std::vector<float>& x, bool largest, bool last) {
  size_t best = 0;
  for (size_t i = 1; i < x.size(); ++i)
    if ((largest ? x[i] > x[best] : x[i] < x[best]) || (last && x[i] == x[best])) best = i;
  return static_cast<int64_t>(best);
}

TEST(ExtremePlaces, WhatIsNoNumberBeatsNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), far = std::numeric_limits<float>::infinity();
  for (const size_t count : {1, 7, 16, 67, 150})
    for (const std::vector<float>& odd : {std::vector{nan}, {nan, far}, {nan, nan, 3.0f}, {far, nan}, {-far}})
      for (size_t at = 0; at + odd.size() <= count; at += 5) {
        std::vector<float> x(count);
        for (size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i * 7 % 5) - 2;
        std::ranges::copy(odd, x.begin() + static_cast<std::ptrdiff_t>(at));
        for (const Isa isa : check::isas())
          for (const bool last : {false, true}) {
            const Places places = extreme_places(isa);
            const auto length = static_cast<int64_t>(count);
            EXPECT_EQ(places.largest(x.data(), length, last), place_of(x, true, last)) << count << " at " << at;
            EXPECT_EQ(places.smallest(x.data(), length, last), place_of(x, false, last)) << count << " at " << at;
            // Each column begins at another element.
            constexpr size_t kColumns = 37;
            std::vector<float> columns(count * kColumns);
            for (size_t i = 0; i < columns.size(); ++i) columns[i] = x[(i / kColumns + i % kColumns) % count];
            std::vector<int64_t> top(kColumns), bottom(kColumns);
            places.largest_of_columns(columns.data(), length, kColumns, kColumns, last, top.data());
            places.smallest_of_columns(columns.data(), length, kColumns, kColumns, last, bottom.data());
            for (size_t j = 0; j < kColumns; ++j) {
              std::vector<float> column(x);
              std::rotate(column.begin(), column.begin() + static_cast<std::ptrdiff_t>(j % count), column.end());
              ASSERT_EQ(top[j], place_of(column, true, last)) << count << " at " << at << " column " << j;
              ASSERT_EQ(bottom[j], place_of(column, false, last)) << count << " at " << at << " column " << j;
            }
          }
      }
}

TEST(AlongAxisTactic, RunningSums) {
  for (const char* type : {"f32", "f16", "f64", "i32", "i64"})
    for (const int axis : {0, 1, -1})
      for (const char* attrs : {"", "exclusive=1", "reverse=1", "exclusive=1, reverse=1"})
        EXPECT_GT(
            check_tactics(
                fmt::format(
                    "(%x: {}[N,13,9]) {{\n %a = constant i64[]{{{}}}\n %y = CumSum(%x, %a) {{{}}}\n return %y\n}}",
                    type, axis, attrs),
                "along_axis", with_ties(1e-3)),
            0);
}

TEST(AlongAxisTactic, RankingsAndOneHots) {
  for (const char* type : {"f32", "f16", "i64", "u8"})
    for (const int axis : {1, -1})
      for (const int largest : {0, 1}) {
        const std::string body = fmt::format(
            "(%x: {}[N,13,9]) {{\n %k = constant i64[1]{{5}}\n %v, %i = TopK(%x, %k) {{axis={}, largest={}}}\n return ",
            type, axis, largest);
        for (const char* results : {"%v, %i", "%i", "%v"})
          EXPECT_GT(check_tactics(body + results + "\n}", "along_axis", with_ties()), 0);
        EXPECT_GT(
            check_tactics(fmt::format("(%x: {}[N,13,9]) {{\n %y = Hardmax(%x) {{axis={}}}\n return %y\n}}", type, axis),
                          "along_axis", with_ties()),
            0);
      }
}

TEST(ReduceAnyTactic, EveryFunctionOfEveryType) {
  for (const char* type : kTypes)
    for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                           "ReduceSumSquare", "ReduceLogSumExp"})
      for (const char* axes : {"1]{0", "1]{-1", "2]{0, 2", "3]{0, 1, 2", "0]{"}) {
        const bool logarithm = std::string_view(op) == "ReduceLogSumExp";
        if (std::string_view(type) == "f32" ? !logarithm : logarithm && !is_float(*parse_dtype(type))) continue;
        EXPECT_GT(
            check_tactics(
                fmt::format(
                    "(%x: {}[N,5,7]) {{\n %a = constant i64[{}}}\n %y = {}(%x, %a) {{keepdims=0}}\n return %y\n}}",
                    type, axes, op),
                "reduce_any", with_ties(2e-3)),
            0);
      }
}

TEST(GroupNormTactic, InBothLayouts) {
  for (const char* shape : {"N,12,7,9", "N,48,5", "N,192,3,3", "N,6,2,3,70"}) {
    const int channels = std::atoi(shape + 2);
    const std::string parameters = fmt::format(
        " %s = constant f32[{0}]!0123456789abcdef0123456789abcdef\n %b = constant "
        "f32[{0}]!1123456789abcdef0123456789abcdef\n",
        channels);
    EXPECT_GT(
        check_tactics(
            fmt::format("(%x: f32[{}]) {{\n{} %y = InstanceNormalization(%x, %s, %b) {{epsilon=1e-05}}\n return %y\n}}",
                        shape, parameters),
            "group_norm", kSizes),
        0);
    for (const int groups : {1, 3, 6})
      EXPECT_GT(check_tactics(fmt::format("(%x: f32[{}]) {{\n{} %y = GroupNormalization(%x, %s, %b) {{epsilon=1e-05, "
                                          "num_groups={}}}\n return %y\n}}",
                                          shape, parameters, groups),
                              "group_norm", kSizes),
                0);
  }
}

TEST(GroupNormTactic, OneElementIsItsBias) {
  CheckOptions options = kSizes;
  options.tolerance = 1e-7;
  EXPECT_GT(check_tactics("(%x: f32[N,48,1,1], %s: f32[48], %b: f32[48]) {\n %y = InstanceNormalization(%x, %s, %b) "
                          "{epsilon=1e-05}\n return %y\n}",
                          "group_norm", options),
            0);
}

TEST(NeighbourNormTactic, ResponsesAndNorms) {
  for (const int size : {1, 3, 4, 5})
    EXPECT_GT(
        check_tactics(
            fmt::format(
                "(%x: f32[N,7,5,9]) {{\n %y = LRN(%x) {{size={}, alpha=0.5, beta=0.75, bias=1.5}}\n return %y\n}}",
                size),
            "neighbour_norm", kSizes),
        0);
  for (const int axis : {0, 1, -1})
    for (const int p : {1, 2, 3})
      EXPECT_GT(check_tactics(
                    fmt::format("(%x: f32[N,7,300]) {{\n %y = LpNormalization(%x) {{axis={}, p={}}}\n return %y\n}}",
                                axis, p),
                    "neighbour_norm", kSizes),
                0);
}

TEST(QuantizationTactic, ByTensorAxisAndBlock) {
  for (const char* type : {"i8", "u8", "i16"})
    for (const char* scales : {"]{0.03", "6]{0.01, 0.02, 0.5, 0.03, 0.007, 1.5"}) {
      EXPECT_GT(check_tactics(fmt::format("(%x: f32[N,6,5]) {{\n %s = constant f32[{}}}\n %y = QuantizeLinear(%x, %s) "
                                          "{{axis=1}}\n return %y\n}}",
                                          scales),
                              "quantization", kSizes),
                0);
      const std::string zero = scales[0] == ']' ? "]{3" : "6]{0, 1, 2, 3, 4, 5";
      EXPECT_GT(check_tactics(fmt::format("(%x: {0}[N,6,5]) {{\n %s = constant f32[{1}}}\n %z = constant {0}[{2}}}\n "
                                          "%y = DequantizeLinear(%x, %s, %z) {{axis=1}}\n return %y\n}}",
                                          type, scales, zero),
                              "quantization", with_ties()),
                0);
    }
  EXPECT_GT(check_tactics("(%x: i8[5,6]) {\n %s = constant f32[5,2]!0123456789abcdef0123456789abcdef\n %y = "
                          "DequantizeLinear(%x, %s) {axis=1, block_size=3}\n return %y\n}",
                          "quantization", with_ties()),
            0);
}

TEST(BitwiseTactic, BroadcastOperandsOfEveryType) {
  for (const char* type : {"i8", "u8", "i32", "u32", "i64", "u64"}) {
    for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"})
      EXPECT_GT(
          check_tactics(fmt::format("(%x: {0}[N,5,1], %z: {0}[5,7]) {{\n %y = {1}(%x, %z)\n return %y\n}}", type, op),
                        "bitwise", kSizes),
          0);
    EXPECT_GT(check_tactics(fmt::format("(%x: {}[N,5]) {{\n %y = BitwiseNot(%x)\n return %y\n}}", type), "bitwise",
                            with_ties()),
              0);
    for (const char* direction : {"LEFT", "RIGHT"})
      EXPECT_GT(check_tactics(fmt::format("(%x: {0}[N,5]) {{\n %z = constant {0}[5]{{0, 1, 3, 7, 70}}\n %y = "
                                          "BitShift(%x, %z) {{direction=\"{1}\"}}\n return %y\n}}",
                                          type, direction),
                              "bitwise", with_ties()),
                0);
  }
}

}  // namespace
}  // namespace hone::cpu
