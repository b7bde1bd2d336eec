// SPDX-License-Identifier: Apache-2.0
//
// Linux: /proc/cpuinfo, /proc/loadavg, /proc/stat, thermal_throttle of each core, cpu.stat of the control group.
#include "measured/machine.h"

#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"

namespace hone {
namespace {

std::optional<double> mean_clock(const std::string& root) {
  std::ifstream file(root + "/proc/cpuinfo");
  std::vector<double> clocks;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("cpu MHz"))
      if (const auto value = parse_real(trim(std::string_view(line).substr(line.find(':') + 1))))
        clocks.push_back(*value);
  if (clocks.empty()) return std::nullopt;
  return std::accumulate(clocks.begin(), clocks.end(), 0.0) / static_cast<double>(clocks.size());
}

std::optional<double> load(const std::string& root) {
  std::ifstream file(root + "/proc/loadavg");
  double value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

/// The first line of /proc/stat: user nice system idle iowait irq softirq steal; guest time is part of user time.
void read_ticks(const std::string& root, MachineState& state) {
  std::ifstream file(root + "/proc/stat");
  std::string word;
  std::vector<int64_t> ticks(8);
  file >> word;
  for (int64_t& tick : ticks) file >> tick;
  if (!file || word != "cpu") return;
  state.stolen_ticks = ticks[7];
  state.total_ticks = std::accumulate(ticks.begin(), ticks.end(), int64_t{0});
}

std::optional<int64_t> heat_throttles(const std::string& root) {
  std::error_code none;
  std::optional<int64_t> sum;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/sys/devices/system/cpu", none)) {
    std::ifstream file(entry.path() / "thermal_throttle/core_throttle_count");
    if (int64_t count = 0; file >> count) sum = sum.value_or(0) + count;
  }
  return sum;
}

std::optional<int64_t> quota_throttled(const std::string& root) {
  std::ifstream file(root + "/sys/fs/cgroup/cpu.stat");
  std::string word;
  for (int64_t value = 0; file >> word >> value;)
    if (word == "throttled_usec") return value;
  return std::nullopt;
}

template <typename T>
std::optional<T> difference(const std::optional<T>& after, const std::optional<T>& before) {
  return after && before ? std::optional<T>(*after - *before) : std::nullopt;
}

}  // namespace

MachineState read_machine_state(const std::string& root) {
  MachineState state{.clock_mhz = mean_clock(root),
                     .load = load(root),
                     .stolen_ticks = {},
                     .total_ticks = {},
                     .heat_throttles = heat_throttles(root),
                     .quota_throttled_us = quota_throttled(root)};
  read_ticks(root, state);
  return state;
}

std::optional<double> MachineChange::stolen_percent() const {
  const auto stolen = difference(after.stolen_ticks, before.stolen_ticks),
             total = difference(after.total_ticks, before.total_ticks);
  if (!stolen || !total) return std::nullopt;
  return *total > 0 ? 100.0 * static_cast<double>(*stolen) / static_cast<double>(*total) : 0.0;
}

std::optional<int64_t> MachineChange::heat_throttles() const {
  return difference(after.heat_throttles, before.heat_throttles);
}

std::optional<double> MachineChange::quota_throttled_ms() const {
  const auto us = difference(after.quota_throttled_us, before.quota_throttled_us);
  return us ? std::optional(static_cast<double>(*us) / 1000) : std::nullopt;
}

std::string MachineChange::text() const {
  std::vector<std::string> parts;
  if (before.clock_mhz && after.clock_mhz)
    parts.push_back(fmt::format("clock {:.0f} -> {:.0f} MHz", *before.clock_mhz, *after.clock_mhz));
  if (before.load && after.load) parts.push_back(fmt::format("load {:.2f} -> {:.2f}", *before.load, *after.load));
  if (const auto percent = stolen_percent()) parts.push_back(fmt::format("stolen {:.1f} %", *percent));
  if (const auto times = heat_throttles()) parts.push_back(fmt::format("slowed down by heat {} times", *times));
  if (const auto ms = quota_throttled_ms()) parts.push_back(fmt::format("held back by a quota {:g} ms", *ms));
  return parts.empty() ? "the system tells nothing" : join(parts, ", ");
}

}  // namespace hone
