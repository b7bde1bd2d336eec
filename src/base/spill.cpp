// SPDX-License-Identifier: Apache-2.0
#include "base/spill.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace hone {
namespace {

constexpr size_t kPage = 4096;

struct Mapping {
  void* address;
  size_t size;
  Mapping(void* start, size_t bytes) : address(start), size(bytes) {}
  ~Mapping() { ::munmap(address, size); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
};

bool write_at(int descriptor, std::span<const std::byte> bytes, size_t offset) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += static_cast<size_t>(count);
  }
  return true;
}

}  // namespace

SpillFile::~SpillFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool SpillFile::open() {
  const char* named = std::getenv("TMPDIR");
  // /tmp may lie in memory, /var/tmp does not.
  for (const char* folder : {named, "/var/tmp", "/tmp"}) {
    if (folder == nullptr || descriptor_ >= 0) continue;
    std::string path = std::string(folder) + "/hone.XXXXXX";
    descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
    if (descriptor_ >= 0) ::unlink(path.c_str());
  }
  return descriptor_ >= 0;
}

Blob SpillFile::keep(const Blob& blob) {
  if (blob.size() == 0 || failed_) return blob;
  failed_ = (descriptor_ < 0 && !open()) || !write_at(descriptor_, blob.bytes(), end_);
  if (failed_) return blob;
  void* address = ::mmap(nullptr, blob.size(), PROT_READ, MAP_SHARED, descriptor_, static_cast<off_t>(end_));
  if (address == MAP_FAILED) return blob;
  auto owner = std::make_shared<const Mapping>(address, blob.size());
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(address), blob.size());
  end_ += (blob.size() + kPage - 1) / kPage * kPage;
  return Blob(std::move(owner), bytes);
}

}  // namespace hone
