// SPDX-License-Identifier: Apache-2.0

#include "backends/cpu/onednn/onednn.h"

#include <fmt/format.h>

#include <regex>

#include "backends/cpu/support/tactic_testing.h"

#if HONE_WITH_ONEDNN
namespace hone::cpu {
namespace {

/// Runs one tactic at several sizes, and in a team of another size than its build's.
void check_tactic(const Graph& symbolic, const Problem& problem, const Tactic& tactic, double tolerance,
                  const std::function<std::vector<Tensor>(const Graph&)>& inputs = {}) {
  const int workers = problem.device.workers;
  CpuDevice device({.workers = workers}), other({.workers = 3 - workers});
  const Compiled compiled = onednn_source().compile(problem, tactic);
  for (const int64_t n : {2, 1, 5}) {
    const SymbolValues point{{"N", n}};
    const Graph region = symbolic.specialize(point);
    for (CpuDevice* team : {&device, &other})
      check::run_kernel(
          region, load_onednn(team->info(), compiled.code, check::shapes_of(region, tactic, point, compiled)), compiled,
          tactic, point, *team, {.tolerance = tolerance, .seed = 6, .inputs = inputs}, tactic.text());
  }
}

/// A processor that multiplies bf16; where this one does not, the library emulates it.
Problem problem_of(const Graph& symbolic, int workers, bool round) {
  Problem problem = make_problem(symbolic, {{"N", 2}}, CpuDevice({.workers = workers}).info());
  problem.device.bf16_matmuls = true;
  problem.allowed.bf16 = round;
  return problem;
}

/// Runs everything the library offers for the region at several sizes; returns how many tactics there were.
int check_library(const std::string& text, double tolerance = 2e-5, bool round = false,
                  const std::function<std::vector<Tensor>(const Graph&)>& inputs = {}) {
  const Graph symbolic = parse_graph(text, find_op);
  SCOPED_TRACE(print(symbolic));
  int tried = 0;
  for (const int workers : {1, 2}) {
    const Problem problem = problem_of(symbolic, workers, round);
    const bool is_f32 = problem.region.outputs()[0]->type.dtype == DType::f32;
    Candidates candidates;
    onednn_source().propose(problem, candidates);
    for (const Tactic& tactic : candidates.offers()) {
      if (is_f32 && round != tactic.params.has("operands")) continue;
      check_tactic(symbolic, problem, tactic, tolerance, inputs);
      ++tried;
    }
    for (const Candidates::Refusal& refusal : candidates.refusals())
      EXPECT_FALSE(refusal.reason.empty()) << refusal.tactic;
  }
  return tried;
}

std::string conv(const std::string& size, const std::string& weights, const std::string& attrs,
                 const std::string& epilogue = "", const std::string& inputs = "") {
  return fmt::format(
      "(%x: f32[{}]{}) {{\n %w = constant f32[{}]!0123456789abcdef0123456789abcdef\n %c = Conv(%x, %w) {{{}}}\n{} "
      "return %{}\n}}",
      size, inputs, weights, attrs, epilogue, epilogue.empty() ? "c" : "y");
}

constexpr const char* kSame = "kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1], group=1";

TEST(OnednnSource, ConvolvesInItsLayouts) {
  EXPECT_GT(check_library(conv("N,16,9,11", "24,16,3,3", kSame)), 0);
  EXPECT_GT(check_library(conv("N,3,12,12", "16,3,3,3",
                               "kernel_shape=[3, 3], pads=[0, 0, 1, 1], strides=[2, 2], dilations=[1, 1], group=1")),
            0);
  EXPECT_GT(check_library(conv("N,32,8,8", "32,1,3,3",
                               "kernel_shape=[3, 3], pads=[2, 2, 2, 2], strides=[1, 1], dilations=[2, 2], group=32")),
            0);
  EXPECT_GT(check_library(conv("N,32,8,8", "48,8,3,3",
                               "kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, 1], group=4")),
            0);
  EXPECT_GT(
      check_library(conv("N,16,20", "8,16,5", "kernel_shape=[5], pads=[2, 2], strides=[1], dilations=[1], group=1")),
      0);
  EXPECT_GT(check_library(conv(
                "N,16,5,6,7", "16,16,3,3,3",
                "kernel_shape=[3, 3, 3], pads=[1, 1, 1, 1, 1, 1], strides=[1, 1, 1], dilations=[1, 1, 1], group=1")),
            0);
}

TEST(OnednnSource, AddsResidualAndActivationInEitherOrder) {
  const std::string residual = ", %r: f32[N,24,9,11]";
  EXPECT_GT(check_library(conv("N,16,9,11", "24,16,3,3", kSame, " %a = Add(%c, %r)\n %y = Relu(%a)\n", residual)), 0);
  EXPECT_GT(check_library(conv("N,16,9,11", "24,16,3,3", kSame, " %a = Silu(%c)\n %y = Add(%r, %a)\n", residual)), 0);
  for (const char* activation :
       {"Relu(%c)", "Clamp(%c) {min=-0.25, max=0.5}", "HardSwish(%c)", "Sigmoid(%c)", "Gelu(%c)", "GeluTanh(%c)",
        "HardSigmoid(%c) {alpha=0.2, beta=0.4}", "LeakyRelu(%c) {alpha=0.1}"})
    EXPECT_GT(check_library(conv("N,16,5,5", "24,16,3,3", kSame, fmt::format(" %y = {}\n", activation)), 1e-4), 0)
        << activation;
}

TEST(OnednnSource, TransposedConvolutions) {
  const bool avx512 = best_isa() == Isa::avx512;  // below, the library has only its reference for these
  for (const int group : {1, 2})
    EXPECT_GE(check_library(fmt::format(
                  "(%x: f32[N,32,5,6]) {{\n %w = constant f32[32,16,3,3]!0123456789abcdef0123456789abcdef\n %b = "
                  "constant f32[{0}]!1123456789abcdef0123456789abcdef\n"
                  " %y = ConvTranspose(%x, %w, %b) {{kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], "
                  "dilations=[1, 1], output_padding=[1, 0], group={1}}}\n return %y\n}}",
                  16 * group, group)),
              avx512 ? 1 : 0);
}

TEST(OnednnSource, LinearLayersAndMatmuls) {
  for (const int transposed : {0, 1})
    EXPECT_GT(
        check_library(
            fmt::format(
                "(%x: f32[N,7,33], %r: f32[N,7,48]) {{\n %w = constant f32[{}]!0123456789abcdef0123456789abcdef\n %b = "
                "constant f32[48]!1123456789abcdef0123456789abcdef\n"
                " %c = Linear(%x, %w, %b) {{trans_w={}}}\n %a = Gelu(%c)\n %y = Add(%a, %r)\n return %y\n}}",
                transposed ? "48,33" : "33,48", transposed),
            1e-4),
        0);
  EXPECT_GT(check_library(
                "(%a: f32[N,3,7,9], %b: f32[N,3,9,5]) {\n %c = MatMul(%a, %b)\n %y = Mul(%c, 0.125)\n return %y\n}"),
            0);
  EXPECT_GT(check_library("(%a: f32[N,3,7,9], %b: f32[3,9,5], %r: f32[N,3,7,5]) {\n %c = MatMul(%a, %b)\n %y = Add(%c, "
                          "%r)\n return %y\n}"),
            0);
}

constexpr double kRounded = 1e-2;

TEST(OnednnSource, RoundsOperandsToBf16WhereThatIsAllowed) {
  if (best_isa() != Isa::avx512) GTEST_SKIP() << "the library multiplies bf16 with AVX-512 only";
  EXPECT_GT(check_library("(%x: f32[N,7,33], %r: f32[N,7,48]) {\n %w = constant "
                          "f32[33,48]!0123456789abcdef0123456789abcdef\n %b = constant "
                          "f32[48]!1123456789abcdef0123456789abcdef\n %c = Linear(%x, %w, %b) {trans_w=0}\n %a = "
                          "Gelu(%c)\n %y = Add(%a, %r)\n return %y\n}",
                          kRounded, true),
            0);
}

TEST(OnednnSource, ConvolvesTensorsOfBf16) {
  if (best_isa() != Isa::avx512) GTEST_SKIP() << "the library multiplies bf16 with AVX-512 only";
  const auto in_bf16 = [](const std::string& text) {
    return check_library(std::regex_replace(text, std::regex("f32"), "bf16"), kRounded);
  };
  const std::string residual = ", %r: f32[N,24,9,11]", add_relu = " %a = Add(%c, %r)\n %y = Relu(%a)\n";
  EXPECT_GT(in_bf16(conv("N,16,9,11", "24,16,3,3", kSame, add_relu, residual)), 0);
  EXPECT_GT(in_bf16(conv("N,3,12,12", "16,3,3,3",
                         "kernel_shape=[3, 3], pads=[0, 0, 1, 1], strides=[2, 2], dilations=[1, 1], group=1")),
            0);
  EXPECT_GT(in_bf16(conv("N,32,8,8", "32,1,3,3",
                         "kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1], group=32")),
            0);
  EXPECT_GT(in_bf16(conv("N,32,8,8", "48,8,3,3",
                         "kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[2, 2], group=4")),
            0);
  EXPECT_GT(in_bf16(conv("N,16,20", "8,16,5", "kernel_shape=[5], pads=[2, 2], strides=[1], dilations=[1], group=1")),
            0);
  EXPECT_GT(in_bf16("(%x: f32[N,32,5,6]) {\n %w = constant f32[32,16,3,3]!0123456789abcdef0123456789abcdef\n %b = "
                    "constant f32[16]!1123456789abcdef0123456789abcdef\n %y = ConvTranspose(%x, %w, %b) "
                    "{kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, 1], output_padding=[1, 0], "
                    "group=1}\n return %y\n}"),
            0);
}

TEST(OnednnSource, LayersThatShareAKernelKeepTheirWeights) {
  const auto layer = [](const char* weights) {
    return parse_graph(fmt::format("(%x: f32[N,16,9,11]) {{\n %w = constant f32[24,16,3,3]!{}\n %y = Conv(%x, %w) "
                                   "{{{}}}\n return %y\n}}",
                                   weights, kSame),
                       find_op);
  };
  const Graph layers[] = {layer("0123456789abcdef0123456789abcdef"), layer("fedcba9876543210fedcba9876543210")};
  const SymbolValues built{{"N", 2}}, met{{"N", 5}};
  CpuDevice device({.workers = 2}), other({.workers = 1});
  Candidates candidates;
  onednn_source().propose(make_problem(layers[0], built, device.info()), candidates);
  for (const Tactic& tactic : candidates.offers()) {
    std::shared_ptr<const CpuKernel> shared;
    for (const Graph& symbolic : layers) {
      const Compiled compiled = onednn_source().compile(make_problem(symbolic, built, device.info()), tactic);
      if (!shared)
        shared =
            load_onednn(other.info(), compiled.code, check::shapes_of(symbolic.specialize(met), tactic, met, compiled));
      check::run_kernel(symbolic.specialize(met), shared, compiled, tactic, met, other, {.tolerance = 2e-5, .seed = 6},
                        tactic.text());
    }
  }
  EXPECT_FALSE(candidates.offers().empty());
}

struct RecurrentLayer {
  const char *op, *direction, *attrs = "";
  bool states;
  bool lstm() const { return std::string_view(op) == "LSTM"; }

