// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <random>

#include "backends/cpu/tactic_check.h"

namespace hone::cpu {
namespace {

const CheckOptions kSizes{
    .tolerance = 2e-6, .seed = 9, .tuned = {{"N", 2}}, .run = {{{"N", 2}}, {{"N", 1}}, {{"N", 5}}}};

TEST(PointwiseTactics, BroadcastEveryWay) {
  for (const char* other :
       {"N,5,4,7", "5,1,1", "N,5,1,1", "1,1,4,7", "4,7", "7", "1", "N,1,1,1", "1,5,1,7", "N,1,4,1"}) {
    const std::string text =
        fmt::format("(%x: f32[N,5,4,7], %o: f32[{}]) {{\n %a = Mul(%x, %o)\n %y = Sub(%a, %x)\n return %y\n}}", other);
    EXPECT_GT(check_tactics(text, "pointwise", kSizes), 0) << text;
    EXPECT_GT(check_tactics(text, "pointwise_blocks", kSizes), 0) << text;
  }
}

TEST(PointwiseTactics, AgreeOnSizesAroundAVectorAndPastABlock) {
  for (const int size : {1, 7, 8, 9, 15, 16, 17, 4095, 4097, 9001}) {
    const std::string text =
        fmt::format("(%x: f32[N,{0}], %z: f32[{0}]) {{\n %a = Add(%x, %z)\n %y = Relu(%a)\n return %y\n}}", size);
    EXPECT_GT(check_tactics(text, "pointwise", kSizes), 0) << text;
  }
}

TEST(PointwiseTactics, EveryFormulaOfOneOperand) {
  if (best_isa() == Isa::scalar) GTEST_SKIP();
  int generated = 0;
  for (const OpDef* op : all_ops()) {
    if (!op->is_pointwise() || op->min_inputs != 1 || op->max_inputs != 1 || op->result != DType::string ||
        op->name == "Cast")
      continue;
    Graph graph;
    Value* x = graph.add_input("x", {DType::f32, Shape({Dim::symbol("N"), 37}), Layout::linear});
    Attrs attrs;
    if (op->name == "Clamp") attrs = {{"min", -0.5}, {"max", 0.25}};
    try {
      graph.set_outputs({graph.add(*op, {x}, attrs)->output()});
    } catch (const Error&) {
      continue;  // not for floats
    }
    SCOPED_TRACE(std::string(op->name));
    generated += check_tactics(graph, "pointwise", kSizes);
    EXPECT_GT(check_tactics(graph, "pointwise_blocks", kSizes), 0);
  }
  EXPECT_GT(generated, 20);
}

TEST(PointwiseTactics, AgreeOnGeneratedChains) {
  constexpr const char* kBinary[] = {"Add", "Sub", "Mul", "Max", "Min", "Div"};
  constexpr const char* kUnary[] = {
      "Relu", "Sigmoid", "Tanh", "Exp",      "Abs",
      "Neg",  "Silu",    "Erf",  "HardSwish"};  // continuous, so that rounding stays rounding
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    std::mt19937_64 engine(seed);
    const auto pick = [&](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(engine); };
    std::vector<std::string> values{"%x", "%z", "%c", "%s"};
    std::string body = " %c = constant f32[6,1,1]!5\n %s = constant f32[]{0.75}\n %t0 = Add(%x, %c)\n";
    values.push_back("%t0");
    const size_t steps = 1 + pick(8);
    for (size_t i = 1; i <= steps; ++i) {
      const std::string last = fmt::format("%t{}", i - 1), name = fmt::format("%t{}", i);
      if (pick(2) == 0) {
        body += fmt::format(" {} = {}({})\n", name, kUnary[pick(std::size(kUnary))], last);
      } else {
        const char* op = kBinary[pick(std::size(kBinary))];
        // Quotients of random numbers have no useful tolerance.
        const std::string other = std::string_view(op) == "Div" ? "%s" : values[pick(values.size())];
        body += fmt::format(" {} = {}({}, {})\n", name, op, last, other);
      }
      values.push_back(name);
    }
    const std::string text = fmt::format("(%x: f32[N,6,3,5], %z: f32[N,6,3,5]) {{\n{} return %t{}\n}}", body, steps);
    const Graph graph = parse_graph(text, find_op);
    EXPECT_GT(check_tactics(graph, "pointwise",
                            {.tolerance = 1e-5, .seed = seed, .tuned = {{"N", 2}}, .run = {{{"N", 2}}, {{"N", 3}}}}),
              0)
        << "seed " << seed;
    EXPECT_GT(check_tactics(graph, "pointwise_blocks", {.tolerance = 1e-5, .seed = seed, .tuned = {{"N", 2}}}), 0)
        << "seed " << seed;
  }
}

TEST(PointwiseTactics, ComparisonsAndChoicesOfOtherTypes) {
  EXPECT_GT(check_tactics("(%c: bool[N,1,7], %x: f32[N,4,7], %z: f32[7]) {\n %y = Where(%c, %x, %z)\n return %y\n}",
                          "pointwise_blocks", kSizes),
            0);
  EXPECT_GT(
      check_tactics("(%a: i64[N,7], %b: i64[7]) {\n %y = Equal(%a, %b)\n return %y\n}", "pointwise_blocks", kSizes), 0);
  EXPECT_GT(check_tactics("(%a: i64[N,7], %b: i64[1]) {\n %y = Add(%a, %b)\n return %y\n}", "pointwise_blocks", kSizes),
            0);
  EXPECT_GT(check_tactics("(%a: i32[N,7], %b: i32[7]) {\n %y = Mul(%a, %b)\n return %y\n}", "pointwise_blocks", kSizes),
            0);
  EXPECT_GT(
      check_tactics("(%a: bool[N,7], %b: bool[7]) {\n %y = And(%a, %b)\n return %y\n}", "pointwise_blocks", kSizes), 0);
}

TEST(PointwiseTactics, KeepLargeIntegersExact) {
  EXPECT_GT(check_tactics(R"((%a: i64[N,7]) {
    %m = constant i64[]{9223372036854775807}
    %y = Min(%a, %m)
    return %y
  })",
                          "pointwise_blocks", kSizes),
            0);
}

}  // namespace
}  // namespace hone::cpu
