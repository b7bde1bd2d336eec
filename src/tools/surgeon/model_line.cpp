// SPDX-License-Identifier: Apache-2.0
#include "tools/surgeon/model_line.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "edit/file.h"
#include "edit/infer.h"
#include "edit/names.h"
#include "edit/parts.h"
#include "onnx/importer.h"
#include "quantize/few_bits_file.h"
#include "tools/companion/polygraphy_flags.h"
#include "tools/surgeon/describe_model.h"

namespace hone {
namespace {

const std::vector<CompanionFlag> kLoad{
    {"--external-data-dir", Takes::one, "<folder>", "where weights in other files are; usually beside the model",
     "--ext --load-external-data"},
    {"--ignore-external-data", Takes::nothing, "", "leave weights in other files alone"},
    {"--fp-to-fp16", Takes::nothing, "", "bring the model to FP16 first; what has no meaning in it stays in FP32"},
};
const std::vector<CompanionFlag> kSave{
    {"--output", Takes::one, "<file>", "the model that is written", "-o --save-onnx"},
    {"--save-external-data", Takes::maybe, "<file>", "put weights into a file beside the model",
     "--external-data-path"},
    {"--external-data-size-threshold", Takes::one, "<bytes>", "smaller weights stay in the model (1024)"},
    {"--no-save-all-tensors-to-one-file", Takes::nothing, "", "accepted; weights go into one file"},
    {"--check", Takes::nothing, "", "run the old and the new model on the same inputs; their outputs must agree"},
};

/// Of sizes that one model leaves open what the other says; 2 where neither does.
SymbolValues sizes_for(const Graph& old_graph, const Graph& new_graph) {
  SymbolValues sizes;
  for (const Value* a : old_graph.inputs())
    for (const Value* b : new_graph.inputs()) {
      if (a->name != b->name || a->type.shape.rank() != b->type.shape.rank()) continue;
      for (size_t i = 0; i < a->type.shape.rank(); ++i) {
        const Dim &x = a->type.shape[i], &y = b->type.shape[i];
        if (x.is_constant() != y.is_constant())
          sizes.emplace((x.is_constant() ? y : x).text(), (x.is_constant() ? x : y).value());
      }
    }
  for (const Graph* graph : {&old_graph, &new_graph})
    for (const Value* input : graph->inputs())
      for (const Dim& dim : input->type.shape) {
        std::set<std::string> symbols;
        dim.collect_symbols(symbols);
        for (const std::string& symbol : symbols) sizes.emplace(symbol, 2);
      }
  return sizes;
}

/// Outputs that both models have, on inputs that both have; others get the same kind of values.
void check_agreement(const edit::Model& before, const edit::Model& after, const Narrator& narrator) {
  const auto import = [&](const edit::Model& model) {
    return import_onnx_bytes(Blob::copy(edit::encode(model).text()), narrator.engine_log(), model.directory).graph;
  };
  Graph old_graph = import(before), new_graph = import(after);
  const SymbolValues sizes = sizes_for(old_graph, new_graph);
  old_graph = old_graph.specialize(sizes);
  new_graph = new_graph.specialize(sizes);
  const std::vector<Tensor> old_inputs = random_inputs(old_graph, 1);
  std::vector<Tensor> new_inputs = random_inputs(new_graph, 1);
  for (size_t i = 0; i < new_inputs.size(); ++i)
    for (size_t j = 0; j < old_inputs.size(); ++j)
      if (new_graph.inputs()[i]->name == old_graph.inputs()[j]->name && new_inputs[i].dims() == old_inputs[j].dims())
        new_inputs[i] = old_inputs[j];
  const std::vector<Tensor> expected = evaluate(old_graph, old_inputs), found = evaluate(new_graph, new_inputs);
  size_t compared = 0;
  for (size_t i = 0; i < found.size(); ++i)
    for (size_t j = 0; j < expected.size(); ++j) {
      const std::string& name = new_graph.outputs()[i]->name;
      if (old_graph.outputs()[j]->name != name) continue;
      ++compared;
      HONE_CHECK(found[i].dims() == expected[j].dims(), "--check: output {} is [{}], and was [{}] before", name,
                 join_dims(found[i].dims(), ","), join_dims(expected[j].dims(), ","));
      if (is_object(found[i].dtype()) || is_object(expected[j].dtype())) continue;
      for (int64_t k = 0; k < found[i].size(); ++k) {
        const double a = found[i].real(k), b = expected[j].real(k);
        const bool same = a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 1e-5 + 1e-5 * std::fabs(b);
        if (!same)
          throw Error(
              fmt::format("--check: output {} differs at element {}: {} instead of {}", name, k, exact(a), exact(b)),
              "the edit changes what the model computes");
      }
    }
  if (compared == 0) narrator.warning("--check: the models share no output; nothing was compared");
  else narrator.info("--check: {} output(s) agree in the reference interpreter", compared);
}

/// Names that are not in the model are the command line's fault.
template <typename Body>
void naming(const Body& body) {
  try {
    body();
  } catch (const edit::UnknownName& error) {
    throw UsageError(error.message(), error.hint());
  }
}

/// Weights in other files come into the model.
edit::Model in_fp16(const edit::Model& model) {
  const Blob bytes = Blob::copy(edit::encode(model).text());
  const std::string folder = model.directory.empty() ? "." : model.directory;
  const ImportedModel imported = import_onnx_bytes(bytes, Logger([](Severity, std::string_view) {}), folder);
  return edit::read_model(Blob::copy(convert_to_few_bits(bytes, folder, imported.graph, {}).bytes), model.directory);
}

}  // namespace

std::vector<CompanionFlag> with_load_flags(std::vector<CompanionFlag> own) {
  for (const CompanionFlag& flag : kLoad)
    if (std::ranges::find(own, flag.name, &CompanionFlag::name) == own.end()) own.push_back(flag);
  return with_accepted(std::move(own), {AcceptedFlags::data, AcceptedFlags::model});
}

std::vector<CompanionFlag> with_model_flags(std::vector<CompanionFlag> own) {
  own.insert(own.end(), kSave.begin(), kSave.end());
  return with_load_flags(std::move(own));
}

edit::Model load_model(const Arguments& arguments, const std::string& path) {
  need_file(path);
  edit::Model model = edit::open_model(path);
  if (arguments.has("--external-data-dir")) model.directory = arguments.value("--external-data-dir");
  if (arguments.has("--ignore-external-data")) model.directory.clear();
  // Sanitising brings the model to FP16 itself, behind its folds.
  const bool first = arguments.has("--fp-to-fp16") && arguments.command().name != "surgeon sanitize";
  return first ? in_fp16(model) : model;
}

std::string change_text(const edit::Model& before, const edit::Model& after) {
  std::map<std::string, int> ops;
  for (const edit::Node& node : before.graph.nodes) --ops[node.op_type];
  for (const edit::Node& node : after.graph.nodes) ++ops[node.op_type];
  std::string less, more;
  for (const auto& [op, count] : ops) {
    const std::string times = std::abs(count) > 1 ? fmt::format("x{}", std::abs(count)) : "";
    if (count < 0) less += fmt::format(" -{}{}", op, times);
    if (count > 0) more += fmt::format(" +{}{}", op, times);
  }
  const std::string changed = less + more;
  return fmt::format("nodes {} -> {}, initialisers {} -> {}, ops{}", before.graph.nodes.size(),
                     after.graph.nodes.size(), before.graph.weights.size(), after.graph.weights.size(),
                     changed.empty() ? " as before" : changed);
}

ExitStatus edit_model(const Arguments& arguments, const std::function<void(edit::Model&, const Narrator&)>& edit) {
  const Narrator narrator(arguments);
  if (!arguments.has("--output")) throw UsageError("no file to write is given", "-o new.onnx");
  const std::string command = fmt::format("hone {} {}", arguments.command().name, join(arguments.words(), " "));
  narrator.info("RUNNING | Command: {}", command);
  edit::Model model = load_model(arguments, arguments.file());
  edit::Model before = model;
  before.graph = edit::deep_copy(model.graph);
  narrator.info("Original Model:\n{}", model_text(model, {}));
  naming([&] { edit(model, narrator); });
  edit::SaveRules rules;
  if (arguments.has("--save-external-data")) rules.external = arguments.value("--save-external-data");
  if (arguments.has("--external-data-size-threshold"))
    rules.threshold = parse_bytes("--external-data-size-threshold", arguments.value("--external-data-size-threshold"));
  if (arguments.has("--check")) check_agreement(before, model, narrator);
  const std::string path = arguments.value("--output");
  narrator.info("Saving ONNX model to: {}", path);
  edit::save(model, path, rules);
  narrator.info("New Model:\n{}", model_text(model, {}));
  narrator.info("Changed: {}", change_text(before, model));
  if (arguments.has("--json")) {
    nlohmann::ordered_json json{{"written", path}, {"changed", change_text(before, model)}};
    json["model"] = model_json(model, {});
    write_json_result(arguments, json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  narrator.info("PASSED | Command: {}", command);
  return ExitStatus::passed;
}

}  // namespace hone