  std::string text(const std::string& steps = "5", const std::string& batch = "N") const {
    const int d = std::string_view(direction) == "bidirectional" ? 2 : 1, gates = lstm() ? 4 : 3;
    const std::string initial = states ? fmt::format(", %h0: f32[{0},{1},12]{2}", d, batch,
                                                     lstm() ? fmt::format(", %c0: f32[{},{},12]", d, batch) : "")
                                       : "";
    return fmt::format(
        "(%x: f32[{},{},7]{}) {{\n %w = constant f32[{},{},7]!0123456789abcdef0123456789abcdef\n %r = constant "
        "f32[{},{},12]!1123456789abcdef0123456789abcdef\n"
        " %b = constant f32[{},{}]!2123456789abcdef0123456789abcdef\n %y, %h{} = {}(%x, %w, %r, %b{}) "
        "{{hidden_size=12, direction=\"{}\"{}}}\n return %y, %h{}\n}}",
        steps, batch, initial, d, gates * 12, d, gates * 12, d, 2 * gates * 12, lstm() ? ", %c" : "", op,
        states ? (lstm() ? ", _, %h0, %c0" : ", _, %h0") : "", direction, attrs, lstm() ? ", %c" : "");
  }
};

std::vector<RecurrentLayer> recurrent_layers() {
  std::vector<RecurrentLayer> layers;
  for (const char* direction : {"forward", "reverse", "bidirectional"})
    for (const bool states : {false, true}) {
      layers.push_back({"LSTM", direction, "", states});
      layers.push_back({"GRU", direction, ", linear_before_reset=0", states});
      layers.push_back({"GRU", direction, ", linear_before_reset=1", states});
    }
  return layers;
}

TEST(OnednnSource, RecurrentLayersInEveryDirection) {
  const bool avx512 = best_isa() == Isa::avx512;
  for (const RecurrentLayer& layer : recurrent_layers())
    EXPECT_GE(check_library(layer.text()), layer.lstm() && avx512 ? 4 : 2);  // a team of one and one of two
}

TEST(OnednnSource, RecurrentLayersThatBeginWithConstants) {
  const auto layer = [](const std::string& state) {
    return fmt::format(
        "(%x: f32[N,2,7]) {{\n %w = constant f32[1,48,7]!0123456789abcdef0123456789abcdef\n %r = constant "
        "f32[1,48,12]!1123456789abcdef0123456789abcdef\n %s = constant f32[1,2,12]{}\n %y, %h, %c = LSTM(%x, %w, %r, "
        "_, "
        "_, %s, %s) {{hidden_size=12, direction=\"forward\"}}\n return %y, %h, %c\n}}",
        state);
  };
  EXPECT_GT(check_library(layer(fmt::format("{{{}}}", fmt::join(std::vector<int>(24, 0), ", ")))), 0);
  EXPECT_EQ(check_library(layer("!0123456789abcdef0123456789abcdef")), 0);
}

/// The weights stay plain, which is not offered: so the library's reference, which is all it has on processors that do not
/// multiply bf16, computes the layers, too.
TEST(OnednnSource, RecurrentLayersWithOperandsInBf16) {
  if (best_isa() != Isa::avx512) GTEST_SKIP() << "the library multiplies bf16 with AVX-512 only";
  constexpr double kTolerance = 1e-2;
  for (const RecurrentLayer& layer : recurrent_layers()) {
    const std::string text = layer.text("N", "8");  // fewer are refused
    check_library(text, kTolerance, true);
    const Graph symbolic = parse_graph(text, find_op);
    SCOPED_TRACE(print(symbolic));
    const Problem problem = problem_of(symbolic, 2, true);
    Candidates candidates;
    onednn_source().propose(problem, candidates);
    ASSERT_FALSE(candidates.offers().empty());
    Tactic tactic = candidates.offers().front();
    ASSERT_FALSE(tactic.params.has("format"));
    tactic.params.set("operands", std::string("bf16"));
    check_tactic(symbolic, problem, tactic, kTolerance);
  }
}

/// The shapes are those of q, k, v and possibly a mask; a mask that begins with "=" is a constant.
std::string attention_text(const std::vector<std::string>& shapes, const std::string& layout) {
  constexpr const char* kNames[] = {"q", "k", "v", "mask"};
  std::string given, constant, operands;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].starts_with("="))
      constant = fmt::format(" %mask = constant f32[{}]!0123456789abcdef0123456789abcdef\n", shapes[i].substr(1));
    else given += fmt::format("{}%{}: f32[{}]", i ? ", " : "", kNames[i], shapes[i]);
    operands += fmt::format("{}%{}", i ? ", " : "", kNames[i]);
  }
  return fmt::format("({}) {{\n{} %y = ScaledDotProductAttention({}) {{scale=0.35, layout=\"{}\"}}\n return %y\n}}",
                     given, constant, operands, layout);
}

