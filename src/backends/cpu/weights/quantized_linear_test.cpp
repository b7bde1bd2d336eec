// SPDX-License-Identifier: Apache-2.0
//
// Matmuls with weights of few bits against their meaning: exactly where all products and sums are numbers of f32, and to 1e-5 where
// they are not; every code, zero points at both ends and between codes, blocks that fill no unit and do not divide the depth.
#include <fmt/format.h>

#include <random>

#include "backends/cpu/support/tactic_testing.h"
#include "backends/cpu/weights/activation_digits.h"

namespace hone::cpu {
namespace {

enum class Zeros { none, codes, floats };

struct Product {
  DType w = DType::i4;
  int64_t m = 1, n = 1, k = 1, block = 1;
  Zeros zeros = Zeros::none;
  bool exact = true;   // small integers, scales that are powers of two
  bool alone = false;  // without an epilogue
  std::string table = {};

  std::string text() const { return fmt::format("{}{} {}x{}x{} in {}", name_of(w), table, m, n, k, block); }
};

/// Every code that is a number.
Tensor float_codes(DType dtype, Dims dims, std::mt19937_64& random) {
  TensorBuilder builder(dtype, std::move(dims));
  for (uint8_t& code : builder.codes()) do
      code = static_cast<uint8_t>(random() % (uint64_t{1} << bits_of(dtype)));
    while (!std::isfinite(small_to_float(dtype, code)));
  return builder.finish();
}

Tensor codes(DType dtype, Dims dims, std::mt19937_64& random) {
  if (is_float(dtype)) return float_codes(dtype, std::move(dims), random);
  const int bits = bits_of(dtype);
  const bool is_signed = dtype == DType::i8 || dtype == DType::i4 || dtype == DType::i2;
  std::vector<int64_t> values(static_cast<size_t>(elements(dims)));
  for (int64_t& value : values)
    value = static_cast<int64_t>(random() % (uint64_t{1} << bits)) - (is_signed ? int64_t{1} << (bits - 1) : 0);
  return write_integers(dtype, std::move(dims), values);
}

Tensor reals(Dims dims, std::mt19937_64& random, const std::function<double(double)>& of_unit) {
  std::vector<double> values(static_cast<size_t>(elements(dims)));
  for (double& value : values) value = of_unit(std::uniform_real_distribution<double>(0, 1)(random));
  return write_doubles(DType::f32, std::move(dims), values);
}

/// A scale, a bias and an activation behind: what a region may hold.
Graph graph_of(const Product& p) {
  std::mt19937_64 random(5);
  const int64_t blocks = (p.k + p.block - 1) / p.block;
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, Shape{Dim::symbol("N"), Dim(p.m), Dim(p.k)}});
  std::vector<Value*> inputs{x, graph.add_constant(codes(p.w, {p.k, p.n}, random))};
  inputs.push_back(graph.add_constant(
      reals({blocks, p.n}, random, [&](double u) { return p.exact ? std::exp2(std::floor(3 * u) - 1) : 0.01 + u; })));
  if (p.zeros == Zeros::codes) inputs.push_back(graph.add_constant(codes(p.w, {blocks, p.n}, random)));
  if (p.zeros == Zeros::floats)
    inputs.push_back(graph.add_constant(reals({blocks, p.n}, random, [](double u) { return std::floor(16 * u) / 2; })));
  Value* y =
      graph.add(ops::quantized_linear, std::move(inputs), {{"block_size", p.block}, {"table", p.table}})->output();
  graph.set_outputs({y});
  if (p.alone) return graph;
  Value* bias = graph.add_constant(reals({p.n}, random, [](double u) { return std::floor(9 * u) - 4; }));
  y = graph.add(ops::relu, {graph.add(ops::add, {y, bias})->output()})->output();
  graph.set_outputs({y});
  return graph;
}

int check(const Product& product) {
  CheckOptions options{.tolerance = product.exact ? 0 : 1e-5, .tuned = {{"N", 1}}, .run = {{{"N", 1}}, {{"N", 3}}}};
  options.inputs = [&](const Graph& region) {
    std::mt19937_64 random(7);
    return std::vector{reals(region.inputs()[0]->type.shape.values(), random,
                             [&](double u) { return product.exact ? std::floor(9 * u) - 4 : 4 * u - 1; })};
  };
  return check_tactics(graph_of(product), "quantized_linear", options);
}

