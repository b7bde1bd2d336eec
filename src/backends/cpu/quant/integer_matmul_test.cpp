// SPDX-License-Identifier: Apache-2.0
//
// Matmuls of bytes against their meaning, exactly: all values, zero points at both ends, depths that fill no step, sums that pass
// what 16 bits hold and what 32 bits hold.
#include <fmt/format.h>

#include <random>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

/// Every value, the ends more often than others.
Tensor all_values(DType dtype, Dims dims, uint64_t seed) {
  std::mt19937_64 random(seed);
  const int64_t low = dtype == DType::i8 ? -128 : 0;
  std::vector<int64_t> values(static_cast<size_t>(elements(dims)));
  for (int64_t& value : values) {
    const uint64_t draw = random() % 320;
    value = low + static_cast<int64_t>(draw < 256 ? draw : draw < 288 ? 0 : 255);
  }
  return write_integers(dtype, std::move(dims), values);
}

enum class Zero { none, first, last, given };

struct Product {
  DType a = DType::u8, b = DType::i8;
  int64_t m = 1, n = 1, k = 1;
  Zero a_zero = Zero::none;
  bool b_zeros = false;
};

Graph graph_of(const Product& p) {
  Graph graph;
  Value* a = graph.add_input("a", {p.a, Shape{Dim::symbol("N"), Dim(p.m), Dim(p.k)}});
  Value* b = graph.add_constant(all_values(p.b, {p.k, p.n}, 5));
  Value *zero = nullptr, *zeros = nullptr;
  const int64_t low = p.a == DType::i8 ? -128 : 0;
  if (p.a_zero == Zero::given) zero = graph.add_input("zero", {p.a, Shape{}});
  else if (p.a_zero != Zero::none)
    zero = graph.add_constant(write_integers(p.a, {}, std::vector<int64_t>{low + (p.a_zero == Zero::last ? 255 : 0)}));
  if (p.b_zeros) zeros = graph.add_constant(all_values(p.b, {p.n}, 6));
  graph.set_outputs({graph.add(ops::mat_mul_integer, {a, b, zero, zeros})->output()});
  return graph;
}

int check(const Product& product) {
  CheckOptions options{.tolerance = 0, .rounds = true, .tuned = {{"N", 1}}, .run = {{{"N", 1}}, {{"N", 2}}}};
  options.inputs = [](const Graph& region) {
    std::vector<Tensor> inputs;
    for (const Value* input : region.inputs())
      inputs.push_back(all_values(input->type.dtype, input->type.shape.values(), 7 + inputs.size()));
    return inputs;
  };
  return check_tactics(graph_of(product), "integer_matmul", options);
}

constexpr struct { int64_t m, n, k; } kMatmuls[] = {{1, 1, 1}, {3, 17, 5}, {14, 64, 64}, {29, 130, 255}, {2, 16, 4099}};

TEST(IntegerMatmul, IsExactForAllTypesAndZeroPoints) {
  size_t turn = 0;
  for (const auto& [m, n, k] : kMatmuls) {
    ++turn;  // which of each four ways, where sums are long
    for (const DType a : {DType::u8, DType::i8})
      for (const DType b : {DType::u8, DType::i8})
        for (const Zero zero : {Zero::none, Zero::first, Zero::last, Zero::given})
          for (const bool zeros : {false, true})
            if (k < 64 || ++turn % 4 == 0) {
              EXPECT_GT(check({a, b, m, n, k, zero, zeros}), 0) << fmt::format("{}x{}x{}", m, n, k);
            }
  }
}

struct Factors {
  Dims a, b;
  DType a_type = DType::u8, b_type = DType::u8;
  int64_t a_zero = 0, b_zero = 0;
  bool turned = false, to_bytes = false;
};

