// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tensor/attrs.h"
#include "tensor/difference.h"
#include "tensor/dim.h"
#include "tensor/json.h"
#include "tensor/tensor.h"

namespace hone {
namespace {

Dim d(std::string_view text) { return Dim::parse(text); }

TEST(Dim, KeepsOneCanonicalForm) {
  EXPECT_EQ(d("N + 1 + N"), d("2*N + 1"));
  EXPECT_EQ(d("N*M"), d("M*N"));
  EXPECT_EQ(d("N - N"), Dim(0));
  EXPECT_EQ((d("N + 2") * d("3")).text(), "3*N + 6");
  EXPECT_EQ(d(d("floordiv(H + 1, 2)*4 - N").text()), d("floordiv(H + 1, 2)*4 - N"));
}

TEST(Dim, MinimumAndMaximumAbsorbEachOther) {
  const Dim n = Dim::symbol("N"), m = Dim::symbol("M");
  EXPECT_EQ(maximum(n, minimum(n, m)), n);
  EXPECT_EQ(minimum(maximum(m, n), n), n);
  EXPECT_EQ(maximum(maximum(m, n), n), maximum(m, n));
}

TEST(Dim, DividesWhatDividesExactly) {
  EXPECT_EQ(floor_divide(d("4*N"), Dim(4)), d("N"));
  EXPECT_EQ(floor_divide(d("12*N*S"), d("3*S")), d("4*N"));
  EXPECT_EQ(floor_divide(d("2*N + 5"), Dim(2)), d("N + 2"));
  EXPECT_EQ(floor_divide(d("768*N*S"), d("768*N*S")), Dim(1));
  EXPECT_EQ(modulo(d("8*N"), Dim(4)), Dim(0));
}

TEST(Dim, EvaluatesLikeIntegersDo) {
  std::mt19937 random(7);
  const char* expressions[] = {"floordiv(N + 3, 2) + M", "mod(N*M + 1, 5)", "min(N, M) - max(N, 3)",
                               "floordiv(3*N + 7, 4)", "floordiv(N - M, 2)"};
  for (int i = 0; i < 200; ++i) {
    const int64_t n = random() % 50 + 1, m = random() % 50 + 1;
    const auto floor_div = [](int64_t a, int64_t b) {
      return static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
    };
    const int64_t expected[] = {floor_div(n + 3, 2) + m, (n * m + 1) % 5, std::min(n, m) - std::max<int64_t>(n, 3),
                                floor_div(3 * n + 7, 4), floor_div(n - m, 2)};
    for (size_t e = 0; e < std::size(expressions); ++e) {
      EXPECT_EQ(d(expressions[e]).evaluate({{"N", n}, {"M", m}}), expected[e])
          << expressions[e] << " seed 7, N=" << n << " M=" << m;
      EXPECT_EQ(d(expressions[e]).substitute({{"N", n}}).substitute({{"M", m}}), Dim(expected[e]));
    }
  }
}

TEST(Dim, KnowsItsLargestValue) {
  EXPECT_EQ(d("7").largest(), 7);
  EXPECT_EQ(d("N").largest(), std::nullopt);
  EXPECT_EQ(d("min(300, N)").largest(), 300);
  EXPECT_EQ(d("2*min(300, N) + min(5, M) + 1").largest(), 606);
  EXPECT_EQ(d("10 - N").largest(), 10);
  EXPECT_EQ(d("min(10, N) - min(3, M)").largest(), 10);
  EXPECT_EQ(d("max(4, min(3, N))").largest(), 4);
  EXPECT_EQ(d("max(4, N)").largest(), std::nullopt);
  EXPECT_EQ(d("mod(N, 8)").largest(), 7);
  EXPECT_EQ(d("floordiv(min(9, N), 2)").largest(), 4);
  EXPECT_EQ(d("floordiv(N - 9, 2)").largest(), std::nullopt);
  EXPECT_EQ(d("min(300, N)*min(4, M)").largest(), 1200);
  EXPECT_EQ(d("min(9223372036854775807, N)*3").largest(), std::nullopt);
}

TEST(Dim, NamesWhatIsWrongWithAnExpression) {
  EXPECT_THROW(d("N +"), Error);
  EXPECT_THROW(d("foo(N, 2)"), Error);
  EXPECT_THROW(d("99999999999999999999"), Error);
  EXPECT_THROW(d("N").evaluate({}), Error);
}

TEST(Half, RoundTripsEveryPattern) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = half_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    ASSERT_EQ(float_to_half(value), bits);
  }
  EXPECT_EQ(float_to_half(65520.0f), 0x7c00);
  EXPECT_EQ(float_to_bfloat(1.00390625f), 0x3f80);  // ties to even
}

