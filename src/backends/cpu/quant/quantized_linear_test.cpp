// SPDX-License-Identifier: Apache-2.0
//
// Matmuls with weights of few bits against their meaning: exactly where all products and sums are numbers of f32, and to 1e-5 where
// they are not; every code, zero points at both ends and between codes, blocks that fill no unit and do not divide the depth.
#include <fmt/format.h>

#include <random>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

enum class Zeros { none, codes, floats };

struct Product {
  DType w = DType::i4;
  int64_t m = 1, n = 1, k = 1, block = 1;
  Zeros zeros = Zeros::none;
  bool exact = true;  // small integers, scales that are powers of two

  std::string text() const { return fmt::format("{} {}x{}x{} in {}", name_of(w), m, n, k, block); }
};

Tensor codes(DType dtype, Dims dims, std::mt19937_64& random) {
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
  Value* y = graph.add(ops::quantized_linear, std::move(inputs), {{"block_size", p.block}})->output();
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
        const Product product{w, m, n, k, block, zeros};
        EXPECT_GT(check(product), 0) << product.text();
      }
}

TEST(QuantizedLinear, RoundsAsMatmulsOfFloatsDo) {
  for (const auto& [m, n, k, block] : {kFewBitMatmuls[4], {1, 20, 4100, 32}})
    for (const DType w : {DType::i4, DType::u4, DType::u8})
      for (const Zeros zeros : {Zeros::none, Zeros::codes}) {
        const Product product{w, m, n, k, block, zeros, false};
        EXPECT_GT(check(product), 0) << product.text();
      }
}

}  // namespace
}  // namespace hone::cpu
