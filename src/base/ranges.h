// SPDX-License-Identifier: Apache-2.0
//
// Named ranges on the time lines of NVIDIA's profilers (NVTX, domain "hone"): phases of a build, tactics that are timed, queries, layers.
// Without a profiler attached a label is empty and a range one test. The header loads what a profiler injects by itself, so nothing
// is linked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace hone {

/// What a profiler shows of a layer beside its name.
struct RangePayload {
  uint64_t bytes = 0, flops = 0, tactic = 0;
};

/// A name that is known to the profiler, for ranges that come again and again.
class RangeLabel {
 public:
  RangeLabel() = default;
  explicit RangeLabel(const std::string& text, std::optional<RangePayload> payload = {});

 private:
  friend class NamedRange;
  void* text_ = nullptr;  // null: nobody watches
  std::shared_ptr<const RangePayload> payload_;
};

/// On this thread, from construction to destruction; ranges nest.
class NamedRange {
 public:
  explicit NamedRange(const RangeLabel& label) : open_(label.text_ != nullptr) {
    if (open_) begin(label);
  }
  explicit NamedRange(const std::string& text) : NamedRange(RangeLabel(text)) {}
  ~NamedRange() {
    if (open_) end();
  }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;

 private:
  static void begin(const RangeLabel& label);
  static void end();

  bool open_;
};

}  // namespace hone
