// SPDX-License-Identifier: Apache-2.0
//
// What inputs hold: raw files named on the command line, or values drawn with a fixed seed, the same in every run.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "options/tool_options.h"
#include "plan/plan.h"

namespace hone {

inline constexpr uint64_t kRandomSeed = 2024;

/// The file for a tensor: an exact entry, else the first whose one '*' fits; null when there is none.
const std::string* input_file(const NamedTexts& files, const std::string& tensor);
/// Throws Error when an entry of --loadInputs names no input.
void check_input_files(const NamedTexts& files, const Plan& plan);

/// Fills `memory` from the file; more bytes than needed are ignored, fewer are an error.
void load_raw(const std::string& path, std::span<std::byte> memory);
/// Floats in [-1, 1]; bool, int32 and int64 0 or 1, since they often are indices; int8 and uint8 their whole range.
/// Values depend on the tensor's name alone. Padding of blocked layouts is zero.
void fill_random(const std::string& tensor, DType dtype, const Dims& dims, Layout layout, std::span<std::byte> memory);

}  // namespace hone
