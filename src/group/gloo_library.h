// SPDX-License-Identifier: Apache-2.0
//
// libhone_gloo.so, opened when first asked for.
#pragma once

#include "gloo/gloo_table.h"

namespace hone {

/// Throws GroupError saying what is missing and what to do.
const HoneGlooTable& gloo_library();

}  // namespace hone
