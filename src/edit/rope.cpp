// SPDX-License-Identifier: Apache-2.0
#include "edit/rope.h"

namespace hone::edit {
namespace {

constexpr size_t kLong = 4096;
constexpr uint32_t kVarint = 0, kLengthDelimited = 2;

}  // namespace

std::string& Rope::tail() {
  if (pieces_.empty() || !pieces_.back().far.empty()) pieces_.emplace_back();
  return pieces_.back().near;
}

void Rope::add(std::string_view bytes) {
  size_ += bytes.size();
  if (bytes.size() < kLong) tail() += bytes;
  else pieces_.push_back({bytes, {}});
}

void Rope::add(Rope child) {
  size_ += child.size_;
  for (Piece& piece : child.pieces_)
    if (piece.far.empty() && piece.near.size() < kLong) tail() += piece.near;
    else pieces_.push_back(std::move(piece));
}

void Rope::add_varint(uint64_t value) {
  char bytes[10];
  size_t count = 0;
  for (; value >= 0x80; value >>= 7) bytes[count++] = static_cast<char>(value | 0x80);
  bytes[count++] = static_cast<char>(value);
  add(std::string_view(bytes, count));
}

void Rope::add_tag(uint32_t field, uint32_t wire_type) { add_varint(uint64_t{field} << 3 | wire_type); }

void Rope::add_text(uint32_t field, std::string_view text) { add_message(field, text); }

void Rope::add_integer(uint32_t field, int64_t value) {
  add_tag(field, kVarint);
  add_varint(static_cast<uint64_t>(value));
}

void Rope::add_message(uint32_t field, std::string_view message) {
  add_tag(field, kLengthDelimited);
  add_varint(message.size());
  add(message);
}

void Rope::add_message(uint32_t field, Rope message) {
  add_tag(field, kLengthDelimited);
  add_varint(message.size());
  add(std::move(message));
}

std::vector<std::span<const std::byte>> Rope::pieces() const {
  std::vector<std::span<const std::byte>> all;
  for (const Piece& piece : pieces_) {
    const std::string_view bytes = piece.far.empty() ? std::string_view(piece.near) : piece.far;
    all.push_back(std::as_bytes(std::span(bytes.data(), bytes.size())));
  }
  return all;
}

std::string Rope::text() const {
  std::string all;
  all.reserve(size_);
  for (const Piece& piece : pieces_) all += piece.far.empty() ? std::string_view(piece.near) : piece.far;
  return all;
}

}  // namespace hone::edit
