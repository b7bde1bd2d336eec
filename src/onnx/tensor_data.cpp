// SPDX-License-Identifier: Apache-2.0
//
// Decoding of tensors. Every count and offset comes from the file and is checked before it is used.
#include "onnx/tensor_data.h"

#include <algorithm>

#include <cstring>

#include "base/checked.h"
#include "base/limits.h"
#include "base/text.h"
#include "tensor/sparse.h"

namespace hone::onnx {
namespace {

template <typename To>
To convert(uint64_t bits) {
  // Half precision travels as its bits in int32_data.
  if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat>) {
    To value;
    value.bits = static_cast<uint16_t>(bits);
    return value;
  } else if constexpr (std::is_same_v<To, bool>) {
    return bits != 0;
  } else {
    return static_cast<To>(bits);
  }
}

uint64_t next_varint(const std::byte*& at, const std::byte* end) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    HONE_CHECK(at != end, "its data end within a number");
    const auto byte = static_cast<uint64_t>(*at++);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw Error("its data hold a number of more than ten bytes");
}

template <typename To>
void decode_varints(const std::vector<Bytes>& runs, std::span<To> out) {
  size_t count = 0;
  for (const Bytes run : runs)
    for (const std::byte *at = run.data(), *end = at + run.size(); at != end; ++count) {
      const uint64_t bits = next_varint(at, end);
      HONE_CHECK(count < out.size(), "it holds more than the {} elements of its sizes", out.size());
      out[count] = convert<To>(bits);
    }
  HONE_CHECK(count == out.size(), "it holds {} elements but its sizes need {}", count, out.size());
}

void copy_fixed(const std::vector<Bytes>& runs, std::byte* out, size_t size) {
  size_t held = 0;
  for (const Bytes run : runs) {
    HONE_CHECK(run.size() <= size - held, "it holds more than the {} bytes of its sizes", size);
    if (!run.empty()) std::memcpy(out + held, run.data(), run.size());
    held += run.size();
  }
  HONE_CHECK(held == size, "it holds {} bytes but its sizes need {}", held, size);
}

Tensor view_raw(const TensorProto& proto, DType dtype, Bytes raw, std::shared_ptr<const void> owner,
                WeightPlaces places);

/// Elements that the runs can hold at most: a guard before memory is taken.
size_t run_bytes(const std::vector<Bytes>& runs) {
  size_t total = 0;
  for (const Bytes run : runs) total += run.size();
  return total;
}

Tensor decode_typed(const TensorProto& proto, DType dtype) {
  const std::vector<Bytes>& runs = dtype == DType::f32                          ? proto.floats
                                   : dtype == DType::f64                        ? proto.doubles
                                   : dtype == DType::i64                        ? proto.int64s
                                   : dtype == DType::u64 || dtype == DType::u32 ? proto.uint64s
                                                                                : proto.int32s;
  const int64_t count = elements(proto.dims);
  HONE_CHECK(static_cast<uint64_t>(count) <= run_bytes(runs), "it holds fewer elements than the {} of its sizes",
             count);
  TensorBuilder builder(dtype, proto.dims);
  visit(dtype, [&]<typename T>() {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
      copy_fixed(runs, builder.bytes(), builder.data<T>().size_bytes());
    else decode_varints<T>(runs, builder.data<T>());
  });
  return builder.finish();
}

Tensor decode_strings(const TensorProto& proto) {
  HONE_CHECK(elements(proto.dims) == static_cast<int64_t>(proto.strings.size()),
             "it holds {} strings but its sizes need {}", proto.strings.size(), elements(proto.dims));
  return Tensor::of_strings(proto.dims, {proto.strings.begin(), proto.strings.end()});
}

/// Several elements to a byte, the first in the lowest bits; the last byte may be filled up.
Tensor unpack(const TensorProto& proto, DType dtype, Bytes packed) {
  const int64_t count = elements(proto.dims);
  const int bits = bits_of(dtype), per_byte = 8 / bits;
  HONE_CHECK(static_cast<int64_t>(packed.size()) == (count + per_byte - 1) / per_byte,
             "{}[{}] needs {} bytes but has {}", name_of(dtype), join_dims(proto.dims, ","),
             (count + per_byte - 1) / per_byte, packed.size());
  TensorBuilder builder(dtype, proto.dims);
  const std::span<uint8_t> codes = builder.codes();
  for (int64_t i = 0; i < count; ++i) {
    const auto byte = static_cast<uint8_t>(packed[static_cast<size_t>(i / per_byte)]);
    const auto code = static_cast<uint8_t>((byte >> (i % per_byte * bits)) & ((1 << bits) - 1));
    codes[static_cast<size_t>(i)] = is_integer(dtype) ? float_to_small(dtype, small_to_float(dtype, code)) : code;
  }
  return builder.finish();
}

/// Small kinds stand in int32_data, one byte (of one or several elements) per number.
Tensor decode_small(const TensorProto& proto, DType dtype) {
  const int64_t count = elements(proto.dims), per_byte = 8 / bits_of(dtype);
  HONE_CHECK(static_cast<uint64_t>(count / per_byte) <= run_bytes(proto.int32s),
             "it holds fewer elements than the {} of its sizes", count);
  std::vector<uint8_t> bytes(static_cast<size_t>((count + per_byte - 1) / per_byte));
  decode_varints<uint8_t>(proto.int32s, bytes);
  return view_raw(proto, dtype, std::as_bytes(std::span(bytes)), nullptr, WeightPlaces::aligned);
}

