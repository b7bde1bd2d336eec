// SPDX-License-Identifier: Apache-2.0
//
// `hone run` as a comparison, from its command line to its exit status.
#pragma once

#include "tools/companion/arguments.h"
#include "tools/compare/values.h"

namespace hone {

/// `given`: what goes in, where the caller knows it.
ExitStatus compare_runs(const Arguments& arguments, const std::vector<TensorList>* given = nullptr);

}  // namespace hone
