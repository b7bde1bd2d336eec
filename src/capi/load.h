// SPDX-License-Identifier: Apache-2.0
//
// From a plan to an engine. Two definitions: full builds choose tactics anew where a plan does not fit, minimal ones cannot.
#pragma once

#include "backends/all.h"
#include "base/log.h"
#include "runtime/engine.h"

namespace hone::capi {

/// `operators` are those of the program; throws Error where the plan needs one that is not there, or is another.
std::shared_ptr<const Engine> load_engine(const Plan& plan, const OpenDevice& device, const Logger& log,
                                          const OperatorList& operators);

/// Makes the device that of a rank, where the plan needs others and the process has them; without them, it says so when it is to run.
void join_group(const Plan& plan, Device& device);

}  // namespace hone::capi
