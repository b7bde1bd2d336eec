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

/// Numbers that follow from an input: the first from its first two bytes, the others from the hash of all, so that inputs that
/// differ little ask for quite different alterations.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size)
      : first_(size < 2 ? 0 : static_cast<size_t>(data[0]) << 8 | data[1]),
        whole_(size <= 2),
        state_(hash64(std::as_bytes(std::span(data, size)))) {}
  /// Which sample.
  size_t first() const { return first_; }
  /// Whether nothing but the sample is chosen.
  bool whole() const { return whole_; }
  /// One of 0..limit-1; 0 where there is none.
  size_t below(size_t limit) { return limit == 0 ? 0 : static_cast<size_t>((next() >> 11) % limit); }
  bool one_in(size_t count) { return below(count) == 0; }

 private:
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  size_t first_;
  bool whole_;
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
