// SPDX-License-Identifier: Apache-2.0
//
// From bytes to a model that is edited. Nesting is bounded, so that the stack is.
#include "base/file.h"
#include "base/limits.h"
#include "base/text.h"
#include "edit/model.h"

namespace hone::edit {
namespace {

// Field numbers of onnx.proto stand where they are read; encode.cpp writes the same.

/// Takes a text that is not empty: an empty one that somebody wrote is kept as it stands.
bool take_text(std::string& out, std::string_view text) {
  if (text.empty()) return false;
  out = text;
  return true;
}

std::string name_in(std::string_view message, uint32_t number) {
  std::string name;
  read_fields(message, [&](uint32_t field, std::string_view payload) {
    if (field == number) name = payload;
    return true;
  });
  return name;
}

void read_integers(std::string_view packed, std::vector<int64_t>& out) {
  const char* at = packed.data();
  for (const char* const end = at + packed.size(); at != end;)
    out.push_back(static_cast<int64_t>(protozero::decode_varint(&at, end)));
}

FileRange read_range(const std::vector<std::pair<std::string, std::string>>& entries) {
  FileRange range;
  for (const auto& [key, text] : entries) {
    if (key == "location") range.location = text;
    if (key == "offset") range.offset = parse_integer(text).value_or(0);
    if (key == "length") range.length = parse_integer(text);
  }
  return range;
}

}  // namespace

Weight read_weight(std::string_view bytes) {
  Weight weight;
  weight.bytes = bytes;
  std::vector<std::pair<std::string, std::string>> entries;
  bool external = false;
  read_fields(
      bytes,
      [&](uint32_t field, std::string_view payload) {
        if (field == 1) read_integers(payload, weight.dims);
        if (field == 8) weight.name = payload;
        if (field == 13) {
          auto& entry = entries.emplace_back();
          read_fields(payload, [&entry](uint32_t part, std::string_view value) {
            if (part == 1) entry.first = value;
            if (part == 2) entry.second = value;
            return true;
          });
        }
        return true;
      },
      [&](uint32_t field, int64_t value) {
        if (field == 1) weight.dims.push_back(value);
        if (field == 2) weight.type = value;
        if (field == 14) external = value == 1;
        return true;
      });
  if (external) weight.file = read_range(entries);
  return weight;
}

Value read_value(std::string_view bytes) { return {name_in(bytes, 1), bytes}; }

Value read_sparse(std::string_view bytes) {
  Value sparse{"", bytes};
  read_fields(bytes, [&](uint32_t field, std::string_view payload) {
    if (field == 1) sparse.name = name_in(payload, 8);
    return true;
  });
  return sparse;
}

namespace {

Graph read_graph(std::string_view bytes, int depth);

Attribute read_attribute(std::string_view bytes, int depth) {
  Attribute attribute;
  attribute.bytes = bytes;
  read_fields(
      bytes,
      [&](uint32_t field, std::string_view payload) {
        if (field == 1) attribute.name = payload;
        if (field == 6 || field == 11)
          attribute.bodies.push_back(std::make_shared<Graph>(read_graph(payload, depth + 1)));
        return true;
      },
      [&](uint32_t field, int64_t value) {
        if (field == 20) attribute.type = value;
        return true;
      });
  return attribute;
}

Node read_node(std::string_view bytes, int depth) {
  Node node;
  node.rest = read_fields(bytes, [&](uint32_t field, std::string_view payload) {
    switch (field) {
      case 1: node.inputs.emplace_back(payload); return true;
      case 2: node.outputs.emplace_back(payload); return true;
      case 3: return take_text(node.name, payload);
      case 4: return take_text(node.op_type, payload);
      case 5: node.attributes.push_back(read_attribute(payload, depth)); return true;
      case 7: return take_text(node.domain, payload);
      default: return false;
    }
  });
  return node;
}

Graph read_graph(std::string_view bytes, int depth) {
  if (depth > kMaxNesting)
    throw Error(fmt::format("graphs are nested more than {} deep", kMaxNesting),
                "flatten the If, Loop and Scan bodies of the model");
  Graph graph;
  graph.rest = read_fields(bytes, [&](uint32_t field, std::string_view payload) {
    switch (field) {
      case 1: graph.nodes.push_back(read_node(payload, depth)); return true;
      case 2: return take_text(graph.name, payload);
      case 5: graph.weights.push_back(read_weight(payload)); return true;
      case 11: graph.inputs.push_back(read_value(payload)); return true;
      case 12: graph.outputs.push_back(read_value(payload)); return true;
      case 13: graph.values.push_back(read_value(payload)); return true;
      case 15: graph.sparse.push_back(read_sparse(payload)); return true;
      default: return false;
    }
  });
  return graph;
}

Function read_function(std::string_view bytes) {
  Function function;
  function.rest = read_fields(bytes, [&](uint32_t field, std::string_view payload) {
    switch (field) {
      case 1: return take_text(function.name, payload);
      case 4: function.inputs.emplace_back(payload); return true;
      case 5: function.outputs.emplace_back(payload); return true;
      case 7: function.nodes.push_back(read_node(payload, 1)); return true;
      case 10: return take_text(function.domain, payload);
      case 13: return take_text(function.overload, payload);
      default: return false;
    }
  });
  return function;
}

}  // namespace

Attribute read_attribute(std::string_view bytes) { return read_attribute(bytes, 1); }

Opset read_opset(std::string_view bytes) {
  Opset opset;
  opset.rest = read_fields(
      bytes, [&](uint32_t field, std::string_view payload) { return field == 1 && take_text(opset.domain, payload); },
      [&](uint32_t field, int64_t value) {
        if (field == 2) opset.version = value;
        return field == 2;
      });
  return opset;
}

const Attribute* Node::attribute(std::string_view attribute_name) const {
  for (const Attribute& each : attributes)
    if (each.name == attribute_name) return &each;
  return nullptr;
}

int64_t Model::opset() const {
  for (const Opset& each : opsets)
    if (onnx::canonical_domain(each.domain).empty()) return each.version;
  return 0;
}

Model read_model(const Blob& bytes, const std::string& directory) {
  (void)onnx::parse_model(bytes.bytes());  // refuses what is no model, and says what it is instead
  Model model;
  model.directory = directory;
  model.owner = std::make_shared<const Blob>(bytes);
  try {
    model.rest = read_fields(
        bytes.text(),
        [&](uint32_t field, std::string_view payload) {
          if (field == 7) model.graph = read_graph(payload, 1);
          if (field == 8) model.opsets.push_back(read_opset(payload));
          if (field == 25) model.functions.push_back(read_function(payload));
          return field == 7 || field == 8 || field == 25;
        },
        [&](uint32_t field, int64_t value) {
          if (field == 1) model.ir_version = value;
          return field == 1;
        });
  } catch (const protozero::exception& error) {  // in what no import reads
    onnx::throw_not_onnx(error.what(), bytes.size());
  }
  return model;
}

Model open_model(const std::string& path) {
  return with_note([&] { return fmt::format("reading {}", path); },
                   [&] {
                     const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
                     const size_t slash = path.rfind('/');
                     return read_model(Blob(file, file->bytes()),
                                       slash == std::string::npos ? "." : path.substr(0, slash + 1));
                   });
}

Model new_model(const std::string& graph_name, int64_t opset, int64_t ir_version) {
  Model model;
  model.ir_version = ir_version;
  model.opsets.push_back({"", opset, {}});
  model.graph.name = graph_name;
  return model;
}

}  // namespace hone::edit
