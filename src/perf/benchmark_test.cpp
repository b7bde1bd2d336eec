// SPDX-License-Identifier: Apache-2.0
//
// The loop on a device made for the test: one layer that doubles its input and takes about 0.2 ms.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "device/device_testing.h"
#include "perf/benchmark.h"

namespace hone {
namespace {

std::shared_ptr<const Kernel> load_double(Device&, std::string_view, const Blob&, const KernelShapes&) {
  return std::make_shared<FunctionKernel>([](const Bindings& bindings) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    for (int i = 0; i < 4; ++i)
      static_cast<float*>(bindings.outputs[0])[i] = 2 * static_cast<const float*>(bindings.inputs[0])[i];
  });
}

const Backend kFake{"fake", nullptr, nullptr, load_double, {}, nullptr};

std::shared_ptr<const Engine> engine(std::shared_ptr<Device> device = std::make_shared<TestDevice>(),
                                     const Backend& backend = kFake) {
  const TensorType type{DType::f32, Shape{4}};
  Plan plan;
  plan.meta.backend = "fake";
  plan.io = {{"x", type, true}, {"y", type, false}};
  plan.blobs = {Blob::copy("double")};
  Profile profile;
  profile.buffers = {{"x", type, BufferKind::input}, {"y", type, BufferKind::output}};
  Step step;
  step.name = "double";
  step.kind = "PointWise";
  step.source = "fake";
  step.tactic = "double";
  step.inputs = {0};
  step.outputs = {1};
  step.code = 0;
  profile.steps = {step};
  plan.profiles = {profile};
  return Engine::load(std::move(plan), backend, std::move(device));
}

std::unique_ptr<Query> query(const std::shared_ptr<const Engine>& engine, bool transfers = true) {
  auto result = std::make_unique<Query>(engine->context(), transfers);
  result->allocate();
  return result;
}

PerfOptions exactly(int iterations) {
  PerfOptions options;
  options.warm_up_ms = options.duration_s = 0;
  options.iterations = iterations;
  return options;
}

TEST(Benchmark, RunsExactlyTheIterationsAskedFor) {
  const auto stream = query(engine());
  Query* queries[] = {stream.get()};
  EXPECT_EQ(run_benchmark(queries, exactly(50)).size(), 50u);
  PerfOptions exposed = exactly(7);
  exposed.expose_dma = true;
  EXPECT_EQ(run_benchmark(queries, exposed).size(), 7u);
}

TEST(Benchmark, MeetsBothTheTimeAndTheCountAfterTheWarmUp) {
  const auto stream = query(engine());
  Query* queries[] = {stream.get()};
  PerfOptions options = exactly(10);
  options.warm_up_ms = 20;
  options.duration_s = 0.03;
  std::vector<Trace> traces = run_benchmark(queries, options);
  EXPECT_GE(traces.back().compute_start, 50);
  EXPECT_GE(traces.size() - warm_up_queries(traces, 20), 10u);
  options.duration_s = 0;
  options.iterations = 60;
  traces = run_benchmark(queries, options);
  EXPECT_GE(traces.size() - warm_up_queries(traces, 20), 59u);
}

TEST(Benchmark, OneIterationIsOneQueryPerStream) {
  const auto shared = engine();
  const auto first = query(shared), second = query(shared);
  Query* queries[] = {first.get(), second.get()};
  PerfOptions options = exactly(5);
  EXPECT_EQ(run_benchmark(queries, options).size(), 10u);
  options.threads = true;
  const std::vector<Trace> traces = run_benchmark(queries, options);
  EXPECT_EQ(traces.size(), 10u);
  for (size_t i = 1; i < traces.size(); ++i) EXPECT_LE(traces[i - 1].h2d_start, traces[i].h2d_start);
}

TEST(Benchmark, StampsAreInOrder) {
  const auto stream = query(engine());
  Query* queries[] = {stream.get()};
  for (const Trace& trace : run_benchmark(queries, exactly(5))) {
    EXPECT_LE(trace.h2d_start, trace.h2d_end);
    EXPECT_LE(trace.h2d_end, trace.compute_start);
    EXPECT_LE(trace.enqueue_start, trace.enqueue_end);
    EXPECT_GE(trace.compute(), 0.15f);
    EXPECT_LE(trace.compute_end, trace.d2h_start);
    EXPECT_LE(trace.d2h_start, trace.d2h_end);
  }
}

/// Stamps of the host's clock; notes what happens to the stream.
class NotedEvent : public Event {
 public:
  bool passed() const override { return true; }
  explicit NotedEvent(std::string& notes) : notes_(notes) {}
  void record(Stream&) override { time_ms_ = now_ms(); }
  void wait() const override { notes_ += 'w'; }
  double milliseconds_since(const Event& earlier) const override {
    return time_ms_ - static_cast<const NotedEvent&>(earlier).time_ms_;
  }

