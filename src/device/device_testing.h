// SPDX-License-Identifier: Apache-2.0
//
// Devices for tests that need none of a real one's speed: memory of the host, kernels that are functions. A late device works
// by itself, as late as it may: what is enqueued happens when somebody waits for it. For tests only.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "device/device.h"

namespace hone {

class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(std::function<void(const Bindings&)> run, size_t workspace = 0)
      : run_(std::move(run)), workspace_(workspace) {}
  void run(const Bindings& bindings) const { run_(bindings); }
  size_t workspace_bytes() const override { return workspace_; }

 private:
  std::function<void(const Bindings&)> run_;
  size_t workspace_;
};

/// Work that waits to be done, in order; or that is done at once.
class TestStream final : public Stream {
 public:
  explicit TestStream(bool late) : late_(late) {}
  ~TestStream() override { TestStream::synchronize(); }
  void enqueue(std::function<void()> work) {
    if (!late_) return work();
    waiting_.push_back(std::move(work));
    ++enqueued_;
  }
  void synchronize() override { run_until(enqueued_); }
  void run_until(size_t place) {
    for (; done_ < place; ++done_) {
      waiting_.front()();
      waiting_.pop_front();
    }
  }
  size_t enqueued() const { return enqueued_; }
  bool capturing() const override { return capturing_; }
  /// Says so of what comes; the work is done all the same.
  void set_capturing(bool on) { capturing_ = on; }
  /// Of what knows whether the stream is still there.
  std::weak_ptr<TestStream> itself() const { return itself_; }

 private:
  bool late_, capturing_ = false;
  std::deque<std::function<void()>> waiting_;
  size_t enqueued_ = 0, done_ = 0;
  std::shared_ptr<TestStream> itself_{this, [](TestStream*) {}};
};

class TestEvent final : public Event {
 public:
  void record(Stream& stream) override {
    stream_ = static_cast<TestStream&>(stream).itself();
    place_ = static_cast<TestStream&>(stream).enqueued();
  }
  /// A stream that is gone has done all its work.
  void wait() const override {
    if (const std::shared_ptr<TestStream> stream = stream_.lock()) stream->run_until(place_);
  }
  bool passed() const override { return stream_.expired(); }
  double milliseconds_since(const Event&) const override { return 0.25; }

 private:
  std::weak_ptr<TestStream> stream_;
  size_t place_ = 0;
};

class TestRecording : public Recording {
 public:
  explicit TestRecording(std::vector<Launch> launches) : launches_(std::move(launches)) {}
  std::vector<Launch>& launches() override { return launches_; }
  void replay(Stream& stream) override {
    for (const Launch& launch : launches_)
      static_cast<TestStream&>(stream).enqueue(
          [launch] { static_cast<const FunctionKernel&>(*launch.kernel).run(launch.bindings()); });
  }
  void replay(Stream& stream, const LaunchObserver& observer) override {
    replay(stream);
    stream.synchronize();
    for (size_t i = 0; i < launches_.size(); ++i) observer(i, 0.25);
  }

 private:
  std::vector<Launch> launches_;
};

class TestDevice : public Device {
 public:
  explicit TestDevice(bool late = false) : late_(late) {}
  DeviceInfo info() const override { return {.name = "test", .architecture = "none"}; }
  void* allocate(size_t bytes) override { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
  void release(void* memory) noexcept override { std::free(memory); }
  std::unique_ptr<Stream> stream() override { return std::make_unique<TestStream>(late_); }
  std::unique_ptr<Event> event() override { return late_ ? std::make_unique<TestEvent>() : nullptr; }
  void copy(void* destination, const void* source, size_t bytes, Stream& stream) override {
    static_cast<TestStream&>(stream).enqueue([=] {
      if (bytes != 0) std::memcpy(destination, source, bytes);
    });
  }
  void fill(void* memory, std::byte value, size_t bytes, Stream& stream) override {
    static_cast<TestStream&>(stream).enqueue([=] {
      if (bytes != 0) std::memset(memory, std::to_integer<int>(value), bytes);
    });
  }
  std::unique_ptr<Recording> record(std::vector<Launch> launches) override {
    return std::make_unique<TestRecording>(std::move(launches));
  }
  bool host_accessible() const override { return !late_; }

 private:
  bool late_;
};

}  // namespace hone
