// SPDX-License-Identifier: Apache-2.0
//
// The one array of backends.
#pragma once

#include <span>
#include <string_view>

#include "backend/device.h"

namespace hone {

std::span<const Backend* const> all_backends();
/// Null when there is none of this name.
const Backend* find_backend(std::string_view name);

}  // namespace hone