/// Some writers call any byte but 0 true; C++ knows 1 alone.
Tensor truth_of(const TensorProto& proto, Bytes raw) {
  TensorBuilder builder(DType::boolean, proto.dims);
  std::ranges::transform(raw, builder.data<bool>().begin(), [](std::byte byte) { return byte != std::byte{0}; });
  return builder.finish();
}

constexpr size_t kLargeWeight = 64 << 10;

Tensor view_raw(const TensorProto& proto, DType dtype, Bytes raw, std::shared_ptr<const void> owner,
                WeightPlaces places) {
  const int64_t expected = byte_size(dtype, proto.dims);
  if (bits_of(dtype) < 8) return unpack(proto, dtype, raw);
  HONE_CHECK(static_cast<uint64_t>(expected) == raw.size(), "{}[{}] needs {} bytes but has {}", name_of(dtype),
             join_dims(proto.dims, ","), expected, raw.size());
  // Protobuf aligns nothing; reading a float across its alignment is not defined.
  if (dtype == DType::boolean &&
      std::ranges::any_of(raw, [](std::byte byte) { return std::to_integer<int>(byte) > 1; }))
    return truth_of(proto, raw);
  const bool stays = reinterpret_cast<uintptr_t>(raw.data()) % size_of(dtype) == 0 ||
                     (places == WeightPlaces::in_file && is_float(dtype) && raw.size() >= kLargeWeight);
  return Tensor(dtype, proto.dims, stays && owner != nullptr ? Blob(std::move(owner), raw) : Blob::copy(raw));
}

/// The file's pages behind a copy are not needed: a model whose weights lie askew would be in memory twice.
Tensor without_pages(Tensor tensor, Bytes raw, const MappedFile* file) {
  if (file != nullptr && raw.size() >= kLargeWeight && tensor.bytes().data() != raw.data()) file->give_back(raw);
  return tensor;
}

int64_t external_number(std::string_view text, std::string_view key) {
  const std::optional<int64_t> value = parse_integer(text);
  HONE_CHECK(value && *value >= 0, "the {} of its external data, '{}', is not a size", key, text);
  return *value;
}

}  // namespace

std::pair<Bytes, std::shared_ptr<const MappedFile>> ModelData::external(const TensorProto& proto) {
  std::string_view location;
  int64_t offset = 0;
  std::optional<int64_t> length;
  for (const auto& [key, value] : proto.external) {  // other keys (checksum, …) carry nothing that is needed
    if (key == "location") location = value;
    else if (key == "offset") offset = external_number(value, key);
    else if (key == "length") length = external_number(value, key);
  }
  HONE_CHECK(!location.empty(), "its external data have no location");
  if (directory_.empty())
    throw Error(fmt::format("its data are in the file '{}', but the model was not read from a directory", location),
                "import the model from a file");
  auto at = files_.find(location);
  if (at == files_.end())
    at = files_.emplace(std::string(location), MappedFile::open_below(directory_, std::string(location))).first;
  const Bytes all = at->second->bytes();
  const auto size = static_cast<int64_t>(all.size());
  HONE_CHECK(offset <= size, "its external data begin at byte {} of '{}', which has only {}", offset, location, size);
  const int64_t count = length.value_or(size - offset);
  HONE_CHECK(count <= size - offset, "its external data end {} bytes behind the end of '{}'", count - (size - offset),
             location);
  return {all.subspan(static_cast<size_t>(offset), static_cast<size_t>(count)), at->second};
}

Tensor ModelData::tensor(const TensorProto& proto) {
  return with_note(
      [&] { return fmt::format("reading tensor '{}'", proto.name); },
      [&] {
        const std::optional<DType> dtype = dtype_of_onnx(proto.data_type);
        if (!dtype)
          throw Error(fmt::format("its element type {} is not supported", onnx_type_name(proto.data_type)),
                      "convert it to a type of 8 bits or more, e.g. FLOAT16");
        HONE_CHECK(!proto.has_segment, "it is split into segments, which is not supported");
        HONE_CHECK(proto.dims.size() <= kMaxRank, "it has {} axes; tensors may have {}", proto.dims.size(), kMaxRank);
        for (const int64_t dim : proto.dims) HONE_CHECK(dim >= 0, "it has the negative size {}", dim);
        if (proto.sparse != nullptr)
          return dense("it", tensor(proto.sparse->values), tensor(proto.sparse->places),
                       Dims(proto.dims.begin(), proto.dims.end()));
        if (*dtype == DType::string) return decode_strings(proto);
        if (proto.is_external) {
          const auto [bytes, file] = external(proto);
          return without_pages(view_raw(proto, *dtype, bytes, file, places_), bytes, file.get());
        }
        if (proto.raw)
          return without_pages(view_raw(proto, *dtype, *proto.raw, owner_, places_), *proto.raw, file_.get());
        return is_small(*dtype) ? decode_small(proto, *dtype) : decode_typed(proto, *dtype);
      });
}

}  // namespace hone::onnx