constexpr struct {
  int64_t m, n, k, block;
} kFewBitMatmuls[] = {{1, 1, 1, 1},   {1, 40, 64, 32},   {3, 17, 37, 16}, {2, 130, 96, 96},
                      {5, 65, 21, 5}, {7, 33, 259, 128}, {40, 70, 48, 32}};

TEST(QuantizedLinear, IsExactForAllCodesBlocksAndZeroPoints) {
  for (const auto& [m, n, k, block] : kFewBitMatmuls)
    for (const DType w : {DType::i2, DType::u2, DType::i4, DType::u4, DType::i8, DType::u8})
      for (const Zeros zeros : {Zeros::none, Zeros::codes, Zeros::floats}) {
        if (bits_of(w) == 2 && zeros != Zeros::codes) continue;  // kept as four bits
        const Product product{w, m, n, k, block, zeros};
        EXPECT_GT(check(product), 0) << product.text();
      }
}

/// One row of a unit matrix at a time: whatever a code stands for comes out as it is.
TEST(QuantizedLinear, KnowsEveryNumberOfFloatsOfEightAndFourBitsAndOfTables) {
  const std::pair<DType, std::string> kinds[] = {
      {DType::f8e4m3fn, ""}, {DType::f8e5m2, ""}, {DType::f4e2m1, ""}, {DType::u4, "nf4"}, {DType::u4, "fp4"}};
  for (const auto& [m, n, k, block] : {kFewBitMatmuls[2], kFewBitMatmuls[3], kFewBitMatmuls[6]})
    for (const auto& [w, table] : kinds) {
      const Product product{w, m, n, k, block, Zeros::none, true, true, table};
      CheckOptions options{.tolerance = 0, .tuned = {{"N", 1}}, .run = {{{"N", 1}}, {{"N", 3}}}};
      options.inputs = [](const Graph& region) {
        const Dims dims = region.inputs()[0]->type.shape.values();
        const auto depth = static_cast<size_t>(dims.back());
        std::vector<double> values(static_cast<size_t>(elements(dims)), 0);
        for (size_t row = 0; row * depth < values.size(); ++row) values[row * depth + row * 7 % depth] = 1;
        return std::vector{write_doubles(DType::f32, dims, values)};
      };
      EXPECT_GT(check_tactics(graph_of(product), "quantized_linear", options), 0) << product.text();
    }
}

TEST(QuantizedLinear, RoundsAsMatmulsOfFloatsDo) {
  for (const auto& [m, n, k, block] : {kFewBitMatmuls[4], {1, 20, 4100, 32}})
    for (const DType w : {DType::i4, DType::u4, DType::u8})
      for (const Zeros zeros : {Zeros::none, Zeros::codes}) {
        const Product product{w, m, n, k, block, zeros, false};
        EXPECT_GT(check(product), 0) << product.text();
      }
  for (const DType w : {DType::f8e4m3fn, DType::f8e5m2, DType::f4e2m1})
    for (const auto& [m, n, k, block] : {kFewBitMatmuls[4], kFewBitMatmuls[5], kFewBitMatmuls[6]}) {
      const Product product{w, m, n, k, block, Zeros::none, false};
      EXPECT_GT(check(product), 0) << product.text();
    }
}

/// Rows of numbers that bytes cannot say among others: they are as floats say them.
TEST(QuantizedLinear, TakesNumbersAtTheEndsOfFloatsAndBeyond) {
  const Product product{.w = DType::i4, .m = 7, .n = 21, .k = 70, .block = 32, .alone = true};
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  CheckOptions options{.tolerance = 0, .tuned = {{"N", 1}}};
  options.inputs = [&](const Graph& region) {
    std::mt19937_64 random(11);
    std::vector<double> values;
    for (const double unit : {1.0, 0x1p-120, 0x1p110, 0x1p-90, 1.0, 1.0, 0.0})
      for (int64_t p = 0; p < product.k; ++p) values.push_back(unit * static_cast<double>(random() % 15) - 7 * unit);
    values[4 * 70 + 33] = kNan, values[5 * 70 + 69] = -kInf;
    return std::vector{write_doubles(DType::f32, region.inputs()[0]->type.shape.values(), values)};
  };
  EXPECT_GT(check_tactics(graph_of(product), "quantized_linear", options), 0);
}

