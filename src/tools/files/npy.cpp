// SPDX-License-Identifier: Apache-2.0
#include "tools/files/npy.h"

#include <algorithm>
#include <vector>

#include "base/data_limits.h"
#include "base/error.h"
#include "base/text.h"

namespace hone {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kLongestHeader = uint64_t{1} << 20;

struct TypeWord {
  DType dtype;
  std::string_view word;
};
constexpr TypeWord kTypes[] = {{DType::f32, "<f4"}, {DType::f16, "<f2"},     {DType::f64, "<f8"}, {DType::i8, "|i1"},
                               {DType::u8, "|u1"},  {DType::boolean, "|b1"}, {DType::i16, "<i2"}, {DType::u16, "<u2"},
                               {DType::i32, "<i4"}, {DType::u32, "<u4"},     {DType::i64, "<i8"}, {DType::u64, "<u8"}};

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

/// `read` copies bytes of a file of `size` bytes.
template <typename Read>
NpyHeader read_header(uint64_t size, const Read& read) {
  const auto text_at = [&](uint64_t at, uint64_t count) {
    HONE_CHECK(at <= size && size - at >= count, "the file is cut short");
    std::string text(count, '\0');
    read(at, std::as_writable_bytes(std::span(text)));
    return text;
  };
  const auto number_at = [&](uint64_t at, uint64_t count) {
    uint64_t value = 0;
    const std::string bytes = text_at(at, count);  // the least significant first
    for (auto c = bytes.rbegin(); c != bytes.rend(); ++c) value = value << 8 | static_cast<unsigned char>(*c);
    return value;
  };
  HONE_CHECK(size >= kMagic.size() && text_at(0, kMagic.size()) == kMagic, "it is no .npy file");
  const uint64_t version = number_at(6, 1), width = version == 1 ? 2 : 4;
  HONE_CHECK(version >= 1 && version <= 3, "version {} of the format is not known", version);
  const uint64_t length = number_at(8, width), start = 8 + width + length;
  HONE_CHECK(start <= size, "the file is cut short");
  HONE_CHECK(length <= kLongestHeader, "a header of {} bytes", length);
  const std::string header = text_at(8 + width, length);
  if (value_of(header, "fortran_order").starts_with("True"))
    throw Error("the array is stored column by column", "write it with numpy.ascontiguousarray(array)");
  NpyHeader result{read_type(value_of(header, "descr")), read_dims(value_of(header, "shape")), start, 0};
  result.bytes = byte_count(result.dtype, result.dims);
  HONE_CHECK(size - start >= result.bytes, "the file is cut short: the shape {} of {} takes {} bytes, {} are there",
             join_dims(result.dims), name_of(result.dtype), result.bytes, size - start);
  return result;
}

ZipStream entry_called(std::span<const std::byte> archive, std::string_view name) {
  std::vector<std::string_view> names;
  for (const ZipEntry& entry : zip_entries(archive)) {
    names.push_back(entry.name.substr(0, entry.name.size() - (entry.name.ends_with(".npy") ? 4 : 0)));
    if (names.back() == name) return ZipStream(archive, entry);
  }
  throw Error(fmt::format("the archive has no array called {}", name), "it holds " + join(names, ", "));
}

}  // namespace

NpyReader::NpyReader(std::span<const std::byte> file)
    : file_(file),
      header_(read_header(file.size(), [&](uint64_t at, std::span<std::byte> to) { read_file(at, to); })) {}

NpyReader::NpyReader(std::span<const std::byte> archive, std::string_view name)
    : entry_(entry_called(archive, name)),
      header_(read_header(entry_->size(), [&](uint64_t at, std::span<std::byte> to) { read_file(at, to); })) {}

void NpyReader::read_file(uint64_t at, std::span<std::byte> to) {
  if (entry_) entry_->read(at, to);
  else std::ranges::copy(file_.subspan(at, to.size()), to.begin());
}

void NpyReader::read(uint64_t at, std::span<std::byte> to) {
  HONE_ASSERT(at <= header_.bytes && header_.bytes - at >= to.size(), "bytes behind the end of an array");
  read_file(header_.start + at, to);
}

void NpyReader::finish() {
  if (entry_) entry_->finish();
}

NpyArray parse_npy(std::span<const std::byte> file) {
  const NpyReader reader(file);
  const NpyHeader& header = reader.header();
  return {header.dtype, header.dims, file.subspan(header.start, header.bytes)};
}

NpyArray parse_npz(std::span<const std::byte> file, std::string_view name) {
  NpyReader reader(file, name);
  const NpyHeader& header = reader.header();
  HONE_CHECK(header.bytes <= std::max<uint64_t>(kMaxInflatedBytes, file.size()),
             "the array {} has {} bytes; a compressed one may have {}", name, header.bytes, kMaxInflatedBytes);
  AlignedBuffer memory(header.bytes);
  reader.read(0, {memory.data(), memory.size()});
  reader.finish();
  NpyArray array{header.dtype, header.dims, {}, Blob::own(std::move(memory))};
  array.bytes = array.memory.bytes();
  return array;
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
