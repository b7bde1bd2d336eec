// SPDX-License-Identifier: Apache-2.0
//
// Memory that a kernel cannot leave unnoticed: behind its last byte, rounded up to a vector, lies a page that nobody may touch, and
// what is left of the pages around it holds known bytes. A kernel that reads or writes there ends the test, which says who it was.
// For tests only.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace hone {

/// Who runs at present: told when it touches a guard.
inline std::string& guarded_by() {
  static std::string who;
  return who;
}

namespace guarded_detail {

inline void on_fault(int) {
  constexpr std::string_view kText = " reads or writes past an operand\n";
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, guarded_by().data(), guarded_by().size());
  written = write(STDERR_FILENO, kText.data(), kText.size());
  std::signal(SIGSEGV, SIG_DFL);  // and once more, for a debugger
}

}  // namespace guarded_detail

class GuardedMemory {
 public:
  explicit GuardedMemory(size_t bytes) : bytes_(bytes) {
    static const bool told = std::signal(SIGSEGV, guarded_detail::on_fault) != SIG_ERR;
    HONE_ASSERT(told, "no signal handler");
    const size_t room = (bytes + kVector - 1) / kVector * kVector;
    held_ = (room + page() - 1) / page() * page();
    void* mapped = mmap(nullptr, held_ + page(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    HONE_ASSERT(mapped != MAP_FAILED && mprotect(static_cast<std::byte*>(mapped) + held_, page(), PROT_NONE) == 0,
                "no memory of {} bytes with a guard", bytes);
    begin_ = static_cast<std::byte*>(mapped);
    data_ = begin_ + held_ - room;
    std::memset(begin_, kKnown, held_);
  }
  ~GuardedMemory() {
    if (begin_ != nullptr) munmap(begin_, held_ + page());
  }
  GuardedMemory(GuardedMemory&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), data_(other.data_), bytes_(other.bytes_), held_(other.held_) {}
  GuardedMemory& operator=(GuardedMemory&&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  /// Whether the known bytes around it are still there.
  bool intact() const {
    const auto known = [](const std::byte* from, const std::byte* to) {
      return std::all_of(from, to, [](std::byte value) { return value == std::byte{kKnown}; });
    };
    return known(begin_, data_) && known(data_ + bytes_, begin_ + held_);
  }

 private:
  static constexpr size_t kVector = 64;
  static constexpr unsigned char kKnown = 0x5a;
  static size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

  std::byte *begin_ = nullptr, *data_ = nullptr;
  size_t bytes_ = 0, held_ = 0;
};

}  // namespace hone
