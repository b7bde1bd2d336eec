// SPDX-License-Identifier: Apache-2.0

#include <random>
#include <set>

#include "backends/cpu/support/tactic_testing.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t in(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  template <typename T>
  T of(std::initializer_list<T> values) {
    return values.begin()[in(0, static_cast<int64_t>(values.size()) - 1)];
  }
  uint64_t seed() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

struct Case {
  int64_t n = 1, ic = 8, h = 9, w = 9, oc = 16, k = 3, stride = 1, dilation = 1, pad = 1, group = 1;
  bool bias = true;
};

Value* constant(Graph& graph, const Dims& dims, Random& random, double scale = 1) {
  return graph.add_constant(random_tensor(DType::f32, dims, random.seed(), -scale, scale));
}

/// Conv or ConvTranspose, then bias, residual and activation as they come.
Graph region(const Case& c, const OpDef& op, Random& random, bool residual, const OpDef* activation,
             bool activation_first = false) {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, Shape({Dim::symbol("N"), c.ic, c.h, c.w}), Layout::linear});
  const Dims weights = op.name == "Conv" ? Dims{c.oc, c.ic / c.group, c.k, c.k} : Dims{c.ic, c.oc / c.group, c.k, c.k};
  std::vector<Value*> operands{x, constant(graph, weights, random, 0.3)};
  if (c.bias) operands.push_back(constant(graph, {c.oc}, random));
  const std::vector<int64_t> two{c.stride, c.stride}, dilations{c.dilation, c.dilation};
  Attrs attrs{{"kernel_shape", std::vector<int64_t>{c.k, c.k}},
              {"strides", two},
              {"dilations", dilations},
              {"pads", std::vector<int64_t>(4, c.pad)},
              {"group", c.group}};
  Value* y = graph.add(op, operands, attrs)->output();
  const auto activate = [&] {
    if (activation == nullptr) return;
    Attrs parameters;
    if (activation->name == "Clamp") parameters = {{"min", 0.0}, {"max", 6.0}};
    y = graph.add(*activation, {y}, parameters)->output();
  };
  if (activation_first) activate();
  if (residual) y = graph.add(ops::add, {graph.add_input("r", y->type), y})->output();
  if (!activation_first) activate();
  graph.set_outputs({y});
  return graph;
}

CheckOptions at(int64_t n, uint64_t seed, double tolerance = 1e-4) {
  return {.tolerance = tolerance, .seed = seed, .tuned = {{"N", n}}, .run = {{{"N", n}}, {{"N", n + 1}}}};
}

TEST(ConvTactics, AgreeWithTheReferenceOnGeneratedConvolutions) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Random random(seed);
    Case c;
    c.group = random.of<int64_t>({1, 1, 1, 2});
    c.ic = c.group * random.of<int64_t>({1, 3, 4, 8, 17, 32});
    c.oc = c.group * random.of<int64_t>({1, 5, 8, 16, 33, 48});
    c.k = random.of<int64_t>({1, 1, 2, 3, 3, 5});
    c.stride = random.of<int64_t>({1, 1, 2, 3});
    c.dilation = random.of<int64_t>({1, 1, 2});
    c.pad = random.in(0, c.k - 1);
    c.h = random.in(6, 18), c.w = random.in(6, 18);
    if ((c.k - 1) * c.dilation >= std::min(c.h, c.w)) c.dilation = 1;
    if (c.group > 1 && c.group == c.ic && c.group == c.oc) c.oc *= 2;
    c.bias = random.in(0, 1) != 0;
    const OpDef* activation = random.of<const OpDef*>(
        {nullptr, &ops::relu, &ops::clamp, &ops::silu, &ops::hard_swish, &ops::sigmoid, &ops::tanh});
    const Graph graph = region(c, ops::conv, random, random.in(0, 1) != 0, activation, random.in(0, 1) != 0);
    EXPECT_GT(check_tactics(graph, "conv", at(random.in(1, 2), seed)), 0) << "seed " << seed;
  }
}

TEST(ConvTactics, WinogradAgreesWithinItsRounding) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed);
    const Case c{.ic = random.of<int64_t>({32, 64}),
                 .h = random.in(8, 20),
                 .w = random.in(8, 20),
                 .oc = random.of<int64_t>({32, 72}),
                 .pad = random.in(0, 1)};
    const Graph graph = region(c, ops::conv, random, seed % 2 == 0, &ops::relu);
    EXPECT_GT(check_tactics(graph, "winograd", at(1, seed, 1e-3)), 0) << "seed " << seed;
  }
}

