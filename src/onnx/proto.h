// SPDX-License-Identifier: Apache-2.0
//
// The parts of ONNX's protobuf messages that Hone reads, as plain structs. Texts and tensor payloads are views into the
// model's bytes, so reading a model touches only its structure. Field numbers are those of onnx.proto.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace hone::onnx {

using Bytes = std::span<const std::byte>;

struct SparseParts;

struct TensorProto {
  std::string_view name;
  std::vector<int64_t> dims;
  int64_t data_type = 0;
  std::optional<Bytes> raw;
  std::vector<Bytes> floats, int32s, int64s, doubles, uint64s;  // runs as they stand in the file
  std::vector<std::string_view> strings;
  std::vector<std::pair<std::string_view, std::string_view>> external;
  bool is_external = false;
  bool has_segment = false;
  std::shared_ptr<const SparseParts> sparse;  // then it has no data of its own
};

/// The elements of a tensor that are not zero, and where they are.
struct SparseParts {
  TensorProto values, places;
};

struct GraphProto;

enum class AttributeType {
  none,
  real,
  integer,
  text,
  tensor,
  graph,
  reals,
  integers,
  texts,
  tensors,
  graphs,
  type,
  other
};

struct ValueProto;

struct AttributeProto {
  std::string_view name, reference;  // reference: the enclosing function's attribute whose value this takes
  AttributeType type = AttributeType::none;
  double real = 0;
  int64_t integer = 0;
  std::string_view text;
  std::vector<double> reals;
  std::vector<int64_t> integers;
  std::vector<std::string_view> texts;
  std::optional<TensorProto> tensor;
  std::shared_ptr<const GraphProto> graph;
  std::shared_ptr<const ValueProto> value_type;  // a type, as a value without name
};

struct NodeProto {
  std::string_view name, op_type, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeProto> attributes;
};

struct DimProto {
  std::optional<int64_t> value;
  std::string_view parameter;
};

struct ValueProto {
  std::string_view name;
  int64_t elem_type = 0;                       // 0: not given
  std::optional<std::vector<DimProto>> shape;  // nothing: rank not given
  bool is_tensor = true;                       // false: sparse tensor
  std::vector<DType> containers;               // sequences, optionals and maps around the tensor, outermost first
  int64_t map_key = 0;                         // of the innermost map
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<ValueProto> inputs, outputs;
  std::vector<Bytes> value_types;  // of inner tensors, as parse_value() reads them
};

using OpsetVersions = std::map<std::string, int, std::less<>>;  // by domain; "ai.onnx" is ""

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeProto> defaults;
  std::vector<NodeProto> nodes;
  OpsetVersions opsets;
};

struct ModelProto {
  int64_t ir_version = 0, model_version = 0;
  std::string_view producer_name, producer_version, domain, doc_string;
  OpsetVersions opsets;
  std::optional<GraphProto> graph;
  std::vector<FunctionProto> functions;
};

/// Throws Error when the bytes are not an ONNX model. The result views `bytes`.
ModelProto parse_model(Bytes bytes);
/// The same for messages inside of a model.
TensorProto parse_tensor(Bytes bytes);
ValueProto parse_value(Bytes bytes);
AttributeProto parse_attribute(Bytes bytes);
/// What reading a file of so many bytes says when its encoding is damaged: an Error.
[[noreturn]] void throw_not_onnx(std::string_view why, size_t bytes);

/// "" for the two spellings of the default domain.
std::string_view canonical_domain(std::string_view domain);
/// ONNX's element type numbers; nothing for those that Hone has no storage for.
std::optional<DType> dtype_of_onnx(int64_t data_type);
/// The number of a type that tensors have.
int64_t onnx_type_of(DType dtype);
std::string onnx_type_name(int64_t data_type);

}  // namespace hone::onnx
