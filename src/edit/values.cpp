// SPDX-License-Identifier: Apache-2.0
#include "edit/values.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "onnx/model_file.h"
#include "onnx/tensor_data.h"

namespace hone::edit {
namespace {

onnx::Bytes bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

constexpr std::string_view kNumpyNames[] = {
    "undefined", "float32",    "uint8",         "int8",           "uint16",          "int16",       "int32",
    "int64",     "str",        "bool",          "float16",        "float64",         "uint32",      "uint64",
    "complex64", "complex128", "bfloat16",      "float8_e4m3fn",  "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "uint4",     "int4",       "float4_e2m1fn", "float8_e8m0fnu", "uint2",           "int2"};

int64_t bits_per_element(int64_t type) {
  if (type == 14) return 64;
  if (type == 15) return 128;
  const std::optional<DType> dtype = onnx::dtype_of_onnx(type);
  return dtype && !is_object(*dtype) ? bits_of(*dtype) : 0;
}

}  // namespace

ValueType type_of(const Value& value) {
  const onnx::ValueProto proto = onnx::parse_value(bytes_of(value.bytes));
  ValueType type{proto.elem_type, {}, proto.is_tensor && proto.containers.empty()};
  if (!proto.shape) return type;
  type.sizes.emplace();
  for (const onnx::DimProto& dim : *proto.shape)
    type.sizes->push_back({dim.value && *dim.value >= 0 ? dim.value : std::nullopt, std::string(dim.parameter)});
  return type;
}

ValueType type_of(const Weight& weight) {
  ValueType type{weight.type, std::vector<Size>(), true};
  for (const int64_t dim : weight.dims) type.sizes->push_back({dim, {}});
  return type;
}

Value with_type(Model& model, const Value& value, const ValueType& type) {
  Rope tensor;
  if (type.element != 0) tensor.add_integer(1, type.element);
  if (type.sizes) {
    Rope shape;
    for (const Size& size : *type.sizes) {
      Rope dim;
      if (size.number) dim.add_integer(1, *size.number);
      else if (!size.name.empty()) dim.add_text(2, size.name);
      shape.add_message(1, std::move(dim));
    }
    tensor.add_message(2, std::move(shape));
  }
  const bool declared = type.element != 0 || type.sizes;
  Rope type_message;
  type_message.add_message(1, std::move(tensor));
  const Rest rest = read_fields(value.bytes, [](uint32_t field, std::string_view) { return field == 1 || field == 2; });
  Rope out;
  RestWriter others(rest, out);
  out.add_text(1, value.name);
  if (declared) out.add_message(2, std::move(type_message));
  others.finish();
  return {value.name, model.keep(out.text())};
}

std::string numpy_name(int64_t onnx_type) {
  return onnx_type >= 0 && onnx_type < static_cast<int64_t>(std::size(kNumpyNames))
             ? std::string(kNumpyNames[onnx_type])
             : fmt::format("type {}", onnx_type);
}

std::optional<int64_t> parse_type(std::string_view word) {
  std::string upper(word);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  for (int64_t i = 1; i < static_cast<int64_t>(std::size(kNumpyNames)); ++i)
    if (word == kNumpyNames[i] || onnx::onnx_type_name(i) == upper) return i;
  if (word == "np.float32" || word == "f32" || word == "fp32") return 1;
  if (word == "fp16" || word == "f16") return 10;
  if (word == "bf16") return 16;
  if (const std::optional<DType> dtype = dtype_of_word(word)) return onnx::onnx_type_of(*dtype);
  return std::nullopt;
}

std::string sizes_text(const ValueType& type) {
  if (!type.sizes) return "None";
  std::vector<std::string> parts;
  for (const Size& size : *type.sizes)
    parts.push_back(size.number         ? std::to_string(*size.number)
                    : size.name.empty() ? "-1"
                                        : fmt::format("'{}'", size.name));
  return fmt::format("({}{})", join(parts, ", "), parts.size() == 1 ? "," : "");
}

std::vector<Size> parse_sizes(std::string_view text) {
  std::string_view inner = trim(text);
  if (!inner.empty() && (inner.front() == '[' || inner.front() == '(')) {
    if (inner.back() != ']' && inner.back() != ')')
      throw Error(fmt::format("'{}' is no shape: its bracket is not closed", text), "write it like [1,3,224,224]");
    inner = trim(inner.substr(1, inner.size() - 2));
  }
  std::vector<Size> sizes;
  if (inner.empty()) return sizes;
  const bool crosses =
      inner.find(',') == std::string_view::npos && inner.find_first_not_of("0123456789x-") == std::string_view::npos;
  for (std::string_view part : split(inner, crosses ? 'x' : ',')) {
    part = trim(part);
    if (part.empty()) {
      if (!sizes.empty()) continue;  // "(5,)"
      throw Error(fmt::format("'{}' is no shape", text), "write it like [1,3,224,224]");
    }
    if (part.size() >= 2 && (part.front() == '\'' || part.front() == '"')) part = part.substr(1, part.size() - 2);
    if (const std::optional<int64_t> number = parse_integer(part))
      sizes.push_back({*number < 0 ? std::nullopt : std::optional(*number), {}});
    else sizes.push_back({std::nullopt, std::string(part)});
  }
  return sizes;
}

int64_t element_count(const Weight& weight) {
  for (const int64_t dim : weight.dims) HONE_CHECK(dim >= 0, "{} has the negative size {}", weight.name, dim);
  return elements(weight.dims);
}

int64_t element_bytes(const Weight& weight) { return (element_count(weight) * bits_per_element(weight.type) + 7) / 8; }

bool has_elements(const Weight& weight) {
  if (weight.file) return true;
  bool found = false;
  read_fields(
      weight.bytes,
      [&](uint32_t field, std::string_view bytes) {
        // Others leave elements out by raw data of no bytes.
        found |= !bytes.empty() && ((field >= 4 && field <= 7) || (field >= 9 && field <= 11));
        found |= bytes.empty() && field == 6;  // an empty text
        return true;
      },
      [&](uint32_t field, int64_t) {
        found |= field == 5 || field == 7 || field == 11;
        return true;
      });
  return found || element_count(weight) == 0;
}

Tensor tensor_of(const Model& model, const Weight& weight) {
  HONE_CHECK(has_elements(weight), "the elements of '{}' are not in the model", weight.name);
  // What was added lives in another place than what was read; either stays as long as the tensor.
  const auto owner = std::make_shared<const std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
      model.owner, model.added);
  onnx::TensorProto proto = onnx::parse_tensor(bytes_of(weight.bytes));
  proto.name = weight.name;
  return onnx::ModelData(owner, model.directory).tensor(proto);
}

Weight make_weight(Model& model, const std::string& name, const Tensor& tensor) {
  Weight weight{name, onnx::onnx_type_of(tensor.dtype()), tensor.dims(), {}, {}};
  if (tensor.dtype() == DType::string) {
    Rope out;
    for (const int64_t dim : tensor.dims()) out.add_integer(1, dim);
    out.add_integer(2, weight.type);
    for (const std::string& text : tensor.strings()) out.add_text(6, text);
    out.add_text(8, name);
    weight.bytes = model.keep(out.text());
  } else {
    weight.bytes = model.keep(onnx::encode_tensor(name, tensor));
  }
  return weight;
}

Weight make_weight(Model& model, const std::string& name, int64_t type, const std::vector<int64_t>& dims,
                   const std::string& raw) {
  Rope packed;
  for (const int64_t dim : dims) packed.add_varint(static_cast<uint64_t>(dim));
  Rope out;
  if (!dims.empty()) out.add_message(1, std::move(packed));
  out.add_integer(2, type);
  out.add_text(8, name);
  out.add_message(9, raw);
  return {name, type, dims, model.keep(out.text()), {}};
}

std::string message_without_elements(const Weight& weight) {
  Rope out;
  RestWriter(read_fields(
                 weight.bytes,
                 [](uint32_t field, std::string_view) {
                   return (field >= 4 && field <= 7) || (field >= 9 && field <= 11) || field == 13;
                 },
                 [](uint32_t field, int64_t) { return field == 5 || field == 7 || field == 11 || field == 14; }),
             out)
      .finish();
  return out.text();
}

}  // namespace hone::edit