TEST(ConvTactics, WinogradRoundsLessWhereTf32IsNotAllowed) {
  Random random(5);
  const Graph graph = region({.ic = 256, .h = 18, .w = 18, .oc = 48}, ops::conv, random, false, nullptr);
  CheckOptions exact = at(1, 5, 5e-6);
  exact.tf32 = false;
  EXPECT_GT(check_tactics(graph, "winograd", exact), 0);

  if (best_isa() == Isa::scalar) return;
  CpuDevice device;
  Problem problem = make_problem(graph, {{"N", 1}}, device.info());
  const auto tiles = [&](std::string* refusals = nullptr) {
    std::set<int64_t> result;
    for (const Tactic& tactic : offers_of(problem, "winograd", refusals))
      result.insert(tactic.params.integer("output"));
    return result;
  };
  EXPECT_EQ(tiles(), (std::set<int64_t>{2, 4, 6}));
  problem.allowed.tf32 = false;
  std::string refusals;
  EXPECT_EQ(tiles(&refusals), (std::set<int64_t>{2, 4}));
  EXPECT_EQ(refusals, "winograd: tiles of 6 x 6 round more than f32 may where TF32 is not allowed\n");
}

/// The region with every tensor in bf16; constants stay wide, kernels round them.
Graph narrowed(Graph graph) {
  for (Value* input : graph.inputs()) input->type.dtype = DType::bf16;
  for (Node* node : graph.nodes())
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (const Value* value = node->input(i); value != nullptr && value->is_constant() && !node->is(ops::clamp))
        graph.set_input(
            node, i,
            graph.add_constant(write_doubles(DType::bf16, value->constant->dims(), read_doubles(*value->constant))));
  graph.infer_all();
  return graph;
}

TEST(ConvTactics, DepthwiseAgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    Case c;
    c.group = c.ic = c.oc = random.of<int64_t>({2, 8, 19, 32, 40});
    c.k = random.of<int64_t>({3, 3, 5});
    c.stride = random.of<int64_t>({1, 2});
    c.pad = c.k / 2;
    c.h = random.in(7, 20), c.w = random.in(7, 20);
    Graph graph = region(c, ops::conv, random, seed % 3 == 0,
                         random.of<const OpDef*>({nullptr, &ops::relu, &ops::hard_swish, &ops::silu}), seed % 2 == 0);
    EXPECT_GT(check_tactics(graph, "depthwise_conv", at(1, seed)), 0) << "seed " << seed;
    EXPECT_GT(check_tactics(narrowed(std::move(graph)), "depthwise_conv", at(1, seed)), 0) << "seed " << seed;
  }
}

TEST(ConvTactics, TransposedAgreesWithTheReference) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Random random(seed);
    const int64_t stride = random.of<int64_t>({1, 2, 3});
    const Case c{.ic = random.of<int64_t>({4, 16, 21}),
                 .h = random.in(4, 9),
                 .w = random.in(4, 9),
                 .oc = random.of<int64_t>({3, 16, 24}),
                 .k = std::max(stride, random.of<int64_t>({2, 3, 4})),
                 .stride = stride,
                 .pad = random.in(0, 1)};
    const Graph graph =
        region(c, ops::conv_transpose, random, seed % 2 == 0, random.of<const OpDef*>({nullptr, &ops::relu}));
    EXPECT_GT(check_tactics(graph, "conv_transpose", at(1, seed)), 0) << "seed " << seed;
  }
}

TEST(ConvTactics, TransposedServesImagesSmallerThanItsStride) {
  const CheckOptions options{.tolerance = 1e-4, .seed = 9, .tuned = {{"S", 5}}, .run = {{{"S", 5}}, {{"S", 1}}}};
  for (const int kernel : {2, 3, 5})
    EXPECT_GT(check_tactics(fmt::format(R"((%x: f32[2,8,S,S]) {{
    %w = constant f32[8,6,{0},{0}]!11
    %y = ConvTranspose(%x, %w) {{kernel_shape=[{0},{0}], strides=[3,3], dilations=[1,1], pads=[{1},{1},{1},{1}], output_padding=[0,0]}}
    return %y
  }})",
                                        kernel, kernel / 2 - (kernel == 2)),
                            "conv_transpose", options),
              0)
        << kernel;
}

