// SPDX-License-Identifier: Apache-2.0
//
// Plans whose numbers no builder would write, as somebody may make them whose checksums are right: each kind of harm that
// fuzz/plan_run_fuzz.cpp looks for, by name. They are refused before anything runs, with an Error that is not an internal one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>

#include "backends/all.h"
#include "builder/build.h"
#include "device/code.h"
#include "ops/all.h"
#include "runtime/engine.h"

namespace hone {
namespace {

using testing::HasSubstr;

struct Cpu {
  const Backend* backend = find_backend("cpu");
  std::shared_ptr<Device> device = backend->open(0);
};

Plan plan_of(std::string_view text, std::vector<std::string> disabled_sources = {"onednn"},
             const ProfileOptions& profile = {}) {
  const Cpu cpu;
  BuildOptions options;
  if (!profile.empty()) options.profiles = {profile};
  options.optimization_level = 0;
  options.disabled_sources = std::move(disabled_sources);
  Graph graph = parse_graph(text, find_op);
  for (Value* output : graph.outputs()) output->name = "result";
  TimingCache cache;
  Plan plan = build(std::move(graph), options, *cpu.backend, *cpu.device, cache);
  plan.profiles[0].ranges.clear();
  return plan;
}

/// Loads the plan and runs it once, at the size 1 where it is open.
void run(Plan plan) {
  const Cpu cpu;
  const auto engine = Engine::load(std::move(plan), *cpu.backend, cpu.device);
  const std::unique_ptr<ExecutionContext> context = engine->context();
  for (const IoTensor& io : engine->plan().io)
    if (io.is_input && !io.type.shape.is_static()) context->set_shape(io.name, io.type.shape.evaluate({{"N", 1}}));
  std::vector<AlignedBuffer> memory;
  for (const IoTensor& io : engine->plan().io) {
    memory.emplace_back(static_cast<size_t>(context->bytes(io.name)));
    std::ranges::fill(std::span(memory.back().data(), memory.back().size()), std::byte{0});
    context->bind(io.name, memory.back().data());
  }
  const std::unique_ptr<Stream> stream = cpu.device->stream();
  context->enqueue(*stream);
}

/// What is said of an altered plan; empty when it runs.
std::string refusal(Plan plan, const std::function<void(Plan&)>& alter) {
  alter(plan);
  try {
    run(std::move(plan));
  } catch (const InternalError& error) {
    return std::string("INTERNAL ") + error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::function<void(Plan&)> with_attr(const std::string& name, const AttrValue& value) {
  return [=](Plan& plan) {
    for (Blob& blob : plan.blobs) {
      KernelCode code = decode_code(blob);
      if (code.attrs.has(name)) code.attrs.set(name, value);
      blob = encode_code(code.family, code.attrs, code.version);
    }
  };
}

constexpr std::string_view kConv =
    "(%x: f32[N,8,6,5]) {\n %w = constant f32[16,8,3,3]!01\n %b = constant f32[16]!02\n %y = Conv(%x, %w, %b) "
    "{kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]}\n return %y\n}";
constexpr std::string_view kLinear =
    "(%x: f32[N,16]) {\n %w = constant f32[16,24]!01\n %b = constant f32[24]!02\n %y = Linear(%x, %w, %b)\n return "
    "%y\n}";
constexpr std::string_view kProduct = "(%a: f32[N,2,5,6], %b: f32[2,6,7]) {\n %y = MatMul(%a, %b)\n return %y\n}";
constexpr std::string_view kLayer =
    "(%x: f32[4,N,5]) {\n %w = constant f32[1,36,5]!01\n %r = constant f32[1,36,9]!02\n %b = constant f32[1,72]!03\n "
    "%y, %h, %c = LSTM(%x, %w, %r, %b)\n return %y\n}";
constexpr std::string_view kTable =
    "(%i: i64[N,5]) {\n %t = constant f32[11,8]!01\n %y = Gather(%t, %i) {axis=0}\n return %y\n}";
constexpr std::string_view kNorm =
    "(%x: f32[N,3,9]) {\n %s = constant f32[9]!01\n %b = constant f32[9]!02\n %y = LayerNormalization(%x, %s, %b) "
    "{axis=2}\n return %y\n}";
constexpr std::string_view kBroadcast =
    "(%x: f32[N,3,2,5]) {\n %c = constant f32[3,1,5]!01\n %y = Mul(%x, %c)\n return %y\n}";
constexpr std::string_view kTransposed =
    "(%x: f32[N,8,4,3]) {\n %w = constant f32[8,8,3,3]!01\n %y = ConvTranspose(%x, %w) {kernel_shape=[3, 3], pads=[1, "
    "1, 1, 1], strides=[2, 2], dilations=[1, 1], output_padding=[0, 0]}\n return %y\n}";

constexpr std::string_view kWithConstants[] = {kConv, kLinear, kLayer, kTable, kNorm, kBroadcast, kTransposed};

TEST(AlteredPlan, RunsWhenNothingIsAltered) {
  for (const std::string_view text : kWithConstants)
    for (const char* source : {"onednn", "cpu"}) EXPECT_NO_THROW(run(plan_of(text, {source}))) << text;
  EXPECT_NO_THROW(run(plan_of(kProduct)));
}

TEST(AlteredPlan, NetworkTensorsAreAsLargeAsTheirBuffers) {
  for (const size_t io : {0, 1}) {
    EXPECT_THAT(refusal(plan_of(kLinear), [&](Plan& plan) { plan.io[io].type.shape[1] = Dim(8); }),
                HasSubstr("is declared as"));
    EXPECT_THAT(refusal(plan_of(kLinear), [&](Plan& plan) { plan.io[io].type.dtype = DType::i8; }),
                HasSubstr("is declared as"));
    EXPECT_THAT(refusal(plan_of(kConv), [&](Plan& plan) { plan.io[io].type.layout = Layout::blocked16; }),
                HasSubstr("is declared as"));
  }
}

TEST(AlteredPlan, SizesThatFollowFromOthersAreHeldAgainstThem) {
  const std::string_view text = "(%x: f32[N], %y: f32[2*N]) {\n %z = Concat(%x, %y) {axis=0}\n return %z\n}";
  const Cpu cpu;
  const ProfileOptions sizes{{"x", {{1}, {2}, {8}}}, {"y", {{2}, {4}, {16}}}};
  const auto engine = Engine::load(plan_of(text, {"onednn"}, sizes), *cpu.backend, cpu.device);
  const std::unique_ptr<ExecutionContext> context = engine->context();
  context->set_shape("x", {4});
  context->set_shape("y", {8});
  EXPECT_EQ(context->bytes("result"), 48);
  context->set_shape("y", {2});
  EXPECT_THROW(context->bytes("result"), Error);
}

TEST(AlteredPlan, EveryConstantThatAKernelReadsIsThere) {
  for (const std::string_view text : kWithConstants)
    for (const char* source : {"onednn", "cpu"}) {
      const Plan plan = plan_of(text, {source});
      for (size_t step = 0; step < plan.profiles[0].steps.size(); ++step) {
        const auto& constants = plan.profiles[0].steps[step].constants;
        if (plan.profiles[0].steps[step].source == "reference" || constants.empty()) continue;
        EXPECT_THAT(refusal(plan, [&](Plan& altered) { altered.profiles[0].steps[step].constants.clear(); }),
                    HasSubstr("reads"))
            << text;
      }
    }
}

TEST(AlteredPlan, ConstantsAreAsLargeAsKernelsRead) {
  for (const std::string_view text : kWithConstants)
    for (const char* source : {"onednn", "cpu"}) {
      const Plan plan = plan_of(text, {source});
      for (size_t i = 0; i < plan.constants.size(); ++i) {
        const std::string said = refusal(plan, [&](Plan& altered) {
          const std::span<const std::byte> bytes = altered.constants[i].bytes();
          const size_t kept = bytes.size() - std::min<size_t>(bytes.size(), 4);
          altered.constants[i] = Tensor(DType::u8, {static_cast<int64_t>(kept)}, Blob::copy(bytes.first(kept)));
        });
        EXPECT_THAT(said, testing::AllOf(HasSubstr("reads"), Not(HasSubstr("INTERNAL")))) << text;
      }
    }
}

TEST(AlteredPlan, KernelsHaveNoOtherConstantsThanTheyDeclare) {
  for (const std::string_view text : {kConv, kLinear, kTransposed})
    for (const char* source : {"onednn", "cpu"}) {
      const Plan plan = plan_of(text, {source});
      const std::vector<Step>& steps = plan.profiles[0].steps;
      for (size_t step = 0; step < steps.size(); ++step) {
        if (steps[step].source == "reference" || steps[step].constants.empty()) continue;
        const auto alter = [&](Plan& altered) {
          auto& list = altered.profiles[0].steps[step].constants;
          list.push_back(list.front());
        };
        EXPECT_THAT(refusal(plan, alter), HasSubstr("its step brings")) << text;
      }
    }
}

TEST(AlteredPlan, OperandsFitTogether) {
  const auto altered_buffer = [](size_t buffer, size_t axis, int64_t size) {
    return [=](Plan& plan) {
      plan.profiles[0].buffers[buffer].type.shape[axis] = Dim(size);
      plan.io[buffer].type.shape[axis] = Dim(size);
    };
  };
  EXPECT_THAT(refusal(plan_of(kProduct), altered_buffer(0, 1, 1)), testing::IsEmpty()) << "one repeats";
  EXPECT_THAT(refusal(plan_of(kProduct), altered_buffer(1, 0, 3)), HasSubstr("multiplies"));
  EXPECT_THAT(refusal(plan_of(kProduct), altered_buffer(0, 1, 3)), HasSubstr("multiplies"));
  EXPECT_THAT(refusal(plan_of(kProduct), with_attr("residual", int64_t{5})), HasSubstr("residual"));
}

TEST(AlteredPlan, WindowsMoveAndReachSomewhere) {
  const std::string same(kConv.substr(0, kConv.find("pads")));
  for (const char* name : {"strides", "dilations", "filter"}) {
    Plan plan = plan_of(kConv);
    with_attr("auto_pad", std::string("SAME_UPPER"))(plan);
    EXPECT_THAT(refusal(plan, with_attr(name, std::vector<int64_t>{0, 0})), HasSubstr(name));
    EXPECT_THAT(refusal(plan, with_attr(name, std::vector<int64_t>{1, int64_t{1} << 40})), HasSubstr(name));
  }
  EXPECT_THAT(refusal(plan_of(kConv), with_attr("filter", std::vector<int64_t>{1 << 19, 1 << 19})),
              Not(testing::IsEmpty()));
  EXPECT_THAT(refusal(plan_of(kTransposed), with_attr("strides", std::vector<int64_t>{1 << 19, 1 << 19})),
              Not(testing::IsEmpty()));
}

TEST(AlteredPlan, NothingIsDividedByASizeOfZero) {
  Plan plan = plan_of("(%x: f32[N,8,3,2]) {\n %y = DepthToSpace(%x) {blocksize=2, mode=\"DCR\"}\n return %y\n}");
  EXPECT_THAT(refusal(plan,
                      [](Plan& altered) {
                        altered.io[0].type.shape[1] = altered.profiles[0].buffers[0].type.shape[1] = Dim(0);
                      }),
              HasSubstr("do not fit"));
}

TEST(AlteredPlan, SizesDoNotOverflow) {
  for (const int64_t size : {int64_t{1} << 62, int64_t{1} << 45})
    EXPECT_THAT(
        refusal(plan_of(kLinear),
                [&](Plan& plan) { plan.io[0].type.shape[0] = plan.profiles[0].buffers[0].type.shape[0] = Dim(size); }),
        HasSubstr("too large"));
}

TEST(AlteredPlan, NamesOfNetworkTensorsAreTheirOwn) {
  EXPECT_THAT(refusal(plan_of(kProduct), [](Plan& plan) { plan.io[1].name = plan.io[0].name; }),
              HasSubstr("are called"));
  EXPECT_THAT(refusal(plan_of(kProduct), [](Plan& plan) { plan.io.pop_back(); }), HasSubstr("buffers"));
}

TEST(AlteredPlan, WhatWouldFailAnAssertionIsThePlansFault) {
  EXPECT_THAT(refusal(plan_of(kConv), with_attr("vectors", int64_t{16})),
              testing::AllOf(HasSubstr("reads"), Not(HasSubstr("INTERNAL"))));
  EXPECT_THAT(refusal(plan_of(kProduct), with_attr("pixels", int64_t{64})),
              testing::AllOf(HasSubstr("contradicts"), Not(HasSubstr("INTERNAL"))));
}

}  // namespace
}  // namespace hone
