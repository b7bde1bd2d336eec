// SPDX-License-Identifier: Apache-2.0

#include "base/code_names.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <mutex>

#include "base/error.h"

namespace hone {
namespace {

thread_local std::string_view t_name = "generated";

/// A file that is only added to, until the process ends.
class Lines {
 public:
  void open(const std::string& path) {
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file_ < 0) throw Error(fmt::format("{} cannot be written: {}", path, std::strerror(errno)));
    path_ = path;
  }
  bool is_open() const { return file_ >= 0; }
  int file() const { return file_; }
  const std::string& path() const { return path_; }
  /// A profile lacks names where the disk is full; nothing else is lost.
  void add(std::string_view bytes) const {
    [[maybe_unused]] const ssize_t written = ::write(file_, bytes.data(), bytes.size());
  }

 private:
  int file_ = -1;
  std::string path_;
};

struct Files {
  std::mutex mutex;
  Lines map, dump;
  uint64_t index = 0;  // of pieces in the dump
};

/// Never freed: code may be generated while the program ends.
Files& files() {
  static Files& all = *new Files;
  return all;
}
std::atomic<bool> g_asked = false;

// The layout of the Linux kernel's jitdump-specification.txt, version 1.
struct DumpHeader {
  uint32_t magic = 0x4A695444, version = 1, bytes = sizeof(DumpHeader), machine = 62, padding = 0, process = 0;
  uint64_t time = 0, flags = 0;
};
struct LoadRecord {
  uint32_t kind = 0, bytes = 0;
  uint64_t time = 0;
  uint32_t process = 0, thread = 0;
  uint64_t address = 0, code = 0, code_bytes = 0, index = 0;
};

/// perf's clock under -k 1.
uint64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

template <typename T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

void add_to_dump(Files& to, std::string_view name, const void* code, size_t bytes) {
  LoadRecord record;
  record.bytes = static_cast<uint32_t>(sizeof record + name.size() + 1 + bytes);
  record.time = now();
  record.process = static_cast<uint32_t>(getpid());
  record.thread = static_cast<uint32_t>(syscall(SYS_gettid));
  record.address = record.code = reinterpret_cast<uint64_t>(code);
  record.code_bytes = bytes;
  record.index = to.index++;
  std::string whole(bytes_of(record));
  whole.append(name).push_back('\0');
  whole.append(static_cast<const char*>(code), bytes);
  to.dump.add(whole);
}

/// Of one line, and without what would end it.
std::string line_of(std::string_view name) {
  std::string line(name.substr(0, 500));
  std::ranges::replace_if(
      line, [](char c) { return c == '\n' || c == '\0'; }, ' ');
  return line;
}

}  // namespace

CodeName::CodeName(std::string_view name) : outer_(t_name) { t_name = name; }
CodeName::~CodeName() { t_name = outer_; }

std::string write_perf_map() {
  Files& all = files();
  const std::lock_guard lock(all.mutex);
  if (!all.map.is_open()) all.map.open(fmt::format("/tmp/perf-{}.map", getpid()));
  g_asked = true;
  return all.map.path();
}

std::string write_jit_dump(const std::string& folder) {
  Files& all = files();
  const std::lock_guard lock(all.mutex);
  if (all.dump.is_open()) return all.dump.path();
  Lines dump;
  dump.open(fmt::format("{}/jit-{}.dump", folder, getpid()));
  DumpHeader header;
  header.process = static_cast<uint32_t>(getpid());
  header.time = now();
  dump.add(bytes_of(header));
  // perf finds the file by this mapping, which it sees being made.
  if (mmap(nullptr, static_cast<size_t>(sysconf(_SC_PAGESIZE)), PROT_READ | PROT_EXEC, MAP_PRIVATE, dump.file(), 0) ==
      MAP_FAILED)
    throw Error(fmt::format("{} cannot be mapped as code: {}", dump.path(), std::strerror(errno)),
                "its file system may forbid programs (noexec); name another folder");
  all.dump = std::move(dump);
  g_asked = true;
  return all.dump.path();
}

void announce_code(const void* code, size_t bytes) {
  if (!g_asked.load(std::memory_order_relaxed)) return;
  Files& all = files();
  const std::lock_guard lock(all.mutex);
  const std::string name = line_of(t_name);
  if (all.map.is_open()) all.map.add(fmt::format("{:x} {:x} {}\n", reinterpret_cast<uint64_t>(code), bytes, name));
  if (all.dump.is_open()) add_to_dump(all, name, code, bytes);
}

}  // namespace hone
