// SPDX-License-Identifier: Apache-2.0
//
// Streams of devices that do their work while a call lasts: a queue and a thread that computes. Enqueueing allocates nothing and
// waits only where the queue is full.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "capi/guard.h"
#include "device/device.h"

namespace hone::capi {

/// The inferences of a context, in the order in which they were begun. They follow each other, whatever streams they are in.
class Flights {
 public:
  /// A number for one more.
  uint64_t issue();
  /// Before it computes, in the thread that does: waits for the earlier ones. False: it has been cancelled.
  bool begin(uint64_t number);
  void end(uint64_t number, Outcome outcome);
  /// Waits for all. Throws StateError in the thread that computes one: it would wait for itself.
  void settle();
  void require_other_thread();
  /// The first failure since the last call.
  Outcome take_failure();
  /// All that are issued and not ended.
  void cancel();
  /// Set while the one that computes has been cancelled.
  const std::atomic<bool>* stop() const { return &stop_; }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  uint64_t issued_ = 0, done_ = 0, cancelled_ = 0;  // numbers, from 1
  std::thread::id computes_;
  std::atomic<bool> stop_ = false;
  Outcome failure_;
};

/// What an event is in workers' queues.
class Mark {
 public:
  uint64_t record();  ///< in the thread that enqueues
  void pass(uint64_t number);
  uint64_t recorded();
  void wait(uint64_t number);
  /// Of the last record; nothing where it was not recorded or not passed.
  std::optional<std::chrono::steady_clock::time_point> time();

 private:
  std::mutex mutex_;
  std::condition_variable passed_;
  uint64_t recorded_ = 0, done_ = 0;
  std::chrono::steady_clock::time_point time_;
};

class Worker {
 public:
  /// Throws what the device says when it cannot have the thread.
  explicit Worker(std::shared_ptr<Device> device);
  /// Behind the end of all work.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void run(hone_context& context, uint64_t number);
  void copy(void* to, const void* from, size_t bytes);
  void record(const std::shared_ptr<Mark>& mark);
  void wait(const std::shared_ptr<Mark>& mark);
  void call(hone_done_fn function, void* user);
  /// Until all is done; the first failure since the last call.
  Outcome synchronize();
  /// Throws StateError in the worker's own thread, which cannot wait for itself.
  void require_other_thread() const;

 private:
  static constexpr size_t kCapacity = 1024;
  struct Task {
    enum class Kind { run, copy, record, wait, call } kind;
    hone_context* context = nullptr;
    uint64_t number = 0;
    void* to = nullptr;
    const void* from = nullptr;
    size_t bytes = 0;
    std::shared_ptr<Mark> mark = {};
    hone_done_fn function = nullptr;
    void* user = nullptr;
  };
  void submit(Task task);
  void work();
  Outcome perform(const Task& task);
  Outcome take_failure();

  std::shared_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Task, kCapacity> tasks_;
  uint64_t submitted_ = 0, done_ = 0;
  bool ending_ = false;
  Outcome failure_;
  std::thread thread_;
};

/// Calls functions when a stream has passed a place, where the device has streams of its own: a thread that waits for events.
class Caller {
 public:
  Caller() : thread_([this] { work(); }) {}
  /// Behind the last call.
  ~Caller();
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  /// The event has been recorded.
  void call(std::unique_ptr<Event> event, hone_done_fn function, void* user);
  void require_other_thread() const;

 private:
  struct Call {
    std::unique_ptr<Event> event;
    hone_done_fn function;
    void* user;
  };
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Call> calls_;
  bool ending_ = false;
  std::thread thread_;
};

/// Tells `function` what its stream's work came to.
void tell(hone_done_fn function, void* user, Outcome outcome);

/// Runs `body` on a thread that the device's cores are bound to, where it has any of its own, else here.
template <typename Body>
void on_cores(const Device& device, Body&& body) {
  if (!device.has_cores()) return body();
  std::exception_ptr failure;
  std::thread([&] {
    try {
      device.adopt_thread();
      body();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace hone::capi
