// SPDX-License-Identifier: Apache-2.0
//
// The surgeon's commands about tensors: rename, set-weight, set-dynamic, and copy, which changes nothing.
#include "base/file.h"
#include "base/text.h"
#include "edit/changes/change.h"
#include "edit/changes/dynamic.h"
#include "edit/infer.h"
#include "edit/names.h"
#include "tools/commands/commands.h"
#include "tools/files/npy.h"
#include "tools/surgeon/model_line.h"

namespace hone {
namespace {

std::pair<std::string, std::string> split_assignment(const std::string& text, std::string_view form) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw UsageError(fmt::format("'{}' is not of the form {}", text, form), fmt::format("write {}", form));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

const CompanionCommand& rename_command() {
  static const CompanionCommand kCommand{"surgeon rename",
                                         "MODEL.onnx old=new...",
                                         "Names tensors anew wherever they are read; with --nodes also nodes.",
                                         with_model_flags({{"--nodes", Takes::some, "<old=new...>", "nodes"},
                                                           {"--graph", Takes::one, "<name>", "the graph itself"}}),
                                         1,
                                         1000};
  return kCommand;
}

ExitStatus rename(const Arguments& arguments) {
  if (arguments.files().size() < 2 && !arguments.has("--nodes") && !arguments.has("--graph"))
    throw UsageError("nothing says what to rename", "write old=new");
  return edit_model(arguments, [&](edit::Model& model, const Narrator&) {
    for (size_t i = 1; i < arguments.files().size(); ++i) {
      const auto [from, to] = split_assignment(arguments.files()[i], "old=new");
      edit::rename(model, from, to);
    }
    for (const std::string& text : arguments.values("--nodes")) {
      const auto [from, to] = split_assignment(text, "old=new");
      model.graph.nodes[edit::find_node(model.graph, from)].name = to;
    }
    if (arguments.has("--graph")) model.graph.name = arguments.value("--graph");
  });
}

const CompanionCommand& set_weight_command() {
  static const CompanionCommand kCommand{
      "surgeon set-weight",
      "MODEL.onnx name=file.npy...",
      "Exchanges the values of weights for those of .npy files of the same shape and type.",
      with_model_flags({}),
      2,
      1000};
  return kCommand;
}

ExitStatus set_weight(const Arguments& arguments) {
  return edit_model(arguments, [&](edit::Model& model, const Narrator&) {
    for (size_t i = 1; i < arguments.files().size(); ++i) {
      const auto [name, path] = split_assignment(arguments.files()[i], "name=file.npy");
      need_file(path);
      const std::string text = read_file(path);
      const NpyArray array = parse_npy(std::as_bytes(std::span(text.data(), text.size())));
      edit::set_weight(model, name, Tensor(array.dtype, array.dims, Blob::copy(array.bytes)));
    }
  });
}

const CompanionCommand& set_dynamic_command() {
  static const CompanionCommand kCommand{
      "surgeon set-dynamic", "MODEL.onnx",
      "Gives sizes of inputs a name instead of a number. Constants of Reshape, Slice, Expand, Tile and "
      "ConstantOfShape nodes that hold the number are mended, and shapes inferred anew.",
      with_model_flags({{"--dim", Takes::some, "<input:axis=name...>", "as x:0=N; '0=N' means every input"}})};
  return kCommand;
}

ExitStatus set_dynamic(const Arguments& arguments) {
  if (!arguments.has("--dim")) throw UsageError("nothing says which size", "--dim x:0=N");
  return edit_model(arguments, [&](edit::Model& model, const Narrator& narrator) {
    std::vector<edit::OpenAxis> axes;
    for (const std::string& text : arguments.values("--dim")) {
      const auto [place, name] = split_assignment(text, "input:axis=name");
      const size_t colon = place.rfind(':');
      const std::optional<int64_t> axis = parse_integer(place.substr(colon == std::string::npos ? 0 : colon + 1));
      if (!axis || *axis < 0) throw UsageError(fmt::format("'{}' names no axis", text), "write --dim x:0=N");
      std::vector<std::string> inputs;
      if (colon != std::string::npos) inputs = {place.substr(0, colon)};
      else
        for (const edit::Value& input : model.graph.inputs) inputs.push_back(input.name);
      for (const std::string& input : inputs) axes.push_back({input, static_cast<size_t>(*axis), name});
    }
    const edit::OpenedSizes opened = edit::open_sizes(model, axes);
    for (const std::string& node : opened.reshapes) narrator.info("Reshape {} takes its size from its data now", node);
    for (const std::string& node : opened.slices) narrator.info("Slice {} reaches to the end now", node);
    for (const std::string& node : opened.others) narrator.info("{} takes a size from an input now", node);
    for (const std::string& output : opened.fixed)
      narrator.warning("output {} still has fixed sizes: something in the model holds them", output);
  });
}

const CompanionCommand& copy_command() {
  static const CompanionCommand kCommand{
      "surgeon copy", "MODEL.onnx",
      "Writes the model again with nothing lost; its weights into or out of a file beside it.", with_model_flags({})};
  return kCommand;
}

ExitStatus copy(const Arguments& arguments) {
  return edit_model(arguments, [](edit::Model&, const Narrator&) {});
}

}  // namespace

const FriendlyCommand& describe_surgeon_rename() { return friendly<rename_command>(); }
int run_surgeon_rename(Words words) { return run_companion(rename_command(), words, rename); }
const FriendlyCommand& describe_surgeon_set_weight() { return friendly<set_weight_command>(); }
int run_surgeon_set_weight(Words words) { return run_companion(set_weight_command(), words, set_weight); }
const FriendlyCommand& describe_surgeon_set_dynamic() { return friendly<set_dynamic_command>(); }
int run_surgeon_set_dynamic(Words words) { return run_companion(set_dynamic_command(), words, set_dynamic); }
const FriendlyCommand& describe_surgeon_copy() { return friendly<copy_command>(); }
int run_surgeon_copy(Words words) { return run_companion(copy_command(), words, copy); }

}  // namespace hone
