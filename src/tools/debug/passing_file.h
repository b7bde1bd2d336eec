// SPDX-License-Identifier: Apache-2.0
//
// Files that live for one iteration: written whole or not at all, as others are, but not forced to the disk, which takes longer than
// the rest of an iteration.
#pragma once

#include <span>
#include <string>

#include "edit/model.h"

namespace hone {

/// Throws Error where it cannot be written.
void write_passing_file(const std::string& path, std::span<const std::span<const std::byte>> pieces);
void write_passing_file(const std::string& path, std::string_view text);
/// Weights in other files go into one beside `path`.
void write_passing_model(const std::string& path, const edit::Model& model);

}  // namespace hone
