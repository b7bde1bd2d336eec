// SPDX-License-Identifier: Apache-2.0
#include "tools/common/npy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct TypeWord {
  DType dtype;
  std::string_view word;
};
constexpr TypeWord kTypes[] = {{DType::f32, "<f4"}, {DType::f16, "<f2"},     {DType::f64, "<f8"}, {DType::i8, "|i1"},
                               {DType::u8, "|u1"},  {DType::boolean, "|b1"}, {DType::i16, "<i2"}, {DType::u16, "<u2"},
                               {DType::i32, "<i4"}, {DType::u32, "<u4"},     {DType::i64, "<i8"}, {DType::u64, "<u8"}};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Little-endian.
uint64_t number_at(std::span<const std::byte> bytes, size_t at, size_t size) {
  HONE_CHECK(at <= bytes.size() && bytes.size() - at >= size, "the file is cut short");
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= static_cast<uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

std::span<const std::byte> piece(std::span<const std::byte> bytes, uint64_t at, uint64_t size) {
  HONE_CHECK(at <= bytes.size() && bytes.size() - at >= size, "the file is cut short");
  return bytes.subspan(at, size);
}

/// What follows "'key':" in the header's dictionary.
std::string_view value_of(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  HONE_CHECK(at != std::string_view::npos, "the header has no '{}'", key);
  return trim(header.substr(at + key.size() + 3));
}

DType read_type(std::string_view text) {
  HONE_CHECK(text.size() > 5 && text[0] == '\'', "the type is no simple one");
  const std::string word(text.substr(1, text.find('\'', 1) - 1));
  for (const TypeWord& type : kTypes)
    if (type.word == word || (word.size() == 3 && word[0] == '|' && type.word.substr(1) == word.substr(1)))
      return type.dtype;
  throw Error(fmt::format("arrays of type {} cannot be bound", word), "convert it: array.astype('float32')");
}

Dims read_dims(std::string_view text) {
  const size_t end = text.find(')');
  HONE_CHECK(!text.empty() && text[0] == '(' && end != std::string_view::npos, "the shape is no tuple");
  Dims dims;
  for (const std::string_view word : split(text.substr(1, end - 1), ',')) {
    if (trim(word).empty()) continue;
    const auto size = parse_integer(trim(word));
    HONE_CHECK(size && *size >= 0, "the shape holds '{}'", word);
    dims.push_back(*size);
  }
  return dims;
}

uint64_t byte_count(DType dtype, const Dims& dims) {
  uint64_t bytes = static_cast<uint64_t>(byte_size(dtype, Dims{1}));
  for (const int64_t size : dims)
    HONE_CHECK(!__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes), "the shape {} is too large",
               join_dims(dims));
  return bytes;
}

struct Entry {
  std::string_view name;
  uint64_t method = 0, size = 0, offset = 0;
};

/// The central directory, which stands at the end of an archive.
std::vector<Entry> entries_of(std::span<const std::byte> file) {
  const size_t at = text_of(file).rfind("PK\5\6");
  HONE_CHECK(at != std::string_view::npos, "it is no zip archive");
  (void)piece(file, at, 22);  // its last record, whole
  const uint64_t count = number_at(file, at + 10, 2);
  uint64_t next = number_at(file, at + 16, 4);
  std::vector<Entry> entries;
  for (uint64_t i = 0; i < count; ++i) {
    HONE_CHECK(text_of(piece(file, next, 4)) == "PK\1\2", "the directory of the archive is damaged");
    const uint64_t name = number_at(file, next + 28, 2), extra = number_at(file, next + 30, 2),
                   comment = number_at(file, next + 32, 2);
    Entry entry{text_of(piece(file, next + 46, name)), number_at(file, next + 10, 2), number_at(file, next + 20, 4),
                number_at(file, next + 42, 4)};
    if (entry.name.ends_with(".npy")) entry.name.remove_suffix(4);
    entries.push_back(entry);
    next += 46 + name + extra + comment;
  }
  return entries;
}

}  // namespace

NpyArray parse_npy(std::span<const std::byte> file) {
  HONE_CHECK(text_of(file).starts_with(kMagic), "it is no .npy file");
  const uint64_t version = number_at(file, 6, 1), width = version == 1 ? 2 : 4;
  HONE_CHECK(version >= 1 && version <= 3, "version {} of the format is not known", version);
  const uint64_t length = number_at(file, 8, width), start = 8 + width + length;
  const std::string_view header = text_of(piece(file, 8 + width, length));
  if (value_of(header, "fortran_order").starts_with("True"))
    throw Error("the array is stored column by column", "write it with numpy.ascontiguousarray(array)");
  NpyArray array{read_type(value_of(header, "descr")), read_dims(value_of(header, "shape")), {}};
  array.bytes = piece(file, start, byte_count(array.dtype, array.dims));
  return array;
}

NpyArray parse_npz(std::span<const std::byte> file, std::string_view name) {
  const std::vector<Entry> entries = entries_of(file);
  std::vector<std::string> names;
  for (const Entry& entry : entries) {
    names.emplace_back(entry.name);
    if (entry.name != name) continue;
    if (entry.method != 0)
      throw Error(fmt::format("the array {} is compressed", name),
                  "write the archive with numpy.savez instead of numpy.savez_compressed");
    HONE_CHECK(text_of(piece(file, entry.offset, 4)) == "PK\3\4", "the archive is damaged");
    const uint64_t skipped = 30 + number_at(file, entry.offset + 26, 2) + number_at(file, entry.offset + 28, 2);
    return parse_npy(piece(file, entry.offset + skipped, entry.size));
  }
  throw Error(fmt::format("the archive has no array called {}", name), "it holds " + join(names, ", "));
}

std::string npy_text(DType dtype, const Dims& dims, std::span<const std::byte> bytes) {
  std::string_view word = "<u2";
  for (const TypeWord& type : kTypes)
    if (type.dtype == dtype) word = type.word;
  std::string shape;
  for (const int64_t size : dims) shape += fmt::format("{}, ", size);
  if (dims.size() > 1) shape.resize(shape.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", word,
                                   dims.size() == 1 ? std::string(trim(shape)) : shape);
  constexpr size_t kPrefix = 10, kMultiple = 64;
  header.append(kMultiple - (kPrefix + header.size() + 1) % kMultiple, ' ');
  header += '\n';
  std::string text = std::string(kMagic) + '\1' + '\0' + static_cast<char>(header.size() & 0xff) +
                     static_cast<char>(header.size() >> 8) + header;
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text;
}

}  // namespace hone
