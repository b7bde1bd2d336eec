// SPDX-License-Identifier: Apache-2.0
//
// Measuring and checking through tools.h, and what plans tell there.
#include <cmath>
#include <set>
#include <string_view>

#include "capi/testing.h"

namespace hone::capi {
namespace {

template <typename Struct, typename... Parameters, typename... Arguments>
Struct told(hone_status (*function)(Parameters...), const Arguments&... arguments) {
  Struct result{};
  result.size = sizeof result;
  must(function(arguments..., &result));
  return result;
}

std::span<float> memory_of(hone_benchmark* benchmark, int stream, const char* tensor) {
  void* memory = nullptr;
  int64_t bytes = 0;
  must(hone_benchmark_memory(benchmark, stream, tensor, &memory, &bytes));
  return {static_cast<float*>(memory), static_cast<size_t>(bytes) / sizeof(float)};
}

Owned<hone_benchmark> benchmark_of(const Loaded& loaded, int streams, int64_t rows) {
  auto benchmark = make<hone_benchmark>(hone_benchmark_create, loaded.engine.get(), 0, streams, 1);
  for (int stream = 0; stream < streams; ++stream) {
    set_rows(hone_benchmark_context(benchmark.get(), stream), rows);
    must(hone_benchmark_allocate(benchmark.get(), stream));
    std::ranges::fill(memory_of(benchmark.get(), stream, "x"), static_cast<float>(stream + 1));
  }
  return benchmark;
}

void expect_right(hone_benchmark* benchmark, int stream, size_t rows) {
  const float row[4] = {1.0f + static_cast<float>(stream), 1.0f + static_cast<float>(stream),
                        1.0f + static_cast<float>(stream), 1.0f + static_cast<float>(stream)};
  const std::span<float> y = memory_of(benchmark, stream, "y");
  ASSERT_EQ(y.size(), rows * 3);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], expected(row, static_cast<int>(i % 3)));
}

TEST(Benchmarks, StampEveryQueryOfAllStreams) {
  const Loaded loaded = load(perceptron());
  const auto benchmark = benchmark_of(loaded, 2, 3);
  const hone_benchmark_options options{.size = sizeof options, .iterations = 5};
  must(hone_benchmark_run(benchmark.get(), &options));
  ASSERT_GE(hone_benchmark_queries(benchmark.get()), 10U);
  float last = 0;
  for (size_t i = 0; i < hone_benchmark_queries(benchmark.get()); ++i) {
    const auto times = told<hone_query_times>(hone_benchmark_query, benchmark.get(), i);
    EXPECT_LE(last, times.input_start);
    EXPECT_LE(times.input_start, times.input_end);
    EXPECT_LE(times.input_end, times.compute_start);
    EXPECT_LE(times.compute_start, times.compute_end);
    EXPECT_LE(times.output_start, times.output_end);
    last = times.input_start;
  }
  expect_right(benchmark.get(), 0, 3);
  const hone_benchmark_options first{.size = sizeof first, .iterations = 5, .streams = 1};
  must(hone_benchmark_run(benchmark.get(), &first));
  EXPECT_LT(hone_benchmark_queries(benchmark.get()), 10U);
  must(hone_benchmark_run_once(benchmark.get(), 1));
  expect_right(benchmark.get(), 1, 3);
}

TEST(Benchmarks, AskForMemoryAgainWhenShapesChange) {
  const Loaded loaded = load(perceptron());
  const auto benchmark = benchmark_of(loaded, 1, 2);
  hone_context* const context = hone_benchmark_context(benchmark.get(), 0);
  must(hone_benchmark_run_once(benchmark.get(), 0));
  set_rows(context, 64);
  EXPECT_EQ(hone_benchmark_run_once(benchmark.get(), 0), HONE_INVALID_STATE);
  EXPECT_EQ(hone_benchmark_run(benchmark.get(), nullptr), HONE_INVALID_STATE);
  EXPECT_EQ(hone_context_run(context), HONE_INVALID_STATE);  // what was bound was smaller
  hone_context_destroy(context);                             // it is the benchmark's
  must(hone_benchmark_allocate(benchmark.get(), 0));
  std::ranges::fill(memory_of(benchmark.get(), 0, "x"), 1.0f);
  must(hone_benchmark_run(benchmark.get(), nullptr));
  expect_right(benchmark.get(), 0, 64);
  EXPECT_EQ(hone_benchmark_context(benchmark.get(), 1), nullptr);
}

TEST(Benchmarks, TellOfLayersAndOutliveTheirEngine) {
  auto benchmark = [] {
    const Loaded loaded = load(perceptron());
    return benchmark_of(loaded, 1, 2);
  }();
  int layers = 0;
  const auto count = [](void* user, const char*, double) { ++*static_cast<int*>(user); };
  must(hone_context_set_layer_function(hone_benchmark_context(benchmark.get(), 0), count, &layers));
  must(hone_benchmark_run_once(benchmark.get(), 0));
  EXPECT_GT(layers, 0);
  expect_right(benchmark.get(), 0, 2);
}

Owned<hone_value> rows(int64_t count, float value) {
  const int64_t dims[] = {count, 4};
  const std::vector<float> values(static_cast<size_t>(count) * 4, value);
  return make<hone_value>(hone_value_create_tensor, HONE_F32, dims, 2, values.data());
}

