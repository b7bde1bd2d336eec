// SPDX-License-Identifier: Apache-2.0
#include "tools/common/watcher.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <nlohmann/json.hpp>

namespace hone {
namespace {

using Json = nlohmann::ordered_json;

constexpr float kBatchMs = 100;
constexpr size_t kNameBytes = 200, kBuckets = 200;  // so that a line is written whole or not at all (PIPE_BUF)

std::unique_ptr<Watcher>& process_watcher() {
  static std::unique_ptr<Watcher> watcher;
  return watcher;
}

std::string shortened(std::string_view text) { return std::string(text.substr(0, kNameBytes)); }

std::string text_of(const Json& event) { return event.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

int latency_bucket(double ms) { return static_cast<int>(std::floor(100 * std::log10(std::max(ms, 1e-7)))); }
double bucket_start(int bucket) { return std::pow(10, bucket / 100.0); }

void Watcher::set_process(int descriptor) { process_watcher().reset(new Watcher(descriptor)); }
Watcher* Watcher::of_process() { return process_watcher().get(); }

void Watcher::write_line(const std::string& line) const {
  if (line.size() > PIPE_BUF) return;
  [[maybe_unused]] const ssize_t written = write(descriptor_, line.data(), line.size());
}

void Watcher::begin(std::string_view phase, const char* parent, int steps) {
  write_line(text_of({{"begin", shortened(phase)}, {"parent", parent == nullptr ? "" : parent}, {"steps", steps}}));
}

void Watcher::step(std::string_view phase, int done) {
  write_line(text_of({{"step", shortened(phase)}, {"done", done}}));
}

void Watcher::end(std::string_view phase) { write_line(text_of({{"end", shortened(phase)}})); }

void Watcher::timed(const hone_timed& best) {
  write_line(text_of({{"best", shortened(best.layer == nullptr ? "" : best.layer)},
                      {"fastest", shortened(best.fastest)},
                      {"ms", best.ms},
                      {"candidates", best.candidates}}));
}

void Watcher::measuring(const std::string& engine, double warm_up_ms, double duration_ms) {
  const std::lock_guard lock(mutex_);
  buckets_.clear();
  told_at_ = at_ = best_ = 0;
  write_line(text_of({{"measuring", shortened(engine)}, {"warmUpMs", warm_up_ms}, {"durationMs", duration_ms}}));
}

void Watcher::query(const hone_query_times& times) {
  const std::lock_guard lock(mutex_);
  const float latency = times.input_end - times.input_start + times.compute_end - times.compute_start +
                        times.output_end - times.output_start;
  ++buckets_[latency_bucket(double{latency})];
  best_ = best_ == 0 ? latency : std::min(best_, latency);
  at_ = std::max({at_, times.compute_end, times.output_end});
  if (at_ - told_at_ >= kBatchMs || buckets_.size() >= kBuckets) tell_batch();
}

void Watcher::tell_batch() {
  Json buckets = Json::array();
  for (const auto& [bucket, count] : buckets_) buckets.push_back({bucket, count});
  write_line(text_of({{"queries", std::move(buckets)}, {"atMs", at_}, {"bestMs", best_}}));
  buckets_.clear();
  told_at_ = at_;
}

void Watcher::measured() {
  const std::lock_guard lock(mutex_);
  if (!buckets_.empty()) tell_batch();
  write_line(text_of({{"measured", true}}));
}

}  // namespace hone
