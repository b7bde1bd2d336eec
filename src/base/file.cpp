// SPDX-License-Identifier: Apache-2.0
//
// Files over the system calls, with errors that name the path and the reason.
#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace hone {
namespace {

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, mode_t mode = 0)
      : value_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  Descriptor(int parent, const std::string& name, int flags)
      : value_(::openat(parent, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW)) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

/// A file under construction beside its final place; removed unless it got there.
class Part {
 public:
  explicit Part(const std::string& path) : name_(fmt::format("{}.{}.part", path, ::getpid())) {}
  ~Part() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  const std::string& name() const { return name_; }
  void rename_to(const std::string& path) {
    HONE_CHECK(::rename(name_.c_str(), path.c_str()) == 0, "cannot rename to {}: {}", path, std::strerror(errno));
    name_.clear();
  }

 private:
  std::string name_;
};

void write_all(int descriptor, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    HONE_CHECK(count >= 0, "cannot write {}: {}", path, std::strerror(errno));
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file(path, O_RDONLY | O_NONBLOCK);  // a pipe without a writer would block
  if (file.get() < 0)
    throw Error(fmt::format("cannot open {}: {}", path, std::strerror(errno)), "check the path and the permissions");
  return map(file.get(), path, false);
}

std::shared_ptr<const MappedFile> MappedFile::open_below(const std::string& directory, const std::string& relative) {
  const std::string hint = "keep the files of a model beside it, as plain files with relative names";
  if (relative.empty() || relative.front() == '/' || relative.find('\0') != std::string::npos ||
      relative.find('\\') != std::string::npos)
    throw Error(fmt::format("the file name '{}' is not a relative path", relative), hint);
  Descriptor parent(directory.empty() ? "." : directory, O_RDONLY | O_DIRECTORY);
  if (parent.get() < 0) throw Error(fmt::format("cannot open the directory {}: {}", directory, std::strerror(errno)));
  const std::vector<std::string_view> components = split(relative, '/');
  for (size_t i = 0; i < components.size(); ++i) {
    if (components[i] == "..") throw Error(fmt::format("the file name '{}' leaves its directory", relative), hint);
    if (components[i].empty() || components[i] == ".") {
      HONE_CHECK(i + 1 < components.size(), "the file name '{}' names a directory", relative);
      continue;
    }
    const bool last = i + 1 == components.size();
    Descriptor next(parent.get(), std::string(components[i]), last ? O_RDONLY | O_NONBLOCK : O_RDONLY | O_DIRECTORY);
    if (next.get() < 0) {
      const int reason = errno;
      const bool link = reason == ELOOP || (reason == ENOTDIR && !last);
      throw Error(fmt::format("cannot open '{}' in {}: {}", relative, directory,
                              link ? "a component is a symbolic link or no directory" : std::strerror(reason)),
                  hint);
    }
    parent = std::move(next);
  }
  return map(parent.get(), directory + "/" + relative, true);
}

std::shared_ptr<const MappedFile> MappedFile::map(int descriptor, const std::string& path, bool lone) {
  struct stat status {};
  HONE_CHECK(::fstat(descriptor, &status) == 0, "cannot examine {}: {}", path, std::strerror(errno));
  HONE_CHECK(S_ISREG(status.st_mode), "{} is not a regular file", path);
  if (lone && status.st_nlink != 1)
    throw Error(fmt::format("{} has other hard links", path), "copy the file instead of linking it");
  const size_t size = static_cast<size_t>(status.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile({}, path));
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  HONE_CHECK(address != MAP_FAILED, "cannot map {} ({} bytes): {}", path, size, std::strerror(errno));
  return std::shared_ptr<const MappedFile>(new MappedFile({static_cast<const std::byte*>(address), size}, path));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::give_back(std::span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes_.data()), asked = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (std::max(begin, asked) + page - 1) / page * page;
  const uintptr_t last = std::min(begin + bytes_.size(), asked + part.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);  // NOLINT
}

std::string read_file(const std::string& path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

void write_file(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  Part part(path);
  const Descriptor file(part.name(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file.get() < 0)
    throw Error(fmt::format("cannot write {}: {}", path, std::strerror(errno)),
                "check that the directory exists and may be written");
  for (const std::span<const std::byte> piece : pieces) write_all(file.get(), piece, path);
  HONE_CHECK(::fsync(file.get()) == 0, "cannot sync {}: {}", path, std::strerror(errno));
  part.rename_to(path);
}

void write_file(const std::string& path, std::string_view text) {
  const std::span<const std::byte> piece = std::as_bytes(std::span(text));
  write_file(path, std::span(&piece, 1));
}

FileLock::FileLock(const std::string& path)
    : descriptor_(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  HONE_CHECK(descriptor_ >= 0, "cannot open the lock file {}.lock: {}", path, std::strerror(errno));
  while (::flock(descriptor_, LOCK_EX) != 0)
    if (errno != EINTR) {
      ::close(descriptor_);
      throw Error(fmt::format("cannot lock {}.lock: {}", path, std::strerror(errno)));
    }
}

FileLock::~FileLock() { ::close(descriptor_); }

}  // namespace hone
