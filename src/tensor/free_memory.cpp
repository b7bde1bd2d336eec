// SPDX-License-Identifier: Apache-2.0
#include "tensor/free_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "base/state_error.h"

namespace hone {
namespace {

constexpr size_t kAsked = 64 << 20;

/// The number behind a word of a file of words and numbers.
std::optional<int64_t> number_of(const std::string& path, std::string_view word) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(word)) continue;
    return std::strtoll(line.c_str() + word.size(), nullptr, 10);
  }
  return std::nullopt;
}

/// Of the kernel's own lines, in KiB.
int64_t of_the_machine(const std::string& root) {
  const std::string path = root + "/proc/meminfo";
  const std::optional<int64_t> available = number_of(path, "MemAvailable:");
  if (!available) return std::numeric_limits<int64_t>::max();
  return (*available + number_of(path, "SwapFree:").value_or(0)) * 1024;
}

/// Pages of files count as used there, though the kernel takes them back.
int64_t of_the_group(const std::string& root) {
  const std::string group = root + "/sys/fs/cgroup/memory.";
  int64_t most = 0, used = 0;
  std::ifstream limit(group + "max"), current(group + "current");
  if (!(limit >> most) || !(current >> used)) return std::numeric_limits<int64_t>::max();  // "max": none
  const int64_t files =
      number_of(group + "stat", "file ").value_or(0) - number_of(group + "stat", "shmem ").value_or(0);
  return std::max<int64_t>(0, most - used + files);
}

void require(size_t bytes, const auto& what) {
  if (bytes <= kAsked) return;
  if (const auto free = static_cast<size_t>(free_memory()); bytes > free)
    throw OutOfMemory(fmt::format("there is no memory for {} of {} bytes: {} are free", what(), bytes, free),
                      "use a smaller batch or smaller shapes");
}

}  // namespace

int64_t free_memory(const std::string& root) { return std::min(of_the_machine(root), of_the_group(root)); }

void require_memory(DType dtype, std::span<const int64_t> dims, size_t bytes_each) {
  require(static_cast<size_t>(checked_multiply(elements(dims), static_cast<int64_t>(bytes_each))),
          [&] { return fmt::format("a tensor {}[{}]", name_of(dtype), join_dims(dims, ",")); });
}

void require_memory(std::string_view what, size_t bytes) {
  require(bytes, [&] { return what; });
}

}  // namespace hone
