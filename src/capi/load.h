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

}  // namespace hone::capi
