// SPDX-License-Identifier: Apache-2.0
//
// Building through hone.h: progress, cancelling, timing caches, profiles; and what a plan tells of itself.
#include <array>
#include <numeric>
#include <set>

#include "capi/testing.h"

namespace hone::capi {
namespace {

Owned<hone_model> model_of(const Blob& bytes) {
  return make<hone_model>(hone_model_create_from_memory, bytes.data(), bytes.size(), nullptr, nullptr);
}

Owned<hone_options> options_of(std::vector<const char*> flags) {
  return make<hone_options>(hone_options_create, flags.data(), flags.size());
}

int set_rows(hone_options* options, int64_t min, int64_t opt, int64_t max) {
  int profile = -1;
  must(hone_options_add_profile(options, &profile));
  const int64_t low[] = {min, 4}, best[] = {opt, 4}, high[] = {max, 4};
  must(hone_options_set_range(options, profile, "x", low, best, high, 2));
  return profile;
}

/// Holds what is told against the rules of a tree.
struct Watcher {
  struct Phase {
    std::string name;
    int steps = 0, done = 0;
  };
  std::vector<Phase> open;
  std::vector<std::string> seen;
  int asked = 0, stop_after = -1, cancel_at_step = -1, steps = 0;
  bool over = false;

  hone_progress progress() {
    return {.size = sizeof(hone_progress), .user = this, .begin = begin, .step = step, .end = end, .stop = stop};
  }
  static void begin(void* user, const char* phase, const char* parent, int count) {
    auto& self = *static_cast<Watcher*>(user);
    EXPECT_FALSE(self.over);
    EXPECT_GT(count, 0);
    EXPECT_EQ(parent == nullptr, self.open.empty());
    if (parent != nullptr) {
      EXPECT_EQ(self.open.back().name, parent);
      EXPECT_LT(self.open.back().done, self.open.back().steps) << phase << " begins behind the last step of " << parent;
    }
    self.open.push_back({phase, count, 0});
    self.seen.emplace_back(phase);
  }
  static int step(void* user, const char* phase, int done) {
    auto& self = *static_cast<Watcher*>(user);
    EXPECT_EQ(self.open.back().name, phase);
    EXPECT_EQ(done, ++self.open.back().done);
    return ++self.steps == self.cancel_at_step;
  }
  static void end(void* user, const char* phase) {
    auto& self = *static_cast<Watcher*>(user);
    EXPECT_EQ(self.open.back().name, phase);
    EXPECT_EQ(self.open.back().done, self.open.back().steps) << phase;
    self.open.pop_back();
    self.over = self.open.empty();
  }
  static int stop(void* user) {
    auto& self = *static_cast<Watcher*>(user);
    return self.asked++ >= self.stop_after && self.stop_after >= 0;
  }
};

Owned<hone_plan> watched(Watcher& watcher, std::vector<const char*> flags) {
  const auto device = make<hone_device>(hone_device_create, "cpu/1", nullptr);
  const auto options = options_of(std::move(flags));
  set_rows(options.get(), 1, 8, 8);
  set_rows(options.get(), 1, 64, 64);
  const hone_progress progress = watcher.progress();
  must(hone_options_set_progress(options.get(), &progress));
  auto plan =
      make<hone_plan>(hone_plan_create_from_model, model_of(perceptron()).get(), device.get(), options.get(), nullptr);
  EXPECT_TRUE(watcher.over) << "the root has ended";
  return plan;
}

void expect_runs(const hone_plan* plan) {
  const auto device = make<hone_device>(hone_device_create, "cpu/1", nullptr);
  const auto engine = make<hone_engine>(hone_engine_create, plan, device.get(), nullptr);
  Running running(engine.get(), 3);
  must(hone_context_run(running.context.get()));
  running.expect_right(3);
}

TEST(Building, ProgressIsATreeThatEndsAtItsTotals) {
  Watcher watcher;
  expect_runs(watched(watcher, {}).get());
  EXPECT_EQ(watcher.seen, (std::vector<std::string>{"build", "prepare", "profile 0", "tune", "choose", "write",
                                                    "profile 1", "tune", "choose", "write"}));
}

TEST(Building, ProgressOfSeveralNetworks) {
  Watcher watcher;
  expect_runs(watched(watcher, {"--best"}).get());
  EXPECT_GT(std::ranges::count(watcher.seen, "tune"), 2);
}

TEST(Building, EndsWhenItIsToldTo) {
  Watcher at_once{.stop_after = 0}, at_a_step{.cancel_at_step = 2};
  expect_runs(watched(at_once, {}).get());
  EXPECT_GT(at_once.asked, 0);
  expect_runs(watched(at_a_step, {}).get());
}

TEST(Building, TimesAreKeptInMemory) {
  const auto device = make<hone_device>(hone_device_create, "cpu/1", nullptr);
  const auto cache = make<hone_timing_cache>(hone_timing_cache_create, nullptr, size_t{0});
  const auto build = [&](hone_timing_cache* times, std::vector<const char*> flags) {
    const auto options = options_of(std::move(flags));
    set_rows(options.get(), 1, 8, 64);
    must(hone_options_set_timing_cache(options.get(), times));
    hone_plan* plan = nullptr;
    const hone_status status =
        hone_plan_create_from_model(model_of(perceptron()).get(), device.get(), options.get(), nullptr, &plan);
    hone_plan_destroy(plan);
    return status;
  };
  EXPECT_EQ(build(cache.get(), {"--errorOnTimingCacheMiss"}), HONE_ERROR);
  EXPECT_EQ(hone_timing_cache_entries(cache.get()), 0U);
  EXPECT_EQ(build(cache.get(), {}), HONE_OK);
  const size_t entries = hone_timing_cache_entries(cache.get());
  EXPECT_GT(entries, 0U);
  const void* bytes = nullptr;
  size_t size = 0;
  must(hone_timing_cache_bytes(cache.get(), &bytes, &size));
  const auto read = make<hone_timing_cache>(hone_timing_cache_create, bytes, size);
  EXPECT_EQ(hone_timing_cache_entries(read.get()), entries);
  const auto merged = make<hone_timing_cache>(hone_timing_cache_create, nullptr, size_t{0});
  must(hone_timing_cache_merge(merged.get(), read.get()));
  must(hone_timing_cache_merge(merged.get(), cache.get()));
  EXPECT_EQ(hone_timing_cache_entries(merged.get()), entries);
  EXPECT_EQ(build(merged.get(), {"--errorOnTimingCacheMiss"}), HONE_OK);
}

TEST(Building, OptionsAreChecked) {
  const auto options = options_of({});
  const int64_t low[] = {4, 4}, high[] = {1, 4};
  EXPECT_EQ(hone_options_set_range(options.get(), 0, "x", low, low, low, 2), HONE_INVALID_ARGUMENT) << "no profile yet";
  int profile = -1;
  must(hone_options_add_profile(options.get(), &profile));
  EXPECT_EQ(profile, 0);
  EXPECT_EQ(hone_options_set_range(options.get(), 0, "x", low, low, high, 2), HONE_ERROR);
  EXPECT_EQ(hone_options_set_layer_type(options.get(), "multiply", "fp12"), HONE_ERROR);
  must(hone_options_set_layer_type(options.get(), "multiply", "fp32"));
}

TEST(Networks, ArePutTogetherByHand) {
  const auto network = make<hone_network>(hone_network_create, 17);
  const int64_t x_dims[] = {-1, 4}, w_dims[] = {4, 3};
  const char* const symbols[] = {"n", nullptr};
  must(hone_network_add_input(network.get(), "x", HONE_F32, x_dims, 2, symbols));
  std::vector<float> weights(12);
  std::iota(weights.begin(), weights.end(), 1.0f);
  const auto w = make<hone_value>(hone_value_create_tensor, HONE_F32, w_dims, 2, weights.data());
  must(hone_network_add_constant(network.get(), "w", w.get()));
  const char *const operands[] = {"x", "w"}, *const h[] = {"h"}, *const y[] = {"y"};
  const hone_attribute attributes[] = {
      {.size = sizeof(hone_attribute), .name = "alpha", .kind = HONE_ATTRIBUTE_REAL, .real = 1}};
  must(hone_network_add_node(network.get(), std::array{hone_node{.size = sizeof(hone_node),
                                                                 .op = "Gemm",
                                                                 .name = "multiply",
                                                                 .inputs = operands,
                                                                 .input_count = 2,
                                                                 .outputs = h,
                                                                 .output_count = 1,
                                                                 .attributes = attributes,
                                                                 .attribute_count = 1}}
                                                .data()));
  hone_node relu{.size = sizeof(hone_node),
                 .op = "Relo",
                 .name = "clip",
                 .inputs = h,
                 .input_count = 1,
                 .outputs = y,
                 .output_count = 1};
  must(hone_network_mark_output(network.get(), "y"));
  {
    const auto wrong = make<hone_network>(hone_network_create, 17);
    must(hone_network_add_input(wrong.get(), "h", HONE_F32, x_dims, 2, nullptr));
    must(hone_network_add_node(wrong.get(), &relu));
    must(hone_network_mark_output(wrong.get(), "y"));
    hone_model* none = nullptr;
    EXPECT_EQ(hone_model_create_from_network(wrong.get(), nullptr, &none), HONE_ERROR);
    EXPECT_NE(std::string(hone_last_error()).find("clip"), std::string::npos) << hone_last_error();
  }
  relu.op = "Relu";
  must(hone_network_add_node(network.get(), &relu));
  const auto model = make<hone_model>(hone_model_create_from_network, network.get(), nullptr);
  const auto device = make<hone_device>(hone_device_create, "cpu/1", nullptr);
  const auto options = options_of({"--builderOptimizationLevel=0"});
  set_rows(options.get(), 1, 8, 64);
  expect_runs(make<hone_plan>(hone_plan_create_from_model, model.get(), device.get(), options.get(), nullptr).get());
}

TEST(Models, TakeOtherWeightsByName) {
  const auto device = make<hone_device>(hone_device_create, "cpu/1", nullptr);
  const auto options = options_of({"--builderOptimizationLevel=0", "--refit"});
  set_rows(options.get(), 1, 8, 64);
  const auto model = model_of(perceptron());
  const auto plan = make<hone_plan>(hone_plan_create_from_model, model.get(), device.get(), options.get(), nullptr);
  ASSERT_EQ(hone_model_weights(model.get()), 1U);
  hone_tensor weight{};
  weight.size = sizeof weight;
  must(hone_model_weight(model.get(), 0, &weight));
  EXPECT_STREQ(weight.name, "w");
  const std::vector<float> ones(12, 1);
  EXPECT_EQ(hone_model_set_weight(model.get(), "w", ones.data(), 4), HONE_INVALID_ARGUMENT);
  EXPECT_EQ(hone_model_set_weight(model.get(), "v", ones.data(), 48), HONE_ERROR);
  must(hone_model_set_weight(model.get(), "w", ones.data(), 48));
  const auto refitted = make<hone_plan>(hone_plan_create_from_refit, plan.get(), model.get(), device.get(), nullptr);
  const auto engine = make<hone_engine>(hone_engine_create, refitted.get(), device.get(), nullptr);
  Running running(engine.get(), 2);
  must(hone_context_run(running.context.get()));
  for (size_t i = 0; i < 6; ++i) {
    const float* row = &running.x[i / 3 * 4];
    EXPECT_EQ(running.y[i], std::max(row[0] + row[1] + row[2] + row[3], 0.0f));
  }
  expect_runs(plan.get());
}

TEST(Plans, TakeOtherWeightsWithoutTheirModel) {
  const auto device = make<hone_device>(hone_device_create, "cpu/1", nullptr);
  for (const char* flag : {"--refit", "--stripAllWeights"}) {
    const auto built = plan_of(perceptron(), device.get(), {flag});
    const void* bytes = nullptr;
    size_t size = 0;
    must(hone_plan_bytes(built.get(), &bytes, &size));
    const auto plan = make<hone_plan>(hone_plan_create_from_memory, bytes, size);
    const auto model = make<hone_model>(hone_model_create_from_plan, plan.get());
    const bool stripped = std::string(flag) != "--refit";
    ASSERT_EQ(hone_model_weights(model.get()), 1U);
    EXPECT_EQ(hone_model_missing_weights(model.get()), stripped ? 1U : 0U);
    hone_weight weight{.size = sizeof(hone_weight)};
    must(hone_model_weight_details(model.get(), 0, &weight));
    EXPECT_STREQ(weight.name, "w");
    EXPECT_STREQ(weight.node, "multiply");
    EXPECT_STREQ(weight.role, "Kernel");
    EXPECT_EQ(weight.bytes, 48);
    EXPECT_EQ(weight.refusal, nullptr);
    EXPECT_EQ(weight.missing != 0, stripped);
    const void* data = nullptr;
    EXPECT_EQ(hone_model_weight_data(model.get(), "w", &data, &size), stripped ? HONE_INVALID_STATE : HONE_OK);
    hone_plan* early = nullptr;
    EXPECT_EQ(hone_plan_create_from_refit(plan.get(), model.get(), device.get(), nullptr, &early),
              stripped ? HONE_INVALID_STATE : HONE_OK);
    hone_plan_destroy(early);
    std::vector<float> weights(12);
    std::iota(weights.begin(), weights.end(), 1.0f);
    must(hone_model_set_weight(model.get(), "w", weights.data(), 48));
    EXPECT_EQ(hone_model_missing_weights(model.get()), 0U);
    expect_runs(make<hone_plan>(hone_plan_create_from_refit, plan.get(), model.get(), device.get(), nullptr).get());
  }
}

TEST(Plans, TellTheirLayers) {
  const auto device = make<hone_device>(hone_device_create, "cpu/1", nullptr);
  const auto options = options_of({"--profilingVerbosity=detailed", "--refit"});
  set_rows(options.get(), 1, 8, 64);
  const auto plan =
      make<hone_plan>(hone_plan_create_from_model, model_of(perceptron()).get(), device.get(), options.get(), nullptr);
  hone_plan_info info{};
  info.size = sizeof info;
  must(hone_plan_describe(plan.get(), &info));
  EXPECT_STREQ(info.device_kind, "cpu");
  EXPECT_EQ(info.profiles, 1U);
  EXPECT_TRUE(info.refittable && info.has_weights);
  EXPECT_GE(info.weight_bytes, 12 * 4);
  const void* bytes = nullptr;
  size_t size = 0;
  must(hone_plan_bytes(plan.get(), &bytes, &size));
  EXPECT_EQ(info.file_bytes, static_cast<int64_t>(size));
  const auto read = make<hone_plan>(hone_plan_create_from_memory, bytes, size);
  hone_plan_info again{};
  again.size = sizeof again;
  must(hone_plan_describe(read.get(), &again));
  EXPECT_EQ(again.file_bytes, info.file_bytes);
  const auto engine = make<hone_engine>(hone_engine_create, read.get(), device.get(), nullptr);
  const auto running = make<hone_plan>(hone_plan_create_from_engine, engine.get());
  must(hone_plan_describe(running.get(), &again));
  EXPECT_EQ(again.file_bytes, info.file_bytes);
  must(hone_plan_bytes(running.get(), &bytes, &size));
  EXPECT_EQ(again.file_bytes, static_cast<int64_t>(size));

  std::set<std::string> nodes;
  for (size_t i = 0; i < hone_plan_layers(plan.get(), 0); ++i) {
    hone_layer layer{};
    layer.size = sizeof layer;
    must(hone_plan_layer(plan.get(), 0, i, &layer));
    EXPECT_STRNE(layer.name, "");
    EXPECT_EQ(layer.parameters[0], '{');
    for (size_t n = 0; n < layer.nodes; ++n) {
      const char* node = nullptr;
      must(hone_plan_layer_node(plan.get(), 0, i, n, &node));
      nodes.insert(node);
    }
    int chosen = 0;
    for (size_t c = 0; c < layer.candidates; ++c) {
      hone_candidate candidate{};
      candidate.size = sizeof candidate;
      must(hone_plan_layer_candidate(plan.get(), 0, i, c, &candidate));
      EXPECT_STRNE(candidate.tactic, "");
      chosen += candidate.chosen;
      if (candidate.chosen) {
        EXPECT_NE(std::string(candidate.tactic).find(layer.tactic), std::string::npos);
      }
    }
    EXPECT_EQ(chosen, layer.candidates > 0 && !layer.is_view ? 1 : 0) << layer.name;
    for (size_t t = 0; t < layer.inputs + layer.outputs; ++t) {
      hone_tensor tensor{};
      tensor.size = sizeof tensor;
      must(hone_plan_layer_tensor(plan.get(), 0, i, t, &tensor));
      EXPECT_EQ(tensor.is_input, t < layer.inputs);
    }
  }
  EXPECT_EQ(nodes, (std::set<std::string>{"clip", "multiply"}));
  EXPECT_EQ(hone_plan_layers(plan.get(), 1), 0U);
  const char* json = nullptr;
  must(hone_plan_layers_json(plan.get(), 0, &json));
  EXPECT_EQ(json[0], '{');
  EXPECT_NE(std::string(json).find("multiply"), std::string::npos);
  ASSERT_GT(hone_plan_weights(plan.get()), 0U);
  const char *node = nullptr, *role = nullptr;
  must(hone_plan_weight(plan.get(), 0, &node, &role));
  EXPECT_STREQ(node, "multiply");
}

}  // namespace
}  // namespace hone::capi
