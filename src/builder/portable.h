// SPDX-License-Identifier: Apache-2.0
//
// The part of a plan that does not depend on the device: kept when asked for, and built from where the tuned part does not
// fit the machine or the version.
#pragma once

#include "builder/events/listener.h"
#include "device/device.h"
#include "ir/graph.h"
#include "plan/plan.h"

namespace hone {

PortablePart portable_part(const Graph& graph);
/// The plan with tactics chosen for this device by rule, nothing timed; `plan` must have its portable part.
Plan retarget(const Plan& plan, const Backend& backend, Device& device, const Listeners& listeners,
              const OperatorList& operators = {});

}  // namespace hone