TEST(Layout, KnowsWhenLayoutsCoincide) {
  const Dims pooled{2, 64, 1, 1}, image{2, 3, 4, 5}, gray{1, 1, 4, 5};
  EXPECT_TRUE(same_bytes(pooled, Layout::linear, Layout::channels_last));
  EXPECT_TRUE(same_bytes(pooled, Layout::linear, Layout::blocked16));
  EXPECT_FALSE(same_bytes(image, Layout::linear, Layout::channels_last));
  EXPECT_TRUE(same_bytes(gray, Layout::linear, Layout::channels_last));
  EXPECT_EQ(byte_size(DType::f32, image, Layout::blocked16), 2 * 16 * 20 * 4);
}

TEST(Tensor, RefusesBytesThatDoNotFitItsShape) { EXPECT_THROW(Tensor(DType::f32, {2, 2}, Blob::copy("abc")), Error); }

TEST(Map, KeepsItsKeysInOrderAndEachOnce) {
  const Tensor map =
      Tensor::of_map(Tensor::of_strings({4}, {"b", "a", "c", "a"}), Tensor::of<float>({4}, {1, 2, 3, 4}));
  EXPECT_EQ(map.items()[0].strings(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(map.items()[1].real(0), 4);
  EXPECT_EQ(map.items()[1].real(1), 1);
  EXPECT_EQ(map.type(), map_of(DType::string, DType::f32));
  EXPECT_TRUE(holds_elements_of(map_of(DType::string, DType::f32), map));
  EXPECT_FALSE(holds_elements_of(map_of(DType::i64, DType::f32), map));
}

TEST(Map, RefusesListsThatAreNone) {
  const Tensor keys = Tensor::of<int64_t>({2}, {1, 2});
  EXPECT_THROW(Tensor::of_map(keys, Tensor::of<float>({3}, {1, 2, 3})), Error);
  EXPECT_THROW(Tensor::of_map(Tensor::of<float>({2}, {1, 2}), keys), Error);
  EXPECT_THROW(Tensor::of_map(keys, Tensor::of_items(DType::sequence, {keys, keys})), Error);
}

TEST(Map, ComesBackFromJson) {
  const TensorType type = container_of(DType::sequence, map_of(DType::string, DType::i64));
  EXPECT_EQ(type.text(), "sequence<map<string,i64[]>>");
  EXPECT_EQ(type_from_json(to_json(type)), type);
  EXPECT_THROW(type_from_json({{"dtype", "map"}, {"key", "f32"}, {"value", "f32"}}), Error);
  EXPECT_THROW(type_from_json({{"dtype", "map"}, {"key", "i64"}, {"value", "map"}}), Error);
}

TEST(Attrs, ReadAsWhatTheyAre) {
  const Attrs attrs{{"axis", int64_t{1}}, {"scale", 2.0}, {"mode", std::string("same")}};
  EXPECT_EQ(attrs.integer("axis"), 1);
  EXPECT_EQ(attrs.real("axis"), 1.0);
  EXPECT_THROW(attrs.integers("axis"), Error);
  EXPECT_EQ(attrs.print(), "axis=1, mode=\"same\", scale=2.0");
}

Tensor floats(DType dtype, std::initializer_list<float> values) {
  TensorBuilder result(dtype, {static_cast<int64_t>(values.size())});
  visit(dtype, [&]<typename T>() {
    size_t i = 0;
    for (const float value : values) result.data<T>()[i++] = T(value);
  });
  return result.finish();
}

TEST(Difference, IsTheNormOfTheDifferenceOverTheNorm) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    const Tensor expected = floats(dtype, {3, 0, -4, 0, 0, 0, 0, 0, 0, 12});
    EXPECT_EQ(relative_difference(expected, expected), 0);
    EXPECT_DOUBLE_EQ(relative_difference(floats(dtype, {3, 0, -4, 0, 0, 0, 0, 0, 0, -1}), expected), 1)
        << name_of(dtype);
  }
  EXPECT_EQ(relative_difference(floats(DType::f32, {1}), floats(DType::f32, {1, 1})), INFINITY);
}

TEST(Difference, TakesNansAndInfinitiesForEqualToThemselvesAlone) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Tensor expected = floats(dtype, {NAN, INFINITY, -INFINITY, 2});
    EXPECT_EQ(relative_difference(expected, expected), 0);
    EXPECT_DOUBLE_EQ(relative_difference(floats(dtype, {NAN, INFINITY, -INFINITY, 3}), expected), 0.5);
    for (const Tensor& other : {floats(dtype, {1, INFINITY, -INFINITY, 2}), floats(dtype, {NAN, INFINITY, INFINITY, 2}),
                                floats(dtype, {NAN, 1, -INFINITY, 2}), floats(dtype, {NAN, INFINITY, -INFINITY, NAN})})
      EXPECT_FALSE(relative_difference(other, expected) <= 1e9);
  }
}

}  // namespace
}  // namespace hone
