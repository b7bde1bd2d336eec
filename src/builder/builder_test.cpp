// SPDX-License-Identifier: Apache-2.0
//
// Small graphs through the whole builder and the runtime, against the reference evaluation.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "backends/all.h"
#include "builder/build.h"
#include "builder/regions.h"
#include "ops/all.h"
#include "runtime/engine.h"
#include "tensor/layout.h"

namespace hone {
namespace {

constexpr std::string_view kNet = R"((%x: f32[N,3,12,12]) {
  %w1 = constant f32[16,3,3,3]!1
  %b1 = constant f32[16]!2
  %w2 = constant f32[16,16,3,3]!3
  %wf = constant f32[16,10]!4
  %c1 = Conv(%x, %w1, %b1) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]} "conv1" ["conv1"]
  %r1 = Relu(%c1) "relu1" ["relu1"]
  %c2 = Conv(%r1, %w2) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]} "conv2" ["conv2"]
  %s = Add(%c2, %r1) "add" ["add"]
  %r2 = Relu(%s) "relu2" ["relu2"]
  %p = GlobalAveragePool(%r2) "pool" ["pool"]
  %f = View(%p) {shape=["N", "16"]} "flatten" ["flatten"]
  %y = Linear(%f, %wf) "fc" ["fc"]
  return %y
})";

struct Cpu {
  const Backend* backend = find_backend("cpu");
  std::shared_ptr<Device> device = backend->open(0);
};

ProfileOptions batch_profile(int64_t min, int64_t opt, int64_t max) {
  return {{"x", {{min, 3, 12, 12}, {opt, 3, 12, 12}, {max, 3, 12, 12}}}};
}

Plan build_net(const Cpu& cpu, TimingCache& cache, std::string_view text = kNet, BuildOptions options = {}) {
  if (options.profiles.empty() && text == kNet) options.profiles = {batch_profile(1, 2, 4)};
  return build(parse_graph(text, find_op), options, *cpu.backend, *cpu.device, cache);
}

std::vector<Tensor> run(ExecutionContext& context, std::span<const Tensor> inputs) {
  const Plan& plan = context.engine().plan();
  std::vector<AlignedBuffer> buffers;
  size_t next = 0;
  for (const IoTensor& io : plan.io)
    if (io.is_input) context.set_shape(io.name, inputs[next++].dims());
  next = 0;
  for (const IoTensor& io : plan.io) {
    buffers.emplace_back(static_cast<size_t>(std::max<int64_t>(context.bytes(io.name), 1)));
    if (io.is_input)
      std::memcpy(buffers.back().data(), inputs[next].bytes().data(), inputs[next].bytes().size()), ++next;
    context.bind(io.name, buffers.back().data());
  }
  const std::unique_ptr<Stream> stream = context.engine().device().stream();
  context.enqueue(*stream);
  stream->synchronize();
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < plan.io.size(); ++i)
    if (!plan.io[i].is_input)
      outputs.push_back(
          Tensor(plan.io[i].type.dtype, context.shape(plan.io[i].name), Blob::own(std::move(buffers[i]))));
  return outputs;
}

double relative_error(const Tensor& a, const Tensor& b) {
  double difference = 0, norm = 1e-30;
  for (int64_t i = 0; i < b.size(); ++i) {
    difference += (a.real(i) - b.real(i)) * (a.real(i) - b.real(i));
    norm += b.real(i) * b.real(i);
  }
  return std::sqrt(difference / norm);
}

void expect_like_reference(std::string_view text, const SymbolValues& symbols, ExecutionContext& context,
                           uint64_t seed) {
  const Graph reference = parse_graph(text, find_op).specialize(symbols);
  const std::vector<Tensor> inputs = random_inputs(reference, seed), expected = evaluate(reference, inputs),
                            actual = run(context, inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(actual[i].dims(), expected[i].dims());
    EXPECT_LT(relative_error(actual[i], expected[i]), 1e-5) << "output " << i << ", seed " << seed;
  }
}

TEST(Builder, OnePlanServesEveryBatchOfItsProfile) {
  const Cpu cpu;
  TimingCache cache;
  const auto engine = Engine::load(build_net(cpu, cache), *cpu.backend, cpu.device);
  const auto context = engine->context();
  for (const int64_t batch : {2, 1, 4, 3, 1})
    expect_like_reference(kNet, {{"N", batch}}, *context, static_cast<uint64_t>(batch));
}

