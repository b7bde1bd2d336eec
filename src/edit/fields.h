// SPDX-License-Identifier: Apache-2.0
//
// Fields of protobuf messages as they stand in a file. What a reader does not know it keeps as such, and the writer puts it back where
// it stood by its number: a file that any protobuf library wrote comes out byte by byte the same.
#pragma once

#include <algorithm>
#include <protozero/pbf_reader.hpp>
#include <string_view>
#include <vector>

#include "edit/rope.h"

namespace hone::edit {

/// A field with its tag, and its number.
struct Kept {
  uint32_t number;
  std::string_view whole;
};
using Rest = std::vector<Kept>;

/// Writes what was kept among what is written anew, in order of the numbers.
class RestWriter {
 public:
  RestWriter(const Rest& rest, Rope& out) : rest_(rest), out_(out) {}
  /// What stands at this number or before.
  void up_to(uint32_t number) {
    for (; at_ < rest_.size() && rest_[at_].number <= number; ++at_) out_.add(rest_[at_].whole);
  }
  void finish() { up_to(~0U); }

 private:
  const Rest& rest_;
  Rope& out_;
  size_t at_ = 0;
};

/// Calls take(number, payload) for each field that has a length and integer(number, value) for each number; what neither takes is kept, in
/// order of the numbers.
template <typename Take, typename Integer>
Rest read_fields(std::string_view bytes, const Take& take, const Integer& integer) {
  Rest rest;
  protozero::pbf_reader message(bytes.data(), bytes.size());
  for (;;) {
    const char* const start = message.data().data();
    if (!message.next()) break;
    const uint32_t number = message.tag();
    bool taken = false;
    if (message.wire_type() == protozero::pbf_wire_type::length_delimited) {
      const protozero::data_view view = message.get_view();
      taken = take(number, std::string_view(view.data(), view.size()));
    } else if (message.wire_type() == protozero::pbf_wire_type::varint) {
      taken = integer(number, message.get_int64());
    } else {
      message.skip();
    }
    if (!taken) rest.push_back({number, {start, static_cast<size_t>(message.data().data() - start)}});
  }
  std::stable_sort(rest.begin(), rest.end(), [](const Kept& a, const Kept& b) { return a.number < b.number; });
  return rest;
}

template <typename Take>
Rest read_fields(std::string_view bytes, const Take& take) {
  return read_fields(bytes, take, [](uint32_t, int64_t) { return false; });
}

}  // namespace hone::edit
