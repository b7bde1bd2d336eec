// SPDX-License-Identifier: Apache-2.0
//
// Everything comes from text files of the kernel, which may be absent in containers: what is missing keeps its default.
#include "backends/cpu/run/machine.h"

#include <sched.h>
#include <unistd.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"

namespace hone::cpu {
namespace {

constexpr int kMostNodes = 64;

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string cpuinfo(std::string_view field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && trim(std::string_view(line).substr(0, colon)) == field)
      return std::string(trim(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

/// "1024K" or "32M" as bytes.
int64_t parse_size(std::string_view text) {
  if (text.empty()) return 0;
  const int64_t unit = text.back() == 'K' ? 1024 : text.back() == 'M' ? 1024 * 1024 : 1;
  if (unit != 1) text.remove_suffix(1);
  return parse_integer(text).value_or(0) * unit;
}

std::optional<int64_t> cache_bytes(std::string_view level) {
  const std::string base = "/sys/devices/system/cpu/cpu0/cache/index";
  for (int index = 0; index < 8; ++index) {
    const std::string entry = base + std::to_string(index);
    if (read_line(entry + "/level") == level) return parse_size(read_line(entry + "/size"));
  }
  return std::nullopt;
}

/// Hypervisors give several generations one name; these numbers they pass on.
std::string revision() {
  const auto number = [](std::string_view field) { return parse_integer(cpuinfo(field)).value_or(0); };
  return fmt::format("{}-{}-{}", number("cpu family"), number("model"), number("stepping"));
}

std::vector<int> allowed_processors() {
  std::vector<int> result;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) result.push_back(i);
  if (result.empty()) result.push_back(0);
  return result;
}

/// Two hyperthreads of one core share its vector units: they count once.
int physical_cores(const std::vector<int>& processors) {
  std::set<std::pair<std::string, std::string>> cores;
  for (const int processor : processors) {
    const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/";
    const std::string core = read_line(topology + "core_id");
    if (core.empty()) return static_cast<int>(processors.size());
    cores.insert({read_line(topology + "physical_package_id"), core});
  }
  return static_cast<int>(cores.size());
}

/// Cores' worth of time that the cgroup grants (version 2, then 1), rounded up; the largest number without a limit.
int quota_cores() {
  double quota = 0, period = 0;
  std::istringstream limits(read_line("/sys/fs/cgroup/cpu.max"));
  if (!(limits >> quota >> period)) {
    quota = parse_real(read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")).value_or(-1);
    period = parse_real(read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us")).value_or(0);
  }
  if (quota <= 0 || period <= 0) return std::numeric_limits<int>::max();
  return std::max(1, static_cast<int>(std::ceil(quota / period)));
}

int64_t memory_limit() {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  const std::optional<int64_t> group = parse_integer(read_line("/sys/fs/cgroup/memory.max"));
  return group && *group > 0 ? std::min(machine, *group) : machine;
}

}  // namespace

int memory_node(const std::vector<int>& cores) {
  std::set<int> nodes;
  for (const int core : cores)
    for (int node = 0; node < kMostNodes; ++node)
      if (exists(fmt::format("/sys/devices/system/cpu/cpu{}/node{}", core, node))) nodes.insert(node);
  return nodes.size() == 1 ? *nodes.begin() : -1;
}

Machine inspect_machine(const std::vector<int>& cores) {
  const std::vector<int> allowed = allowed_processors();
  for (const int core : cores)
    if (std::ranges::find(allowed, core) == allowed.end())
      throw Error(fmt::format("this process may not use processor {}", core),
                  fmt::format("it may use {}", fmt::join(allowed, ",")));
  Machine machine;
  machine.name = cpuinfo("model name");
  if (machine.name.empty()) machine.name = "unknown processor";
  machine.memory_bytes = memory_limit();
  machine.revision = revision();
  machine.cache_bytes = cache_bytes("2").value_or(1024 * 1024);
  machine.shared_cache_bytes = cache_bytes("3").value_or(0);
  machine.clock_ghz = parse_real(cpuinfo("cpu MHz")).value_or(0) / 1000;
  machine.cores = std::min(physical_cores(cores.empty() ? allowed : cores), quota_cores());
  return machine;
}

int default_workers(const Machine& machine) {
  const int asked = env_int("HONE_THREADS").value_or(0);
  HONE_CHECK(asked <= 1024, "HONE_THREADS={} is more threads than any machine has", asked);
  return asked > 0 ? asked : machine.cores;
}

}  // namespace hone::cpu
