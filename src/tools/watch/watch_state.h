// SPDX-License-Identifier: Apache-2.0
//
// What a watched command has told so far: its phases, the best tactics, the latencies. Times are seconds of one clock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hone {

struct WatchedPhase {
  std::string name;
  size_t depth = 0;
  int steps = 1, done = 0;
  double begun = 0, ended = -1;  // -1: not yet

  bool open() const { return ended < 0; }
};

/// Queries of an engine.
struct WatchedLatency {
  std::string engine;
  std::map<int, int64_t> buckets;  // see latency_bucket()
  int64_t count = 0;
  double best_ms = 0, at_ms = 0;      // at: of the present measurement
  double warm_up_ms = 0, end_ms = 0;  // of the present measurement; end 0: not known
  bool running = false;

  /// In ms, to 2.3 %; 0 where there are none.
  double percentile(double percent) const;
};

class WatchState {
 public:
  /// A line as Watcher writes it. What is not understood is passed over.
  void take(std::string_view line, double now);

  const std::vector<WatchedPhase>& phases() const { return phases_; }
  const std::vector<WatchedLatency>& latencies() const { return latencies_; }
  /// Layers that have times, and what the fastest tactics of all of them take together.
  size_t layers() const { return layers_.size(); }
  double layers_ms() const;
  /// "conv1: cpu.winograd, 0.054 ms, of 8", what was told last; empty: nothing yet.
  const std::string& last_best() const { return last_best_; }
  /// Types and ms of the networks that have run, with --best.
  const std::vector<std::pair<std::string, double>>& networks() const { return networks_; }
  /// Seconds that are left of what is going on; nothing where that cannot be said.
  std::optional<double> left(double now) const;

 private:
  WatchedPhase* open_phase(std::string_view name);

  std::vector<WatchedPhase> phases_;
  std::vector<WatchedLatency> latencies_;
  std::map<std::string, double> layers_;
  std::string last_best_;
  std::vector<std::pair<std::string, double>> networks_;
};

}  // namespace hone
