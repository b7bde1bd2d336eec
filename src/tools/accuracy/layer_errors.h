// SPDX-License-Identifier: Apache-2.0
//
// An engine in few bits beside the same network in FP32, layer by layer in one pass. It runs twice: once as it is, so that errors
// add up, and once with every layer's results replaced by the exact ones, so that what is seen is what each layer adds.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "precision/running_plan.h"
#include "tools/accuracy/counterparts.h"
#include "tools/model/tensor_errors.h"

namespace hone {

/// What a layer computes, against FP32, over all samples.
struct LayerError {
  const Step* step = nullptr;
  DType type = DType::f32;
  TensorError error;         // with what came in
  double alone = 0;          // relative, from exact operands
  double low = 0, high = 0;  // of the exact values
  TypeLimits limits;         // of the type
  double beyond = 0,
         below = 0;  // shares of the exact values: out of the limits; nearer to 0 than the type can tell, 0 apart
};

class LayerErrors {
 public:
  /// Two engines of the network in few bits, which are told apart by what is done to them, and one in FP32 that has a buffer for
  /// each tensor of `exact_tensors()`. They have to stay.
  LayerErrors(RunningPlan& free, RunningPlan& led, RunningPlan& exact,
              const std::map<std::string, Counterpart, std::less<>>& counterparts);

  /// One inference of each.
  void add(const Sample& sample);
  /// In the order of the steps.
  std::vector<LayerError> errors() const;
  /// How many tensors in FP32 were waiting for their layer at a time, at most.
  size_t most_waiting() const { return most_waiting_; }

 private:
  struct Row {
    ErrorSums free, led;
    double low = 0, high = 0;
    size_t elements = 0, beyond = 0, below = 0;
  };
  class Pass;
  /// Null where there is nothing to hold a buffer against.
  const Counterpart* counterpart(BufferId id) const;

  RunningPlan &free_, &led_, &exact_;
  const std::map<std::string, Counterpart, std::less<>>& counterparts_;
  std::set<std::string> exact_names_;
  std::map<BufferId, Row> rows_;
  size_t most_waiting_ = 0;
};

/// Tensors in FP32 that a plan's layers can be held against.
std::vector<std::string> exact_tensors(const Plan& plan, const Graph& exact,
                                       const std::map<std::string, Counterpart, std::less<>>& counterparts);

}  // namespace hone
