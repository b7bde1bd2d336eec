// SPDX-License-Identifier: Apache-2.0
//
// What the opaque types of the C interface's run side hold.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/all.h"
#include "capi/handle.h"
#include "capi/texts.h"
#include "capi/worker.h"
#include "hone/hone.h"
#include "plan/plan.h"
#include "runtime/engine.h"

struct hone_device : hone::capi::Handle<hone::capi::Kind::device>, hone::OpenDevice {
  hone_device(hone::OpenDevice opened) : OpenDevice(std::move(opened)), info(device->info()) {}
  hone::DeviceInfo info;
  std::shared_ptr<hone::capi::Texts> texts = std::make_shared<hone::capi::Texts>();
};

struct hone_plan : hone::capi::Handle<hone::capi::Kind::plan> {
  hone_plan(hone::Plan made, size_t read = 0)
      : plan(std::make_shared<const hone::Plan>(std::move(made))), bytes_read(static_cast<int64_t>(read)) {}
  hone_plan(std::shared_ptr<const hone::Plan> shared, int64_t read) : plan(std::move(shared)), bytes_read(read) {}
  std::shared_ptr<const hone::Plan> plan;
  mutable std::once_flag json_made, bytes_made, size_found;
  mutable std::string json;
  mutable hone::Blob bytes;        // of the file
  const int64_t bytes_read;        // of a plan that was not read: 0
  mutable int64_t file_bytes = 0;  // until somebody asks
  std::shared_ptr<hone::capi::Texts> texts = std::make_shared<hone::capi::Texts>();
};
struct hone_engine : hone::capi::Handle<hone::capi::Kind::engine> {
  hone_engine(std::shared_ptr<const hone::Engine> loaded, int64_t read) : engine(std::move(loaded)), bytes_read(read) {}
  std::shared_ptr<const hone::Engine> engine;
  const int64_t bytes_read;  // of the file where the engine's plan is as it was there, but for refits; else 0
};
struct hone_value : hone::capi::Handle<hone::capi::Kind::value> {
  hone_value(hone::Tensor contents) : tensor(std::move(contents)) {}
  hone::Tensor tensor;
};

struct hone_buffer : hone::capi::Handle<hone::capi::Kind::buffer> {
  hone_buffer(std::shared_ptr<hone::Device> of, size_t bytes, hone::MemoryKind kind)
      : device(std::move(of)), memory(*device, bytes, kind) {}
  std::shared_ptr<hone::Device> device;
  hone::Buffer memory;
};
/// Either the device has streams of its own, or a worker stands for one.
struct hone_stream : hone::capi::Handle<hone::capi::Kind::stream> {
  std::shared_ptr<hone::Device> device;
  std::unique_ptr<hone::Stream> stream;
  std::unique_ptr<hone::capi::Worker> worker;
  std::unique_ptr<hone::capi::Caller> caller = {};  // for streams of the device's own
};
struct hone_event : hone::capi::Handle<hone::capi::Kind::event> {
  std::shared_ptr<hone::Device> device;
  std::unique_ptr<hone::Event> event;
  bool recorded = false;
  std::shared_ptr<hone::capi::Mark> mark;  // where a worker stands for a stream
};

/// Memory that the caller bound to a tensor.
struct hone_binding {
  std::string tensor;
  bool is_input = true;
  void* memory = nullptr;
  bool copied = false;  // host memory that the device does not read: every run copies
  hone::Buffer device;  // what it is copied to and from; or what hone_context_set_value() has put there
};
struct hone_context : hone::capi::Handle<hone::capi::Kind::context> {
  hone_context(const std::shared_ptr<const hone::Engine>& engine, int profile);
  ~hone_context();

  hone::Device& device() const { return context->engine().device(); }
  /// One inference, on the calling thread; what the callbacks are to be told of it, too.
  void execute(hone::Stream& on);

  std::unique_ptr<hone::ExecutionContext> context;
  std::unique_ptr<hone::Stream> stream;             // that run() uses
  std::unique_ptr<hone::capi::Worker> worker = {};  // that runs, where the device has cores of its own
  std::vector<hone_binding> bindings = {};
  std::map<std::string, hone::ExecutionContext::OutputMemory, std::less<>> output_memory = {};
  hone_layer_fn layer = nullptr;
  void* layer_user = nullptr;
  hone_span_fn span = nullptr;
  void* span_user = nullptr;
  hone_debug_fn debug = nullptr;
  void* debug_user = nullptr;
  hone::capi::Flights flights;
  bool changed = true;                  // since the last inference was made ready
  std::function<void()> reshaped = {};  // of one that a benchmark owns: its memory does not fit any more
  std::atomic<bool> in_use = false;
};
