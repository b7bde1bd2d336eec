// SPDX-License-Identifier: Apache-2.0
//
// Errors become entries: of which kind they are, where they were thrown says, or what the importer was looking at.
#include "onnx/diagnosis/diagnoser.h"

#include <algorithm>

#include "base/node_error.h"
#include "base/utf8.h"

namespace hone::onnx {
namespace {

ProblemKind problem_of(const Error& error, ProblemKind stage) {
  if (dynamic_cast<const AttributeError*>(&error) != nullptr) return ProblemKind::attribute;
  if (dynamic_cast<const TypeError*>(&error) != nullptr) return ProblemKind::type;
  if (dynamic_cast<const UnknownOperator*>(&error) != nullptr) return ProblemKind::unknown_operator;
  if (dynamic_cast<const OtherVersion*>(&error) != nullptr) return ProblemKind::version;
  return stage;
}

}  // namespace

Diagnoser::Diagnoser(const ModelProto& model, const Rules& rules) : rules_(rules) {
  if (!model.graph) return;
  const GraphProto& graph = *model.graph;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const NodeProto& node = graph.nodes[i];
    diagnosis_.nodes.push_back({display_name(node, i), valid_utf8(node.op_type), valid_utf8(node.domain)});
    order_.push_back(i);
  }
  for (const Bytes bytes : graph.value_types) {
    try {
      types_.push_back(parse_value(bytes));
    } catch (const Error&) {
      continue;  // nobody else reads them: a damaged one is as good as none
    }
  }
  for (const std::span<const ValueProto> list : {std::span(graph.outputs), std::span<const ValueProto>(types_)})
    for (const ValueProto& value : list)
      if (value.elem_type != 0 && value.is_tensor && (value.shape || !value.containers.empty()))
        types_by_name_.emplace(value.name, &value);
}

const ValueProto* Diagnoser::type_of(std::string_view tensor) const {
  const auto at = types_by_name_.find(tensor);
  return at == types_by_name_.end() ? nullptr : at->second;
}

Diagnostic& Diagnoser::add(Severity severity, ProblemKind problem, const NodeProto* node, const std::string& name,
                           const Error& error) {
  Diagnostic entry{.severity = severity,
                   .problem = problem,
                   .node = node_,
                   .name = name,
                   .operator_type = node == nullptr ? "" : valid_utf8(node->op_type),
                   .domain = node == nullptr ? "" : valid_utf8(node->domain),
                   .text = valid_utf8(error.message()),
                   .hint = valid_utf8(error.hint())};
  diagnosis_.entries.push_back(std::move(entry));
  if (severity == Severity::error) ++errors_;
  return diagnosis_.entries.back();
}

bool Diagnoser::attempt(ProblemKind problem, const std::string& where, const std::function<void()>& body) {
  try {
    body();
    return true;
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    if (problem == ProblemKind::weight && ignores_weights_) return false;
    Diagnostic& entry = add(Severity::error, problem_of(error, problem), nullptr, {}, error);
    if (!where.empty()) entry.text = fmt::format("{}: {}", valid_utf8(where), entry.text);
    return false;
  }
}

void Diagnoser::attempt(const NodeProto& node, const std::string& name, const OpsetVersions& opsets,
                        const ProblemKind& stage, const std::function<void()>& body,
                        const std::function<std::vector<std::string>()>& operands) {
  const size_t entries = diagnosis_.entries.size(), errors = errors_;
  try {
    body();
  } catch (const InternalError&) {
    throw;
  } catch (const Unjudged& error) {
    seen_.clear();
    if (errors_ == errors) check_operators(node, name, opsets);
    if (diagnosis_.entries.size() != entries) return;
    const bool broken = dynamic_cast<const Unreadable*>(&error) != nullptr;
    add(broken ? Severity::error : Severity::info, ProblemKind::not_judged, &node, name, error);
  } catch (const Error& error) {
    add(Severity::error, problem_of(error, stage), &node, name, error).operands = operands();
  }
}

void Diagnoser::warn(ProblemKind problem, std::string text, std::string hint) {
  add(Severity::warning, problem, nullptr, {}, Error(std::move(text), std::move(hint)));
}

void Diagnoser::warn_of_types(const NodeProto& node, const std::string& name, std::vector<std::string> operands,
                              const Error& fault) {
  add(Severity::warning, ProblemKind::type, &node, name, fault).operands = std::move(operands);
}

void Diagnoser::enter(size_t node) {
  node_ = static_cast<int64_t>(node);
  errors_before_ = errors_;
}

void Diagnoser::leave() {
  diagnosis_.nodes[static_cast<size_t>(node_)].supported = errors_ == errors_before_;
  node_ = -1;
}

void Diagnoser::check_operators(const NodeProto& node, const std::string& name, const OpsetVersions& opsets) {
  if (const FunctionProto* function = rules_.function(node)) {
    if (!seen_.insert(function).second) return;
    const OpsetVersions& own = function->opsets.empty() ? opsets : function->opsets;
    for (size_t i = 0; i < function->nodes.size(); ++i)
      check_operators(function->nodes[i], name + "/" + display_name(function->nodes[i], i), own);
    return;
  }
  try {
    rules_.require(node, opset_of(opsets, node.domain));
  } catch (const Error& error) {
    add(Severity::error, problem_of(error, ProblemKind::unknown_operator), &node, name, error);
  }
  for (const AttributeProto& attribute : node.attributes)
    if (attribute.graph)
      for (size_t i = 0; i < attribute.graph->nodes.size(); ++i)
        check_operators(attribute.graph->nodes[i], display_name(attribute.graph->nodes[i], i), opsets);
}

Diagnosis Diagnoser::take() {
  bool open = false;
  for (const size_t node : order_) {
    const bool supported = diagnosis_.nodes[node].supported;
    if (supported && !open) diagnosis_.runs.emplace_back();
    if (supported) diagnosis_.runs.back().push_back(node);
    open = supported;
  }
  return std::move(diagnosis_);
}

}  // namespace hone::onnx
