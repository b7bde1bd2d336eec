// SPDX-License-Identifier: Apache-2.0
//
// Query: buffers, copies and the stamps of one inference. Every phase is waited for, so each stamp is a host time.
// Without transfers, host memory is bound directly where the device can read it.
#include "perf/benchmark.h"

#include "base/clock.h"

namespace hone {

struct Query::Tensor {
  std::string name;
  bool is_input = true;
  AlignedBuffer host;
  Buffer device;                               // empty: host memory is bound
  hone::Tensor result;                         // of an output that the data size: the context's memory after a run

  bool copied() const { return device.data() != nullptr; }
};

Query::Query(std::unique_ptr<ExecutionContext> context, bool data_transfers)
    : context_(std::move(context)), stream_(context_->engine().device().stream()), data_transfers_(data_transfers) {}

Query::~Query() = default;

void Query::allocate() {
  Device& device = context_->engine().device();
  const bool separate = data_transfers_ || !device.host_accessible();
  tensors_.clear();
  for (const IoTensor& io : context_->engine().plan().io) {
    if (context_->engine().by_value(io.name)) {
      if (io.is_input) throw Error(fmt::format("input {} holds {}, which has no bytes to bind", io.name, io.type.text()), "run such models through the C or Python interface");
      tensors_.push_back({io.name, false, {}, {}, {}});
      continue;
    }
    const auto bytes = static_cast<size_t>(context_->bytes(io.name));
    Tensor tensor{io.name, io.is_input, AlignedBuffer(std::max<size_t>(bytes, 1)), {}, {}};
    std::memset(tensor.host.data(), 0, tensor.host.size());
    if (separate) tensor.device = Buffer(device, tensor.host.size());
    context_->bind(io.name, tensor.copied() ? tensor.device.data() : tensor.host.data());
    tensors_.push_back(std::move(tensor));
  }
  context_->prepare();
}

std::byte* Query::host(std::string_view tensor) {
  for (Tensor& candidate : tensors_) {
    if (candidate.name != tensor) continue;
    if (candidate.host.data() != nullptr) return candidate.host.data();
    candidate.result = context_->value(tensor);
    return const_cast<std::byte*>(candidate.result.bytes().data());
  }
  throw InternalError(fmt::format("no binding named {}", tensor));
}

void Query::upload() {
  Device& device = context_->engine().device();
  for (Tensor& tensor : tensors_)
    if (tensor.is_input && tensor.copied()) device.copy(tensor.device.data(), tensor.host.data(), tensor.host.size(), *stream_);
  stream_->synchronize();
}

void Query::download() {
  Device& device = context_->engine().device();
  for (Tensor& tensor : tensors_)
    if (!tensor.is_input && tensor.copied()) device.copy(tensor.host.data(), tensor.device.data(), tensor.host.size(), *stream_);
  stream_->synchronize();
}

Trace Query::run(double origin_ms) {
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
