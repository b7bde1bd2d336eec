// SPDX-License-Identifier: Apache-2.0
//
// What else went on in the machine while something was measured: clock, load, time stolen by the hypervisor, throttling.
// Read before and after; what the system does not tell is left out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hone {

struct MachineState {
  std::optional<double> clock_mhz;                   // mean over the processors
  std::optional<double> load;                        // runnable processes, mean of the last minute
  std::optional<int64_t> stolen_ticks, total_ticks;  // of all processors since the start of the system
  std::optional<int64_t> heat_throttles;             // times that a core was slowed down by heat
  std::optional<int64_t> quota_throttled_us;         // time that a control group held its processes back
};

/// `root` stands before /proc and /sys; for tests.
MachineState read_machine_state(const std::string& root = "");

/// What changed between two states.
struct MachineChange {
  MachineState before, after;

  std::optional<double> stolen_percent() const;
  std::optional<int64_t> heat_throttles() const;
  std::optional<double> quota_throttled_ms() const;
  /// "clock 2596 -> 2596 MHz, load 0.42 -> 0.51, stolen 0.3 %, slowed down by heat 0 times, held back by a quota 0 ms".
  std::string text() const;
};

}  // namespace hone