TEST(ConvTactics, PadsFollowFromTheSizeWhereTheModelSaysSo) {
  const CheckOptions options{
      .tolerance = 1e-4, .seed = 9, .tuned = {{"S", 8}}, .run = {{{"S", 8}}, {{"S", 7}}, {{"S", 5}}}};
  for (const char* padding : {"SAME_UPPER", "SAME_LOWER"})
    EXPECT_GT(check_tactics(fmt::format(R"((%x: f32[1,8,S,9]) {{
    %w = constant f32[16,8,3,4]!11
    %y = Conv(%x, %w) {{kernel_shape=[3,4], strides=[2,3], dilations=[1,1], pads=[0,0,0,0], auto_pad="{}"}}
    return %y
  }})",
                                        padding),
                            "conv", options),
              0);
}

TEST(ConvTactics, MatrixTilesAgreeWithTheReferenceInBothTypes) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "needs AVX-512";
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    Random random(seed);
    Case c{.ic = random.in(8, 70), .h = random.in(6, 12), .w = random.in(6, 12), .oc = random.in(1, 70)};
    c.k = random.of<int64_t>({1, 1, 3});
    c.stride = random.of<int64_t>({1, 1, 2});
    c.pad = random.in(0, c.k - 1);
    Graph graph = region(c, ops::conv, random, random.in(0, 1) != 0,
                         random.of<const OpDef*>({nullptr, &ops::relu, &ops::silu}), random.in(0, 1) != 0);
    CheckOptions options = at(random.in(1, 2), seed, 0.01);
    options.rounds = true;
    EXPECT_GT(check_tactics(graph, "tile_conv", options), 0) << "seed " << seed;
    EXPECT_GT(check_tactics(narrowed(std::move(graph)), "tile_conv", options), 0) << "seed " << seed << ", bf16";
  }
}

TEST(ConvTactics, TakesOneDimensionalConvolutions) {
  EXPECT_GT(check_tactics(R"((%x: f32[N,8,21]) {
    %w = constant f32[12,8,3]!11
    %b = constant f32[12]!12
    %y = Conv(%x, %w, %b) {kernel_shape=[3], strides=[2], dilations=[1], pads=[1,1]}
    %z = Relu(%y)
    return %z
  })",
                          "conv", at(2, 7)),
            0);
}

TEST(ConvTactics, FoldScalesAndBiasesBehindIntoTheWeights) {
  EXPECT_GT(check_tactics(R"((%x: f32[N,8,7,7]) {
    %w = constant f32[4,8,1,1]!21
    %b = constant f32[4]{1, 2, 3, 4}
    %s = constant f32[]{0.5}
    %c = constant f32[4,1,1]{1, -1, 2, -2}
    %y = Conv(%x, %w, %b) {kernel_shape=[1,1], strides=[1,1], dilations=[1,1], pads=[0,0,0,0]}
    %z = Mul(%y, %s)
    %r = Add(%z, %c)
    return %r
  })",
                          "conv", at(1, 7)),
            0);
}

TEST(ConvTactics, SayWhyTheyRefuse) {
  const Graph graph = parse_graph(R"((%x: f32[1,8,7,7]) {
    %w = constant f32[4,8,1,1]!21
    %y = Conv(%x, %w) {kernel_shape=[1,1], strides=[1,1], dilations=[1,1], pads=[0,0,0,0]}
    %z = Exp(%y)
    return %z
  })",
                                  find_op);
  CpuDevice device;
  if (best_isa() == Isa::scalar) GTEST_SKIP();
  std::string refusals;
  EXPECT_TRUE(offers_of(make_problem(graph, {}, device.info()), "conv", &refusals).empty());
  EXPECT_EQ(refusals, "conv: Exp cannot be part of its epilogue\n");
}

TEST(ConvTactics, APlanForWiderVectorsIsRefusedWithAdvice) {
  if (machine_isa() != Isa::avx512) GTEST_SKIP() << "needs AVX-512";
  const Graph graph = parse_graph(R"((%x: f32[1,8,7,7]) {
    %w = constant f32[4,8,1,1]!21
    %y = Conv(%x, %w) {kernel_shape=[1,1], strides=[1,1], dilations=[1,1], pads=[0,0,0,0]}
    return %y
  })",
                                  find_op);
  CpuDevice wide({.workers = 1, .isa = Isa::avx512}), narrow({.workers = 1, .isa = Isa::avx2});
  const Problem problem = make_problem(graph, {}, wide.info());
  const Tactic tactic = offers_of(problem, "conv").at(0);
  const Compiled compiled = source().compile(problem, tactic);
  try {
    load(narrow.info(), compiled.code, check::shapes_of(problem.region, tactic, {}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "this plan was tuned for avx512, this processor has avx2");
    EXPECT_TRUE(error.hint().starts_with("rebuild it from the ONNX model on this machine"));
  }
}

}  // namespace
}  // namespace hone::cpu
