// SPDX-License-Identifier: Apache-2.0
//
// `hone run` as a comparison, from its command line to its exit status.
#pragma once

#include "tools/companion/arguments.h"

namespace hone {

ExitStatus compare_runs(const Arguments& arguments);

}  // namespace hone