TEST(Builder, LevelZeroTimesNothingAndIsRight) {
  const Cpu cpu;
  TimingCache cache;
  const auto engine = Engine::load(build_net(cpu, cache, kNet, {.optimization_level = 0}), *cpu.backend, cpu.device);
  EXPECT_EQ(cache.entries(), 0u);
  expect_like_reference(kNet, {{"N", 2}}, *engine->context(), 5);
}

TEST(Builder, TheSameCacheGivesTheSameBytes) {
  const Cpu cpu;
  TimingCache cache;
  const std::vector<std::byte> first = save_plan(build_net(cpu, cache));
  const size_t entries = cache.entries(), misses = cache.misses();
  const std::vector<std::byte> second = save_plan(build_net(cpu, cache));
  EXPECT_EQ(first, second);
  EXPECT_EQ(cache.entries(), entries);
  EXPECT_EQ(cache.misses(), misses) << "a warm build asked for a time that was not there";
}

TEST(Builder, PlansRunTheSameAfterTheFile) {
  const Cpu cpu;
  TimingCache cache;
  const std::vector<std::byte> bytes = save_plan(build_net(cpu, cache));
  const auto engine = Engine::load(load_plan(Blob::copy(bytes)), *cpu.backend, cpu.device);
  expect_like_reference(kNet, {{"N", 4}}, *engine->context(), 6);
}

TEST(Builder, EveryOnnxNodeIsNamedByOneLayer) {
  const Cpu cpu;
  TimingCache cache;
  const Plan plan = build_net(cpu, cache);
  std::multiset<std::string> named;
  for (const Step& step : plan.profiles[0].steps) named.insert(step.origin.begin(), step.origin.end());
  EXPECT_EQ(named, (std::multiset<std::string>{"conv1", "relu1", "conv2", "add", "relu2", "pool", "flatten", "fc"}));
}

TEST(Builder, SeveralProfilesShareTheWeights) {
  const Cpu cpu;
  TimingCache cache;
  const Plan plan = build_net(cpu, cache, kNet, {.profiles = {batch_profile(1, 1, 1), batch_profile(2, 4, 8)}});
  ASSERT_EQ(plan.profiles.size(), 2u);
  const auto engine = Engine::load(plan, *cpu.backend, cpu.device);
  expect_like_reference(kNet, {{"N", 1}}, *engine->context(0), 7);
  expect_like_reference(kNet, {{"N", 8}}, *engine->context(1), 8);
  EXPECT_THROW(engine->context(0)->set_shape("x", {2, 3, 12, 12}), Error);
  EXPECT_THROW(engine->context(2), Error);
}

TEST(Builder, ContextsRunInSeveralThreads) {
  const Cpu cpu;
  TimingCache cache;
  const auto engine = Engine::load(build_net(cpu, cache), *cpu.backend, cpu.device);
  std::vector<std::thread> threads;
  for (int64_t t = 1; t <= 3; ++t)
    threads.emplace_back([&, t] {
      const auto context = engine->context();
      for (int i = 0; i < 5; ++i) expect_like_reference(kNet, {{"N", t}}, *context, static_cast<uint64_t>(t));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Builder, OddOutputsAreServed) {
  const Cpu cpu;
  // An input as output, one value twice removed by views, an inner value and its view both as outputs.
  constexpr std::string_view text = R"((%x: f32[2,6], %z: f32[4]) {
    %r = Relu(%x) "r"
    %v = View(%r) {shape=["3", "4"]} "v"
    %u = View(%v) {shape=["12"]} "u"
    %w = View(%z) {shape=["2", "2"]} "w"
    %i = Identity(%z) "i"
    return %r, %u, %w, %i
  })";
  TimingCache cache;
  const auto engine = Engine::load(build_net(cpu, cache, text), *cpu.backend, cpu.device);
  expect_like_reference(text, {}, *engine->context(), 9);
}

Tensor converted(const Tensor& tensor, DType to) {
  TensorBuilder result(to, tensor.dims());
  visit(to, [&]<typename T>() {
    if constexpr (!std::is_same_v<T, bool>)
      for (int64_t i = 0; i < tensor.size(); ++i)
        result.data<T>()[static_cast<size_t>(i)] = T(static_cast<float>(tensor.real(i)));
  });
  return result.finish();
}

