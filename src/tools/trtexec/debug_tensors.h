// SPDX-License-Identifier: Apache-2.0
//
// Files of debug tensors: --saveDebugTensors writes the raw bytes of some, --saveAllDebugTensors all of them in up to four
// forms: NAME.raw, NAME.str (a line of text per row), NAME.npy and tensor_summary.json.
#pragma once

#include "base/log.h"
#include "options/tool_options.h"
#include "tools/common/api.h"

namespace hone {

/// Before a run: throws Error for a name that is no debug tensor of the engine; warns when all of none are asked for.
void check_debug_requests(hone_context* context, const ToolOptions& options, const Logger& log);
/// Behind it: writes what the run has left.
void save_debug_tensors(hone_context* context, const ToolOptions& options, const Logger& log);

}  // namespace hone
