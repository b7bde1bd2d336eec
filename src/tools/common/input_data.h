// SPDX-License-Identifier: Apache-2.0
//
// What inputs hold: files named on the command line.
#pragma once

#include <span>
#include <string>

#include "options/tool_options.h"
#include "tools/common/plan_view.h"

namespace hone {

/// The file for a tensor: an exact entry, else the first whose one '*' fits; null when there is none.
const std::string* input_file(const NamedTexts& files, const std::string& tensor);
/// Throws Error when an entry of --loadInputs names no input.
void check_input_files(const NamedTexts& files, std::span<const NetworkTensor> tensors);

/// Fills `memory` with values for a tensor of these sizes, from a raw file, or, by the name's ending, from NumPy's: .npy, or the
/// array with the tensor's name in a .npz, whose type and shape must be the tensor's.
void load_values(const std::string& path, const NetworkTensor& tensor, const Dims& dims, std::span<std::byte> memory);
/// Fills `memory` from the file; more bytes than needed are ignored, fewer are an error.
void load_raw(const std::string& path, std::span<std::byte> memory);
}  // namespace hone
