// SPDX-License-Identifier: Apache-2.0
//
// Flags that name layers of the model, held against the plan that was built.
#pragma once

#include "base/log.h"
#include "options/tool_options.h"
#include "tools/common/api.h"

namespace hone {

/// Says of every layer that a flag names, patterns apart, whether the plan has the type that was asked for.
void report_layer_types(const hone_plan* plan, const Options& options, const Logger& log);

}  // namespace hone
