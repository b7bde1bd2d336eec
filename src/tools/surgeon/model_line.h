// SPDX-License-Identifier: Apache-2.0
//
// What the commands that write a model share: how it is loaded and saved, what is told of it, and --check, which runs the old and the
// new model on the same inputs.
#pragma once

#include <functional>

#include "edit/model.h"
#include "tools/companion/arguments.h"
#include "tools/companion/narrator.h"

namespace hone {

/// The command's own flags, then -o, --check and those about external data.
std::vector<CompanionFlag> with_model_flags(std::vector<CompanionFlag> own);
/// Those about reading alone.
std::vector<CompanionFlag> with_load_flags(std::vector<CompanionFlag> own);

/// Throws a StatusError where the file is missing.
edit::Model load_model(const Arguments& arguments, const std::string& path);

/// Loads, edits, saves and tells; names that the model does not have are a usage error. Under --check both models' outputs must agree.
ExitStatus edit_model(const Arguments& arguments, const std::function<void(edit::Model&, const Narrator&)>& edit);

/// "nodes 4 -> 3, initialisers 2 -> 2, ops -Min -Max +Clip"
std::string change_text(const edit::Model& before, const edit::Model& after);

}  // namespace hone
