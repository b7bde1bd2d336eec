// SPDX-License-Identifier: Apache-2.0
//
// What a program can ask of devices and contexts through hone.h.
#include <sched.h>

#include <numeric>

#include "base/text.h"
#include "capi/testing.h"

namespace hone::capi {
namespace {

hone_device_info info_of(const hone_device* device) {
  hone_device_info info{};
  info.size = sizeof info;
  must(hone_device_describe(device, &info));
  return info;
}

int workers_of(const char* name) { return info_of(make<hone_device>(hone_device_create, name, nullptr).get()).workers; }

int first_core() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  int core = 0;
  while (!CPU_ISSET(core, &set)) ++core;
  return core;
}

TEST(Devices, NamesSayWorkersAndCores) {
  EXPECT_EQ(workers_of("cpu/3"), 3);
  const std::string core = "cpu@" + std::to_string(first_core());
  EXPECT_EQ(workers_of(core.c_str()), 1);
  EXPECT_EQ(workers_of((core + "/2").c_str()), 2);
  hone_device* none = nullptr;
  for (const char* name : {"cpu/0", "cpu/x", "cpu@", "cpu@3-1", "cpu@99999", "cpu:1", "tpu", "", "cuda:99"}) {
    EXPECT_EQ(hone_device_create(name, nullptr, &none), HONE_ERROR) << name;
    EXPECT_NE(std::string(hone_last_error()), "") << name;
    EXPECT_EQ(none, nullptr);
  }
}

TEST(Devices, OptionsSayWhatTheNameDoesNot) {
  const int cores[] = {first_core()};
  const hone_device_options options{sizeof options, 2, cores, 1, "scalar"};
  const auto device = make<hone_device>(hone_device_create, "cpu", &options);
  const hone_device_info info = info_of(device.get());
  EXPECT_EQ(info.workers, 2);
  EXPECT_STREQ(info.architecture, "scalar");
  EXPECT_STREQ(info.kind, "cpu");
  EXPECT_TRUE(info.host_accessible);
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_EQ(info.multiplied_types, 1U << HONE_F32);
  const hone_device_options wrong{sizeof options, 0, nullptr, 0, "avx1024"};
  hone_device* none = nullptr;
  EXPECT_EQ(hone_device_create("cpu", &wrong, &none), HONE_ERROR);
  EXPECT_EQ(std::string(hone_last_hint()), "scalar, avx2 or avx512");
}

TEST(Devices, AnOlderProgramsStructIsFilledAsFarAsItGoes) {
  const auto device = make<hone_device>(hone_device_create, "cpu/1", nullptr);
  hone_device_info info{};
  info.size = offsetof(hone_device_info, workers);
  info.workers = 77;
  must(hone_device_describe(device.get(), &info));
  EXPECT_EQ(info.size, offsetof(hone_device_info, workers));
  EXPECT_STREQ(info.kind, "cpu");
  EXPECT_EQ(info.workers, 77);
}

TEST(Devices, AnEngineRunsOnCoresOfItsOwn) {
  const Loaded loaded = load(perceptron(), ("cpu@" + std::to_string(first_core()) + "/2").c_str());
  Running running(loaded.engine.get(), 5);
  cpu_set_t before, after;
  sched_getaffinity(0, sizeof before, &before);
  must(hone_context_run(running.context.get()));
  running.expect_right(5);
  sched_getaffinity(0, sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "the caller's thread stays where it was";
}

TEST(Devices, SayWhenMemoryIsShort) {
  const auto device = make<hone_device>(hone_device_create, "cpu/1", nullptr);
  hone_buffer* none = nullptr;
  for (const hone_memory kind : {HONE_MEMORY_HOST, HONE_MEMORY_PINNED, HONE_MEMORY_DEVICE})
    EXPECT_EQ(hone_buffer_create(device.get(), kind, SIZE_MAX / 2, &none), HONE_OUT_OF_MEMORY);
}

TEST(Contexts, ChangeShapesAndRun) {
  const Loaded loaded = load(perceptron());
  Running running(loaded.engine.get());
  for (const int64_t rows : {2, 64, 1, 2}) {
    set_rows(running.context.get(), rows);
    must(hone_context_run(running.context.get()));
    running.expect_right(rows);
  }
  const int64_t wrong[] = {65, 4};
  EXPECT_EQ(hone_context_set_shape(running.context.get(), "x", wrong, 2), HONE_ERROR);
  EXPECT_NE(std::string(hone_last_error()).find("outside profile"), std::string::npos);
  EXPECT_NE(std::string(hone_last_hint()).find("--maxShapes"), std::string::npos);
  must(hone_context_run(running.context.get()));
}

TEST(Contexts, SayWhatIsMissing) {
  const Loaded loaded = load(perceptron());
  const auto context = make<hone_context>(hone_context_create, loaded.engine.get(), 0);
  EXPECT_EQ(hone_context_run(context.get()), HONE_INVALID_STATE);
  EXPECT_NE(std::string(hone_last_error()).find("shape of input x"), std::string::npos);
  set_rows(context.get(), 2);
  EXPECT_EQ(hone_context_run(context.get()), HONE_INVALID_STATE);
  EXPECT_NE(std::string(hone_last_error()).find("no memory is bound for x"), std::string::npos);
  hone_value* none = nullptr;
  EXPECT_EQ(hone_value_create_from_output(context.get(), "y", &none), HONE_INVALID_STATE);
}

TEST(Contexts, TakeInputsByValue) {
  const Loaded loaded = load(perceptron());
  Running running(loaded.engine.get());
  for (const int64_t rows : {3, 9, 4}) {
    std::iota(running.x.begin(), running.x.end(), static_cast<float>(-rows));
    const int64_t dims[] = {rows, 4};
    const auto value = make<hone_value>(hone_value_create_tensor, HONE_F32, dims, 2, running.x.data());
    must(hone_context_set_value(running.context.get(), "x", value.get()));
    must(hone_context_run(running.context.get()));
    running.expect_right(rows);
  }
  const int64_t dims[] = {1, 4}, values[] = {1, 2, 3, 4};
  const auto integers = make<hone_value>(hone_value_create_tensor, HONE_I64, dims, 2, values);
  EXPECT_EQ(hone_context_set_value(running.context.get(), "x", integers.get()), HONE_ERROR);
}

/// Gives memory, and keeps what it was asked.
struct Giver {
  std::vector<std::byte> memory = std::vector<std::byte>(4096);
  std::string tensor;
  std::vector<int64_t> dims;
  int64_t bytes = 0, calls = 0;
  static void* give(void* user, const char* tensor, const int64_t* dims, int rank, int64_t bytes) {
    auto& self = *static_cast<Giver*>(user);
    self.tensor = tensor;
    self.dims.assign(dims, dims + rank);
    self.bytes = bytes;
    ++self.calls;
    return self.memory.data();
  }
};

TEST(Contexts, AskForMemoryOfOutputs) {
  const Loaded loaded = load(perceptron());
  Running running(loaded.engine.get(), 7);
  Giver giver;
  must(hone_context_set_output_function(running.context.get(), "y", Giver::give, &giver));
  must(hone_context_run(running.context.get()));
  EXPECT_EQ(giver.tensor, "y");
  EXPECT_EQ(giver.dims, (std::vector<int64_t>{7, 3}));
  EXPECT_EQ(giver.bytes, 7 * 3 * 4);
  std::memcpy(running.y.data(), giver.memory.data(), static_cast<size_t>(giver.bytes));
  running.expect_right(7);
  must(hone_context_set_output_function(running.context.get(), "y", nullptr, nullptr));
  must(hone_context_bind(running.context.get(), "y", running.y.data(), HONE_MEMORY_HOST));
  must(hone_context_run(running.context.get()));
  EXPECT_EQ(giver.calls, 1);
}

TEST(Contexts, AskForMemoryOfWhatTheDataSize) {
  const Loaded loaded = load(counting());
  const auto context = make<hone_context>(hone_context_create, loaded.engine.get(), 0);
  float x[8] = {0, 1, 0, 0, 2, 0, 0, 3};
  set_rows(context.get(), 2);
  must(hone_context_bind(context.get(), "x", x, HONE_MEMORY_HOST));
  Giver giver;
  must(hone_context_set_output_function(context.get(), "places", Giver::give, &giver));
  for (const float first : {0.0f, 5.0f}) {
    x[0] = first;
    must(hone_context_run(context.get()));
    const std::vector<int64_t> expected_places =
        first == 0 ? std::vector<int64_t>{0, 1, 1, 1, 0, 3} : std::vector<int64_t>{0, 0, 1, 1, 0, 1, 0, 3};
    EXPECT_EQ(giver.dims, (std::vector<int64_t>{2, static_cast<int64_t>(expected_places.size()) / 2}));
    std::vector<int64_t> places(expected_places.size());
    std::memcpy(places.data(), giver.memory.data(), static_cast<size_t>(giver.bytes));
    EXPECT_EQ(places, expected_places);
  }
}

TEST(Contexts, TellOfLayersAndDebugTensors) {
  const Loaded loaded = load(perceptron(), "cpu", {"--markDebug=h"});
  Running running(loaded.engine.get(), 2);
  std::vector<std::string> layers, debugged;
  must(hone_context_set_layer_function(
      running.context.get(),
      [](void* user, const char* layer, double ms) {
        EXPECT_GE(ms, 0);
        static_cast<std::vector<std::string>*>(user)->emplace_back(layer);
      },
      &layers));
  must(hone_context_set_debug_function(
      running.context.get(),
      [](void* user, const char* tensor, const hone_value* value) {
        hone_tensor description{};
        description.size = sizeof description;
        must(hone_value_describe(value, &description));
        EXPECT_EQ(description.rank, 2);
        EXPECT_EQ(description.dims[1], 3);
        static_cast<std::vector<std::string>*>(user)->emplace_back(tensor);
      },
      &debugged));
  must(hone_context_run(running.context.get()));
  EXPECT_GE(layers.size(), 1U);
  EXPECT_EQ(debugged, std::vector<std::string>{"h"});
  must(hone_context_set_layer_function(running.context.get(), nullptr, nullptr));
  must(hone_context_set_debug_function(running.context.get(), nullptr, nullptr));
  layers.clear();
  must(hone_context_run(running.context.get()));
  EXPECT_TRUE(layers.empty());
  running.expect_right(2);
}

TEST(Contexts, RefuseToBeUsedByWhatTheyCall) {
  const Loaded loaded = load(perceptron());
  Running running(loaded.engine.get());
  struct Seen {
    hone_context* context;
    hone_status status = HONE_OK;
  } seen{running.context.get()};
  must(hone_context_set_layer_function(
      running.context.get(),
      [](void* user, const char*, double) {
        auto& to = *static_cast<Seen*>(user);
        to.status = hone_context_run(to.context);
      },
      &seen));
  must(hone_context_run(running.context.get()));
  EXPECT_EQ(seen.status, HONE_INVALID_STATE);
}

TEST(Contexts, AreCancelled) {
  const Loaded loaded = load(perceptron(), "cpu", {"--markDebug=h"});
  Running running(loaded.engine.get());
  must(hone_context_cancel(running.context.get()));  // nothing is under way
  must(hone_context_run(running.context.get()));
  must(hone_context_set_layer_function(
      running.context.get(),
      [](void* user, const char*, double) { must(hone_context_cancel(static_cast<hone_context*>(user))); },
      running.context.get()));
  EXPECT_EQ(hone_context_run(running.context.get()), HONE_CANCELLED);
  must(hone_context_set_layer_function(running.context.get(), nullptr, nullptr));
  must(hone_context_run(running.context.get()));
  running.expect_right(2);
}

TEST(Contexts, ComputeInMemoryOfTheCaller) {
  const Loaded loaded = load(perceptron(), "cpu", {"--markDebug=h"});
  Running running(loaded.engine.get(), 64);
  hone_context* context = running.context.get();
  int64_t bytes = 0, most = 0;
  must(hone_context_memory_bytes(context, &bytes));
  must(hone_engine_memory_bytes(loaded.engine.get(), 0, &most));
  EXPECT_GT(bytes, 0);
  const auto buffer =
      make<hone_buffer>(hone_buffer_create, loaded.device.get(), HONE_MEMORY_DEVICE, static_cast<size_t>(bytes) + 256);
  const auto address = (reinterpret_cast<uintptr_t>(hone_buffer_data(buffer.get())) + 255) / 256 * 256;
  auto* memory = reinterpret_cast<void*>(address);
  must(hone_context_set_memory(context, memory, bytes - 1));
  EXPECT_EQ(hone_context_run(context), HONE_INVALID_STATE);
  EXPECT_NE(std::string(hone_last_error()).find(std::to_string(bytes)), std::string::npos);
  must(hone_context_set_memory(context, memory, bytes));
  std::memset(memory, 0, static_cast<size_t>(bytes));
  must(hone_context_run(context));
  running.expect_right(64);
  const auto* words = static_cast<const float*>(memory);
  EXPECT_TRUE(std::any_of(words, words + bytes / 4, [](float value) { return value != 0; }));
  must(hone_context_set_memory(context, nullptr, 0));
  must(hone_context_run(context));
  running.expect_right(64);
}

TEST(Contexts, ChangeTheirProfile) {
  const auto device = make<hone_device>(hone_device_create, "cpu", nullptr);
  const Blob model = perceptron();
  const char* const flags[] = {"--builderOptimizationLevel=0",
                               "--profile=0",
                               "--minShapes=x:1x4",
                               "--optShapes=x:1x4",
                               "--maxShapes=x:1x4",
                               "--profile=1",
                               "--minShapes=x:2x4",
                               "--optShapes=x:32x4",
                               "--maxShapes=x:64x4"};
  const auto options = make<hone_options>(hone_options_create, flags, std::size(flags));
  const auto imported = make<hone_model>(hone_model_create_from_memory, model.data(), model.size(), nullptr, nullptr);
  const auto plan = make<hone_plan>(hone_plan_create_from_model, imported.get(), device.get(), options.get(), nullptr);
  const auto engine = make<hone_engine>(hone_engine_create, plan.get(), device.get(), nullptr);
  EXPECT_EQ(hone_engine_profiles(engine.get()), 2U);
  Running running(engine.get(), 1);
  must(hone_context_run(running.context.get()));
  const int64_t dims[] = {40, 4};
  EXPECT_EQ(hone_context_set_shape(running.context.get(), "x", dims, 2), HONE_ERROR);
  must(hone_context_set_profile(running.context.get(), 1));
  EXPECT_EQ(hone_context_run(running.context.get()), HONE_INVALID_STATE) << "shapes are to be set again";
  must(hone_context_set_shape(running.context.get(), "x", dims, 2));
  must(hone_context_run(running.context.get()));
  running.expect_right(40);
  must(hone_context_set_profile(running.context.get(), 0));
  set_rows(running.context.get(), 1);
  must(hone_context_run(running.context.get()));
  running.expect_right(1);
}

}  // namespace
}  // namespace hone::capi
