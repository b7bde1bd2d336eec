// SPDX-License-Identifier: Apache-2.0
//
// The C interface's devices, and what belongs to one: memory, streams, events.
#include "base/version.h"
#include "capi/guard.h"
#include "capi/handles.h"

using hone::Device;
using hone::StateError;
using hone::capi::ArgumentError;
using hone::capi::fill;
using hone::capi::guarded;
using hone::capi::Outcome;
using hone::capi::require;
using hone::capi::taken;

namespace {

constexpr int kMostWorkers = 1024;

hone::DeviceChoice choice_of(const hone_device_options* given) {
  hone::DeviceChoice choice;
  if (given == nullptr) return choice;
  const hone_device_options options = taken(given, "options");
  if (options.workers < 0 || options.workers > kMostWorkers)
    throw ArgumentError(fmt::format("options->workers is {}, there may be 1 to {}", options.workers, kMostWorkers));
  choice.workers = options.workers;
  if (options.core_count > 0) {
    require(options.cores, "options->cores");
    choice.cores.assign(options.cores, options.cores + options.core_count);
  }
  if (options.instruction_set != nullptr) choice.instruction_set = options.instruction_set;
  return choice;
}

uint32_t bit(hone_dtype dtype) { return uint32_t{1} << dtype; }

uint32_t multiplied_types(const hone::DeviceInfo& info) {
  uint32_t types = bit(HONE_F32);
  if (info.half_arithmetic) types |= bit(HONE_F16);
  if (info.bf16_matmuls) types |= bit(HONE_BF16);
  if (info.has_integers()) types |= bit(HONE_I8);
  if (info.byte_matmuls) types |= bit(HONE_U8);
  return types;
}

/// Work on such a device is done while a call lasts: a worker stands for its streams.
bool needs_worker(Device& device) { return device.host_accessible(); }

void require_like(const Device& device, const Device& other, const char* what) {
  if (&device == &other || (device.host_accessible() && other.host_accessible())) return;
  throw StateError(fmt::format("{} is of another device", what), "make both of one hone_device");
}

void require_ok(Outcome outcome) {
  if (outcome.status != HONE_OK) throw outcome;
}

}  // namespace

const char* hone_version(void) { return hone::kVersion; }
int hone_api_version(void) { return HONE_API_VERSION; }

size_t hone_device_kinds(void) { return hone::all_backends().size(); }
const char* hone_device_kind(size_t index) {
  const auto backends = hone::all_backends();
  return index < backends.size() ? backends[index]->name.data() : nullptr;
}

hone_status hone_device_create(const char* name, const hone_device_options* options, hone_device** device) {
  return guarded([&] {
    require(name, "name");
    require(device, "device");
    *device = new hone_device(hone::open_device(name, choice_of(options)));
  });
}

hone_status hone_device_describe(const hone_device* device, hone_device_info* info) {
  return guarded([&] {
    require(device, "device");
    const hone::DeviceInfo& known = device->info;
    fill(info, "info",
         hone_device_info{.kind = device->backend->name.data(),
                          .name = known.name.c_str(),
                          .architecture = known.architecture.c_str(),
                          .workers = known.workers,
                          .host_accessible = device->device->host_accessible(),
                          .memory_bytes = known.memory_bytes,
                          .cache_bytes = known.cache_bytes,
                          .core_bytes = known.core_bytes,
                          .clock_ghz = known.clock_ghz,
                          .multiplied_types = multiplied_types(known),
                          .memory_clock_ghz = known.memory_clock_ghz,
                          .libraries = device->texts->kept("libraries", device->backend->versions),
                          .memory_bus_bits = known.memory_bus_bits,
                          .error_correction = known.error_correction ? int{*known.error_correction} : -1,
                          .whole_networks = known.half_networks});
  });
}

hone_status hone_device_measure(hone_device* device, hone_ceilings* ceilings) {
  return guarded([&] {
    require(device, "device");
    taken(ceilings, "ceilings");
    hone::Ceilings found;
    hone::capi::on_cores(*device->device, [&] { found = device->device->ceilings(); });
    fill(ceilings, "ceilings",
         hone_ceilings{.bytes_per_second = found.bytes_per_second,
                       .f16_flops = found.f16_flops,
                       .f32_flops = found.f32_flops,
                       .i8_flops = found.i8_flops});
  });
}

hone_status hone_device_profile(hone_device* device, int on) {
  return guarded([&] {
    require(device, "device");
    HONE_CHECK(on == 0 || on == 1, "on is {}, neither 0 nor 1", on);
    device->device->profile(on == 1);
  });
}

void hone_device_destroy(hone_device* device) { hone::capi::destroy(device, "device"); }

hone_status hone_buffer_create(const hone_device* device, hone_memory kind, size_t bytes, hone_buffer** buffer) {
  return guarded([&] {
    require(device, "device");
    require(buffer, "buffer");
    if (kind < HONE_MEMORY_HOST || kind > HONE_MEMORY_DEVICE)
      throw ArgumentError(fmt::format("there is no kind of memory {}", static_cast<int>(kind)));
    const auto of = kind == HONE_MEMORY_DEVICE ? hone::MemoryKind::device : hone::MemoryKind::host;
    auto made = std::make_unique<hone_buffer>(device->device, std::max<size_t>(bytes, 1), of);
    if (made->memory.data() == nullptr) throw std::bad_alloc();
    *buffer = made.release();
  });
}

