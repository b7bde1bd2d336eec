// SPDX-License-Identifier: Apache-2.0
#include "capi/worker.h"

#include <cstring>
#include <future>

#include "capi/handles.h"

namespace hone::capi {

uint64_t Flights::issue() {
  const std::lock_guard lock(mutex_);
  return ++issued_;
}

bool Flights::begin(uint64_t number) {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return done_ + 1 == number; });
  computes_ = std::this_thread::get_id();
  stop_ = number <= cancelled_;
  return !stop_;
}

void Flights::end(uint64_t number, Outcome outcome) {
  const std::lock_guard lock(mutex_);
  if (outcome.status != HONE_OK && failure_.status == HONE_OK) failure_ = std::move(outcome);
  done_ = number;
  computes_ = {};
  stop_ = false;
  ended_.notify_all();
}

void Flights::require_other_thread() {
  const std::lock_guard lock(mutex_);
  if (computes_ == std::this_thread::get_id())
    throw StateError("the context is used by a function that it has called", "use it when the inference has ended");
}

void Flights::settle() {
  require_other_thread();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return done_ == issued_; });
}

Outcome Flights::take_failure() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, {});
}

void Flights::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = issued_;
  if (done_ != issued_) stop_ = computes_ != std::thread::id();
}

uint64_t Mark::record() {
  const std::lock_guard lock(mutex_);
  return ++recorded_;
}

void Mark::pass(uint64_t number) {
  const std::lock_guard lock(mutex_);
  done_ = std::max(done_, number);
  time_ = std::chrono::steady_clock::now();
  passed_.notify_all();
}

uint64_t Mark::recorded() {
  const std::lock_guard lock(mutex_);
  return recorded_;
}

void Mark::wait(uint64_t number) {
  std::unique_lock lock(mutex_);
  passed_.wait(lock, [&] { return done_ >= number; });
}

std::optional<std::chrono::steady_clock::time_point> Mark::time() {
  const std::lock_guard lock(mutex_);
  if (recorded_ == 0 || done_ != recorded_) return std::nullopt;
  return time_;
}

Worker::Worker(std::shared_ptr<Device> device) : device_(std::move(device)), stream_(device_->stream()) {
  std::promise<void> started;
  thread_ = std::thread([this, &started] {
    try {
      device_->adopt_thread();
    } catch (...) {
      started.set_exception(std::current_exception());
      return;
    }
    started.set_value();
    work();
  });
  try {
    started.get_future().get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Worker::run(hone_context& context, uint64_t number) {
  submit({.kind = Task::Kind::run, .context = &context, .number = number});
}

void Worker::copy(void* to, const void* from, size_t bytes) {
  submit({.kind = Task::Kind::copy, .to = to, .from = from, .bytes = bytes});
}

void Worker::record(const std::shared_ptr<Mark>& mark) {
  submit({.kind = Task::Kind::record, .number = mark->record(), .mark = mark});
}

void Worker::wait(const std::shared_ptr<Mark>& mark) {
  submit({.kind = Task::Kind::wait, .number = mark->recorded(), .mark = mark});
}

void Worker::require_other_thread() const {
  if (thread_.get_id() == std::this_thread::get_id())
    throw StateError("the stream is waited for by a function that its own work has called",
                     "wait in another thread, or when the work is done");
}

void Worker::call(hone_done_fn function, void* user) {
  submit({.kind = Task::Kind::call, .function = function, .user = user});
}

Outcome Worker::take_failure() {
  const std::lock_guard lock(mutex_);
  return std::exchange(failure_, {});
}

Outcome Worker::synchronize() {
  require_other_thread();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return done_ == submitted_; });
  return std::exchange(failure_, {});
}

void Worker::submit(Task task) {
  std::unique_lock lock(mutex_);
  if (submitted_ - done_ >= kCapacity) require_other_thread();
  changed_.wait(lock, [&] { return submitted_ - done_ < kCapacity; });
  tasks_[submitted_++ % kCapacity] = std::move(task);
  changed_.notify_all();
}

void Worker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || done_ != submitted_; });
    if (done_ == submitted_) return;
    const Task task = std::move(tasks_[done_ % kCapacity]);
    lock.unlock();
    Outcome outcome = perform(task);
    lock.lock();
    if (outcome.status != HONE_OK && failure_.status == HONE_OK) failure_ = std::move(outcome);
    ++done_;
    changed_.notify_all();
  }
}

Outcome Worker::perform(const Task& task) {
  switch (task.kind) {
    case Task::Kind::copy: std::memcpy(task.to, task.from, task.bytes); break;
    case Task::Kind::record: task.mark->pass(task.number); break;
    case Task::Kind::wait: task.mark->wait(task.number); break;
    case Task::Kind::call: tell(task.function, task.user, take_failure()); break;
    case Task::Kind::run: {
      Outcome outcome;
      try {
        if (!task.context->flights.begin(task.number))
          throw Cancelled("the inference was cancelled", "its outputs are undefined");
        task.context->execute(*stream_);
      } catch (...) {
        outcome = outcome_of_exception();
      }
      task.context->flights.end(task.number, outcome);
      return outcome;
    }
  }
  return {};
}

Caller::~Caller() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Caller::call(std::unique_ptr<Event> event, hone_done_fn function, void* user) {
  const std::lock_guard lock(mutex_);
  calls_.push_back({std::move(event), function, user});
  changed_.notify_all();
}

void Caller::require_other_thread() const {
  if (thread_.get_id() == std::this_thread::get_id())
    throw StateError("the stream is destroyed by a function that it has called", "destroy it in another thread");
}

void Caller::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !calls_.empty(); });
    if (calls_.empty()) return;
    const Call call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    Outcome outcome;
    try {
      call.event->wait();
    } catch (...) {
      outcome = outcome_of_exception();
    }
    tell(call.function, call.user, std::move(outcome));
    lock.lock();
  }
}

void tell(hone_done_fn function, void* user, Outcome outcome) {
  const hone_status status = outcome.status;
  if (status != HONE_OK) last_failure() = std::move(outcome);
  function(user, status);
}

}  // namespace hone::capi