Graph graph_of(const Factors& f) {
  Graph graph;
  const auto input = [&](const char* name, const Dims& dims, DType type) {
    Shape shape{Dim::symbol("N")};
    for (const int64_t size : dims) shape.push_back(Dim(size));
    return graph.add_input(name, {type, shape});
  };
  const auto zero = [&](DType type, int64_t number) {
    return graph.add_constant(write_integers(type, {}, std::vector<int64_t>{number}));
  };
  Value* sums = graph
                    .add(ops::mat_mul_integer,
                         {input("a", f.a, f.a_type), input("b", f.b, f.b_type), zero(f.a_type, f.a_zero),
                          zero(f.b_type, f.b_zero)},
                         {{"trans_b", int64_t{f.turned}}})
                    ->output();
  if (f.to_bytes) {
    const auto number = [&](float value) { return graph.add_constant(Tensor::of<float>({}, std::span(&value, 1))); };
    Value* floats = graph.add(ops::cast, {sums}, {{"to", std::string("f32")}})->output();
    floats = graph.add(ops::mul, {floats, number(3e-4F)})->output();
    sums = graph.add(ops::quantize_linear, {floats, number(0.037F), zero(DType::u8, 119)})->output();
  }
  graph.set_outputs({sums});
  return graph;
}

int check(const Factors& factors) {
  CheckOptions options{.tolerance = 0, .rounds = true, .tuned = {{"N", 1}}, .run = {{{"N", 1}}, {{"N", 2}}}};
  options.inputs = [](const Graph& region) {
    std::vector<Tensor> inputs;
    for (const Value* input : region.inputs())
      inputs.push_back(all_values(input->type.dtype, input->type.shape.values(), 11 + inputs.size()));
    return inputs;
  };
  return check_tactics(graph_of(factors), "integer_product", options);
}

TEST(IntegerProduct, IsExactForAllTypesAndZeroPoints) {
  constexpr struct { int64_t m, n, k; } kSizes[] = {{3, 17, 5}, {37, 70, 67}};
  size_t turn = 0;
  for (const auto& [m, n, k] : kSizes)
    for (const DType a : {DType::u8, DType::i8})
      for (const DType b : {DType::u8, DType::i8})
        for (const bool a_last : {false, true})
          for (const int64_t b_zero : {0, 128, 255})
            for (const bool turned : {false, true}) {
              if (++turn % (k > 5 ? 11 : 5) != 0) continue;  // all of each kind with some of the others
              const int64_t low = b == DType::i8 ? -128 : 0, a_low = a == DType::i8 ? -128 : 0;
              const Dims columns = turned ? Dims{3, n, k} : Dims{3, k, n};
              EXPECT_GT(
                  check({{3, m, k}, columns, a, b, a_low + (a_last ? 255 : 0), low + b_zero, turned, turn % 2 == 0}), 0)
                  << fmt::format("{}x{}x{}", m, n, k);
            }
}

TEST(IntegerProduct, BroadcastsMatrices) {
  EXPECT_GT(check({{2, 3, 5, 40}, {1, 3, 40, 33}, DType::u8, DType::i8, 7, -3}), 0);
  EXPECT_GT(check({{1, 5, 40}, {4, 40, 33}, DType::i8, DType::u8, -7, 3}), 0);
}

TEST(IntegerMatmul, WrapsAroundWhereSumsLeave32Bits) {
  constexpr int64_t kDepth = 140'000;  // times 255 times 128: more than 2^32
  Graph graph;
  Value* a = graph.add_input("a", {DType::u8, Shape{Dim(2), Dim(kDepth)}});
  Value* b = graph.add_constant(write_integers(DType::i8, {kDepth, 3}, std::vector<int64_t>(3 * kDepth, -128)));
  graph.set_outputs({graph.add(ops::mat_mul_integer, {a, b})->output()});
  CheckOptions options{.tolerance = 0, .rounds = true};
  options.inputs = [](const Graph&) {
    return std::vector{write_integers(DType::u8, {2, kDepth}, std::vector<int64_t>(2 * kDepth, 255))};
  };
  EXPECT_GT(check_tactics(graph, "integer_matmul", options), 0);
}

TEST(DynamicQuantize, GivesTheRangeOfAllSharesOneScale) {
  for (const auto& [dims, offers] : {std::pair{"1", 1}, {"7", 1}, {"100", 1}, {"40000", 1}, {"5,33,70", 4}})
    EXPECT_GE(
        check_tactics(
            fmt::format("(%x: f32[N,{}]) {{\n %y, %s, %z = DynamicQuantizeLinear(%x)\n return %y, %s, %z\n}}", dims),
            "dynamic_quantize", {.tolerance = 0, .tuned = {{"N", 2}}, .run = {{{"N", 1}}, {{"N", 3}}}}),
        offers);
}

}  // namespace
}  // namespace hone::cpu
