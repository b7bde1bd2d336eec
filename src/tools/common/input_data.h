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

/// Fills `memory` with values for a tensor of these sizes, from a raw file, or, by the name's ending, from NumPy's: .npy, or the
/// array with the tensor's name in a .npz, whose type and shape must be the tensor's.
void load_values(const std::string& path, const IoTensor& tensor, const Dims& dims, std::span<std::byte> memory);
/// Fills `memory` from the file; more bytes than needed are ignored, fewer are an error.
void load_raw(const std::string& path, std::span<std::byte> memory);
/// Integers from the input's range where the plan gives one; else floats in [-1, 1]; bool, int32 and int64 0 or 1; int8 and
/// uint8 their whole range.
/// Values depend on the tensor's name and the seed alone. Padding of blocked layouts is zero.
void fill_random(const IoTensor& input, const Dims& dims, std::span<std::byte> memory, uint64_t seed = kRandomSeed);

}  // namespace hone
