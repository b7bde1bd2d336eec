// SPDX-License-Identifier: Apache-2.0
//
// Collects a Diagnosis while the importer walks over a model.
#pragma once

#include <functional>
#include <set>

#include "base/error.h"
#include "onnx/diagnosis/diagnosis.h"
#include "onnx/proto.h"
#include "onnx/rules.h"

namespace hone::onnx {

/// A node that cannot be judged because it reads what a refused node makes.
class Unjudged : public Error {
 public:
  using Error::Error;
};
/// The same of what is no node's result: nobody can make the node right but who repairs that.
class Unreadable : public Unjudged {
 public:
  using Unjudged::Unjudged;
};

class Diagnoser {
 public:
  Diagnoser(const ModelProto& model, const Rules& rules);

  /// The order in which the model's own nodes are read.
  void set_order(const std::vector<size_t>& order) { order_ = order; }
  /// Weights whose data cannot be read are known by their types, and are no entry.
  void ignore_weights() { ignores_weights_ = true; }
  /// Entries from here on are about this node of the model's own, or about what is in it.
  void enter(size_t node);
  /// What logs call it.
  void set_name(const std::string& name) { diagnosis_.nodes[static_cast<size_t>(node_)].name = name; }
  /// The node is supported where no error was added meanwhile.
  void leave();

  /// Runs `body`; an Error becomes an entry, which begins with `where`. Returns whether there was none.
  bool attempt(ProblemKind problem, const std::string& where, const std::function<void()>& body);
  /// The same for a node. `stage` is what the importer was looking at when it failed, `operands` tells types.
  void attempt(const NodeProto& node, const std::string& name, const OpsetVersions& opsets, const ProblemKind& stage,
               const std::function<void()>& body, const std::function<std::vector<std::string>()>& operands);
  void warn(ProblemKind problem, std::string text, std::string hint = {});
  /// Of a node that is read all the same.
  void warn_of_types(const NodeProto& node, const std::string& name, std::vector<std::string> operands,
                     const Error& fault);
  /// The type that the file gives for a tensor of the model's graph; null: none.
  const ValueProto* type_of(std::string_view tensor) const;

  Diagnosis take();

 private:
  Diagnostic& add(Severity severity, ProblemKind problem, const NodeProto* node, const std::string& name,
                  const Error& error);
  /// Entries about operators that nobody has, of a node that is not judged.
  void check_operators(const NodeProto& node, const std::string& name, const OpsetVersions& opsets);

  const Rules& rules_;
  Diagnosis diagnosis_;
  std::vector<ValueProto> types_;
  std::map<std::string_view, const ValueProto*> types_by_name_;
  std::vector<size_t> order_;
  std::set<const FunctionProto*> seen_;  // of the node that is not judged
  bool ignores_weights_ = false;
  int64_t node_ = -1;
  size_t errors_ = 0, errors_before_ = 0;  // those before the node
};

}  // namespace hone::onnx
