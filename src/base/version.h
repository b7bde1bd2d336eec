// SPDX-License-Identifier: Apache-2.0
//
// Hone's version.
#pragma once

#include <cstdint>

namespace hone {

inline constexpr uint32_t kVersionMajor = 0, kVersionMinor = 1, kVersionPatch = 0;
inline constexpr const char* kVersion = "0.1.0";
inline constexpr const char* kVersionDate = "2026-11-24";

}  // namespace hone
