// SPDX-License-Identifier: Apache-2.0
//
// The wire reader: one function per message over protozero. A field of an unexpected wire type is skipped like an unknown
// one; what is missing is found by whoever needs it. Nesting is bounded, so that the stack is.
#include "onnx/proto.h"

#include <protozero/pbf_reader.hpp>

#include "base/error.h"
#include "base/limits.h"

namespace hone::onnx {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::string_view kNotOnnxHint =
    "give a file that was exported to ONNX; `python -m onnx.checker` examines one";

bool is_bytes(const pbf_reader& field) { return field.wire_type() == pbf_wire_type::length_delimited; }
bool is_varint(const pbf_reader& field) { return field.wire_type() == pbf_wire_type::varint; }

/// The readers below consume the field when its wire type fits and skip it otherwise.
void read_text(pbf_reader& field, std::string_view& out) {
  if (!is_bytes(field)) return field.skip();
  const protozero::data_view view = field.get_view();
  out = {view.data(), view.size()};
}

/// The same for what names nodes, tensors, operators and the like.
void read_name(pbf_reader& field, std::string_view& out) {
  read_text(field, out);
  if (out.size() > kMaxNameBytes)
    throw Error(fmt::format("a name of {} bytes begins with '{}'; names may have {}", out.size(), out.substr(0, 40),
                            kMaxNameBytes),
                "shorten the names of the model");
}

Bytes view_bytes(pbf_reader& field) {
  const protozero::data_view view = field.get_view();
  return std::as_bytes(std::span(view.data(), view.size()));
}

void read_integer(pbf_reader& field, int64_t& out) {
  if (!is_varint(field)) return field.skip();
  out = field.get_int64();
}

void add_text(pbf_reader& field, std::vector<std::string_view>& out) {
  if (!is_bytes(field)) return field.skip();
  read_text(field, out.emplace_back());
}

void add_name(pbf_reader& field, std::vector<std::string_view>& out) {
  if (!is_bytes(field)) return field.skip();
  read_name(field, out.emplace_back());
}

void add_integers(pbf_reader& field, std::vector<int64_t>& out) {
  if (is_varint(field)) out.push_back(field.get_int64());
  else if (is_bytes(field))
    for (const int64_t value : field.get_packed_int64()) out.push_back(value);
  else field.skip();
}

void add_floats(pbf_reader& field, std::vector<double>& out) {
  if (field.wire_type() == pbf_wire_type::fixed32) out.push_back(field.get_float());
  else if (is_bytes(field))
    for (const float value : field.get_packed_float()) out.push_back(value);
  else field.skip();
}

/// Packed runs only, as every writer of tensors makes them, and lone elements as runs of one.
void add_run(pbf_reader& field, std::vector<Bytes>& out) {
  if (is_bytes(field)) {
    out.push_back(view_bytes(field));
    return;
  }
  const char* const start = field.data().data();
  field.skip();
  out.push_back(std::as_bytes(std::span(start, static_cast<size_t>(field.data().data() - start))));
}

template <typename Read>
void each_message(pbf_reader& field, const Read& read) {
  if (is_bytes(field)) read(field.get_message());
  else field.skip();
}

std::pair<std::string_view, std::string_view> read_entry(pbf_reader message) {
  std::pair<std::string_view, std::string_view> entry;
  while (message.next()) switch (message.tag()) {
      case 1: read_text(message, entry.first); break;
      case 2: read_text(message, entry.second); break;
      default: message.skip();
    }
  return entry;
}

TensorProto read_tensor(pbf_reader message) {
  TensorProto tensor;
  int64_t location = 0;
  while (message.next()) switch (message.tag()) {
      case 1: add_integers(message, tensor.dims); break;
      case 2: read_integer(message, tensor.data_type); break;
      case 3:
        tensor.has_segment = true;
        message.skip();
        break;
      case 4: add_run(message, tensor.floats); break;
      case 5: add_run(message, tensor.int32s); break;
      case 6: add_text(message, tensor.strings); break;
      case 7: add_run(message, tensor.int64s); break;
      case 8: read_name(message, tensor.name); break;
      case 9:
        if (is_bytes(message)) tensor.raw = view_bytes(message);
        else message.skip();
        break;
      case 10: add_run(message, tensor.doubles); break;
      case 11: add_run(message, tensor.uint64s); break;
      case 13: each_message(message, [&](pbf_reader entry) { tensor.external.push_back(read_entry(entry)); }); break;
      case 14: read_integer(message, location); break;
      default: message.skip();
    }
  tensor.is_external = location == 1;
  return tensor;
}

/// A sparse tensor: named, sized and typed as a whole.
TensorProto read_sparse(pbf_reader message) {
  TensorProto tensor;
  SparseParts parts;
  while (message.next()) switch (message.tag()) {
      case 1: each_message(message, [&](pbf_reader values) { parts.values = read_tensor(values); }); break;
      case 2: each_message(message, [&](pbf_reader places) { parts.places = read_tensor(places); }); break;
      case 3: add_integers(message, tensor.dims); break;
      default: message.skip();
    }
  tensor.name = parts.values.name;
  tensor.data_type = parts.values.data_type;
  tensor.sparse = std::make_shared<const SparseParts>(std::move(parts));
  return tensor;
}

GraphProto read_graph(pbf_reader message, int depth);

AttributeType attribute_type(int64_t number) {
  constexpr AttributeType kTypes[] = {AttributeType::none,    AttributeType::real,     AttributeType::integer,
                                      AttributeType::text,    AttributeType::tensor,   AttributeType::graph,
                                      AttributeType::reals,   AttributeType::integers, AttributeType::texts,
                                      AttributeType::tensors, AttributeType::graphs,   AttributeType::tensor,
                                      AttributeType::other,   AttributeType::type,     AttributeType::other};
  return number >= 0 && number < static_cast<int64_t>(std::size(kTypes)) ? kTypes[number] : AttributeType::other;
}

void read_type(pbf_reader message, ValueProto& value);

AttributeProto read_attribute(pbf_reader message, int depth) {
  AttributeProto attribute;
  AttributeType implied = AttributeType::none;  // very old writers leave the type out
  while (message.next()) switch (message.tag()) {
      case 1: read_name(message, attribute.name); break;
      case 2:
        implied = AttributeType::real;
        if (message.wire_type() == pbf_wire_type::fixed32) attribute.real = message.get_float();
        else message.skip();
        break;
      case 3:
        implied = AttributeType::integer;
        read_integer(message, attribute.integer);
        break;
      case 4:
        implied = AttributeType::text;
        read_text(message, attribute.text);
        break;
      case 5:
        implied = AttributeType::tensor;
        each_message(message, [&](pbf_reader tensor) { attribute.tensor = read_tensor(tensor); });
        break;
      case 6:
        implied = AttributeType::graph;
        each_message(message, [&](pbf_reader graph) {
          attribute.graph = std::make_shared<const GraphProto>(read_graph(graph, depth + 1));
        });
        break;
      case 7:
        implied = AttributeType::reals;
        add_floats(message, attribute.reals);
        break;
      case 8:
        implied = AttributeType::integers;
        add_integers(message, attribute.integers);
        break;
      case 9:
        implied = AttributeType::texts;
        add_text(message, attribute.texts);
        break;
      case 20: {
        int64_t type = 0;
        read_integer(message, type);
        attribute.type = attribute_type(type);
        break;
      }
      case 14:
        implied = AttributeType::type;
        each_message(message, [&](pbf_reader type) {
          ValueProto value;
          read_type(type, value);
          attribute.value_type = std::make_shared<const ValueProto>(std::move(value));
        });
        break;
      case 21: read_name(message, attribute.reference); break;
      case 22:
        implied = AttributeType::tensor;
        each_message(message, [&](pbf_reader tensor) { attribute.tensor = read_sparse(tensor); });
        break;
      default: message.skip();
    }
  if (attribute.type == AttributeType::none) attribute.type = implied;
  return attribute;
}

NodeProto read_node(pbf_reader message, int depth) {
  NodeProto node;
  while (message.next()) switch (message.tag()) {
      case 1: add_name(message, node.inputs); break;
      case 2: add_name(message, node.outputs); break;
      case 3: read_name(message, node.name); break;
      case 4: read_name(message, node.op_type); break;
      case 5:
        each_message(message,
                     [&](pbf_reader attribute) { node.attributes.push_back(read_attribute(attribute, depth)); });
        break;
      case 7: read_name(message, node.domain); break;
      case 8: read_name(message, node.overload); break;
      default: message.skip();
    }
  node.domain = canonical_domain(node.domain);
  return node;
}

DimProto read_dim(pbf_reader message) {
  DimProto dim;
  while (message.next()) switch (message.tag()) {
      case 1: read_integer(message, dim.value.emplace()); break;
      case 2: read_name(message, dim.parameter); break;
      default: message.skip();
    }
  return dim;
}

void read_tensor_type(pbf_reader message, ValueProto& value) {
  while (message.next()) switch (message.tag()) {
      case 1: read_integer(message, value.elem_type); break;
      case 2:
        each_message(message, [&](pbf_reader shape) {
          value.shape.emplace();
          while (shape.next())
            if (shape.tag() == 1) each_message(shape, [&](pbf_reader dim) { value.shape->push_back(read_dim(dim)); });
            else shape.skip();
        });
        break;
      default: message.skip();
    }
}

void read_type(pbf_reader message, ValueProto& value);

void read_map(pbf_reader message, ValueProto& value) {
  while (message.next()) switch (message.tag()) {
      case 1: read_integer(message, value.map_key); break;
      case 2: each_message(message, [&](pbf_reader inner) { read_type(inner, value); }); break;
      default: message.skip();
    }
}

void add_container(ValueProto& value, DType kind) {
  HONE_CHECK(value.containers.size() < kMaxTypeNesting, "a type is nested more than {} deep", kMaxTypeNesting);
  value.containers.push_back(kind);
}

/// A tensor, or containers around one.
void read_type(pbf_reader message, ValueProto& value) {
  while (message.next()) switch (message.tag()) {
      case 1: each_message(message, [&](pbf_reader tensor) { read_tensor_type(tensor, value); }); break;
      case 4:
      case 9: {
        add_container(value, message.tag() == 4 ? DType::sequence : DType::optional);
        each_message(message, [&](pbf_reader container) {
          while (container.next())
            if (container.tag() == 1) each_message(container, [&](pbf_reader inner) { read_type(inner, value); });
            else container.skip();
        });
        break;
      }
      case 5:
        add_container(value, DType::map);
        each_message(message, [&](pbf_reader map) { read_map(map, value); });
        break;
      case 8:
        value.is_tensor = false;
        message.skip();
        break;
      default: message.skip();
    }
}

ValueProto read_value(pbf_reader message) {
  ValueProto value;
  while (message.next()) switch (message.tag()) {
      case 1: read_name(message, value.name); break;
      case 2: each_message(message, [&](pbf_reader type) { read_type(type, value); }); break;
      default: message.skip();
    }
  return value;
}

GraphProto read_graph(pbf_reader message, int depth) {
  if (depth > kMaxNesting)
    throw Error(fmt::format("graphs are nested more than {} deep", kMaxNesting),
                "flatten the If, Loop and Scan bodies of the model");
  GraphProto graph;
  while (message.next()) switch (message.tag()) {
      case 1: each_message(message, [&](pbf_reader node) { graph.nodes.push_back(read_node(node, depth)); }); break;
      case 2: read_name(message, graph.name); break;
      case 5:
        each_message(message, [&](pbf_reader tensor) { graph.initializers.push_back(read_tensor(tensor)); });
        break;
      case 11: each_message(message, [&](pbf_reader value) { graph.inputs.push_back(read_value(value)); }); break;
      case 12: each_message(message, [&](pbf_reader value) { graph.outputs.push_back(read_value(value)); }); break;
      case 13:
        if (is_bytes(message)) graph.value_types.push_back(view_bytes(message));
        else message.skip();
        break;
      case 15:
        each_message(message, [&](pbf_reader tensor) { graph.initializers.push_back(read_sparse(tensor)); });
        break;
      default: message.skip();
    }
  return graph;
}

void read_opset(pbf_reader message, OpsetVersions& opsets) {
  std::string_view domain;
  int64_t version = 0;
  while (message.next()) switch (message.tag()) {
      case 1: read_name(message, domain); break;
      case 2: read_integer(message, version); break;
      default: message.skip();
    }
  HONE_CHECK(version >= 1 && version < 1 << 20, "the operator set '{}' has the impossible version {}", domain, version);
  opsets[std::string(canonical_domain(domain))] = static_cast<int>(version);
}

FunctionProto read_function(pbf_reader message) {
  FunctionProto function;
  while (message.next()) switch (message.tag()) {
      case 1: read_name(message, function.name); break;
      case 4: add_name(message, function.inputs); break;
      case 5: add_name(message, function.outputs); break;
      case 7: each_message(message, [&](pbf_reader node) { function.nodes.push_back(read_node(node, 1)); }); break;
      case 9: each_message(message, [&](pbf_reader opset) { read_opset(opset, function.opsets); }); break;
      case 10: read_name(message, function.domain); break;
      case 11:
        each_message(message, [&](pbf_reader attribute) { function.defaults.push_back(read_attribute(attribute, 1)); });
        break;
      case 13: read_name(message, function.overload); break;
      default: message.skip();
    }
  function.domain = canonical_domain(function.domain);
  return function;
}

ModelProto read_model(pbf_reader message) {
  ModelProto model;
  while (message.next()) switch (message.tag()) {
      case 1: read_integer(message, model.ir_version); break;
      case 2: read_text(message, model.producer_name); break;
      case 3: read_text(message, model.producer_version); break;
      case 4: read_text(message, model.domain); break;
      case 5: read_integer(message, model.model_version); break;
      case 6: read_text(message, model.doc_string); break;
      case 7: each_message(message, [&](pbf_reader graph) { model.graph = read_graph(graph, 1); }); break;
      case 8: each_message(message, [&](pbf_reader opset) { read_opset(opset, model.opsets); }); break;
      case 25:
        each_message(message, [&](pbf_reader function) { model.functions.push_back(read_function(function)); });
        break;
      default: message.skip();
    }
  return model;
}

/// Says what the file is when it is something else that people give by mistake.
void reject_other_kinds(std::string_view text) {
  if (text.empty()) throw Error("the model is empty (0 bytes)", "the export or the download did not finish");
  if (text.starts_with("HONEPLAN"))
    throw Error("the file is a plan, not an ONNX model", "load plans with --loadEngine=<file>");
  if (text.starts_with("version https://git-lfs"))
    throw Error("the file is a Git LFS pointer, not the model itself", "fetch the model with `git lfs pull`");
  if (text.starts_with("PK\x03\x04"))
    throw Error("the file is a ZIP archive, not an ONNX model",
                "unpack it, or export the model to ONNX if it is a framework's own checkpoint");
  if (text.starts_with("ir_version") || text.starts_with("{") || text.starts_with("<") || text.starts_with("graph"))
    throw Error("the file is text, not a binary ONNX model",
                "convert it, for example with onnx.save(onnx.load(path, format=...), 'model.onnx')");
}

}  // namespace

