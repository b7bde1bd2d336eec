// SPDX-License-Identifier: Apache-2.0
//
// Integers, reals and texts are JSON's own; lists are objects of one member that names their kind, because an empty list
// would not tell. Reals that JSON cannot write and bytes of tensors are texts.
#include "device/code.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/checked.h"
#include "base/text.h"

namespace hone {
namespace {

using Json = nlohmann::json;

[[noreturn]] void damaged(std::string_view what) {
  throw Error(fmt::format("a kernel in the plan is damaged: {}", what), "build the plan again from the ONNX model");
}

Json encode_real(double value) {
  if (std::isfinite(value)) return value;
  return Json{{"real", exact(value)}};
}

std::string to_hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<int>(byte) >> 4];
    text += kDigits[static_cast<int>(byte) & 15];
  }
  return text;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  damaged("a tensor has a digit that is not hexadecimal");
}

AlignedBuffer from_hex(std::string_view text) {
  AlignedBuffer bytes(text.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes.data()[i] = static_cast<std::byte>(digit(text[2 * i]) * 16 + digit(text[2 * i + 1]));
  return bytes;
}

struct Encoder {
  Json operator()(int64_t value) const { return value; }
  Json operator()(double value) const { return encode_real(value); }
  Json operator()(const std::string& value) const { return value; }
  Json operator()(const std::vector<int64_t>& values) const { return {{"integers", values}}; }
  Json operator()(const std::vector<std::string>& values) const { return {{"texts", values}}; }
  Json operator()(const std::vector<double>& values) const {
    Json list = Json::array();
    for (const double value : values) list.push_back(encode_real(value));
    return {{"reals", std::move(list)}};
  }
  Json operator()(const Tensor& tensor) const {
    HONE_ASSERT(tensor.dtype() != DType::string, "a string tensor cannot stand in kernel code");
    return {{"tensor",
             {{"dtype", std::string(name_of(tensor.dtype()))},
              {"dims", tensor.dims()},
              {"bytes", to_hex(tensor.bytes())}}}};
  }
};

const Json& member(const Json& object, const char* name) {
  if (!object.is_object() || !object.contains(name)) damaged(fmt::format("{} is missing", name));
  return object[name];
}

int64_t decode_integer(const Json& json) {
  if (!json.is_number_integer()) damaged("a number is not an integer");
  if (json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX) damaged("an integer is too large");
  return json.get<int64_t>();
}

std::string decode_text(const Json& json) {
  if (!json.is_string()) damaged("a text is missing");
  return json.get<std::string>();
}

double decode_real(const Json& json) {
  if (json.is_number_float()) return json.get<double>();
  const std::optional<double> value = parse_real(decode_text(member(json, "real")));
  if (!value) damaged("a number is not real");
  return *value;
}

template <typename T>
std::vector<T> decode_list(const Json& json, T (*decode)(const Json&)) {
  if (!json.is_array()) damaged("a list is missing");
  std::vector<T> values;
  for (const Json& item : json) values.push_back(decode(item));
  return values;
}

Tensor decode_tensor(const Json& json) {
  const std::optional<DType> dtype = parse_dtype(decode_text(member(json, "dtype")));
  if (!dtype || *dtype == DType::string) damaged("a tensor's type is unknown");
  Dims dims = decode_list<int64_t>(member(json, "dims"), decode_integer);
  const std::string text = decode_text(member(json, "bytes"));
  require_sizes(dims);
  if (2 * byte_size(*dtype, dims) != static_cast<int64_t>(text.size()))
    damaged("a tensor's bytes do not match its sizes");
  return Tensor(*dtype, std::move(dims), Blob::own(from_hex(text)));
}

AttrValue decode_value(const Json& json) {
  if (json.is_number_integer()) return decode_integer(json);
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_object() || json.size() != 1) damaged("a parameter is of no known kind");
  const auto item = json.begin();
  if (item.key() == "real") return decode_real(json);
  if (item.key() == "integers") return decode_list<int64_t>(*item, decode_integer);
  if (item.key() == "reals") return decode_list<double>(*item, decode_real);
  if (item.key() == "texts") return decode_list<std::string>(*item, decode_text);
  if (item.key() == "tensor") return decode_tensor(*item);
  damaged("a parameter is of no known kind");
}

}  // namespace

Blob encode_code(std::string_view family, const Attrs& attrs, int64_t version) {
  Json values = Json::object();
  for (const auto& [name, value] : attrs) values[name] = std::visit(Encoder{}, value);
  return Blob::copy(Json{{"family", std::string(family)}, {"version", version}, {"attrs", std::move(values)}}.dump(
      -1, ' ', false, Json::error_handler_t::replace));
}

KernelCode decode_code(const Blob& code) {
  const Json json = Json::parse(code.text(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) damaged("its parameters are not JSON");
  KernelCode result{decode_text(member(json, "family")), {}, decode_integer(member(json, "version"))};
  const Json& attrs = member(json, "attrs");
  if (!attrs.is_object()) damaged("its parameters are missing");
  for (const auto& [name, value] : attrs.items()) result.attrs.set(name, decode_value(value));
  return result;
}

void require_version(const KernelCode& code, std::string_view source, std::optional<int64_t> version) {
  if (!version)
    throw Error(fmt::format("the plan uses the kernel {}.{}, which this version does not have", source, code.family),
                "rebuild it from the ONNX model");
  if (code.version != *version)
    throw Error(fmt::format("the plan uses version {} of the kernel {}.{}, this program has version {}", code.version,
                            source, code.family, *version),
                "rebuild it from the ONNX model");
}

void require_constant(const KernelShapes& shapes, int64_t place, DType dtype, std::span<const int64_t> dims) {
  require_sizes(dims);
  if (!shapes.constant_bytes) return;
  const auto given = static_cast<int64_t>(shapes.constant_bytes->size());
  HONE_CHECK(place >= 0 && place < given, "a kernel in the plan reads constant {} of {}", place, given);
  const size_t bytes = (*shapes.constant_bytes)[static_cast<size_t>(place)];
  HONE_CHECK(byte_size(dtype, dims) <= static_cast<int64_t>(bytes),
             "a kernel in the plan reads {}[{}] from a constant of {} bytes", name_of(dtype), join_dims(dims, ","),
             bytes);
}

void require_constants(const KernelShapes& shapes, const std::vector<ConstantSpec>& specs) {
  if (!shapes.constant_bytes) return;
  const std::vector<size_t>& given = *shapes.constant_bytes;
  HONE_CHECK(given.size() == specs.size(), "a kernel in the plan reads {} constants, its step brings {}", specs.size(),
             given.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    require_sizes(specs[i].dims);
    const auto bytes = static_cast<size_t>(byte_size(specs[i].dtype, specs[i].dims));
    HONE_CHECK(given[i] == bytes, "a kernel in the plan reads {}[{}] from constant {}, which has {} bytes",
               name_of(specs[i].dtype), join_dims(specs[i].dims, ","), i, given[i]);
  }
}

ConcreteType constant_operand(const KernelShapes& shapes, int64_t place, DType dtype, Dims dims) {
  HONE_CHECK(!is_object(dtype), "a kernel in the plan reads a constant of type {}", name_of(dtype));
  require_constant(shapes, place, dtype, dims);
  return {dtype, std::move(dims), Layout::linear};
}

}  // namespace hone
