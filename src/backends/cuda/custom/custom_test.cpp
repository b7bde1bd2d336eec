// SPDX-License-Identifier: Apache-2.0
//
// Operators of programs on a GPU, as far as that can be seen without one: the text that NVRTC is given compiles in every type, the
// machine code is in the plan and loads, at other sizes too.
#include "backends/cuda/custom/custom.h"

#include <gtest/gtest.h>

#include "device/regions_testing.h"
#include "ir/custom.h"
#include "ops/all.h"

namespace hone::cuda {
namespace {

std::shared_ptr<CustomOperator> scale(std::string source) {
  auto op = std::make_shared<CustomOperator>();
  op->domain = "com.acme";
  op->name = "Scale";
  op->def.min_inputs = op->def.max_inputs = 2;
  op->results = {{.dtype = {}, .as_input = 0, .sizes = "x0"}, {.dtype = DType::i64, .as_input = {}, .sizes = "1"}};
  op->workspace_text = "count(x0) * 4";
  op->cuda = {.source = std::move(source),
              .kernel = "scale",
              .blocks = "(count(y0) + 127) / 128",
              .threads = 128,
              .shared = "64"};
  op->complete();
  return op;
}

constexpr std::string_view kSource = R"(
extern "C" __global__ void scale(const x0_t* x, const x1_t* w, y0_t* y, y1_t* many, float* work, hone_sizes sizes) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= sizes.x0.count || sizes.x0.rank != 2) return;
  work[i] = hone::as_float(x[i]) * hone::as_float(w[i % sizes.x1.dims[0]]) * (float)attribute::factor;
  y[i] = hone::convert<y0_t>(work[i] + attribute::axis + attribute::list[1]);
  if (i == 0) many[0] = sizes.y0.count;
})";

Graph region_of(const std::shared_ptr<CustomOperator>& op, DType dtype) {
  const OperatorList brought{op->as_op()};
  return parse_graph(fmt::format(R"((%x: {0}[N,6]) {{
  %w = constant {0}[6]!ab
  %y, %m = com.acme::Scale(%x, %w) {{axis=1, factor=2.5, list=[1, 2], shape=["a"]}} "scale"
  return %y
}})",
                                 name_of(dtype)),
                     find_among(brought));
}

TEST(CustomOnCuda, SourceTextCompilesInEveryTypeAndLoadsAtOtherSizes) {
  if (!nvrtc_library().found()) GTEST_SKIP() << nvrtc_library().missing;
  const auto op = scale(std::string(kSource));
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Problem problem = sample_problem(region_of(op, dtype), 2, {.name = "none", .architecture = "sm_90"});
    problem.targets = {"sm_80"};
    Candidates candidates;
    custom_source().propose(problem, candidates);
    ASSERT_EQ(candidates.offers().size(), 1u);
    const Tactic& tactic = candidates.offers()[0];
    EXPECT_EQ(tactic.text(), "custom.kernel linear -> linear");
    EXPECT_EQ(tactic.workspace, 2 * 6 * 4);
    const Compiled compiled = custom_source().compile(problem, tactic);
    ASSERT_EQ(compiled.constants.size(), 1u);
    if (device_count() == 0) continue;
    CudaDevice device(0);
    for (const int64_t n : {2, 70}) {
      KernelShapes shapes = shapes_of(problem.symbolic.specialize({{"N", n}}), tactic, {{"N", n}});
      shapes.constant_bytes = {compiled.constants[0].bytes().size()};
      const auto kernel = load_custom(device, compiled.code, shapes);
      EXPECT_TRUE(kernel->capturable());
      EXPECT_TRUE(kernel->waiting_functions().empty());
      EXPECT_GE(kernel->workspace_bytes(), static_cast<size_t>(n) * 6 * 4 + 8)
          << "with room for the result that nobody reads";
      shapes.operators.clear();
      EXPECT_THROW(load_custom(device, compiled.code, shapes), Error);
    }
    KernelShapes wrong = shapes_of(problem.region, tactic, {{"N", 2}});
    wrong.constant_bytes = {compiled.constants[0].bytes().size()};
    wrong.outputs[0].dims = {2, 5};
    EXPECT_THROW(load_custom(device, compiled.code, wrong), Error);
    const std::span<const std::byte> bytes = compiled.code.bytes();
    for (const size_t size : {size_t{0}, size_t{7}, size_t{40}, bytes.size() - 1})
      EXPECT_THROW(load_custom(device, Blob::copy(bytes.first(size)), shapes_of(problem.region, tactic, {{"N", 2}})),
                   Error)
          << size;
  }
}

TEST(CustomOnCuda, WhatDoesNotCompileIsTheProgramsErrorWithTheCompilersWords) {
  if (!nvrtc_library().found()) GTEST_SKIP() << nvrtc_library().missing;
  const auto op = scale("extern \"C\" __global__ void scale() {\n  nonsense;\n}\n");
  const Problem problem = sample_problem(region_of(op, DType::f32), 2, {.name = "none", .architecture = "sm_90"});
  Candidates candidates;
  custom_source().propose(problem, candidates);
  try {
    custom_source().compile(problem, candidates.offers().at(0));
    FAIL() << "it compiles";
  } catch (const InternalError& error) {
    FAIL() << error.what();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("operator(2)"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("nonsense"), std::string::npos) << error.what();
  }
}

TEST(CustomOnCuda, WithoutAFunctionForAGpuNothingIsOffered) {
  const auto op = scale({});
  op->on_host = [](CustomCall&) {};
  const Problem problem = sample_problem(region_of(op, DType::f32), 2, {.name = "none", .architecture = "sm_90"});
  Candidates candidates;
  custom_source().propose(problem, candidates);
  EXPECT_TRUE(candidates.offers().empty());
  ASSERT_EQ(candidates.refusals().size(), 1u);
  EXPECT_NE(candidates.refusals()[0].reason.find("on the host, on copies"), std::string::npos);
}

}  // namespace
}  // namespace hone::cuda
