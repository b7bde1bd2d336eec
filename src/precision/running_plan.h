// SPDX-License-Identifier: Apache-2.0
//
// A plan at work, to be compared with other plans of the same network.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "perf/benchmark.h"
#include "precision/contest.h"
#include "runtime/engine.h"

namespace hone {

/// What a network is given, linear, by input. Inputs that are missing, that are bound in another type, or whose shape is beyond
/// the profile get values drawn at random at the profile's best shape.
using Sample = std::map<std::string, Tensor>;

using NamedTensors = std::map<std::string, Tensor>;

class RunningPlan final : public Contender {
 public:
  /// Runs the first inference. `expected` are the outputs that its own are held against; null: nothing. Throws Error for
  /// what cannot be bound, and what a run throws.
  RunningPlan(Plan plan, const Backend& backend, const std::shared_ptr<Device>& device, const Sample& sample,
              const NamedTensors* expected, const OperatorList& operators = {});

  /// Another inference, on other values of the same shapes.
  void run(const Sample& sample);
  ExecutionContext& context() { return query_->context(); }
  const Plan& plan() const { return plan_; }
  /// Of the last inference that was run on a sample, linear.
  const NamedTensors& outputs() const { return outputs_; }

  double error() const override { return error_; }
  double burst() override;
  std::vector<LayerTime> layer_times() override;

 private:
  void set_shapes(ExecutionContext& context, const Sample& sample) const;
  void fill_inputs(const Sample& sample);
  void read_outputs();

  Plan plan_;
  std::unique_ptr<Query> query_;
  NamedTensors outputs_;
  double error_ = 0, usual_ms_ = 0;
};

}  // namespace hone