/// Besides what is offered, small blocks are tried (few rows, and few heads), in bf16 and in f32: there the library has keys
/// and values in blocks of its own on every AVX-512 processor, in bf16 only on those that multiply it.
int check_attention(const std::vector<std::string>& shapes, const std::string& layout,
                    const std::function<std::vector<Tensor>(const Graph&)>& inputs = {}) {
  constexpr double kTolerance = 1e-2;
  const std::string text = attention_text(shapes, layout);
  const int tried = check_library(text, kTolerance, true, inputs);
  const Graph symbolic = parse_graph(text, find_op);
  SCOPED_TRACE(print(symbolic));
  const Problem problem = problem_of(symbolic, 2, true);
  Candidates candidates;
  onednn_source().propose(problem, candidates);
  if (candidates.offers().empty()) return tried;
  Tactic tactic = candidates.offers().front();
  for (const int64_t kilobytes : {1, 12}) {
    tactic.params = {{"kilobytes", kilobytes}};
    check_tactic(symbolic, problem, tactic, 1e-4, inputs);
    tactic.params.set("operands", std::string("bf16"));
    check_tactic(symbolic, problem, tactic, kTolerance, inputs);
  }
  return tried;
}

class OnednnAttention : public testing::Test {
 protected:
  void SetUp() override {
    if (best_isa() != Isa::avx512) GTEST_SKIP() << "the library multiplies bf16 with AVX-512 only";
  }
};

