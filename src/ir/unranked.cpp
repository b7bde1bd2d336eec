// SPDX-License-Identifier: Apache-2.0
//
// Inference for operands whose rank only a run decides (elements of sequences, branches that differ): a trial at several
// ranks with sizes made up, of which only the element types are kept. Such values live on the host and run on the reference.
#include <array>

#include "ir/op.h"

namespace hone {
namespace {

/// Ranks in the order in which operators are likely to accept them.
constexpr std::array kTrialRanks{4, 2, 1, 3, 0, 5};

Shape trial_shape(size_t operand, int rank) {
  std::vector<Dim> dims;
  for (int axis = 0; axis < rank; ++axis) dims.push_back(Dim::symbol(fmt::format("trial_{}_{}", operand, axis)));
  return Shape(std::move(dims));
}

/// Puts the operands' types back however the trial ends.
class Restore {
 public:
  explicit Restore(Node& node) : node_(node) {
    for (const Value* input : node.inputs) types_.push_back(input == nullptr ? TensorType() : input->type);
  }
  ~Restore() {
    for (size_t i = 0; i < types_.size(); ++i)
      if (node_.inputs[i] != nullptr) node_.inputs[i]->type = types_[i];
  }
  const TensorType& type(size_t i) const { return types_[i]; }

 private:
  Node& node_;
  std::vector<TensorType> types_;
};

void try_rank(Node& node, const Restore& original, int rank) {
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i] != nullptr && !original.type(i).ranked)
      node.inputs[i]->type = {original.type(i).dtype, trial_shape(i, rank), Layout::linear};
  InferContext context(node);
  if (node.op->infer != nullptr) node.op->infer(context);
  else infer_pointwise(context);
}

}  // namespace

void infer_unranked(Node& node) {
  const Restore original(node);
  for (size_t trial = 0; trial < kTrialRanks.size(); ++trial) {
    try {
      try_rank(node, original, kTrialRanks[trial]);
    } catch (const Error&) {
      if (trial + 1 == kTrialRanks.size()) throw;
      continue;
    }
    for (Value* output : node.outputs) {
      if (output->type.element == nullptr) output->type = unranked(output->type.dtype);
      output->symbolic = nullptr;
    }
    return;
  }
}

}  // namespace hone
