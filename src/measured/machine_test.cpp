// SPDX-License-Identifier: Apache-2.0
#include "measured/machine.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/folder_testing.h"

namespace hone {
namespace {

/// A folder with the files of a small machine.
class Root {
 public:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    write_file(folder_.file(name), text);
  }
  std::string path() const { return folder_.path(); }

 private:
  TestFolder folder_;
};

TEST(Machine, TellsWhatChanged) {
  const Root root;
  root.write("proc/cpuinfo", "processor : 0\ncpu MHz\t\t: 2000.5\nprocessor : 1\ncpu MHz\t\t: 3000.5\n");
  root.write("proc/loadavg", "0.50 0.40 0.30 1/100 1234\n");
  root.write("proc/stat", "cpu  100 0 50 800 0 0 0 50 0 0\ncpu0 1 2 3\n");
  root.write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "7\n");
  root.write("sys/fs/cgroup/cpu.stat", "usage_usec 5\nthrottled_usec 1000\n");
  const MachineState before = read_machine_state(root.path());
  root.write("proc/stat", "cpu  200 0 50 900 0 0 0 100 7 0\n");
  root.write("proc/loadavg", "1.25 0.40 0.30 1/100 1234\n");
  root.write("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "9\n");
  root.write("sys/fs/cgroup/cpu.stat", "throttled_usec 3500\n");
  const MachineChange change{before, read_machine_state(root.path())};
  EXPECT_DOUBLE_EQ(before.clock_mhz.value(), 2500.5);
  EXPECT_DOUBLE_EQ(change.stolen_percent().value(), 20);  // 50 of 250 ticks
  EXPECT_EQ(change.heat_throttles().value(), 2);
  EXPECT_DOUBLE_EQ(change.quota_throttled_ms().value(), 2.5);
  EXPECT_EQ(change.text(),
            "clock 2500 -> 2500 MHz, load 0.50 -> 1.25, stolen 20.0 %, slowed down by heat 2 times, held back by a "
            "quota 2.5 ms");
}

TEST(Machine, LeavesOutWhatTheSystemDoesNotTell) {
  const Root root;
  root.write("proc/stat", "nothing of the kind\n");
  const MachineState state = read_machine_state(root.path());
  EXPECT_FALSE(state.clock_mhz || state.load || state.stolen_ticks || state.heat_throttles || state.quota_throttled_us);
  EXPECT_EQ((MachineChange{state, state}).text(), "the system tells nothing");
}

}  // namespace
}  // namespace hone