struct Digits {
  std::vector<double> elements;
  double sum = 0;
  std::array<int32_t, DigitFormat::kDigits> starts{}, sums{};
};

Digits digits_of(const std::vector<float>& x, Isa isa) {
  const int64_t units = (static_cast<int64_t>(x.size()) + DigitFormat::kUnit - 1) / DigitFormat::kUnit;
  std::vector<std::byte> memory(static_cast<size_t>(DigitFormat::kHeadBytes + units * DigitFormat::kUnitBytes));
  EXPECT_TRUE(split_digits(isa)(x.data(), static_cast<int64_t>(x.size()), memory.data()));
  Digits result;
  float step = 0, sum = 0;
  std::memcpy(result.starts.data(), memory.data(), sizeof result.starts);
  std::memcpy(&step, memory.data() + DigitFormat::kStep, sizeof step);
  std::memcpy(&sum, memory.data() + DigitFormat::kSum, sizeof sum);
  result.sum = sum;
  for (int64_t i = 0; i < units * DigitFormat::kUnit; ++i) {
    double value = 0;
    for (int64_t digit = 0; digit < DigitFormat::kDigits; ++digit) {
      const auto at = static_cast<size_t>(DigitFormat::kHeadBytes + i / DigitFormat::kUnit * DigitFormat::kUnitBytes +
                                          digit * DigitFormat::kUnit + i % DigitFormat::kUnit);
      const auto byte = std::to_integer<int8_t>(memory[at]);
      value = value * 256 + byte;
      result.sums[static_cast<size_t>(digit)] += byte;
    }
    result.elements.push_back(value * step);
  }
  return result;
}

TEST(ActivationDigits, KeepTwentyTwoBitsBelowTheLargestOfABlock) {
  std::mt19937_64 random(3);
  for (const Isa isa : check::isas())
    for (const size_t count : {1, 7, 8, 21, 32, 64, 65, 200})
      for (const float most : {1.0F, 0.996F, 1.99999F, 3e-30F, 1e36F}) {
        std::vector<float> x(count);
        for (float& value : x) value = most * std::uniform_real_distribution<float>(-1, 1)(random);
        x[count / 2] = -most;
        const Digits digits = digits_of(x, isa);
        double sum = 0;
        for (size_t i = 0; i < digits.elements.size(); ++i) {
          const double wanted = i < count ? x[i] : 0;
          EXPECT_LE(std::fabs(digits.elements[i] - wanted), most * 0x1p-22)
              << to_string(isa) << " " << count << " " << i;
          sum += digits.elements[i];
        }
        EXPECT_LE(std::fabs(digits.sum - sum), std::fabs(sum) * 0x1p-23);
        for (size_t digit = 0; digit < digits.sums.size(); ++digit)
          EXPECT_EQ(digits.starts[digit], -DigitFormat::kMiddle * digits.sums[digit]);
      }
}

TEST(ActivationDigits, RefuseWhatTheyCannotSay) {
  for (const Isa isa : check::isas()) {
    const std::vector<float> large(64, 5e37F);  // each fits, their sum does not
    std::vector<std::byte> memory(DigitFormat::kHeadBytes + 8 * DigitFormat::kUnitBytes);
    EXPECT_FALSE(split_digits(isa)(large.data(), 64, memory.data()));
  }
  for (const Isa isa : check::isas())
    for (const float value : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e-37F,
                              std::numeric_limits<float>::max()}) {
      std::vector<std::byte> memory(DigitFormat::kHeadBytes + 5 * DigitFormat::kUnitBytes);
      std::vector<float> x(37, 0.0F);
      for (const size_t at : {0, 20, 36}) {
        std::vector<float> given = x;
        given[at] = value;
        EXPECT_FALSE(split_digits(isa)(given.data(), 37, memory.data())) << value;
      }
      EXPECT_TRUE(split_digits(isa)(x.data(), 37, memory.data()));
    }
}

}  // namespace
}  // namespace hone::cpu
