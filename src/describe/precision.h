// SPDX-License-Identifier: Apache-2.0
//
// In which precision an engine really computes: layers and share of the tuned time per element type.
#pragma once

#include <string>

#include "plan/plan.h"

namespace hone {

/// "FP32 in 20 of 21 layers (99.8 % of the tuned time), INT64 in 1 (0.2 %)"; without shares where nothing was timed. Views count
/// as no layer.
std::string precision_text(const Profile& profile);

}  // namespace hone
