// SPDX-License-Identifier: Apache-2.0
//
// Small real plans: of every family of every CPU source the tactics it offers for a region made for it, one step each, and
// some whole networks through the builder. Tensors are tiny, so that a plan runs in microseconds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "ir/graph.h"
#include "plan/plan.h"

namespace hone::fuzz {

struct PlanSample {
  std::string label;  // "cpu.conv", "network 2"
  Plan plan;
};

/// The program's operators that the samples call: who loads them brings these.
const OperatorList& sample_operators();
std::vector<PlanSample> plan_samples(const Backend& backend, Device& device);

}  // namespace hone::fuzz
