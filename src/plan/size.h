// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/plan.h"

namespace hone {

/// How many bytes save_plan() gives, without making them.
uint64_t plan_file_bytes(const Plan& plan);

}  // namespace hone