 private:
  std::string& notes_;
  double time_ms_ = 0;
};

/// A device that claims to work by itself.
class NotedDevice : public TestDevice {
 public:
  std::string notes;
  std::unique_ptr<Event> event() override { return std::make_unique<NotedEvent>(notes); }
  std::unique_ptr<Recording> record(std::vector<Launch> launches) override {
    struct Noted : TestRecording {
      Noted(std::vector<Launch> launches, std::string& notes) : TestRecording(std::move(launches)), notes_(notes) {}
      void replay(Stream& stream) override {
        notes_ += 'r';
        TestRecording::replay(stream);
      }
      using TestRecording::replay;
      std::string& notes_;
    };
    return std::make_unique<Noted>(std::move(launches), notes);
  }
};

TEST(Benchmark, KeepsTwoQueriesOfEachStreamInFlightOnADeviceThatWorksByItself) {
  const auto device = std::make_shared<NotedDevice>();
  const auto loaded = engine(device);
  const auto first = query(loaded), second = query(loaded);
  Query* queries[] = {first.get(), second.get()};
  device->notes.clear();
  const std::vector<Trace> traces = run_benchmark(queries, exactly(3));
  EXPECT_EQ(device->notes, "rrrrwwrrwwwwww");  // at last each context says what went wrong
  ASSERT_EQ(traces.size(), 6u);
  for (const Trace& trace : traces) {
    EXPECT_GE(trace.h2d_start, 0);
    EXPECT_GE(trace.compute(), 0.2f);
    EXPECT_LE(trace.compute_end, trace.d2h_end);
  }
}

/// Where kernels go on in pairs.
class Meeting {
 public:
  bool meet() {
    std::unique_lock lock(mutex_);
    const int number = ++arrived_;
    met_.notify_all();
    return number % 2 == 0 || met_.wait_for(lock, std::chrono::minutes(1), [&] { return arrived_ > number; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable met_;
  int arrived_ = 0;
};

TEST(Benchmark, RunsStreamsBesideEachOtherWhereInferencesTakeTheHost) {
  static Meeting meeting;
  const Backend pairs{"fake",
                      nullptr,
                      nullptr,
                      [](Device&, std::string_view, const Blob&, const KernelShapes&) -> std::shared_ptr<const Kernel> {
                        return std::make_shared<FunctionKernel>(
                            [](const Bindings&) { EXPECT_TRUE(meeting.meet()) << "the other stream does not run"; });
                      },
                      {},
                      nullptr};
  const auto loaded = engine(std::make_shared<TestDevice>(), pairs);
  const auto first = query(loaded), second = query(loaded);
  Query* queries[] = {first.get(), second.get()};
  EXPECT_EQ(run_benchmark(queries, exactly(3)).size(), 6u);
}

TEST(Benchmark, LeavesWhatFinishedQueriesWrote) {
  for (const int streams : {1, 2}) {
    const auto loaded = engine(std::make_shared<TestDevice>(/*late=*/true));
    std::vector<std::unique_ptr<Query>> owned;
    std::vector<Query*> queries;
    for (int i = 0; i < streams; ++i) {
      queries.push_back(owned.emplace_back(query(loaded)).get());
      for (int k = 0; k < 4; ++k) reinterpret_cast<float*>(queries.back()->host("x"))[k] = static_cast<float>(i + k);
    }
    run_benchmark(queries, exactly(3));
    for (int i = 0; i < streams; ++i)
      EXPECT_EQ(reinterpret_cast<const float*>(queries[static_cast<size_t>(i)]->host("y"))[3],
                static_cast<float>(2 * (i + 3)));
  }
}

TEST(Query, CopiesInAndOutOrBindsHostMemory) {
  for (const bool transfers : {true, false}) {
    const auto stream = query(engine(), transfers);
    const float values[4] = {1, 2, 3, 4};
    std::memcpy(stream->host("x"), values, sizeof values);
    stream->upload();
    const Trace trace = stream->run(now_ms());
    stream->download();
    EXPECT_EQ(reinterpret_cast<const float*>(stream->host("y"))[3], 8) << "transfers " << transfers;
    if (transfers) continue;
    EXPECT_EQ(trace.h2d(), 0);
    EXPECT_EQ(trace.d2h(), 0);
    EXPECT_EQ(trace.latency(), trace.compute());
  }
}

}  // namespace
}  // namespace hone
