// SPDX-License-Identifier: Apache-2.0
//
// Query: buffers, copies and the stamps of one inference. On a device that works while the host goes on, phases follow each
// other in its stream and the device's events stamp them, two queries at a time; elsewhere every phase is waited for and stamps are host times.
// Without transfers, host memory is bound directly where the device can read it.
#include "perf/benchmark.h"

#include "base/clock.h"

namespace hone {

struct Query::Tensor {
  std::string name;
  bool is_input = true;
  Buffer host;
  Buffer device;        // empty: host memory is bound
  hone::Tensor result;  // of an output of data-dependent shape: the context's memory after a run

  bool copied() const { return device.data() != nullptr; }
  std::byte* host_bytes() const { return static_cast<std::byte*>(host.data()); }
};

Query::Query(std::unique_ptr<ExecutionContext> context, bool data_transfers) : Query(*context, data_transfers) {
  owned_ = std::move(context);
}

Query::Query(ExecutionContext& context, bool data_transfers)
    : context_(&context), stream_(context_->engine().device().stream()), data_transfers_(data_transfers) {
  Device& device = context_->engine().device();
  for (Flight& flight : flights_)
    for (std::unique_ptr<Event>& event : flight.events) event = device.event();
  base_ = device.event();
}

Query::~Query() = default;

void Query::allocate() {
  Device& device = context_->engine().device();
  const bool separate = data_transfers_ || !device.host_accessible();
  tensors_.clear();
  const std::vector<IoTensor>& all = context_->engine().plan().io;
  for (const IoTensor& io : all)
    if (io.is_input && context_->engine().by_value(io.name))
      throw Error(fmt::format("input {} holds {}, which has no bytes to bind", io.name, io.type.text()),
                  "run such models through the C or Python interface");
  context_->prepare();  // before memory is asked for: kernels may refuse what a plan says of sizes
  for (const IoTensor& io : all) {
    if (context_->engine().by_value(io.name)) {
      tensors_.push_back({io.name, false, {}, {}, {}});
      continue;
    }
    const auto bytes = static_cast<size_t>(context_->bytes(io.name));
    Tensor tensor{io.name, io.is_input, Buffer(device, std::max<size_t>(bytes, 1), MemoryKind::host), {}, {}};
    if (tensor.host.data() == nullptr)
      throw Error(fmt::format("there is no memory for the {} bytes of {}", bytes, io.name), "use smaller shapes");
    std::memset(tensor.host.data(), 0, tensor.host.size());
    if (separate) tensor.device = Buffer(device, tensor.host.size());
    context_->bind(io.name, tensor.copied() ? tensor.device.data() : tensor.host.data());
    tensors_.push_back(std::move(tensor));
  }
}

std::byte* Query::host(std::string_view tensor) {
  for (Tensor& candidate : tensors_) {
    if (candidate.name != tensor) continue;
    if (candidate.host.data() != nullptr) return candidate.host_bytes();
    candidate.result = context_->value(tensor);
    return const_cast<std::byte*>(candidate.result.bytes().data());
  }
  throw InternalError(fmt::format("no binding named {}", tensor));
}

void Query::enqueue_upload() {
  Device& device = context_->engine().device();
  for (Tensor& tensor : tensors_)
    if (tensor.is_input && tensor.copied())
      device.copy(tensor.device.data(), tensor.host.data(), tensor.host.size(), *stream_);
}

void Query::enqueue_download() {
  Device& device = context_->engine().device();
  for (Tensor& tensor : tensors_)
    if (!tensor.is_input && tensor.copied())
      device.copy(tensor.host.data(), tensor.device.data(), tensor.host.size(), *stream_);
}

void Query::upload() {
  enqueue_upload();
  stream_->synchronize();
}

void Query::download() {
  enqueue_download();
  stream_->synchronize();
}

Trace Query::run(double origin_ms) {
  issue(0, origin_ms);
  return collect(0);
}

void Query::issue(size_t slot, double origin_ms) {
  static const RangeLabel kLabel("query");
  const NamedRange range(kLabel);
  Flight& flight = flights_[slot];
  flight.origin_ms = origin_ms;
  if (base_ != nullptr) issue_with_events(flight);
  else flight.trace = run_with_waits(origin_ms);
}

void Query::issue_with_events(Flight& flight) {
  if (base_ms_ == 0) {
    stream_->synchronize();
    base_->record(*stream_);
    base_ms_ = now_ms();
  }
  const auto stamp = [&] { return static_cast<float>(now_ms() - flight.origin_ms); };
  flight.events[0]->record(*stream_);
  if (data_transfers_) enqueue_upload();
  flight.events[1]->record(*stream_);
  flight.trace.enqueue_start = stamp();
  context_->enqueue(*stream_);
  flight.trace.enqueue_end = stamp();
  flight.events[2]->record(*stream_);
  if (data_transfers_) enqueue_download();
  flight.events[3]->record(*stream_);
}

Trace Query::collect(size_t slot) {
  Flight& flight = flights_[slot];
  if (base_ == nullptr) return flight.trace;
  flight.events[3]->wait();
  Trace trace = flight.trace;
  // From the first event's place on the host's clock on, so that phases are as fine as the device stamps them.
  trace.h2d_start = static_cast<float>(base_ms_ - flight.origin_ms + flight.events[0]->milliseconds_since(*base_));
  const auto at = [&](size_t i) {
    return trace.h2d_start + static_cast<float>(flight.events[i]->milliseconds_since(*flight.events[0]));
  };
  trace.h2d_end = trace.compute_start = at(1);
  trace.compute_end = trace.d2h_start = at(2);
  trace.d2h_end = at(3);
  if (!data_transfers_) trace.h2d_start = trace.h2d_end, trace.d2h_end = trace.d2h_start;
  return trace;
}

Trace Query::run_with_waits(double origin_ms) {
  const auto stamp = [origin_ms] { return static_cast<float>(now_ms() - origin_ms); };
  Trace trace;
  if (data_transfers_) {
    trace.h2d_start = stamp();
    upload();
    trace.h2d_end = stamp();
  }
  trace.compute_start = trace.enqueue_start = stamp();
  context_->enqueue(*stream_);
  trace.enqueue_end = stamp();
  stream_->synchronize();
  trace.compute_end = stamp();
  if (data_transfers_) {
    trace.d2h_start = trace.compute_end;
    download();
    trace.d2h_end = stamp();
  } else {
    trace.h2d_start = trace.h2d_end = trace.compute_start;
    trace.d2h_start = trace.d2h_end = trace.compute_end;
  }
  return trace;
}

}  // namespace hone
