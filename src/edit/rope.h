// SPDX-License-Identifier: Apache-2.0
//
// A message under construction, as pieces: what is long stays where it lies (in the mapped file), what is short is copied. So a model
// with gigabytes of weights is written without a second copy of it in memory.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone::edit {

class Rope {
 public:
  Rope() = default;
  Rope(Rope&&) = default;
  Rope& operator=(Rope&&) = default;

  /// Bytes that live until the message is written.
  void add(std::string_view bytes);
  void add(Rope child);
  void add_tag(uint32_t field, uint32_t wire_type);
  void add_varint(uint64_t value);
  void add_text(uint32_t field, std::string_view text);
  void add_integer(uint32_t field, int64_t value);
  void add_message(uint32_t field, std::string_view message);
  void add_message(uint32_t field, Rope message);

  size_t size() const { return size_; }
  std::vector<std::span<const std::byte>> pieces() const;
  std::string text() const;

 private:
  struct Piece {
    std::string_view far;  // where it is not empty
    std::string near;
  };
  std::string& tail();

  std::deque<Piece> pieces_;
  size_t size_ = 0;
};

}  // namespace hone::edit