TEST_F(OnednnAttention, ReadsAndWritesBothLayouts) {
  for (const char* shape : {"N,3,37,16", "2,3,N,17", "1,5,70,8", "N,1,9,8", "3,1,N,5"})
    EXPECT_GT(check_attention({shape, shape, shape}, "bhsd"), 0) << shape;
  for (const char* shape : {"N,37,3,16", "2,N,3,17", "1,70,5,8", "N,9,1,8", "3,N,1,5"})
    EXPECT_GT(check_attention({shape, shape, shape}, "bshd"), 0) << shape;
  EXPECT_GT(check_attention({"N,3,5,16", "N,3,41,16", "N,3,41,24"}, "bhsd"), 0);
  EXPECT_GT(check_attention({"N,70,3,16", "N,41,3,16", "N,41,3,9"}, "bshd"), 0);
  EXPECT_EQ(check_library(attention_text({"1,N,270,4", "1,N,280,4", "1,N,280,4"}, "bhsd"), 1e-2, true), 4)
      << "whole heads in a large block, some rows in a small one";
}

TEST_F(OnednnAttention, SharesHeadsOfKeysAndValuesAmongQueries) {
  EXPECT_GT(check_attention({"N,6,37,8", "N,2,37,8", "N,2,37,8"}, "bhsd"), 0);
  EXPECT_GT(check_attention({"2,N,6,8", "2,40,2,8", "2,40,2,8"}, "bshd"), 0);
  EXPECT_GT(check_attention({"N,33,4,8", "N,33,1,8", "N,33,1,8", "33,33"}, "bshd"), 0);
}

