// SPDX-License-Identifier: Apache-2.0
//
// A region that is an operator of a program (ir/custom.h), as backends launch it: what they offer, what a plan keeps, and the call
// at concrete sizes. A plan keeps the region itself, with its constants as further operands, so that sizes are inferred anew and the
// operator is found by its name.
#pragma once

#include <memory>
#include <optional>

#include "device/tactic.h"
#include "ir/custom.h"

namespace hone {

/// The node of a region that is nothing else, shape data apart; null for all others.
const Node* custom_node(const Graph& region);

/// Offers "custom.<name>", once for each layout that the operator takes.
void offer_custom(const Problem& problem, std::string_view name, Candidates& out);
/// The region for load(), and what it reads of constants.
Compiled compile_custom(const Problem& problem);

/// The operator at concrete sizes, as a kernel holds it.
class CustomLaunch {
 public:
  /// Throws Error where the operator is not among those of the program, or gives other sizes than the plan says.
  CustomLaunch(const Blob& code, const KernelShapes& shapes);

  const CustomOperator& op() const { return *op_; }
  const Node& node() const { return *node_; }
  size_t workspace_bytes() const { return workspace_; }
  /// Shape data that the host holds are among the operands.
  bool reads_host() const { return !host_.empty(); }
  CustomCall call(const Bindings& bindings) const;
  /// Without memory.
  const CustomCall& form() const { return *form_; }

 private:
  struct Operand {
    enum class From : uint8_t { nowhere, input, constant, host } from = From::nowhere;
    size_t index = 0;
  };
  /// Which output of the region a result of the node is; or where in the workspace it lies.
  struct Result {
    std::optional<size_t> output;
    size_t offset = 0;
  };
  void find_operands(const KernelShapes& shapes);
  void find_results(const KernelShapes& shapes);

  Graph region_;
  const Node* node_;
  std::shared_ptr<const CustomOperator> op_;
  std::vector<Operand> operands_;
  std::vector<Tensor> host_;  // shape data
  std::vector<Result> results_;
  std::optional<CustomCall> form_;
  size_t workspace_ = 0;  // the operator's own, and behind it the results that nobody reads
};

}  // namespace hone
