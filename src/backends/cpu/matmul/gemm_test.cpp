// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

const CheckOptions kBatch{
    .tolerance = 1e-4, .seed = 5, .tuned = {{"N", 3}}, .run = {{{"N", 3}}, {{"N", 1}}, {{"N", 17}}}};

TEST(LinearTactic, AgreesWithTheReferenceOnAllLeadingAxesAndBothOrdersOfWeights) {
  for (const auto& [k, n] : {std::pair{1, 1}, {7, 5}, {32, 64}, {65, 130}, {192, 33}})
    for (const int transposed : {0, 1}) {
      const std::string text = fmt::format(R"((%x: f32[N,2,{0}]) {{
        %w = constant f32[{2},{3}]!3
        %b = constant f32[{1}]!4
        %y = Linear(%x, %w, %b) {{trans_w={4}}}
        return %y
      }})",
                                           k, n, transposed ? n : k, transposed ? k : n, transposed);
      EXPECT_GT(check_tactics(text, "linear", kBatch), 0) << text;
    }
}

TEST(LinearTactic, KeepsWeightsOfFewRowsInSixteenBitsWhereThatIsAllowed) {
  const Graph symbolic = parse_graph(R"((%x: f32[N,65], %r: f32[N,130]) {
    %w = constant f32[65,130]!3
    %b = constant f32[130]!4
    %c = Linear(%x, %w, %b) {trans_w=0}
    %a = Add(%c, %r)
    %y = Relu(%a)
    return %y
  })",
                                     find_op);
  for (const Isa isa : check::isas())
    for (const DType kept : {DType::bf16, DType::f16}) {
      if (isa == Isa::scalar || (kept == DType::f16 && !has_half_loads(isa))) continue;
      CpuDevice device({.workers = 2, .isa = isa});
      Problem problem = make_problem(symbolic, {{"N", 3}}, device.info());
      (kept == DType::f16 ? problem.allowed.f16 : problem.allowed.bf16) = true;
      Candidates candidates;
      source().propose(problem, candidates);
      int tried = 0;
      for (const Tactic& tactic : candidates.offers()) {
        if (!tactic.params.has("weights")) continue;
        ++tried;
        EXPECT_EQ(tactic.params.text("weights"), name_of(kept));
        const Compiled compiled = source().compile(problem, tactic);
        EXPECT_EQ(compiled.constants[0].dtype(), kept);
        for (const int64_t n : {3, 1, 20}) {
          const SymbolValues point{{"N", n}};
          const Graph region = symbolic.specialize(point);
          check::run_kernel(region,
                            load(device.info(), compiled.code, check::shapes_of(region, tactic, point, compiled)),
                            compiled, tactic, point, device, {.tolerance = kept == DType::f16 ? 1e-3 : 8e-3, .seed = 5},
                            tactic.text() + " " + std::string(to_string(isa)));
        }
      }
      EXPECT_EQ(tried, 1);
      problem.allowed = {};
      Candidates without;
      source().propose(problem, without);
      for (const Tactic& tactic : without.offers()) EXPECT_FALSE(tactic.params.has("weights")) << tactic.text();
    }
}

TEST(LinearTactic, FusesResidualAndActivationInBothOrders) {
  EXPECT_GT(check_tactics(R"((%x: f32[N,24], %r: f32[N,40]) {
    %w = constant f32[24,40]!3
    %y = Linear(%x, %w)
    %s = Add(%y, %r)
    %z = Gelu(%s)
    return %z
  })",
                          "linear", kBatch),
            0);
  EXPECT_GT(check_tactics(R"((%x: f32[N,24], %r: f32[N,40]) {
    %w = constant f32[24,40]!3
    %y = Linear(%x, %w)
    %s = Silu(%y)
    %z = Add(%r, %s)
    return %z
  })",
                          "linear", kBatch),
            0);
}

TEST(TileLinearTactic, AgreesWithTheReferenceOnEverySize) {
  const CheckOptions options{
      .tolerance = 0.01, .rounds = true, .tuned = {{"N", 40}}, .run = {{{"N", 40}}, {{"N", 1}}, {{"N", 97}}}};
  for (const auto& [k, n] : {std::pair{24, 40}, {64, 32}, {7, 100}, {130, 16}})
    for (const bool transposed : {false, true}) {
      const std::string text = fmt::format(
          "(%x: f32[N,{}], %r: f32[N,{}]) {{\n %w = constant f32[{}]!3\n %b = constant f32[{}]!5\n"
          " %y = Linear(%x, %w, %b) {{trans_w={}}}\n %g = Gelu(%y)\n %z = Add(%g, %r)\n return %z\n}}",
          k, n, transposed ? fmt::format("{},{}", n, k) : fmt::format("{},{}", k, n), n, int{transposed});
      EXPECT_EQ(check_tactics(text, "tile_linear", options) > 0, machine_isa() == Isa::avx512) << text;
      CheckOptions parts = options;
      parts.tolerance = 2e-5, parts.rounds = false, parts.emulates = true;
      EXPECT_EQ(check_tactics(text, "tile_linear", parts) > 0, machine_isa() == Isa::avx512) << "in parts\n" << text;
    }
}

TEST(LinearTactic, RefusesWhatItCannotFuse) {
  const Graph graph = parse_graph(R"((%x: f32[3,24], %r: f32[40]) {
    %w = constant f32[24,40]!3
    %y = Linear(%x, %w)
    %s = Add(%y, %r)
    return %s
  })",
                                  find_op);
  CpuDevice device;
  EXPECT_TRUE(offers_of(make_problem(graph, {}, device.info()), "linear").empty());
}

TEST(MatMulTactic, AgreesWithTheReferenceOnEveryWayToBroadcast) {
  const std::pair<const char*, const char*> shapes[] = {
      {"5,7", "7,9"},           {"N,5,32", "N,32,20"},    {"N,5,8", "8,20"},           {"5,8", "N,8,33"},
      {"N,4,6,16", "N,4,16,6"}, {"N,1,6,16", "1,4,16,6"}, {"N,4,2,6,8", "N,1,2,8,16"}, {"2,N,3,1,6,8", "1,N,1,2,8,5"}};
  for (const auto& [a, b] : shapes) {
    const std::string text = fmt::format("(%a: f32[{}], %b: f32[{}]) {{\n %y = MatMul(%a, %b)\n return %y\n}}", a, b);
    EXPECT_GT(check_tactics(text, "matmul", kBatch), 0) << text;
  }
}

TEST(MatMulTactic, ScalesAddsAndActivates) {
  EXPECT_GT(check_tactics(R"((%a: f32[N,2,6,16], %b: f32[N,2,16,6], %m: f32[N,2,6,6]) {
    %s = constant f32[]{8}
    %p = MatMul(%a, %b)
    %q = Div(%p, %s)
    %r = Add(%q, %m)
    %y = Relu(%r)
    return %y
  })",
                          "matmul", kBatch),
            0);
}

TEST(MatMulTactic, TakesAConstantOperand) {
  EXPECT_GT(check_tactics(R"((%b: f32[2,16,N]) {
    %a = constant f32[2,5,16]!9
    %y = MatMul(%a, %b)
    return %y
  })",
                          "matmul", kBatch),
            0);
}

}  // namespace
}  // namespace hone::cpu