TEST(Checks, RunInEveryWayAndKeepTheFirstResults) {
  const Loaded loaded = load(perceptron());
  const auto check = make<hone_check>(hone_check_create, loaded.engine.get(), 0);
  for (int shapes = 0; shapes < 2; ++shapes) {
    must(hone_check_set_input(check.get(), shapes, 0, "x", rows(2 + shapes, 1).get()));
    EXPECT_EQ(hone_check_run(check.get(), 4), HONE_INVALID_STATE);
    must(hone_check_set_input(check.get(), shapes, 1, "x", rows(2 + shapes, 2).get()));
  }
  EXPECT_EQ(hone_check_set_input(check.get(), 0, 0, "y", rows(2, 1).get()), HONE_ERROR);
  hone_value* none = nullptr;
  EXPECT_EQ(hone_value_create_from_check(check.get(), 0, "y", &none), HONE_INVALID_STATE);
  must(hone_check_run(check.get(), 4));
  std::set<std::string> names;
  for (size_t i = 0; i < hone_check_situations(check.get()); ++i) {
    const auto situation = told<hone_situation>(hone_check_situation, check.get(), i);
    EXPECT_EQ(situation.different, 0) << situation.name;
    EXPECT_GT(situation.inferences, 0);
    names.insert(situation.name);
  }
  EXPECT_TRUE(names.contains("between other shapes"));
  const auto second = make<hone_value>(hone_value_create_from_check, check.get(), 1, "y");
  const float row[4] = {2, 2, 2, 2};
  EXPECT_EQ(static_cast<const float*>(hone_value_data(second.get()))[5], expected(row, 2));
}

TEST(Plans, TellOfTensorsAndProfilesWithoutADevice) {
  const Loaded loaded = load(perceptron());
  const hone_plan* plan = loaded.plan.get();
  ASSERT_EQ(hone_plan_tensors(plan), 2U);
  const auto details = told<hone_tensor_details>(hone_plan_tensor_details, plan, size_t{0});
  EXPECT_STREQ(details.type, "f32[n,4]");
  EXPECT_STREQ(details.layout, "linear");
  EXPECT_EQ(details.has_range, 0);
  EXPECT_EQ(told<hone_tensor>(hone_plan_tensor, plan, size_t{0}).dims[0], -1);
  const auto profile = told<hone_profile>(hone_plan_profile, plan, 0);
  EXPECT_NE(std::string_view(profile.precision).find("FP32"), std::string_view::npos);
  ASSERT_EQ(profile.ranges, 1U);
  const auto range = told<hone_range>(hone_plan_range, plan, 0, size_t{0});
  EXPECT_STREQ(range.input, "x");
  EXPECT_EQ(range.opt[0], 8);
  EXPECT_EQ(range.max[0], 64);
}

TEST(Plans, TellOfLayersAtShapes) {
  const Loaded loaded = load(perceptron(), "cpu", {"--profilingVerbosity=detailed"});
  const int64_t dims[] = {5, 4};
  const hone_shape shape{sizeof shape, "x", dims, 2};
  const auto text = [&](const hone_shape* shapes, size_t count, hone_layers_form form) {
    const char* result = nullptr;
    must(hone_plan_layers_text(loaded.plan.get(), 0, shapes, count, form, &result));
    return std::string(result);
  };
  EXPECT_NE(text(&shape, 1, HONE_LAYERS_JSON).find("[5,4]"), std::string::npos);
  EXPECT_NE(text(nullptr, 0, HONE_LAYERS_JSON).find("[-1,4]"), std::string::npos);
  EXPECT_NE(text(&shape, 1, HONE_LAYERS_LINES).find("\nBindings:\nx\ny"), std::string::npos);
  const char* why = nullptr;
  must(hone_plan_explain(loaded.plan.get(), "multiply", &why));
  EXPECT_NE(std::string_view(why).find("multiply"), std::string_view::npos);
  EXPECT_EQ(hone_plan_explain(loaded.plan.get(), "nobody", &why), HONE_ERROR);
  const auto running = make<hone_plan>(hone_plan_create_from_engine, loaded.engine.get());
  EXPECT_EQ(hone_plan_layers(running.get(), 0), hone_plan_layers(loaded.plan.get(), 0));
}

TEST(Options, KnobsTurnWhatABuildDoes) {
  const auto options = make<hone_options>(hone_options_create, nullptr, size_t{0});
  std::set<std::string> names;
  for (size_t i = 0; i < hone_knobs(); ++i) {
    const auto knob = told<hone_knob>(hone_knob_describe, i);
    names.insert(knob.name);
    for (size_t value = 0; value < knob.value_count; ++value)
      must(hone_options_set_knob(options.get(), knob.name, knob.values[value]));
  }
  EXPECT_TRUE(names.contains("opt_level") && names.contains("onednn"));
  EXPECT_EQ(hone_options_set_knob(options.get(), "opt_level", "9"), HONE_ERROR);
  EXPECT_EQ(hone_options_set_knob(options.get(), "opt_levels", "0"), HONE_ERROR);
  EXPECT_EQ(std::string(hone_last_hint()), "did you mean opt_level?");
}

TEST(Options, ScalesHaveToBeOnes) {
  const auto options = make<hone_options>(hone_options_create, nullptr, size_t{0});
  hone_scale scale{.size = sizeof scale, .tensor = "x", .scale = 0.5f};
  must(hone_options_set_scale(options.get(), &scale));
  scale.zero = 3;
  EXPECT_EQ(hone_options_set_scale(options.get(), &scale), HONE_INVALID_ARGUMENT);
  scale.asymmetric = 1;
  must(hone_options_set_scale(options.get(), &scale));
  for (const float wrong : {0.0f, -1.0f, std::nanf("")}) {
    scale.scale = wrong;
    EXPECT_EQ(hone_options_set_scale(options.get(), &scale), HONE_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace hone::capi
