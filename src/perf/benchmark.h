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

#include "perf/options.h"
#include "runtime/engine.h"

namespace hone {

struct Trace {
  float enqueue_start = 0, enqueue_end = 0;  // host clock
  float h2d_start = 0, h2d_end = 0, compute_start = 0, compute_end = 0, d2h_start = 0, d2h_end = 0;
  float h2d() const { return h2d_end - h2d_start; }
  float compute() const { return compute_end - compute_start; }
  float d2h() const { return d2h_end - d2h_start; }
  float latency() const { return h2d() + compute() + d2h(); }
  float enqueue() const { return enqueue_end - enqueue_start; }
};

/// One inference stream: a context with its host-side tensors and device-side bindings.
class Query {
 public:
  Query(std::unique_ptr<ExecutionContext> context, bool data_transfers);
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

  std::unique_ptr<ExecutionContext> context_;
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
std::vector<Trace> run_benchmark(std::span<Query* const> queries, const PerfOptions& options);

/// How many of the sorted traces belong to the warm-up: all before the first that starts computing after it.
size_t warm_up_queries(std::span<const Trace> traces, float warm_up_ms);

/// Sorted sample statistics exactly as trtexec defines them (single precision, index rule without interpolation).
struct Summary {
  float min = 0, max = 0, mean = 0, median = 0;
  std::vector<float> percentiles;     // in the order asked for
  float coefficient_of_variance = 0;  // percent
};
float percentile(float p, std::span<const float> sorted);
Summary summarize(std::vector<float> samples, std::span<const float> percentiles);

}  // namespace hone
