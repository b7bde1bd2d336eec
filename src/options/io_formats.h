// SPDX-License-Identifier: Apache-2.0
//
// What the builder makes of --inputIOFormats and --outputIOFormats.
#pragma once

#include "options/tool_options.h"

namespace hone {

/// One format per entry; of the layouts that an entry allows, the first that can be bound. `warnings` gets a line for an entry
/// of which none can. Throws Error for types that no network input or output has.
std::vector<IoFormat> bound_formats(const std::vector<IoFormatSpec>& specs, std::string_view flag,
                                    std::vector<std::string>& warnings);

}  // namespace hone
