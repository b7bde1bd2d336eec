// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <bit>
#include <random>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

const CheckOptions kSizes{
    .tolerance = 2e-6, .seed = 9, .tuned = {{"N", 2}}, .run = {{{"N", 2}}, {{"N", 1}}, {{"N", 5}}}};

/// Types of the two operands and of the result; the chain between them is f32, or bf16 where all are.
struct Types {
  std::string_view x, o, y;
  std::string_view inside() const { return x == "bf16" && o == "bf16" && y == "bf16" ? "bf16" : "f32"; }
  /// Inputs %x and %o, behind Casts where they are not of the chain's type.
  std::string begin(std::string_view x_dims, std::string_view o_dims) const {
    const auto given = [&](char name, std::string_view type) {
      return fmt::format("%{}{}: {}", name, type == inside() ? "" : "0", type);
    };
    const auto cast = [&](char name, std::string_view type) {
      return type == inside() ? "" : fmt::format(" %{0} = Cast(%{0}0) {{to=\"{1}\"}}\n", name, inside());
    };
    return fmt::format("({}[{}], {}[{}]) {{\n{}{}", given('x', x), x_dims, given('o', o), o_dims, cast('x', x),
                       cast('o', o));
  }
  std::string end(std::string_view value) const {
    if (y == inside()) return fmt::format(" return {}\n}}", value);
    return fmt::format(" %y = Cast({}) {{to=\"{}\"}}\n return %y\n}}", value, y);
  }
};
constexpr Types kTypes[] = {{"f32", "f32", "f32"},  {"bf16", "bf16", "bf16"}, {"bf16", "f32", "f32"},
                            {"f32", "bf16", "f32"}, {"f32", "f32", "bf16"},   {"bf16", "f32", "bf16"}};

TEST(PointwiseTactics, BroadcastEveryWay) {
  for (const Types& types : kTypes)
    for (const char* other :
         {"N,5,4,7", "5,1,1", "N,5,1,1", "1,1,4,7", "4,7", "7", "1", "N,1,1,1", "1,5,1,7", "N,1,4,1"}) {
      const std::string text =
          types.begin("N,5,4,7", other) + " %a = Mul(%x, %o)\n %b = Sub(%a, %x)\n" + types.end("%b");
      EXPECT_GT(check_tactics(text, "pointwise", kSizes), 0) << text;
      EXPECT_GT(check_tactics(text, "pointwise_blocks", kSizes), 0) << text;
    }
}

TEST(PointwiseTactics, AgreeOnSizesAroundAVectorAndPastABlock) {
  for (const Types& types : kTypes)
    for (const int size : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 4095, 4097, 9001}) {
      const std::string text = types.begin(fmt::format("N,{}", size), fmt::to_string(size)) +
                               " %a = Add(%x, %o)\n %b = Relu(%a)\n" + types.end("%b");
      EXPECT_GT(check_tactics(text, "pointwise", kSizes), 0) << text;
    }
}

TEST(PointwiseTactics, RoundToBf16AsACastDoes) {
  CheckOptions options = kSizes;
  options.tolerance = 0;
  options.inputs = [](const Graph& region) {
    constexpr uint32_t kBits[] = {0x7f800001, 0xffffffff, 0x7fc00000, 0x7f800000, 0xff800000, 0x7f7fffff, 0x80000000,
                                  0x00000001, 0x00818000, 0x3f808000, 0x3f818000, 0x3f808001, 0x3f807fff};
    const Dims dims = region.inputs()[0]->type.shape.values();
    TensorBuilder builder(DType::f32, dims);
    for (size_t i = 0; float& value : builder.data<float>())
      value = std::bit_cast<float>(kBits[i++ % std::size(kBits)]);
    return std::vector<Tensor>{builder.finish()};
  };
  EXPECT_GT(check_tactics("(%x: f32[N,37]) {\n %a = Neg(%x)\n %y = Cast(%a) {to=\"bf16\"}\n return %y\n}", "pointwise",
                          options),
            0);
}

TEST(PointwiseTactics, AValueThatIsRoundedOnTheWayIsNotFused) {
  const Graph graph = parse_graph(
      "(%x: f32[9]) {\n %a = Neg(%x)\n %b = Cast(%a) {to=\"bf16\"}\n %c = Cast(%b) {to=\"f32\"}\n %y = Neg(%c)\n"
      " return %y\n}",
      find_op);
  EXPECT_EQ(check_tactics(graph, "pointwise", kSizes), 0);
  EXPECT_EQ(check_tactics(graph, "pointwise_blocks", kSizes), 0);
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
  for (uint64_t seed = 1; seed <= 42; ++seed) {
    std::mt19937_64 engine(seed);
    const auto pick = [&](size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(engine); };
    const Types& types = kTypes[seed % std::size(kTypes)];
    std::vector<std::string> values{"%x", "%o", "%c", "%s"};
    std::string body =
        fmt::format(" %c = constant {0}[6,1,1]!5\n %s = constant {0}[]{{0.75}}\n %t0 = Add(%x, %c)\n", types.inside());
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
    const std::string text = types.begin("N,6,3,5", "N,6,3,5") + body + types.end(fmt::format("%t{}", steps));
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
