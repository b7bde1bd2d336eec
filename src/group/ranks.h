// SPDX-License-Identifier: Apache-2.0
//
// Which rank of how many this process is, as the program that started it says in environment variables.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hone {

struct Rank {
  int rank = 0, size = 1;
  int local = 0, local_size = 1;  // of those on this machine
  std::string launcher;           // "torchrun", "mpirun", ...
  std::string job;                // the same for all ranks of one start, and for no other start at the time
  std::string folder = {};        // where they are told to meet; empty: anywhere on this machine
};

/// Null where there is no such variable.
using Variables = std::function<const char*(const char* name)>;

/// Nothing where the process is started alone. Throws Error where the variables contradict each other.
std::optional<Rank> rank_of(const Variables& variables);
/// Of this process.
std::optional<Rank> rank_of_process();

}  // namespace hone