void* hone_buffer_data(const hone_buffer* buffer) {
  void* data = nullptr;
  guarded([&] {
    require(buffer, "buffer");
    data = buffer->memory.data();
  });
  return data;
}

size_t hone_buffer_bytes(const hone_buffer* buffer) {
  size_t bytes = 0;
  guarded([&] {
    require(buffer, "buffer");
    bytes = buffer->memory.size();
  });
  return bytes;
}

void hone_buffer_destroy(hone_buffer* buffer) { hone::capi::destroy(buffer, "buffer"); }

hone_status hone_stream_create(const hone_device* device, hone_stream** stream) {
  return guarded([&] {
    require(device, "device");
    require(stream, "stream");
    auto made = std::make_unique<hone_stream>();
    made->device = device->device;
    if (needs_worker(*device->device)) made->worker = std::make_unique<hone::capi::Worker>(device->device);
    else made->stream = device->device->stream();
    *stream = made.release();
  });
}

hone_status hone_stream_create_from_native(const hone_device* device, void* native, hone_stream** stream) {
  return guarded([&] {
    require(device, "device");
    require(stream, "stream");
    auto made = std::make_unique<hone_stream>();
    made->device = device->device;
    made->stream = device->device->stream_of(native);
    *stream = made.release();
  });
}

hone_status hone_stream_copy(hone_stream* stream, void* destination, const void* source, size_t bytes) {
  return guarded([&] {
    require(stream, "stream");
    if (bytes == 0) return;
    require(destination, "destination");
    require(source, "source");
    if (stream->worker) stream->worker->copy(destination, source, bytes);
    else stream->device->copy(destination, source, bytes, *stream->stream);
  });
}

hone_status hone_stream_wait(hone_stream* stream, hone_event* event) {
  return guarded([&] {
    require(stream, "stream");
    require(event, "event");
    require_like(*stream->device, *event->device, "the event");
    if (stream->worker) stream->worker->wait(event->mark);
    else if (event->recorded) stream->stream->wait(*event->event);
  });
}

hone_status hone_stream_synchronize(hone_stream* stream) {
  return guarded([&] {
    require(stream, "stream");
    if (stream->worker) require_ok(stream->worker->synchronize());
    else stream->stream->synchronize();
  });
}

hone_status hone_stream_call(hone_stream* stream, hone_done_fn function, void* user) {
  return guarded([&] {
    require(stream, "stream");
    if (function == nullptr) throw ArgumentError("function is NULL");
    if (stream->worker) return stream->worker->call(function, user);
    if (stream->stream->capturing())
      throw StateError("the stream is being captured", "call behind the end of the capture");
    auto event = stream->device->event();
    event->record(*stream->stream);
    if (!stream->caller) stream->caller = std::make_unique<hone::capi::Caller>();
    stream->caller->call(std::move(event), function, user);
  });
}

void hone_stream_destroy(hone_stream* stream) {
  guarded([&] {
    if (stream == nullptr) return;
    require(stream, "stream");
    if (stream->worker) stream->worker->require_other_thread();
    if (stream->caller) stream->caller->require_other_thread();
    const std::unique_ptr<hone_stream> freed(stream);
    if (stream->stream && !stream->stream->capturing()) stream->stream->synchronize();  // would end the capture
  });
}

hone_status hone_event_create(const hone_device* device, hone_event** event) {
  return guarded([&] {
    require(device, "device");
    require(event, "event");
    auto made = std::make_unique<hone_event>();
    made->device = device->device;
    if (needs_worker(*device->device)) made->mark = std::make_shared<hone::capi::Mark>();
    else made->event = device->device->event();
    *event = made.release();
  });
}

hone_status hone_event_record(hone_event* event, hone_stream* stream) {
  return guarded([&] {
    require(event, "event");
    require(stream, "stream");
    require_like(*stream->device, *event->device, "the stream");
    if (stream->worker) stream->worker->record(event->mark);
    else event->event->record(*stream->stream);
    event->recorded = true;
  });
}

hone_status hone_event_synchronize(hone_event* event) {
  return guarded([&] {
    require(event, "event");
    if (!event->recorded) return;
    if (event->mark) event->mark->wait(event->mark->recorded());
    else event->event->wait();
  });
}

hone_status hone_event_query(hone_event* event, int* passed) {
  return guarded([&] {
    require(event, "event");
    require(passed, "passed");
    if (!event->recorded) *passed = 1;
    else *passed = event->mark ? event->mark->time().has_value() : event->event->passed();
  });
}

hone_status hone_event_elapsed(hone_event* begin, hone_event* end, double* milliseconds) {
  return guarded([&] {
    require(begin, "begin");
    require(end, "end");
    require(milliseconds, "milliseconds");
    require_like(*begin->device, *end->device, "an event");
    for (const hone_event* event : {begin, end}) {
      const bool passed = event->recorded && (event->mark ? event->mark->time().has_value() : event->event->passed());
      if (!passed) throw StateError("an event has not been passed", "record both and synchronize with the later one");
    }
    *milliseconds = end->mark
                        ? std::chrono::duration<double, std::milli>(*end->mark->time() - *begin->mark->time()).count()
                        : end->event->milliseconds_since(*begin->event);
  });
}

void hone_event_destroy(hone_event* event) { hone::capi::destroy(event, "event"); }