void throw_not_onnx(std::string_view why, size_t bytes) {
  throw Error(fmt::format("the file is not an ONNX model or is cut short ({} after {} bytes)", why, bytes),
              std::string(kNotOnnxHint));
}

ModelProto parse_model(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  reject_other_kinds(text);
  ModelProto model;
  try {
    model = read_model(pbf_reader(text.data(), text.size()));
  } catch (const protozero::exception& error) {
    throw_not_onnx(error.what(), bytes.size());
  }
  if (!model.graph) throw Error("the file holds no ONNX graph", std::string(kNotOnnxHint));
  return model;
}

namespace {

/// What read(message) makes of the bytes.
template <typename Read>
auto parse_message(Bytes bytes, const Read& read) {
  try {
    return read(pbf_reader(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  } catch (const protozero::exception& error) {
    throw_not_onnx(error.what(), bytes.size());
  }
}

}  // namespace

TensorProto parse_tensor(Bytes bytes) { return parse_message(bytes, read_tensor); }
ValueProto parse_value(Bytes bytes) { return parse_message(bytes, read_value); }
AttributeProto parse_attribute(Bytes bytes) {
  return parse_message(bytes, [](const pbf_reader& message) { return read_attribute(message, 1); });
}

std::string_view canonical_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

namespace {

struct TypeRow {
  std::string_view name;
  std::optional<DType> dtype;
};
constexpr TypeRow kTypes[] = {{"UNDEFINED", {}},
                              {"FLOAT", DType::f32},
                              {"UINT8", DType::u8},
                              {"INT8", DType::i8},
                              {"UINT16", DType::u16},
                              {"INT16", DType::i16},
                              {"INT32", DType::i32},
                              {"INT64", DType::i64},
                              {"STRING", DType::string},
                              {"BOOL", DType::boolean},
                              {"FLOAT16", DType::f16},
                              {"DOUBLE", DType::f64},
                              {"UINT32", DType::u32},
                              {"UINT64", DType::u64},
                              {"COMPLEX64", {}},
                              {"COMPLEX128", {}},
                              {"BFLOAT16", DType::bf16},
                              {"FLOAT8E4M3FN", DType::f8e4m3fn},
                              {"FLOAT8E4M3FNUZ", DType::f8e4m3fnuz},
                              {"FLOAT8E5M2", DType::f8e5m2},
                              {"FLOAT8E5M2FNUZ", DType::f8e5m2fnuz},
                              {"UINT4", DType::u4},
                              {"INT4", DType::i4},
                              {"FLOAT4E2M1", DType::f4e2m1},
                              {"FLOAT8E8M0", DType::f8e8m0},
                              {"UINT2", DType::u2},
                              {"INT2", DType::i2}};

}  // namespace

std::optional<DType> dtype_of_onnx(int64_t data_type) {
  return data_type >= 0 && data_type < static_cast<int64_t>(std::size(kTypes)) ? kTypes[data_type].dtype : std::nullopt;
}

int64_t onnx_type_of(DType dtype) {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i].dtype == dtype) return static_cast<int64_t>(i);
  throw InternalError(fmt::format("ONNX has no number for {}", name_of(dtype)));
}

std::string onnx_type_name(int64_t data_type) {
  return data_type >= 0 && data_type < static_cast<int64_t>(std::size(kTypes)) ? std::string(kTypes[data_type].name)
                                                                               : fmt::format("type {}", data_type);
}

}  // namespace hone::onnx
