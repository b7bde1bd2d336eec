// SPDX-License-Identifier: Apache-2.0
//
// Rules: which operator handles an ONNX node, and which nodes of a model none does. Order of nodes by their names.
#pragma once

#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "ir/op.h"
#include "onnx/proto.h"

namespace hone::onnx {

class UnknownOperator : public Error {
 public:
  using Error::Error;
};
/// The operator is known, but not as this version of its operator set has it.
class OtherVersion : public Error {
 public:
  using Error::Error;
};

struct RuleMatch {
  const OpDef* op = nullptr;
  const OnnxRule* rule = nullptr;
  explicit operator bool() const { return rule != nullptr; }
};

/// Every operator that models may use; the operator of a rule that writes several nodes is Identity.
std::vector<RuleMatch> all_rules();

using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;  // domain, name, overload
inline FunctionKey key_of(const NodeProto& node) { return {node.domain, node.op_type, node.overload}; }

class Rules {
 public:
  Rules(const ModelProto& model, const OperatorList& operators);

  const FunctionProto* function(const NodeProto& node) const;
  RuleMatch find(const NodeProto& node, int opset) const;
  /// Throws UnknownOperator or OtherVersion where find() finds nothing.
  RuleMatch require(const NodeProto& node, int opset) const;
  /// Throws one Error that lists every operator of the model that has neither a rule nor a function.
  void check_all(const ModelProto& model) const;

 private:
  struct Missing;
  /// Those of the program: in place of the model's functions, and of Hone's own where they say so.
  void add_brought(const OperatorList& operators);
  void collect(const std::vector<NodeProto>& nodes, const OpsetVersions& opsets, Missing& missing) const;
  std::string hint_for(const Missing& missing) const;

  std::map<std::pair<std::string_view, std::string_view>, std::vector<RuleMatch>> rules_;  // domain, operator
  std::map<FunctionKey, const FunctionProto*> functions_;
};

/// The version under which a node of this domain is read.
int opset_of(const OpsetVersions& opsets, std::string_view domain);

/// Every value that a node reads from its own graph, by its operands or by names in attributes (Gradient).
std::vector<std::string_view> names_read(const NodeProto& node);

/// "Conv_12" for an unnamed node at position 12.
std::string display_name(const NodeProto& node, size_t index);

/// The nodes' positions in an order where producers come first: the given order when it is one already.
/// Throws Error for a cycle and for two producers of one name.
std::vector<size_t> sorted_order(const std::vector<NodeProto>& nodes);

}  // namespace hone::onnx
