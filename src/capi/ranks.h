// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capi/build_handles.h"

namespace hone::capi {

/// Whether a model does anything with other ranks.
bool divided(const hone_model& model);

}  // namespace hone::capi
