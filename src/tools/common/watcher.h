// SPDX-License-Identifier: Apache-2.0
//
// What a command tells whoever watches it (`hone watch`): phases of a build, the best tactics so far, latencies as they are measured. Each
// is a line of JSON in a pipe. Nothing ever waits: what the pipe has no room for is left out.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "hone/tools.h"

namespace hone {

class Watcher {
 public:
  /// From now on this process is watched at the other end of a pipe.
  static void set_process(int descriptor);
  /// Null: nobody watches.
  static Watcher* of_process();

  void begin(std::string_view phase, const char* parent, int steps);
  void step(std::string_view phase, int done);
  void end(std::string_view phase);
  void timed(const hone_timed& best);
  /// Queries follow, of the engine that is called so.
  void measuring(const std::string& engine, double warm_up_ms, double duration_ms);
  /// Told in batches; from any thread.
  void query(const hone_query_times& times);
  void measured();

 private:
  explicit Watcher(int descriptor) : descriptor_(descriptor) {}
  void tell_batch();
  void write_line(const std::string& line) const;

  int descriptor_;
  std::mutex mutex_;  // guards what follows
  std::map<int, int> buckets_;
  float told_at_ = 0, at_ = 0, best_ = 0;
};

/// Latencies fall into buckets of a hundred to a decade: from 10^(bucket/100) ms on.
int latency_bucket(double ms);
double bucket_start(int bucket);

}  // namespace hone
