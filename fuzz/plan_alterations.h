// SPDX-License-Identifier: Apache-2.0
//
// A plan file in pieces that can be altered where it matters, in numbers, names and lists, and put together again with right
// checksums: what a malicious writer would make.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "tensor/json.h"

namespace hone::fuzz {

/// Numbers out of an input's bytes and, behind their end, out of their hash.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size)
      : data_(data), size_(size), state_(hash64(std::as_bytes(std::span(data, size)))) {}
  /// One of 0..limit-1.
  size_t below(size_t limit) {
    uint64_t value = 0;
    if (at_ + 2 <= size_) value = static_cast<uint64_t>(data_[at_]) << 8 | data_[at_ + 1], at_ += 2;
    else value = next() >> 11;
    return limit == 0 ? 0 : static_cast<size_t>(value % limit);
  }
  bool one_in(size_t count) { return below(count) == 0; }
  /// Whether there is nothing to choose but the sample.
  bool whole() const { return size_ == 2; }

 private:
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  const uint8_t* data_;
  size_t size_, at_ = 0;
  uint64_t state_;
};

struct PlanPieces {
  Json manifest;                      // with its table of sections left out
  std::vector<std::string> sections;  // in the order of their numbers

  std::string file() const;
};

PlanPieces take_apart(std::string_view file);
/// One to four changes.
void alter(PlanPieces& plan, Choices& choices);

}  // namespace hone::fuzz
