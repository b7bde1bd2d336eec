// SPDX-License-Identifier: Apache-2.0
//
// What flags ask of a model before it is built: checks, sparsity, shapes, calibration.
#pragma once

#include "base/log.h"
#include "options/tool_options.h"
#include "tools/common/api.h"

namespace hone {

/// The options of the build that the command line describes. Says what it finds in the model and does to it; throws Error where flags
/// do not fit it.
Owned<hone_options> prepare_build(hone_model& model, const hone_device& device, const Options& options,
                                  const Logger& log);

}  // namespace hone
