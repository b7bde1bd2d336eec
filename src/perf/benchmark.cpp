// SPDX-License-Identifier: Apache-2.0
//
// The loop. Two slots per stream, as the original's double buffering: in every turn a query is issued into the free slot and
// the other slot's query is collected, so the clock that decides about warm-up and the end lags one turn behind. With
// exposed transfers there is one slot and no lag.
#include "perf/benchmark.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "runtime/ranks.h"

namespace hone {
namespace {

using QueryObserver = std::function<void(const Trace&)>;

void sleep_ms(double milliseconds) {
  if (milliseconds > 0) std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

/// One inference stream of the loop: its queries in flight.
class Slots {
 public:
  Slots(Query& query, size_t depth, const QueryObserver& ended) : query_(query), ended_(ended), issued_(depth) {}

  void issue(double origin_ms) {
    query_.issue(turn_ % issued_.size(), origin_ms);
    issued_[turn_ % issued_.size()] = uint8_t{true};
  }
  /// The start of compute of the collected query, or nothing.
  std::optional<float> collect(std::vector<Trace>& traces) {
    ++turn_;
    return collect(turn_ % issued_.size(), traces);
  }
  void collect_all(std::vector<Trace>& traces) {
    for (size_t slot = 0; slot < issued_.size(); ++slot) collect(slot, traces);
  }

 private:
  std::optional<float> collect(size_t slot, std::vector<Trace>& traces) {
    if (!std::exchange(issued_[slot], uint8_t{false})) return std::nullopt;
    traces.push_back(query_.collect(slot));
    if (ended_) ended_(traces.back());
    return traces.back().compute_start;
  }

  Query& query_;
  const QueryObserver& ended_;
  std::vector<uint8_t> issued_;
  size_t turn_ = 0;
};

/// One host thread with all its streams.
std::vector<Trace> run_loop(std::span<Query* const> queries, const PerfOptions& options, double origin_ms,
                            const QueryObserver& ended) {
  std::vector<Slots> streams;
  for (Query* query : queries) streams.emplace_back(*query, options.expose_dma ? 1 : Query::kInFlight, ended);
  const auto warm_up = static_cast<float>(options.warm_up_ms);
  const float end = options.duration_s == -1 ? std::numeric_limits<float>::max()
                                             : static_cast<float>(options.duration_s * 1000) + warm_up;
  std::vector<Trace> traces;
  float clock = 0;
  int64_t skipped = 0;
  const Engine& engine = queries.front()->context().engine();
  const std::shared_ptr<Group> group = group_of(engine.plan(), engine.device());
  const auto go_on = [&](int64_t turn) {
    const bool more = turn < options.iterations + skipped || clock < end;
    return group ? group->exchange(uint64_t{more}).front() != 0 : more;  // no rank by its own clock
  };
  for (int64_t turn = 0; go_on(turn); ++turn) {
    for (Slots& stream : streams) stream.issue(origin_ms);
    for (Slots& stream : streams) clock = std::max(clock, stream.collect(traces).value_or(0));
    if (clock < warm_up) {
      if (clock != 0) ++skipped;
      continue;
    }
    sleep_ms(options.idle_ms);
  }
  for (Slots& stream : streams) stream.collect_all(traces);
  for (Query* query : queries) query->context().wait();  // says what went wrong with other ranks
  return traces;
}

std::vector<Trace> run_threads(std::span<Query* const> queries, const PerfOptions& options, double origin_ms,
                               const QueryObserver& ended) {
  std::vector<std::vector<Trace>> parts(queries.size());
  std::vector<std::exception_ptr> failures(queries.size());
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < queries.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        parts[i] = run_loop(queries.subspan(i, 1), options, origin_ms, ended);
      } catch (const std::exception&) {
        failures[i] = std::current_exception();
      }
    });
  threads.clear();  // joins
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  std::vector<Trace> traces;
  for (const std::vector<Trace>& part : parts) traces.insert(traces.end(), part.begin(), part.end());
  return traces;
}

}  // namespace

std::vector<Trace> run_benchmark(std::span<Query* const> queries, const PerfOptions& options,
                                 const QueryObserver& ended) {
  sleep_ms(options.sleep_ms);
  const double origin_ms = now_ms();
  // Where a query is done when it has been issued, streams overlap only in threads of their own.
  const bool threads = (options.threads || !queries.front()->asynchronous()) && queries.size() > 1;
  std::vector<Trace> traces =
      threads ? run_threads(queries, options, origin_ms, ended) : run_loop(queries, options, origin_ms, ended);
  std::ranges::stable_sort(traces, {}, &Trace::h2d_start);
  return traces;
}

}  // namespace hone