/// Runs the net once with a network input and output as the formats ask, data converted on both sides of it.
Tensor run_formatted(ExecutionContext& context, const IoFormat& in, const IoFormat& out, const Tensor& input) {
  const Dims &dims = input.dims(), result = context.shape("p");
  AlignedBuffer source(static_cast<size_t>(context.bytes("x"))), target(static_cast<size_t>(context.bytes("p")));
  convert_layout(converted(input, *in.dtype).bytes().data(), source.data(), *in.dtype, dims, Layout::linear, in.layout);
  context.bind("x", source.data());
  context.bind("p", target.data());
  const std::unique_ptr<Stream> stream = context.engine().device().stream();
  context.enqueue(*stream);
  stream->synchronize();
  AlignedBuffer linear(static_cast<size_t>(byte_size(*out.dtype, result)));
  convert_layout(target.data(), linear.data(), *out.dtype, result, out.layout, Layout::linear);
  return converted(Tensor(*out.dtype, result, Blob::own(std::move(linear))), DType::f32);
}

TEST(Builder, LayoutsMeetWhereTheSourceOfTheCopiesIsDisabled) {
  const Cpu cpu;
  for (const char* disabled : {"cpu", "onednn"}) {
    TimingCache cache;
    BuildOptions options{.profiles = {batch_profile(1, 2, 4)}, .disabled_sources = {disabled}};
    const auto engine = Engine::load(build_net(cpu, cache, kNet, std::move(options)), *cpu.backend, cpu.device);
    const Graph graph = parse_graph(kNet, find_op).specialize({{"N", 2}});
    const std::vector<Tensor> inputs = random_inputs(graph, 3);
    EXPECT_LE(relative_error(run(*engine->context(), inputs)[0], evaluate(graph, inputs)[0]), 1e-5) << disabled;
  }
}

TEST(Builder, AnOutputOfOnePixelIsWrittenInTheLayoutOfItsKernel) {
  constexpr std::string_view kText = R"((%x: f32[2,16,6,6]) {{
  %w = constant f32[32,16,3,3]!1
  %s = constant f32[32]!2
  %c = Conv(%x, %w) {{kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]}}
  %p = GlobalAveragePool(%c)
  %y = {}
  return %y
}})";
  const Cpu cpu;
  for (const char* last : {"Softmax(%p) {axis=1}", "InstanceNormalization(%p, %s, %s) {epsilon=1e-05}", "Exp(%p)"}) {
    SCOPED_TRACE(last);
    TimingCache cache;
    const std::string text = fmt::format(kText, last);
    const Graph graph = parse_graph(text, find_op);
    const std::vector<Tensor> inputs = random_inputs(graph, 3);
    const auto engine = Engine::load(build_net(cpu, cache, text), *cpu.backend, cpu.device);
    EXPECT_LE(relative_error(run(*engine->context(), inputs)[0], evaluate(graph, inputs)[0]), 1e-5);
  }
}

TEST(Builder, TensorsAreHandedOverInTheAskedTypesAndLayouts) {
  const Cpu cpu;
  TimingCache cache;
  constexpr std::string_view text = R"((%x: f32[N,3,6,5]) {
    %w = constant f32[10,3,3,3]!1
    %p = Conv(%x, %w) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]} "conv"
    return %p
  })";
  const Graph reference = parse_graph(text, find_op).specialize({{"N", 2}});
  const std::vector<Tensor> inputs = random_inputs(reference, 3);
  const Tensor expected = evaluate(reference, inputs)[0];
  const ProfileOptions profile{{"x", {{1, 3, 6, 5}, {2, 3, 6, 5}, {2, 3, 6, 5}}}};
  for (const Layout layout :
       {Layout::linear, Layout::channels_last, Layout::blocked2, Layout::blocked4, Layout::blocked8, Layout::blocked16,
        Layout::blocked32, Layout::channels_last8, Layout::channels_last16})
    for (const DType dtype : {DType::f32, DType::f16}) {
      SCOPED_TRACE(fmt::format("{} {}", name_of(dtype), name_of(layout)));
      const IoFormat in{dtype, layout}, out{DType::f32, layout};
      const Plan plan =
          build_net(cpu, cache, text,
                    {.profiles = {profile}, .optimization_level = 0, .input_formats = {in}, .output_formats = {out}});
      EXPECT_EQ(plan.io[0].type.dtype, dtype);
      EXPECT_EQ(plan.io[1].type.layout, layout);
      const auto engine = Engine::load(plan, *cpu.backend, cpu.device);
      const auto context = engine->context();
      context->set_shape("x", {2, 3, 6, 5});
      EXPECT_LT(relative_error(run_formatted(*context, in, out, inputs[0]), expected),
                dtype == DType::f32 ? 1e-5 : 1e-3);
    }
  EXPECT_THROW(build_net(cpu, cache, text, {.input_formats = {IoFormat{}, IoFormat{}}}), Error);
}

