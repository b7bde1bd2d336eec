// SPDX-License-Identifier: Apache-2.0
#include "tools/view/model_rows.h"

#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "edit/infer.h"
#include "edit/names.h"
#include "edit/parts.h"
#include "tools/view/weight_facts.h"

namespace hone {
namespace {

constexpr uint32_t kProducer = 2, kProducerVersion = 3, kDocumentation = 6;  // fields of a ModelProto

/// What is known of tensors by their names: of inference where it gets, else what is declared.
class Types {
 public:
  explicit Types(const edit::Model& model) {
    try {
      known_.emplace(model);
    } catch (
        const Error&) {  // a cycle, or what is no model of ONNX's rules: it is shown all the same, as far as it is declared
    }
    declare(model.graph);
  }
  void declare(const edit::Graph& graph) {
    for (const std::vector<edit::Value>* values : {&graph.values, &graph.outputs, &graph.inputs})
      for (const edit::Value& value : *values) declared_.insert_or_assign(value.name, edit::type_of(value));
    for (const edit::Weight& weight : graph.weights) declared_.insert_or_assign(weight.name, edit::type_of(weight));
  }
  ViewTensor tensor(const std::string& name, bool is_weight) const {
    ViewTensor tensor{.name = valid_utf8(name), .is_weight = is_weight};
    std::optional<edit::ValueType> type = known_ ? known_->of(name) : std::nullopt;
    if (!type || type->element == 0)
      if (const auto found = declared_.find(name); found != declared_.end()) type = found->second;
    if (!type || type->element == 0) return tensor;
    tensor.type = element_word(edit::numpy_name(type->element)).name;
    std::vector<std::string> sizes;
    for (const edit::Size& size : type->sizes.value_or(std::vector<edit::Size>()))
      sizes.push_back(size.number ? std::to_string(*size.number) : size.name.empty() ? "?" : valid_utf8(size.name));
    tensor.shape = join(sizes, "×");
    return tensor;
  }

 private:
  std::optional<edit::KnownTypes> known_;
  std::map<std::string, edit::ValueType, std::less<>> declared_;
};

/// Of the first result that is no index, else of the first operand.
std::string precision_of(const ViewNode& node) {
  for (const std::vector<ViewTensor>* side : {&node.outputs, &node.inputs})
    for (const ViewTensor& tensor : *side)
      if (!tensor.type.empty() && !is_index(element_word(tensor.type))) return tensor.type;
  return node.outputs.empty() ? "" : node.outputs[0].type;
}

class Reader {
 public:
  explicit Reader(const edit::Model& model) : model_(model), types_(model) {}

  std::vector<ViewGraph> read() {
    graphs_.emplace_back();
    for (const edit::Function& function : model_.functions) {
      functions_[function.domain + "." + function.name] = graphs_.size();
      graphs_.emplace_back();
    }
    fill(0, model_.graph.name, model_.graph);
    size_t at = 1;
    for (const edit::Function& function : model_.functions) {
      const edit::FunctionParts parts = edit::parts_of(function);
      fill(at++, fmt::format("{} (function)", function.name), parts.model.graph);
    }
    return std::move(graphs_);
  }

 private:
  void fill(size_t index, const std::string& title, const edit::Graph& graph) {
    types_.declare(graph);
    ViewGraph rows{.title = valid_utf8(title)};
    std::set<std::string, std::less<>> weights;
    for (const edit::Weight& weight : graph.weights) {
      weights.insert(weight.name);
      rows.weights.push_back(weight_facts(model_, weight));
    }
    for (const edit::Value& value : graph.inputs)
      if (!weights.contains(value.name)) rows.inputs.push_back(types_.tensor(value.name, false));
    for (const edit::Value& value : graph.outputs) rows.outputs.push_back(types_.tensor(value.name, false));
    for (size_t i = 0; i < graph.nodes.size(); ++i) rows.nodes.push_back(node_of(graph.nodes[i], i, weights));
    graphs_[index] = std::move(rows);
  }
  ViewNode node_of(const edit::Node& node, size_t position, const std::set<std::string, std::less<>>& weights) {
    ViewNode row{.name = valid_utf8(edit::label_of(node, position)),
                 .op = valid_utf8(node.op_type),
                 .domain = valid_utf8(node.domain)};
    for (const std::string& name : node.inputs) row.inputs.push_back(types_.tensor(name, weights.contains(name)));
    for (const std::string& name : node.outputs) row.outputs.push_back(types_.tensor(name, false));
    row.precision = precision_of(row);
    row.source = node.domain.empty() ? "ai.onnx" : row.domain;
    for (const edit::Attribute& attribute : node.attributes) {
      row.attributes.emplace_back(valid_utf8(attribute.name), valid_utf8(edit::attribute_text(attribute)));
      for (size_t body = 0; body < attribute.bodies.size(); ++body) {
        const std::string name =
            attribute.bodies.size() == 1 ? attribute.name : fmt::format("{}[{}]", attribute.name, body);
        row.bodies.emplace_back(valid_utf8(name), graphs_.size());
        graphs_.emplace_back();
        fill(graphs_.size() - 1, fmt::format("{} of {}", name, row.name), *attribute.bodies[body]);
      }
    }
    if (const auto called = functions_.find(node.domain + "." + node.op_type); called != functions_.end())
      row.bodies.emplace_back("function", called->second);
    return row;
  }

  const edit::Model& model_;
  Types types_;
  std::vector<ViewGraph> graphs_;
  std::map<std::string, size_t, std::less<>> functions_;
};

}  // namespace

ViewedModel view_of(const edit::Model& model, const std::string& title) {
  ViewedModel view{.title = title, .graphs = Reader(model).read()};
  int64_t parameters = 0, bytes = 0;
  for (const edit::Weight& weight : model.graph.weights) {
    parameters += edit::element_count(weight);
    bytes += edit::element_bytes(weight);
  }
  std::vector<std::string> opsets;
  for (const edit::Opset& opset : model.opsets)
    opsets.push_back(fmt::format("{} {}", opset.domain.empty() ? "ai.onnx" : opset.domain, opset.version));
  view.facts = {{"nodes", std::to_string(model.graph.nodes.size())},
                {"weights", fmt::format("{} of {} elements, {:.3f} MB", model.graph.weights.size(), parameters,
                                        static_cast<double>(bytes) / 1e6)},
                {"operator sets", valid_utf8(join(opsets, ", "))},
                {"IR version", std::to_string(model.ir_version)}};
  if (const std::string_view producer = edit::text_in(model.rest, kProducer); !producer.empty())
    view.facts.emplace_back("producer",
                            valid_utf8(fmt::format("{} {}", producer, edit::text_in(model.rest, kProducerVersion))));
  if (const std::string_view words = edit::text_in(model.rest, kDocumentation); !words.empty())
    view.facts.emplace_back("documentation", valid_utf8(words));
  return view;
}

}  // namespace hone
