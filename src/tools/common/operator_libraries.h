// SPDX-License-Identifier: Apache-2.0
//
// Libraries of operators that the command line names: --staticPlugins, --dynamicPlugins, --setPluginsToSerialize.
#pragma once

#include "base/log.h"
#include "options/tool_options.h"

namespace hone {

/// Opens them, each once in a process, and says so. Throws Error where one cannot be had.
void open_operator_libraries(const ToolOptions& tool, const Logger& log);

}  // namespace hone