TEST(Builder, RefusesShapesThatDoNotFit) {
  const Cpu cpu;
  TimingCache cache;
  const auto build_with = [&](ProfileOptions profile) {
    return build_net(cpu, cache, kNet, {.profiles = {std::move(profile)}});
  };
  EXPECT_THROW(build_with({{"q", {{1}, {1}, {1}}}}), Error);
  EXPECT_THROW(build_with({{"x", {{1, 3, 12}, {1, 3, 12}, {1, 3, 12}}}}), Error);
  EXPECT_THROW(build_with({{"x", {{1, 4, 12, 12}, {1, 4, 12, 12}, {1, 4, 12, 12}}}}), Error);
  EXPECT_THROW(build_with(batch_profile(4, 2, 8)), Error);
}

using Names = std::vector<std::string>;

Names names(const std::vector<Region>& regions) {
  Names list;
  for (const Region& region : regions) list.push_back(region.name());
  return list;
}

TEST(Regions, ConvolutionsTakeTheirEpilogue) {
  const Graph graph = parse_graph(kNet, find_op);
  const std::vector<Region> regions = form_regions(graph);
  EXPECT_EQ(names(regions), (Names{"conv1 + relu1", "conv2 + add + relu2", "pool", "flatten", "fc"}));
}

TEST(Regions, WhatAPassMadeOfOneNodeIsNamedOnce) {
  const Graph graph = parse_graph(R"((%x: f32[4]) {
    %a = Abs(%x) "dq + conv"
    %b = Neg(%a) "dq + conv_1"
    %c = Neg(%b) "conv_2"
    %d = Neg(%c) "conv_x"
    return %d
  })",
                                  find_op);
  Region region;
  for (Node* node : graph.nodes()) region.nodes.push_back(node);
  EXPECT_EQ(region.name(), "dq + conv + conv_x");
  region.nodes[2]->origin = {"conv_2"};  // a node of the model with such a name
  EXPECT_EQ(region.name(), "dq + conv + conv_2 + conv_x");
}

TEST(Regions, MatmulsOfOneInputJoinWhereTheirWeightsAreAlike) {
  const Graph graph = parse_graph(R"((%x: f32[4,8]) {
    %wq = constant f32[8,16]!1
    %wk = constant f32[8,16]!2
    %wv = constant f32[8,12]!3
    %q = Linear(%x, %wq) "q"
    %s = Softmax(%q) "s"
    %k = Linear(%x, %wk) "k"
    %v = Linear(%x, %wv) "v"
    %m = Add(%s, %k) "m"
    return %k, %m, %v
  })",
                                  find_op);
  const std::vector<Region> regions = form_regions(graph);
  EXPECT_EQ(names(regions), (Names{"q + k", "s", "v", "m"}));  // "s" behind what it reads
  EXPECT_EQ(regions[0].outputs.size(), 2u);
  const std::vector<Region> pieces = split(regions[0], graph);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].name(), "q");
  EXPECT_EQ(pieces[1].name(), "k");
}

