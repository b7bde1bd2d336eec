// SPDX-License-Identifier: Apache-2.0
//
// An engine's layers as a time line names them, with the bytes of tensors that are alive while each runs.
#pragma once

#include <vector>

#include "report/time_line.h"
#include "tools/common/plan_view.h"

namespace hone {

/// Tensors whose sizes are not fixed count nothing.
std::vector<TimeLineLayer> time_line_layers(const hone_plan* plan, int profile);

}  // namespace hone
