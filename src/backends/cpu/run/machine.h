// SPDX-License-Identifier: Apache-2.0
//
// What the processor is and how much of it this process may use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hone::cpu {

struct Machine {
  std::string name;                // "AMD EPYC 9V74"
  int64_t memory_bytes = 0;        // of the machine, or the cgroup's limit when that is lower
  std::string revision;            // "25-17-1": family, model and stepping; "0-0-0" where the system does not say
  int64_t cache_bytes = 0;         // L2 of one core
  int64_t shared_cache_bytes = 0;  // L3; 0: none, or unknown
  double clock_ghz = 0;            // 0: unknown
  int cores = 1;                   // physical cores this process may use: affinity mask and cgroup quota
};

/// `cores`: logical processors, of those that this process may use; empty: all of them. Throws Error for others.
Machine inspect_machine(const std::vector<int>& cores = {});
/// The memory node that all of them are nearest to; -1 where they are of several, or the system does not say.
int memory_node(const std::vector<int>& cores);
/// HONE_THREADS, else the machine's cores.
int default_workers(const Machine& machine);

}  // namespace hone::cpu
