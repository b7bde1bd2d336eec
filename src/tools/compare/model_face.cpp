// SPDX-License-Identifier: Apache-2.0
#include "tools/compare/model_face.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "onnx/importer.h"
#include "onnx/model_file.h"
#include "onnx/proto.h"
#include "quantize/few_bits_file.h"
#include "tools/companion/exit_status.h"

namespace hone {
namespace {

/// Types of which only the name is given: runners infer the rest. Where the file says more, that is kept.
std::string value_message(const std::string& name) {
  std::string out(1, '\x0a');  // field 1, a text
  size_t length = name.size();
  while (length >= 128) {
    out += static_cast<char>((length & 127u) | 128u);
    length >>= 7;
  }
  out += static_cast<char>(length);
  return out + name;
}

void read_inputs(const onnx::GraphProto& graph, ModelFace& face) {
  std::set<std::string_view> constants;
  for (const onnx::TensorProto& each : graph.initializers) constants.insert(each.name);
  for (const onnx::ValueProto& input : graph.inputs) {
    if (constants.contains(input.name)) continue;
    KnownTensor known{.name = std::string(input.name)};
    known.dtype = onnx::dtype_of_onnx(input.elem_type).value_or(DType::f32);
    std::vector<std::string> symbols;
    if (input.shape)
      for (const onnx::DimProto& dim : *input.shape) {
        known.dims.push_back(dim.value && *dim.value >= 0 ? *dim.value : -1);
        symbols.emplace_back(dim.parameter);
      }
    face.inputs.push_back(std::move(known));
    face.symbols.push_back(std::move(symbols));
  }
}

bool is_all(const std::vector<std::string>& names) {
  return names == std::vector<std::string>{"*"} || names == std::vector<std::string>{"mark", "all"};
}

[[noreturn]] void refuse(std::string_view what, const std::string& pattern, const std::vector<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  throw UsageError(fmt::format("there is no {} {}", what, pattern),
                   fmt::format("did you mean {}?", nearest(pattern, names)));
}

bool fits_any(const std::vector<std::string>& patterns, const std::string& text) {
  return std::ranges::any_of(patterns, [&](const std::string& each) { return fits_shell_pattern(each, text); });
}

/// Every pattern has to fit something.
void check_patterns(std::string_view what, const std::vector<std::string>& patterns,
                    const std::vector<std::string>& known) {
  for (const std::string& pattern : patterns)
    if (std::ranges::none_of(known, [&](const std::string& each) { return fits_shell_pattern(pattern, each); }))
      refuse(what, pattern, known);
}

}  // namespace

void to_fp16(ModelFace& face, bool keeps_io, const Logger& log) {
  const ImportedModel model = import_onnx_bytes(face.bytes, log, face.folder);
  const FewBitsModel done = convert_to_few_bits(face.bytes, face.folder, model.graph, {DType::f16, keeps_io, {}, {}});
  for (const KeptNode& node : done.left) log.info("{} ({}) stays in FP32: {}", node.node, node.op_type, node.reason);
  log.info("{} nodes are in FP16, between {} casts", done.nodes, done.casts);
  face.bytes = Blob::copy(done.bytes);
  face.marked = true;
  ModelFace read;
  const onnx::ModelProto written = onnx::parse_model(face.bytes.bytes());
  read_inputs(*written.graph, read);
  face.inputs = std::move(read.inputs);
  face.symbols = std::move(read.symbols);
}

bool fits_shell_pattern(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

bool is_onnx_file(const std::string& path) {
  if (path.ends_with(".onnx")) return true;
  if (path.ends_with(".plan") || path.ends_with(".engine")) return false;
  // Protobuf's first field of a model is its version: a small number. A plan begins with a word.
  const auto file = MappedFile::open(path);
  return file->bytes().size() > 1 && file->bytes()[0] == std::byte{0x08};
}

ModelFace read_face(const std::string& path, const std::string& data_folder) {
  need_file(path);
  ModelFace face;
  face.path = path;
  const std::string beside = std::filesystem::path(path).parent_path().string();
  face.folder = !data_folder.empty() ? data_folder : beside.empty() ? "." : beside;
  try {
    face.file = MappedFile::open(path);
    face.bytes = Blob(face.file, face.file->bytes());
    const onnx::ModelProto model = onnx::parse_model(face.bytes.bytes());
    if (!model.graph) throw Error("the model has no graph");
    read_inputs(*model.graph, face);
    for (const onnx::ValueProto& output : model.graph->outputs) face.outputs.emplace_back(output.name);
    for (const onnx::NodeProto& node : model.graph->nodes)
      for (const std::string_view output : node.outputs)
        if (!output.empty())
          face.produced.push_back({std::string(output), std::string(node.op_type), std::string(node.name)});
    face.file->give_back(face.file->bytes());  // of a file that was just written a touch may map 2 MiB around a name
  } catch (const StatusError&) {
    throw;
  } catch (const Error& error) {
    throw StatusError(ExitStatus::no_file, fmt::format("{} cannot be read: {}", path, error.message()), error.hint());
  }
  return face;
}

void mark_outputs(ModelFace& face, const OutputMarks& marks) {
  if (!marks.any()) return;
  std::vector<std::string> tensors, operators;
  for (const Produced& each : face.produced) {
    tensors.push_back(each.tensor);
    operators.push_back(each.op);
  }
  const bool all = is_all(marks.names);
  if (!all) check_patterns("tensor", marks.names, tensors);
  check_patterns("operator", marks.operators, operators);
  check_patterns("tensor", marks.excluded, tensors);
  std::vector<std::string> chosen;
  const bool own_outputs = marks.names.empty() && marks.operators.empty();
  for (const Produced& each : face.produced) {
    const bool wanted = all || fits_any(marks.names, each.tensor) || fits_any(marks.operators, each.op) ||
                        (own_outputs && std::ranges::find(face.outputs, each.tensor) != face.outputs.end());
    if (wanted && !fits_any(marks.excluded, each.tensor)) chosen.push_back(each.tensor);
  }
  if (chosen.empty()) throw UsageError("no output is left", "the excluded ones were all there are");
  onnx::ModelFile file(face.bytes);
  std::vector<onnx::NamedMessage> outputs;
  for (const std::string& name : chosen) {
    const auto known = std::ranges::find(file.outputs, name, &onnx::NamedMessage::name);
    outputs.push_back(known != file.outputs.end() ? *known : onnx::NamedMessage{name, file.keep(value_message(name))});
  }
  file.outputs = std::move(outputs);
  face.bytes = Blob::copy(file.encode());
  face.outputs = std::move(chosen);
  face.marked = true;
}

}  // namespace hone
