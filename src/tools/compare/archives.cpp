// SPDX-License-Identifier: Apache-2.0
//
// Several tensors in one file: NumPy's .npz (entries are stored, not packed, so that they can be mapped) and .safetensors.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/file.h"
#include "tools/companion/exit_status.h"
#include "tools/compare/tensor_files.h"
#include "tools/files/npy.h"

namespace hone {
namespace {

void put(std::string& out, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 255u);
}

struct SafeType {
  DType type;
  std::string_view word;
};
constexpr std::array<SafeType, 15> kSafeTypes{{{DType::f64, "F64"},
                                               {DType::f32, "F32"},
                                               {DType::f16, "F16"},
                                               {DType::bf16, "BF16"},
                                               {DType::i64, "I64"},
                                               {DType::i32, "I32"},
                                               {DType::i16, "I16"},
                                               {DType::i8, "I8"},
                                               {DType::u64, "U64"},
                                               {DType::u32, "U32"},
                                               {DType::u16, "U16"},
                                               {DType::u8, "U8"},
                                               {DType::boolean, "BOOL"},
                                               {DType::f8e4m3fn, "F8_E4M3"},
                                               {DType::f8e5m2, "F8_E5M2"}}};

/// The header of a zip entry in front of its bytes, or in the directory behind all of them.
std::string entry_header(const std::string& name, uint32_t checksum, uint64_t size, uint64_t offset, bool directory) {
  std::string out;
  put(out, directory ? 0x02014b50 : 0x04034b50, 4);
  if (directory) put(out, 20, 2);
  put(out, 20, 2);
  put(out, 0, 2);     // no flags
  put(out, 0, 2);     // stored
  put(out, 0, 2);     // no time: the same tensors give the same file
  put(out, 0x21, 2);  // the first day that the format has
  put(out, checksum, 4);
  put(out, size, 4);
  put(out, size, 4);
  put(out, name.size(), 2);
  put(out, 0, 2);
  if (directory) {
    put(out, 0, 2 + 2 + 2 + 4);
    put(out, offset, 4);
  }
  return out + name;
}

Json safetensors_header(const std::string& path, std::span<const std::byte> file, uint64_t& start) {
  const auto wrong = [&](std::string_view why) -> StatusError {
    return {ExitStatus::no_file, fmt::format("{} is no .safetensors file: {}", path, why)};
  };
  if (file.size() < 8) throw wrong("it is too short");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  if (length > file.size() - 8) throw wrong("its header is longer than the file");
  start = 8 + length;
  return parse_json({reinterpret_cast<const char*>(file.data()) + 8, length}, path);
}

}  // namespace

TensorList read_npz(const std::string& path) {
  const auto file = MappedFile::open(path);
  TensorList list;
  for (const ZipEntry& entry : zip_entries(file->bytes())) {
    std::string_view name = entry.name;
    if (!name.ends_with(".npy")) continue;
    name.remove_suffix(4);
    const NpyArray array = parse_npz(file->bytes(), name);
    list.push_back({std::string(name), Tensor(array.dtype, array.dims, Blob::copy(array.bytes))});
  }
  return list;
}

void write_npz(const std::string& path, const TensorList& tensors) {
  std::string out, directory;
  for (const NamedTensor& each : tensors) {
    const std::string bytes = npy_of(each.tensor), name = each.name + ".npy";
    if (out.size() + bytes.size() > 0xfff00000u)
      throw Error("an .npz file of more than 4 GiB is not written", "name a .safetensors file");
    const auto checksum = static_cast<uint32_t>(
        crc32(0, reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<unsigned>(bytes.size())));
    directory += entry_header(name, checksum, bytes.size(), out.size(), true);
    out += entry_header(name, checksum, bytes.size(), 0, false) + bytes;
  }
  const size_t start = out.size();
  out += directory;
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, tensors.size(), 2);
  put(out, tensors.size(), 2);
  put(out, directory.size(), 4);
  put(out, start, 4);
  put(out, 0, 2);
  write_file(path, out);
}

TensorList read_safetensors(const std::string& path) {
  const auto file = MappedFile::open(path);
  uint64_t start = 0;
  const Json header = safetensors_header(path, file->bytes(), start);
  TensorList list;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    with_note(
        [&, &name = name] { return fmt::format("reading {} of {}", name, path); },
        [&, &name = name, &entry = entry] {
          const std::string word = text_member(entry, "dtype");
          const auto type = std::ranges::find(kSafeTypes, word, &SafeType::word);
          if (type == kSafeTypes.end()) throw Error(fmt::format("there is no type {}", word));
          Dims dims;
          int64_t count = 1;
          for (const Json& size : list_member(entry, "shape")) {
            if (!size.is_number_unsigned() || size.get<uint64_t>() > (uint64_t{1} << 40))
              throw Error("a size is no number of elements");
            dims.push_back(size.get<int64_t>());
            if (__builtin_mul_overflow(count, dims.back(), &count)) throw Error("its sizes are too large");
          }
          const Json& place = list_member(entry, "data_offsets");
          if (place.size() != 2 || !place[0].is_number_unsigned() || !place[1].is_number_unsigned())
            throw Error("its offsets are no two numbers");
          const auto from = place[0].get<uint64_t>(), to = place[1].get<uint64_t>();
          if (to < from || to > file->bytes().size() - start ||
              (to - from) / size_of(type->type) != static_cast<uint64_t>(count) ||
              (to - from) % size_of(type->type) != 0)
            throw Error("its bytes do not fit its sizes or the file");
          list.push_back({name, Tensor(type->type, dims, Blob::copy(file->bytes().subspan(start + from, to - from)))});
        });
  }
  return list;
}

void write_safetensors(const std::string& path, const TensorList& tensors) {
  Json header = Json::object();
  uint64_t at = 0;
  for (const NamedTensor& each : tensors) {
    const auto type = std::ranges::find(kSafeTypes, each.tensor.dtype(), &SafeType::type);
    if (type == kSafeTypes.end())
      throw Error(
          fmt::format("{} holds {}, which .safetensors has no word for", each.name, numpy_word(each.tensor.dtype())));
    const uint64_t size = each.tensor.bytes().size();
    header[each.name] = {{"dtype", type->word}, {"shape", each.tensor.dims()}, {"data_offsets", {at, at + size}}};
    at += size;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length;
  put(length, text.size(), 8);
  std::vector<std::span<const std::byte>> pieces{std::as_bytes(std::span(length)), std::as_bytes(std::span(text))};
  for (const NamedTensor& each : tensors) pieces.push_back(each.tensor.bytes());
  write_file(path, pieces);
}

}  // namespace hone
