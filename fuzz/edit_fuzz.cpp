// SPDX-License-Identifier: Apache-2.0
//
// The bytes of an ONNX model, whatever they are, go through each edit that `hone surgeon` and graph.h make. An edit is refused with an Error
// or ends; what is written then is read again and writes as itself. Names that edits need are taken from the model itself.
#include <functional>

#include "edit/changes/change.h"
#include "edit/changes/clean.h"
#include "edit/changes/compare.h"
#include "edit/changes/dynamic.h"
#include "edit/changes/extract.h"
#include "edit/changes/fold.h"
#include "edit/changes/pattern.h"
#include "edit/changes/simplify.h"
#include "edit/changes/sparsity.h"
#include "edit/changes/unbounded.h"
#include "edit/infer.h"
#include "edit/parts.h"
#include "edit/sparse.h"
#include "harness.h"
#include "model_samples.h"

namespace hone::fuzz {
namespace {

using edit::Model;

std::string first_input(const Model& model) {
  return model.graph.inputs.empty() ? "x" : model.graph.inputs.front().name;
}
std::string first_output(const Model& model) {
  return model.graph.outputs.empty() ? "y" : model.graph.outputs.front().name;
}
/// A result of a node in the middle.
std::string middle(const Model& model) {
  const std::vector<edit::Node>& nodes = model.graph.nodes;
  if (nodes.empty() || nodes[nodes.size() / 2].outputs.empty()) return "m";
  return nodes[nodes.size() / 2].outputs.front();
}

void read_everything(Model& model) {
  for (const edit::Weight& weight : model.graph.weights) accepted([&] { (void)edit::tensor_of(model, weight); });
  for (const edit::Value& sparse : model.graph.sparse) accepted([&] { (void)edit::dense_of(model, sparse); });
  for (const edit::Node& node : model.graph.nodes)
    for (const edit::Attribute& attribute : node.attributes) (void)edit::attribute_text(attribute);
  const edit::KnownTypes known(model);
  for (const edit::Value& output : model.graph.outputs)
    if (const auto type = known.of(output.name)) (void)edit::sizes_text(*type);
}

void put_functions_again(Model& model) {
  std::vector<edit::Function> made;
  for (const edit::Function& function : model.functions) {
    edit::FunctionParts parts = edit::parts_of(function);
    made.push_back(edit::function_of(model, parts));
  }
  model.functions = std::move(made);
  model.graph = edit::deep_copy(model.graph);
}

void fold(Model& model) {
  edit::FoldRules rules;
  rules.most_bytes = 1 << 16;
  edit::constants_to_weights(model);
  edit::fold_constants(model, rules);
}

void cut(Model& model) {
  edit::Boundary input{middle(model), {}, {}}, output{first_output(model), {}, {}};
  edit::extract(model, {input}, {output});
}

void insert(Model& model) {
  edit::insert_node(model, {"LeakyRelu", "inserted", "", {first_input(model)}, {middle(model)}, {{"alpha", 0.5}}});
}

void set_weights(Model& model) {
  for (size_t i = 0; i < model.graph.weights.size(); ++i) {
    const edit::Weight& weight = model.graph.weights[i];
    const std::string name = weight.name;
    accepted([&] { edit::set_weight(model, name, edit::tensor_of(model, weight)); });
  }
}

void change_nodes(Model& model) {
  if (model.graph.nodes.empty()) return;
  edit::set_attribute(model, model.graph.nodes.front(), "axis", int64_t{1});
  edit::rename(model, middle(model), "another");
  edit::replace_uses(model.graph, first_input(model), "another");
  edit::remove_node(model, 0);
}

void bound(Model& model) {
  for (const std::string& tensor : edit::unbounded_sizes(model)) edit::set_upper_bound(model, tensor, 10);
}

struct Edit {
  const char* name;
  void (*apply)(Model&);
};

constexpr Edit kEdits[] = {
    {"read", read_everything},
    {"functions", put_functions_again},
    {"clean", [](Model& model) { edit::clean(model); }},
    {"sort", [](Model& model) { edit::sort_nodes(model); }},
    {"infer", [](Model& model) { edit::infer_shapes(model, true); }},
    {"fold", fold},
    {"extract", cut},
    {"insert", insert},
    {"weights", set_weights},
    {"nodes", change_nodes},
    {"replace",
     [](Model& model) {
       edit::replace_matches(model, edit::parse_pattern("Max(Min($x, $hi), $lo)"),
                             edit::parse_pattern("Clip($x, $lo, $hi)"));
     }},
    {"open",
     [](Model& model) {
       edit::open_sizes(model, {{first_input(model), 0, "N"}});
     }},
    {"casts", [](Model& model) { edit::drop_casts(model); }},
    {"ifs", [](Model& model) { edit::flatten_ifs(model); }},
    {"results",
     [](Model& model) {
       edit::replace_matches(model, edit::parse_pattern("$m = Min($x, $v); Max($m, #w); $m"),
                             edit::parse_pattern("Clip($x, $v, #w); Neg($x)"));
     }},
    {"bound", bound},
    {"prune", [](Model& model) { edit::prune(model, {}); }},
    {"strip",
     [](Model& model) {
       edit::strip_weights(model, {});
       edit::reconstruct_weights(model);
     }},
};

/// What is written reads and writes as itself.
void write_again(const Model& model, const char* edit) {
  const std::string written = edit::encode(model).text();
  const Model read = with_note([&] { return fmt::format("reading what was written after {}", edit); },
                               [&] { return edit::read_model(Blob::copy(written), ""); });
  HONE_ASSERT(edit::encode(read).text() == written, "after {} a model of {} bytes is written otherwise", edit,
              written.size());
  HONE_ASSERT(edit::compare(read, read).empty(), "after {} a model differs from itself", edit);
}

}  // namespace

std::vector<std::string> seed_inputs() { return model_samples(); }

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const Blob bytes = Blob::copy(std::as_bytes(std::span(data, size)));
  std::optional<edit::Model> model;
  fuzz::accepted([&] { model = edit::read_model(bytes, ""); });
  if (!model) return 0;
  fuzz::write_again(*model, "reading");
  for (const fuzz::Edit& each : fuzz::kEdits) {
    edit::Model edited = *model;
    edited.graph = edit::deep_copy(model->graph);
    if (fuzz::accepted([&] { each.apply(edited); })) fuzz::write_again(edited, each.name);
  }
  return 0;
}