TEST(Regions, MatmulsOfTheSameCodesJoinWithTheirDecodes) {
  const auto graph_of = [](std::string_view scale, std::string_view behind) {
    return parse_graph(fmt::format(R"((%x: i8[4,16]) {{
      %w = constant f16[16,32]!1
      %u = constant f16[16,32]!2
      %dq = Decode(%x) {{scale=0.5, zero=0, to="f16"}} "dq"
      %q = Linear(%dq, %w) "q"
      %dk = Decode(%x) {{scale={}, zero=0, to="f16"}} "dk"
      %k = Linear(%dk, %u) "k"
      %y = {}(%k) "y"
      return %q, %y
    }})",
                                   scale, behind),
                       find_op);
  };
  const Graph graph = graph_of("0.5", "Softmax");
  const std::vector<Region> regions = form_regions(graph);
  EXPECT_EQ(names(regions), (Names{"dq + q + dk + k", "y"}));
  EXPECT_EQ(regions[0].inputs, graph.inputs());
  EXPECT_EQ(names(split(regions[0], graph)), (Names{"dq + q", "dk + k"}));
  EXPECT_EQ(names(form_regions(graph_of("0.25", "Softmax"))), (Names{"dq + q", "dk + k", "y"}));
  EXPECT_EQ(names(form_regions(graph_of("0.5", "Relu"))), (Names{"dq + q", "dk + k + y"})) << "an epilogue";
}

TEST(Regions, ASumJoinsTheNormalisationOfItsRowsUnlessOthersReadItBefore) {
  const auto names = [](std::string_view between) {
    const Graph graph = parse_graph(fmt::format(R"((%x: f32[4,8], %y: f32[4,8], %s: f32[8]) {{
      %a = Add(%x, %y) "a"
      {}
      %n = LayerNormalization(%a, %s) {{axis=1}} "n"
      %r = Relu(%a) "r"
      return %n, %r, %b
    }})",
                                                between),
                                    find_op);
    const std::vector<Region> regions = form_regions(graph);
    std::vector<std::string> list;
    for (const Region& region : regions) list.push_back(region.name());
    if (regions[1].nodes.size() == 2) {
      EXPECT_EQ(regions[1].outputs.size(), 2u);
      EXPECT_EQ(split(regions[1], graph).size(), 2u);
    }
    return list;
  };
  EXPECT_EQ(names("%b = Relu(%x) \"b\""), (std::vector<std::string>{"b", "a + n", "r"}));
  EXPECT_EQ(names("%b = Relu(%a) \"b\""), (std::vector<std::string>{"a", "b", "n", "r"}));
}

TEST(Regions, MatmulsOfFewBitsJoinWhateverTheirColumnsAre) {
  const Graph graph = parse_graph(R"((%x: f32[4,8]) {
    %wg = constant i4[8,16]!01
    %wu = constant i4[8,16]!02
    %wv = constant i4[8,32]!03
    %sg = constant f32[1,16]!04
    %sv = constant f32[1,32]!05
    %wo = constant f32[1,32]!06
    %g = QuantizedLinear(%x, %wg, %sg) {block_size=8} "gate"
    %a = Silu(%g) "silu"
    %u = QuantizedLinear(%x, %wu, %sg) {block_size=8} "up"
    %p = Mul(%a, %u) "product"
    %v = QuantizedLinear(%x, %wv, %sv) {block_size=8} "v"
    return %p, %v
  })",
                                  find_op);
  std::vector<std::string> names;
  for (const Region& region : form_regions(graph)) names.push_back(region.name());
  EXPECT_EQ(names, (std::vector<std::string>{"gate + up + v", "silu + product"}));
}

TEST(Regions, AnAttentionTakesTheConcatsOfItsCache) {
  const auto names = [](std::string_view before) {
    const Graph graph =
        parse_graph(fmt::format(R"((%q: f32[1,2,1,8], %pk: f32[1,2,5,8], %n: f32[1,2,1,8], %pv: f32[1,2,5,8]) {{
      %k = Concat(%pk, %n) {{axis=2}} "k"
      %v = Concat(%pv, %n) {{axis=2}} "v"
      {}
      %a = ScaledDotProductAttention(%b, %k, %v) {{scale=1}} "a"
      return %a, %k
    }})",
                                before),
                    find_op);
    std::vector<std::string> list;
    const std::vector<Region> regions = form_regions(graph);
    for (const Region& region : regions) list.push_back(region.name());
    if (regions.back().nodes.size() == 3) {
      EXPECT_EQ(split(regions.back(), graph).size(), 3U);
    }
    return list;
  };
  EXPECT_EQ(names("%b = Abs(%q) \"b\""), (std::vector<std::string>{"b", "k + v + a"}));
  EXPECT_EQ(names("%c = ReduceMax(%v) {keepdims=1, noop_with_empty_axes=0} \"c\"\n%b = Mul(%q, %c) \"b\"").size(), 5U)
      << "queries that follow from the values";
}