TEST_F(OnednnAttention, AddsMasksThatBroadcastOnAnyAxis) {
  for (const char* mask : {"N,3,37,37", "1,1,37,37", "N,1,1,37", "1,3,1,37", "N,1,37,37", "1,3,37,37", "N,3,1,37",
                           "37,37", "3,37,37", "37", "=37,37", "=3,1,37", "=37", "=1,3,37,37"})
    EXPECT_GT(check_attention({"N,3,37,8", "N,3,37,8", "N,3,37,8", mask}, "bhsd"), 0) << mask;
  for (const char* mask : {"N,3,37,37", "N,1,1,37", "N,1,37,37", "37,37", "=3,1,37"})
    EXPECT_GT(check_attention({"N,37,3,8", "N,37,3,8", "N,37,3,8", mask}, "bshd"), 0) << mask;
  for (const char* mask : {"N,1,40,40", "N,1,1,40"})
    EXPECT_GT(check_attention({"N,40,1,8", "N,40,1,8", "N,40,1,8", mask}, "bshd"), 0) << mask;
  for (const char* mask : {"N,3,37,1", "1"})  // offered or refused, never wrong
    check_attention({"N,3,37,8", "N,3,37,8", "N,3,37,8", mask}, "bhsd");
}

/// Some keys, and for one query all keys, are excluded: not a number, as everywhere.
TEST_F(OnednnAttention, ExcludesKeysByMinusInfinity) {
  const auto inputs = [](const Graph& graph) {
    std::vector<Tensor> tensors = random_inputs(graph, 6);
    const Dims& dims = tensors[3].dims();
    TensorBuilder mask(DType::f32, dims);
    const std::span<float> numbers = mask.data<float>();
    for (size_t i = 0; i < numbers.size(); ++i) {
      const size_t key = i % static_cast<size_t>(dims[1]), query = i / static_cast<size_t>(dims[1]);
      numbers[i] = query == 3 || key > query + 1 ? -INFINITY : 0.25f;
    }
    tensors[3] = mask.finish();
    return tensors;
  };
  EXPECT_GT(check_attention({"N,3,37,8", "N,3,37,8", "N,3,37,8", "37,37"}, "bhsd", inputs), 0);
}

