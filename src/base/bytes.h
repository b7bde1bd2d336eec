// SPDX-License-Identifier: Apache-2.0
//
// Blob: immutable bytes that are either owned or point into a mapping that they keep alive. Copying is cheap.
// AlignedBuffer: owned, writable, 64-byte aligned memory.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace hone {

inline constexpr size_t kAlignment = 64;

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t size)
      : data_(size == 0 ? nullptr
                        : static_cast<std::byte*>(
                              std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment))),
        size_(size) {
    if (size != 0 && data_ == nullptr) throw std::bad_alloc();
  }
  std::byte* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* pointer) const { std::free(pointer); }
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_ = 0;
};

class Blob {
 public:
  Blob() = default;
  /// View into memory owned by `owner`.
  Blob(std::shared_ptr<const void> owner, std::span<const std::byte> bytes) : owner_(std::move(owner)), bytes_(bytes) {}
  static Blob own(AlignedBuffer buffer) {
    auto owner = std::make_shared<const AlignedBuffer>(std::move(buffer));
    const std::span<const std::byte> bytes(owner->data(), owner->size());
    return Blob(std::move(owner), bytes);
  }
  static Blob copy(std::span<const std::byte> bytes) {
    AlignedBuffer buffer(bytes.size());
    if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
    return own(std::move(buffer));
  }
  static Blob copy(std::string_view text) { return copy(std::as_bytes(std::span(text))); }

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  /// False for a view whose memory somebody else keeps.
  bool owned() const { return owner_ != nullptr; }
  /// Of the memory, for who wants to know whether it is there still.
  std::weak_ptr<const void> owner() const { return owner_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

}  // namespace hone