TEST(Builder, KeepsNamedLayersOutOfWhatIsAllowed) {
  const Cpu cpu;
  using Types = std::vector<std::pair<std::string, std::string>>;
  /// Whether the problems of the two products allow bf16, as their keys say.
  const auto allowed = [&](Types types) {
    TimingCache cache;
    build_net(cpu, cache, R"((%x: f32[4,8]) {
      %w = constant f32[8,16]!1
      %v = constant f32[16,4]!2
      %a = Linear(%x, %w) "first" ["one", "two"]
      %s = Softmax(%a) {axis=-1} "s"
      %y = Linear(%s, %v) "second" ["three"]
      return %y
    })",
              {.bf16 = true, .layer_types = std::move(types)});
    const std::string text = cache.text();
    const auto has = [&](const char* weights) {
      for (size_t at = text.find(weights); at != std::string::npos; at = text.find(weights, at + 1))
        if (text.substr(at, text.find(" | ", at) - at).find("+bf16") != std::string::npos) return true;
      return false;
    };
    return std::pair(has("f32[8,16]"), has("f32[16,4]"));
  };
  EXPECT_EQ(allowed({}), std::pair(true, true));
  EXPECT_EQ(allowed({{"two", "fp32"}}), std::pair(false, true));
  EXPECT_EQ(allowed({{"t*o", "fp32"}}), std::pair(false, true));
  EXPECT_EQ(allowed({{"*", "fp32"}, {"three", "bf16"}}), std::pair(false, true));
  EXPECT_EQ(allowed({{"*", "bf16"}, {"three", "fp32"}}), std::pair(true, false));
}

TEST(Regions, SlicesJoinTheConcatThatAloneReadsThem) {
  const Graph graph = parse_graph(R"((%x: f32[N,8], %z: f32[N,8]) {
    %0 = constant i64[1]{0}
    %1 = constant i64[1]{1}
    %3 = constant i64[1]{3}
    %8 = constant i64[1]{8}
    %a = Slice(%x, %3, %8, %1) "a"
    %b = Slice(%x, %0, %3, %1) "b"
    %c = Concat(%a, %b) {axis=1} "c"
    %d = Slice(%c, %3, %8, %1) "d"
    %e = Slice(%z, %0, %3, %1) "e"
    %r = Relu(%e) "r"
    %y = Concat(%d, %e, %c, %r) {axis=1} "y"
    return %y
  })",
                                  find_op);
  const std::vector<Region> regions = form_regions(graph);
  EXPECT_EQ(names(regions), (Names{"e", "r", "a + b + c + d + y"}));
  EXPECT_EQ(regions[2].inputs.size(), 3u);
}

TEST(Regions, PointwiseNeighboursJoin) {
  const Graph graph = parse_graph(R"((%x: f32[4,8], %y: f32[8]) {
    %a = Add(%x, %y) "a"
    %s = Sigmoid(%a) "s"
    %m = Mul(%a, %s) "m"
    %e = Exp(%m) "e"
    %o = Sub(%e, %x) "o"
    return %o
  })",
                                  find_op);
  const std::vector<Region> regions = form_regions(graph);
  ASSERT_EQ(regions.size(), 1u);
  EXPECT_EQ(regions[0].nodes.size(), 5u);
  EXPECT_EQ(regions[0].inputs.size(), 2u);
}

Names names_of_regions(std::string_view text, bool bytes) {
  const Graph graph = parse_graph(text, find_op);
  return names(form_regions(graph, bytes));
}

TEST(Regions, AConcatJoinsThePointwiseNodesThatAloneReadIt) {
  const Graph graph = parse_graph(R"((%x: f32[N,2,3], %y: f32[N,4,3]) {
    %c = Concat(%x, %y) {axis=1} "c"
    %s = Sigmoid(%c) "s"
    %m = Mul(%c, %s) "m"
    %d = Concat(%m, %y) {axis=1} "d"
    %r = Relu(%d) "r"
    return %r, %d
  })",
                                  find_op);
  EXPECT_EQ(names(form_regions(graph)), (Names{"c + s + m", "d", "r"}));
  EXPECT_EQ(names(split(form_regions(graph)[0], graph)), (Names{"c", "s + m"}));
  constexpr std::string_view kCodes = R"((%x: f32[N,2,3], %y: f32[N,4,3]) {
    %s = constant f32[]{0.1}
    %c = Concat(%x, %y) {axis=1} "c"
    %r = Relu(%c) "r"
    %q = QuantizeLinear(%r, %s) "q"
    return %q
  })";
  EXPECT_EQ(names_of_regions(kCodes, true), (Names{"c", "r + q"}));
}

