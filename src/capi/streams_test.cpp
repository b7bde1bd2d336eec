// SPDX-License-Identifier: Apache-2.0
//
// Streams and events of a processor, contexts in many threads.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <thread>

#include "capi/testing.h"
#include "capi/worker.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HONE_COUNTS_ALLOCATIONS 0
#else
#define HONE_COUNTS_ALLOCATIONS 1
namespace {
std::atomic<bool> g_counting{false};
std::atomic<int> g_allocations{0};
}  // namespace
void* operator new(size_t bytes) {
  if (g_counting.load(std::memory_order_relaxed)) g_allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(std::max<size_t>(bytes, 1));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace hone::capi {
namespace {

Owned<hone_stream> stream_of(const Loaded& loaded) {
  return make<hone_stream>(hone_stream_create, loaded.device.get());
}

/// Holds an inference at its first layer until it is opened.
class Gate {
 public:
  explicit Gate(hone_context* context) : context_(context) {
    must(hone_context_set_layer_function(context, wait, this));
  }
  void open() { opened_.set_value(); }
  void reached() { reached_.get_future().wait(); }

 private:
  static void wait(void* user, const char*, double) {
    auto& gate = *static_cast<Gate*>(user);
    if (std::exchange(gate.passed_, true)) return;
    gate.reached_.set_value();
    gate.opened_.get_future().wait();
  }
  hone_context* context_;
  std::promise<void> opened_, reached_;
  bool passed_ = false;
};

TEST(Streams, EnqueueReturnsAtOnceAndTwoContextsOverlap) {
  const Loaded loaded = load(perceptron(), "cpu/1");
  Running held(loaded.engine.get()), other(loaded.engine.get(), 9);
  Gate gate(held.context.get());
  const auto first = stream_of(loaded), second = stream_of(loaded);
  must(hone_context_enqueue(held.context.get(), first.get()));  // returns although the inference cannot end
  gate.reached();
  must(hone_context_enqueue(other.context.get(), second.get()));
  must(hone_stream_synchronize(second.get()));
  other.expect_right(9);
  gate.open();
  must(hone_stream_synchronize(first.get()));
  held.expect_right(2);
}

TEST(Streams, WorkFollowsEvents) {
  const Loaded loaded = load(perceptron(), "cpu/1");
  Running held(loaded.engine.get());
  Gate gate(held.context.get());
  const auto first = stream_of(loaded), second = stream_of(loaded);
  const auto begin = make<hone_event>(hone_event_create, loaded.device.get());
  const auto end = make<hone_event>(hone_event_create, loaded.device.get());
  int passed = 0;
  must(hone_event_query(end.get(), &passed));
  EXPECT_EQ(passed, 1) << "not recorded: nothing to wait for";
  must(hone_event_record(begin.get(), first.get()));
  must(hone_context_enqueue(held.context.get(), first.get()));
  must(hone_event_record(end.get(), first.get()));
  std::vector<float> copied(6, -1);
  must(hone_stream_wait(second.get(), end.get()));
  must(hone_stream_copy(second.get(), copied.data(), held.y.data(), copied.size() * sizeof(float)));
  gate.reached();
  must(hone_event_query(end.get(), &passed));
  EXPECT_EQ(passed, 0);
  double milliseconds = -1;
  EXPECT_EQ(hone_event_elapsed(begin.get(), end.get(), &milliseconds), HONE_INVALID_STATE);
  gate.open();
  must(hone_stream_synchronize(second.get()));
  for (size_t i = 0; i < copied.size(); ++i)
    EXPECT_EQ(copied[i], expected(&held.x[i / 3 * 4], static_cast<int>(i % 3)));
  must(hone_event_synchronize(end.get()));
  must(hone_event_elapsed(begin.get(), end.get(), &milliseconds));
  EXPECT_GE(milliseconds, 0);
}

TEST(Streams, InferencesOfOneContextFollowEachOther) {
  const Loaded loaded = load(perceptron(), "cpu/1");
  Running running(loaded.engine.get());
  Gate gate(running.context.get());
  const auto first = stream_of(loaded), second = stream_of(loaded);
  must(hone_context_enqueue(running.context.get(), first.get()));
  gate.reached();
  must(hone_context_enqueue(running.context.get(), second.get()));
  gate.open();
  set_rows(running.context.get(), 5);  // waits for both
  must(hone_context_enqueue(running.context.get(), second.get()));
  must(hone_context_wait(running.context.get()));
  running.expect_right(5);
}

TEST(Streams, ACancelledContextEndsWhatIsEnqueued) {
  const Loaded loaded = load(perceptron(), "cpu/1", {"--markDebug=h"});
  Running running(loaded.engine.get());
  Gate gate(running.context.get());
  const auto stream = stream_of(loaded);
  for (int i = 0; i < 3; ++i) must(hone_context_enqueue(running.context.get(), stream.get()));
  gate.reached();
  must(hone_context_cancel(running.context.get()));
  gate.open();
  EXPECT_EQ(hone_stream_synchronize(stream.get()), HONE_CANCELLED);
  EXPECT_EQ(hone_context_wait(running.context.get()), HONE_CANCELLED);
  must(hone_context_enqueue(running.context.get(), stream.get()));
  must(hone_stream_synchronize(stream.get()));
  must(hone_context_wait(running.context.get()));
  running.expect_right(2);
}

/// What a function was told, and the thread's last failure then.
struct Told {
  std::promise<std::pair<hone_status, std::string>> said;
  static void done(void* user, hone_status status) {
    static_cast<Told*>(user)->said.set_value({status, status == HONE_OK ? "" : hone_last_error()});
  }
};

TEST(Streams, AFunctionIsToldOnceWhatIsBeforeItIsDone) {
  const Loaded loaded = load(perceptron(), "cpu/1");
  Running running(loaded.engine.get());
  Gate gate(running.context.get());
  const auto stream = stream_of(loaded);
  Told first, second, third;
  must(hone_context_enqueue(running.context.get(), stream.get()));
  must(hone_stream_call(stream.get(), Told::done, &first));
  must(hone_stream_call(stream.get(), Told::done, &second));
  gate.reached();
  auto answer = first.said.get_future();
  EXPECT_EQ(answer.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  must(hone_context_cancel(running.context.get()));
  gate.open();
  const auto [status, message] = answer.get();
  EXPECT_EQ(status, HONE_CANCELLED);
  EXPECT_NE(message.find("cancelled"), std::string::npos);
  EXPECT_EQ(second.said.get_future().get().first, HONE_OK) << "a failure is told once";
  must(hone_stream_synchronize(stream.get()));
  must(hone_context_enqueue(running.context.get(), stream.get()));
  must(hone_stream_call(stream.get(), Told::done, &third));
  EXPECT_EQ(third.said.get_future().get().first, HONE_OK);
  running.expect_right(2);
}

TEST(Streams, AThreadWaitsForTheEventsOfOtherDevices) {
  struct Late final : Event {
    std::shared_future<void> passing;
    void record(Stream&) override {}
    void wait() const override { passing.get(); }
    bool passed() const override { return true; }
    double milliseconds_since(const Event&) const override { return 0; }
  };
  std::promise<void> passed, lost;
  Told right, wrong;
  {
    Caller caller;
    for (auto& [to, promise] : {std::pair{&right, &passed}, std::pair{&wrong, &lost}}) {
      auto event = std::make_unique<Late>();
      event->passing = promise->get_future();
      caller.call(std::move(event), Told::done, to);
    }
    lost.set_exception(std::make_exception_ptr(Error("the device is gone")));
    passed.set_value();
  }
  EXPECT_EQ(right.said.get_future().get().first, HONE_OK);
  EXPECT_EQ(wrong.said.get_future().get(), std::pair(HONE_ERROR, std::string("the device is gone")));
}

TEST(Streams, ObjectsMayGoWhileWorkIsUnderWay) {
  Loaded loaded = load(perceptron(), "cpu/1");
  auto running = std::make_unique<Running>(loaded.engine.get());
  auto stream = stream_of(loaded);
  auto event = make<hone_event>(hone_event_create, loaded.device.get());
  for (int i = 0; i < 50; ++i) must(hone_context_enqueue(running->context.get(), stream.get()));
  must(hone_event_record(event.get(), stream.get()));
  loaded = {};
  event = nullptr;
  running = nullptr;
  stream = nullptr;
}

TEST(Streams, ACallbackInAWorkerMayNotUseItsContext) {
  const Loaded loaded = load(perceptron(), "cpu/1");
  Running running(loaded.engine.get());
  const auto stream = stream_of(loaded);
  struct Seen {
    hone_context* context;
    hone_stream* stream;
    std::atomic<int> status = HONE_OK, waited = HONE_OK;
  } seen{running.context.get(), stream.get()};
  must(hone_context_set_layer_function(
      running.context.get(),
      [](void* user, const char*, double) {
        auto& to = *static_cast<Seen*>(user);
        to.status = hone_context_run(to.context);
        to.waited = hone_stream_synchronize(to.stream);
        hone_context_destroy(to.context);  // refused, as the next one is
        hone_stream_destroy(to.stream);
      },
      &seen));
  must(hone_context_enqueue(running.context.get(), stream.get()));
  must(hone_stream_synchronize(stream.get()));
  EXPECT_EQ(seen.status, HONE_INVALID_STATE);
  EXPECT_EQ(seen.waited, HONE_INVALID_STATE);
}

size_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(Streams, OneWorkerIsOneThread) {
  const Loaded first = load(perceptron(), "cpu/1"), second = load(counting(), "cpu/1");
  const size_t before = threads();
  Running a(first.engine.get());
  const auto b = make<hone_context>(hone_context_create, second.engine.get(), 0);
  std::vector<float> x(8, 1);
  set_rows(b.get(), 2);
  must(hone_context_bind(b.get(), "x", x.data(), HONE_MEMORY_HOST));
  const auto one = stream_of(first), two = stream_of(second);
  for (int i = 0; i < 20; ++i) {
    must(hone_context_enqueue(a.context.get(), one.get()));
    must(hone_context_enqueue(b.get(), two.get()));
  }
  must(hone_stream_synchronize(one.get()));
  must(hone_stream_synchronize(two.get()));
  EXPECT_EQ(threads(), before + 2) << "a thread for each stream, and none beside";
}

#if HONE_COUNTS_ALLOCATIONS
TEST(Streams, EnqueueAllocatesNothing) {
  const Loaded loaded = load(perceptron(), "cpu/1");
  Running running(loaded.engine.get());
  const auto stream = stream_of(loaded);
  const auto event = make<hone_event>(hone_event_create, loaded.device.get());
  must(hone_context_enqueue(running.context.get(), stream.get()));
  must(hone_stream_synchronize(stream.get()));
  g_allocations = 0;
  g_counting = true;
  hone_status worst = HONE_OK;
  for (int i = 0; i < 100; ++i) {
    worst = std::max(worst, hone_context_enqueue(running.context.get(), stream.get()));
    worst = std::max(worst, hone_event_record(event.get(), stream.get()));
  }
  worst = std::max(worst, hone_stream_synchronize(stream.get()));
  g_counting = false;
  EXPECT_EQ(worst, HONE_OK);
  EXPECT_EQ(g_allocations, 0);
}
#endif

/// Eight threads with contexts of their own on one engine; shapes change, and the plan is read meanwhile.
TEST(Streams, EightThreadsShareAPlanAndAnEngine) {
  const Loaded loaded = load(perceptron(), "cpu/2");
  std::vector<std::string> seen(8);
  {
    std::vector<std::jthread> all;
    for (size_t t = 0; t < seen.size(); ++t)
      all.emplace_back([&, t] {
        Running running(loaded.engine.get());
        const auto stream = stream_of(loaded);
        for (int64_t i = 0; i < 12; ++i) {
          const int64_t rows = 1 + (i * 5 + static_cast<int64_t>(t)) % 64;
          set_rows(running.context.get(), rows);
          if (i % 2 == 0) {
            must(hone_context_run(running.context.get()));
          } else {
            must(hone_context_enqueue(running.context.get(), stream.get()));
            must(hone_stream_synchronize(stream.get()));
          }
          running.expect_right(rows);
          const void* bytes = nullptr;
          size_t size = 0;
          const char* json = nullptr;
          must(hone_plan_bytes(loaded.plan.get(), &bytes, &size));
          must(hone_plan_json(loaded.plan.get(), &json));
          seen[t] = std::string(static_cast<const char*>(bytes), size) + json;
        }
      });
  }
  for (const std::string& each : seen) EXPECT_EQ(each, seen.front());
}

}  // namespace
}  // namespace hone::capi
