// SPDX-License-Identifier: Apache-2.0
//
// `hone surgeon sanitize`: constants folded, dead nodes removed, nodes sorted, shapes and outputs chosen anew.
#include <fnmatch.h>
#include <algorithm>

#include "base/text.h"
#include "edit/changes/clean.h"
#include "edit/changes/dynamic.h"
#include "edit/changes/fold.h"
#include "edit/changes/simplify.h"
#include "edit/changes/unbounded.h"
#include "onnx/importer.h"
#include "quantize/few_bits_file.h"
#include "tools/commands/commands.h"
#include "tools/surgeon/model_line.h"

namespace hone {
namespace {

const CompanionCommand& command() {
  static const CompanionCommand kCommand{
      "surgeon sanitize", "MODEL.onnx",
      "Cleans a model up: folds constants, removes what does nothing, sorts nodes, sets shapes.",
      with_model_flags(
          {{"--fold-constants", Takes::nothing, "", "compute what follows from weights and known shapes"},
           {"--num-passes", Takes::one, "<n>", "fold at most so often; without it until nothing is left to fold",
            "--num-const-fold-passes"},
           {"--no-fold-shapes", Takes::nothing, "", "leave Shape nodes and what follows from them"},
           {"--no-per-pass-shape-inference", Takes::nothing, "", "accepted; shapes are always inferred anew"},
           {"--partitioning", Takes::one, "<basic|recursive>",
            "accepted; nodes are folded one by one, so that one that fails keeps no other from it"},
           {"--no-flatten", Takes::nothing, "", "leave Ifs whose condition is known"},
           {"--fp-to-fp16", Takes::nothing, "",
            "bring FP32 to FP16, but for nodes whose values do not fit (as `hone quantize --mode fp16`)"},
           {"--fold-size-threshold", Takes::one, "<bytes>", "leave nodes whose results are larger"},
           {"--cleanup", Takes::nothing, "", "remove nodes and weights that no output depends on"},
           {"--toposort", Takes::nothing, "", "sort nodes; a cycle is told with its nodes"},
           {"--override-input-shapes", Takes::some, "<input:shape...>", "declare inputs' shapes anew",
            "--override-inputs"},
           {"--outputs", Takes::some, "<tensor...>",
            "make these the outputs; patterns with * are understood; 'mark all': every tensor", "--onnx-outputs"},
           {"--exclude-outputs", Takes::some, "<tensor...>", "not these", "--onnx-exclude-outputs"},
           {"--outputs-by-type", Takes::some, "<op...>", "make results of these operators outputs",
            "--onnx-outputs-by-type"},
           {"--set-unbounded-dds-upper-bound", Takes::some, "<[tensor:]bound...>",
            "bound sizes that only a run knows by a Min"},
           {"--no-shape-inference", Takes::nothing, "", "leave declared shapes as they are"},
           {"--shape-inference", Takes::nothing, "", "declare the shapes of all tensors"},
           {"--force-fallback-shape-inference", Takes::nothing, "", "accepted; shapes are inferred as always"}})};
  return kCommand;
}

void override_shapes(const Arguments& arguments, edit::Model& model) {
  for (const std::string& text : arguments.values("--override-input-shapes")) {
    const size_t colon = text.find(":[") != std::string::npos ? text.find(":[") : text.rfind(':');
    if (colon == std::string::npos)
      throw UsageError(fmt::format("'{}' names no input with a shape", text),
                       "write --override-input-shapes x:[1,3,224,224]");
    edit::set_input_sizes(model, text.substr(0, colon), edit::parse_sizes(text.substr(colon + 1)));
  }
}

bool fits(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

/// The names in the order in which the graph makes them.
void choose_outputs(const Arguments& arguments, edit::Model& model) {
  std::vector<std::string> wanted = arguments.values("--outputs");
  const std::vector<std::string> excluded = arguments.values("--exclude-outputs"),
                                 types = arguments.values("--outputs-by-type");
  if (wanted.empty() && excluded.empty() && types.empty()) return;
  if (wanted.size() == 2 && wanted[0] == "mark" && wanted[1] == "all") wanted = {"*"};
  const edit::Index index(model.graph);
  for (const std::string& name : wanted)
    if (name.find_first_of("*?[") == std::string::npos) edit::need_tensor(model.graph, index, name);
  for (const std::string& type : types)
    if (std::ranges::none_of(model.graph.nodes, [&](const edit::Node& node) { return node.op_type == type; })) {
      std::vector<std::string_view> known;
      for (const edit::Node& node : model.graph.nodes) known.push_back(node.op_type);
      throw UsageError(fmt::format("the model has no {} node", type),
                       fmt::format("did you mean {}?", nearest(type, known)));
    }
  const bool own = wanted.empty() && types.empty();
  const edit::KnownTypes known(model);
  std::vector<edit::Value> outputs;
  const auto add = [&](const std::string& name) {
    if (name.empty() || fits(excluded, name)) return;
    for (const edit::Value& output : model.graph.outputs)
      if (output.name == name) {
        outputs.push_back(output);
        return;
      }
    const std::optional<edit::ValueType> type = known.of(name);
    if (type && type->is_tensor && type->element != 0) outputs.push_back(edit::with_type(model, {name, {}}, *type));
    else
      throw Error(fmt::format("the type of {} is not known, so it cannot be an output", name),
                  "--exclude-outputs leaves it out");
  };
  for (const edit::Node& node : model.graph.nodes)
    for (const std::string& name : node.outputs)
      if ((own && index.outputs.contains(name)) || fits(wanted, name) ||
          std::ranges::find(types, node.op_type) != types.end())
        add(name);
  if (outputs.empty()) throw UsageError("no output is left", "choose other --outputs");
  model.graph.outputs = std::move(outputs);
}

void fold(const Arguments& arguments, edit::Model& model, const Narrator& narrator) {
  edit::FoldRules rules;
  rules.shapes = !arguments.has("--no-fold-shapes");
  if (arguments.has("--fold-size-threshold"))
    rules.most_bytes = parse_bytes("--fold-size-threshold", arguments.value("--fold-size-threshold"));
  edit::constants_to_weights(model);
  const int64_t most = arguments.integer("--num-passes", 100);
  for (int64_t pass = 1; pass <= most; ++pass) {
    narrator.info("Folding Constants | Pass {}", pass);
    const auto indent = narrator.indented();
    const edit::FoldPass done = edit::fold_constants(model, rules);
    narrator.info("Total Nodes | Original: {:5}, After Folding: {:5} | {:5} Nodes Folded", done.nodes_before,
                  done.nodes_before - done.folded, done.folded);
    const size_t casts = edit::drop_casts(model);
    const size_t choices = arguments.has("--no-flatten") ? 0 : edit::flatten_ifs(model);
    if (casts + choices > 0)
      narrator.info("{} Cast(s) that change nothing dropped, {} If(s) with a known condition flattened", casts,
                    choices);
    if (done.folded + casts + choices == 0) break;
  }
  edit::drop_unread_weights(model.graph);
}

void bound_sizes(const Arguments& arguments, edit::Model& model, const Narrator& narrator) {
  std::map<std::string, int64_t> bounds;
  for (const std::string& text : arguments.values("--set-unbounded-dds-upper-bound")) {
    const size_t colon = text.rfind(':');
    const std::optional<int64_t> bound = parse_integer(text.substr(colon == std::string::npos ? 0 : colon + 1));
    if (!bound || *bound < 0) throw UsageError(fmt::format("'{}' is no bound", text), "write 1000 or name:1000");
    bounds[colon == std::string::npos ? "" : text.substr(0, colon)] = *bound;
  }
  std::vector<std::string> tensors = edit::unbounded_sizes(model);
  for (const auto& [name, bound] : bounds)
    if (!name.empty() && std::ranges::find(tensors, name) == tensors.end()) tensors.push_back(name);
  for (const std::string& tensor : tensors) {
    const auto at = bounds.contains(tensor) ? bounds.find(tensor) : bounds.find("");
    if (at == bounds.end()) continue;
    edit::set_upper_bound(model, tensor, at->second);
    narrator.info("Set tensor upper bound: {} <= {}", tensor, at->second);
  }
}

void bring_to_fp16(edit::Model& model, const Narrator& narrator) {
  const Blob bytes = Blob::copy(edit::encode(model).text());
  const ImportedModel imported = import_onnx_bytes(bytes, silent_logger(), model.directory);
  const FewBitsModel done = convert_to_few_bits(bytes, model.directory, imported.graph, {});
  for (const KeptNode& kept : done.left)
    narrator.info("{} ({}) stays in FP32: {}", kept.node, kept.op_type, kept.reason);
  narrator.info("{} node(s) in FP16, {} Cast(s) inserted", done.nodes, done.casts);
  model = edit::read_model(Blob::copy(done.bytes), model.directory);
}

void check_partitioning(const Arguments& arguments) {
  const std::string mode = arguments.has("--partitioning") ? arguments.value("--partitioning") : "basic";
  if (mode != "basic" && mode != "recursive")
    throw UsageError(fmt::format("'{}' is no partitioning", mode), "write basic or recursive");
  if (arguments.has("--fp-to-fp16") && arguments.has("--check"))
    throw UsageError("--check asks for the same outputs, which --fp-to-fp16 rounds",
                     "check the other edits first, and compare with `hone run` and a tolerance");
}

ExitStatus sanitize(const Arguments& arguments) {
  check_partitioning(arguments);
  return edit_model(arguments, [&](edit::Model& model, const Narrator& narrator) {
    override_shapes(arguments, model);
    if (arguments.has("--toposort")) edit::sort_nodes(model);
    choose_outputs(arguments, model);
    if (arguments.has("--fold-constants")) fold(arguments, model, narrator);
    if (arguments.has("--set-unbounded-dds-upper-bound")) bound_sizes(arguments, model, narrator);
    if (arguments.has("--cleanup")) edit::clean(model);
    if (!arguments.has("--no-shape-inference"))
      edit::infer_shapes(model, arguments.has("--shape-inference") || arguments.has("--override-input-shapes"));
    if (arguments.has("--fp-to-fp16")) bring_to_fp16(model, narrator);
  });
}

}  // namespace

const FriendlyCommand& describe_surgeon_sanitize() {
  static const FriendlyCommand kFriendly = friendly_of(command());
  return kFriendly;
}
int run_surgeon_sanitize(Words words) { return run_companion(command(), words, sanitize); }

}  // namespace hone
