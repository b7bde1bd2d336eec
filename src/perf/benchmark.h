// SPDX-License-Identifier: Apache-2.0
//
// The benchmark loop: warm-up, iterations, streams, threads; one Trace per query. Times in ms on one clock whose origin
// is the start of the run (after --sleepTime). See the reference for the loop's exact stopping rule.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "measured/times.h"
#include "perf/options.h"
#include "runtime/engine.h"

namespace hone {

/// One inference stream: a context with its host-side tensors and device-side bindings.
class Query {
 public:
  Query(std::unique_ptr<ExecutionContext> context, bool data_transfers);
  /// Of a context that lives longer.
  Query(ExecutionContext& context, bool data_transfers);
  ExecutionContext& context() { return *context_; }
  /// Host memory of a tensor, `context().bytes(tensor)` long; what is copied in before and out after each query. Of an output
  /// of data-dependent shape: its bytes after a query, until the next.
  std::byte* host(std::string_view tensor);
  /// Allocates and binds all tensors for the present shapes; must be called after shapes are set.
  void allocate();
  /// Copies all inputs to the device / all outputs to the host, waiting for completion.
  void upload();
  void download();
  /// One query, times relative to the origin.
  Trace run(double origin_ms);
  /// The same in two steps: the query goes into the stream, and is waited for. A device that works by itself has up to
  /// kInFlight of them at a time, each in a slot of its own; elsewhere issue() returns when it is done.
  static constexpr size_t kInFlight = 2;
  bool asynchronous() const { return base_ != nullptr; }
  void issue(size_t slot, double origin_ms);
  Trace collect(size_t slot);

 private:
  struct Tensor;
  void enqueue_upload();
  void enqueue_download();
  struct Flight {
    Trace trace;                                   // complete after issue() where there are no events
    std::array<std::unique_ptr<Event>, 4> events;  // null where the device has none
    double origin_ms = 0;
  };
  void issue_with_events(Flight& flight);
  Trace run_with_waits(double origin_ms);

  std::unique_ptr<ExecutionContext> owned_;
  ExecutionContext* context_;
  std::unique_ptr<Stream> stream_;
  std::array<Flight, kInFlight> flights_;
  std::unique_ptr<Event> base_;  // what the stamps of the device count from
  double base_ms_ = 0;           // when that was on the host's clock
  bool data_transfers_;
  std::vector<Tensor> tensors_;

 public:
  ~Query();
};

/// All traces, warm-up included, sorted by h2d_start.
/// `ended` is told of each query when it has ended, on the thread that feeds its stream.
std::vector<Trace> run_benchmark(std::span<Query* const> queries, const PerfOptions& options,
                                 const std::function<void(const Trace&)>& ended = {});

}  // namespace hone
