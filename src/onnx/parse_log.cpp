// SPDX-License-Identifier: Apache-2.0
//
// Wording of the parser's verbose lines: a size that is not a number prints as -1.
#include "onnx/parse_log.h"

#include "base/text.h"

namespace hone::onnx {
namespace {

std::string dims_text(const Shape& shape) {
  std::vector<std::string> parts;
  for (const Dim& dim : shape) parts.push_back(dim.is_constant() ? dim.text() : "-1");
  return "(" + join(parts, ", ") + ")";
}

struct TypeNames {
  std::string_view network, onnx;
};
TypeNames names_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return {"float32", "FLOAT"};
    case DType::f16: return {"float16", "HALF"};
    case DType::bf16: return {"bfloat16", "BFLOAT16"};
    case DType::f64: return {"float64", "DOUBLE"};
    case DType::i8: return {"int8", "INT8"};
    case DType::u8: return {"uint8", "UINT8"};
    case DType::i16: return {"int16", "INT16"};
    case DType::u16: return {"uint16", "UINT16"};
    case DType::i32: return {"int32", "INT32"};
    case DType::u32: return {"uint32", "UINT32"};
    case DType::i64: return {"int64", "INT64"};
    case DType::u64: return {"uint64", "UINT64"};
    case DType::boolean: return {"bool", "BOOL"};
    case DType::f8e4m3fn: return {"float8e4m3fn", "FLOAT8E4M3FN"};
    case DType::f8e4m3fnuz: return {"float8e4m3fnuz", "FLOAT8E4M3FNUZ"};
    case DType::f8e5m2: return {"float8e5m2", "FLOAT8E5M2"};
    case DType::f8e5m2fnuz: return {"float8e5m2fnuz", "FLOAT8E5M2FNUZ"};
    case DType::f8e8m0: return {"float8e8m0", "FLOAT8E8M0"};
    case DType::f4e2m1: return {"float4e2m1", "FLOAT4E2M1"};
    case DType::i4: return {"int4", "INT4"};
    case DType::u4: return {"uint4", "UINT4"};
    case DType::i2: return {"int2", "INT2"};
    case DType::u2: return {"uint2", "UINT2"};
    case DType::sequence: return {"sequence", "SEQUENCE"};
    case DType::optional: return {"optional", "OPTIONAL"};
    case DType::map: return {"map", "MAP"};
    case DType::string: break;
  }
  return {"string", "STRING"};
}

std::string list_text(const std::vector<std::string_view>& names, const std::vector<Value*>& values) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    const Value* value = i < values.size() ? values[i] : nullptr;
    if (value == nullptr) text += "[optional input, not set], ";
    else
      text += fmt::format("[{} -> {}[{}]], ", names[i], dims_text(value->type.shape), names_of(value->type.dtype).onnx);
  }
  return text;
}

}  // namespace

void ParseLog::network_input(const Value& value) const {
  if (enabled_)
    log_.verbose("Adding network input: {} with dtype: {}, dimensions: {}", value.name,
                 names_of(value.type.dtype).network, dims_text(value.type.shape));
}
void ParseLog::initializer(std::string_view name) const {
  if (enabled_) log_.verbose("Importing initializer: {}", name);
}
void ParseLog::node_begins(std::string_view node, std::string_view op) const {
  if (enabled_) log_.verbose("Parsing node: {} [{}]", node, op);
}
void ParseLog::searching(std::string_view input) const {
  if (enabled_) log_.verbose("Searching for input: {}", input);
}
void ParseLog::node_inputs(std::string_view node, std::string_view op, const std::vector<std::string_view>& names,
                           const std::vector<Value*>& values) const {
  if (enabled_) log_.verbose("{} [{}] inputs: {}", node, op, list_text(names, values));
}
void ParseLog::layer(std::string_view node) const {
  if (enabled_) log_.verbose("Registering layer: {} for ONNX node: {}", node, node);
}
void ParseLog::node_outputs(std::string_view node, std::string_view op, const std::vector<std::string_view>& names,
                            const std::vector<Value*>& values) const {
  if (enabled_) log_.verbose("{} [{}] outputs: {}", node, op, list_text(names, values));
}
void ParseLog::network_output(std::string_view name) const {
  if (enabled_) log_.verbose("Marking {} as output: {}", name, name);
}

}  // namespace hone::onnx