TEST_F(OnednnAttention, RefusesWithAReason) {
  const auto refused = [](const std::string& text, bool round) {
    const Graph symbolic = parse_graph(text, find_op);
    Candidates candidates;
    onednn_source().propose(problem_of(symbolic, 2, round), candidates);
    return candidates.offers().empty() && !candidates.refusals().empty();
  };
  const auto text = [](const char* type, const char* layout = "bhsd") {
    return fmt::format(
        "(%q: {0}, %k: {0}, %v: {0}) {{\n %y = ScaledDotProductAttention(%q, %k, %v) {{layout=\"{1}\"}}\n return "
        "%y\n}}",
        type, layout);
  };
  EXPECT_FALSE(refused(text("f32[N,3,37,8]"), true));
  EXPECT_TRUE(refused(text("f32[N,3,37,8]"), false));
  EXPECT_TRUE(refused(text("f16[N,3,37,8]"), true));
  EXPECT_FALSE(refused(text("f32[500,2,2,4]", "bhsd"), true));
  EXPECT_TRUE(refused(text("f32[500,2,2,4]", "bshd"), true)) << "takes steps for each image";
  CpuDevice device;
  const ConcreteType type{DType::f32, {1, 3, 37, 8}, Layout::linear};
  for (const char* name : {"operand", "operand.0.place", "kilobytes", "layout"}) {
    Attrs attrs{{"operand", int64_t{3}}, {"scale", 1.0}, {"layout", std::string("bhsd")}, {"kilobytes", int64_t{256}}};
    for (const int64_t i : {0, 1, 2}) {
      attrs.set(fmt::format("operand.{}.place", i), i);
      attrs.set(fmt::format("operand.{}.dims", i), std::vector<int64_t>{});
    }
    EXPECT_NO_THROW(load_onednn(device.info(), encode_code("attention", attrs), {{type, type, type}, {type}, {}}));
    attrs.set(name, int64_t{-3});
    EXPECT_THROW(load_onednn(device.info(), encode_code("attention", attrs), {{type, type, type}, {type}, {}}), Error)
        << name;
  }
}

TEST(OnednnSource, RefusesWhatDoesNotFit) {
  CpuDevice device;
  const Graph graph = parse_graph(conv("N,16,9,11", "24,16,3,3", kSame, " %y = Softplus(%c)\n"), find_op);
  Candidates candidates;
  onednn_source().propose(make_problem(graph, {{"N", 2}}, device.info()), candidates);
  EXPECT_TRUE(candidates.offers().empty());
  ASSERT_FALSE(candidates.refusals().empty());
  EXPECT_THROW(load_onednn(device.info(), encode_code("nothing", {}), {}), Error);
}

}  // namespace
}  // namespace hone::cpu
#endif