TEST(Regions, WhatMakesBytesOfBytesIsOneTable) {
  constexpr std::string_view kSilu = R"((%x: u8[4,8], %w: u8[4,8]) {
    %s = constant f32[]{0.1}
    %d = DequantizeLinear(%x, %s) "d"
    %g = Sigmoid(%d) "g"
    %q = QuantizeLinear(%g, %s) "q"
    %e = DequantizeLinear(%q, %s) "e"
    %d2 = DequantizeLinear(%x, %s) "d2"
    %m = Mul(%e, %d2) "m"
    %r = QuantizeLinear(%m, %s) "r"
    %f = DequantizeLinear(%r, %s) "f"
    %v = DequantizeLinear(%w, %s) "v"
    %a = Add(%f, %v) "a"
    %y = QuantizeLinear(%a, %s) "y"
    return %y
  })";
  EXPECT_EQ(names_of_regions(kSilu, true), (std::vector<std::string>{"d + g + q + e + d2 + m + r", "f + v + a + y"}));
  EXPECT_EQ(names_of_regions(kSilu, false).size(), 11u);
}

TEST(Regions, EpiloguesRound) {
  // What is added, a bias behind a rounding, and an activation that is spelled out between roundings.
  EXPECT_EQ(names_of_regions(R"((%x: f16[4,8], %z: f16[4,6]) {
    %w = constant f16[8,6]!1
    %b = constant f16[6]!2
    %c = Linear(%x, %w) "c"
    %q = FakeQuantize(%c) {scale=0.1} "q"
    %s = Add(%q, %b) "s"
    %r = FakeQuantize(%s) {scale=0.1} "r"
    %a = Add(%z, %r) "a"
    %t = FakeQuantize(%a) {scale=0.1} "t"
    %g = Sigmoid(%t) "g"
    %h = FakeQuantize(%g) {scale=0.1} "h"
    %m = Mul(%t, %h) "m"
    %y = Sub(%m, %z) "y"
    %l = Softmax(%y) {axis=-1} "l"
    %o = FakeQuantize(%l) {scale=0.1} "o"
    return %o
  })",
                             false),
            (std::vector<std::string>{"c + q + s + r + a + t + g + h + m", "y", "l + o"}));
}

TEST(Regions, TablesEndWhereBytesAreReadElsewhere) {
  EXPECT_EQ(names_of_regions(R"((%x: u8[4,8], %w: i8[4,8]) {
    %s = constant f32[]{0.1}
    %d = DequantizeLinear(%x, %s) "d"
    %g = Sigmoid(%d) "g"
    %q = QuantizeLinear(%g, %s) "q"
    %e = DequantizeLinear(%q, %s) "e"
    %t = Tanh(%e) "t"
    %y = QuantizeLinear(%t, %s) "y"
    %v = DequantizeLinear(%w, %s) "v"
    %a = Add(%v, %d) "a"
    return %q, %y, %a
  })",
                             true),
            (std::vector<std::string>{"d", "g + q", "e + t + y", "v + a"}));
}

TEST(Regions, NumbersOfBytesAreBroadcastWhereTheyAreRead) {
  EXPECT_EQ(names_of_regions(R"((%x: u8[4,8,3,3], %w: u8[4,8,1,1], %z: f32[4,8,3,3]) {
    %s = constant f32[]{0.1}
    %p = constant f32[8]!1
    %d = DequantizeLinear(%x, %s) "d"
    %e = DequantizeLinear(%w, %s) "e"
    %m = Mul(%d, %e) "m"
    %y = QuantizeLinear(%m, %s) "y"
    %a = Relu(%z) "a"
    %q = QuantizeLinear(%a, %p) {axis=1} "q"
    return %y, %q
  })",
                             true),
            (std::vector<std::string>{"d + e + m + y", "a", "q"}));
}

}  // namespace
}  // namespace hone
