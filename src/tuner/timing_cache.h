// SPDX-License-Identifier: Apache-2.0
//
// TimingCache: measured times by key (problem x tactic x device x versions), kept as JSON lines: diffable, mergeable.
// Which of two entries of a key a merge keeps follows from the two alone, so caches come to the same in whatever order, and however
// often, they are merged. Concurrent builds may share a file: it is locked, read again and merged.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hone {

struct Timing {
  double ms = 0, spread = 0;  // median and relative spread of the samples; ms < 0: rejected, see note
  int samples = 0;
  std::string note;  // why a candidate was rejected, empty otherwise
};

/// Whether a merge keeps `a` and not `b`: a measurement rather than a rejection, then more samples, less spread, the smaller text.
bool is_preferred(const Timing& a, const Timing& b);

class TimingCache {
 public:
  /// Counts look-ups that hit. Null when absent.
  const Timing* find(const std::string& key) const;
  void put(const std::string& key, const Timing& timing);
  /// Of entries on both sides the preferred one stays.
  void merge(const TimingCache& other);
  size_t entries() const { return entries_.size(); }
  size_t hits() const { return hits_; }
  size_t misses() const { return misses_; }

  const std::map<std::string, Timing>& all() const { return entries_; }

  /// JSON lines, sorted by key. `parse` skips damaged lines and lines of another version and counts them in `skipped`.
  std::string text() const;
  static TimingCache parse(std::string_view text, size_t* skipped = nullptr);

 private:
  void keep_preferred(const std::string& key, const Timing& timing);

  std::map<std::string, Timing> entries_;
  mutable size_t hits_ = 0, misses_ = 0;
};

/// Reads the file; a missing file throws Error.
TimingCache load_timing_cache(const std::string& path, size_t* bytes = nullptr, size_t* skipped = nullptr);
/// Locks, merges what the file holds by now, writes atomically. Returns the number of bytes written.
size_t save_timing_cache(const TimingCache& cache, const std::string& path);

}  // namespace hone
