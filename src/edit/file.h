// SPDX-License-Identifier: Apache-2.0
//
// Models as files. External weights stay where they are when the model is written beside them, and are copied range by range, never
// held in memory, when it goes elsewhere.
#pragma once

#include <string>

#include "edit/model.h"

namespace hone::edit {

struct SaveRules {
  std::optional<std::string> external;  // weights go into this file beside the model; "": one named after the model
  int64_t threshold = 1024;             // of fewer bytes they stay in the model
};

/// Writes the model, then nothing refers to the old place of its weights. Throws Error for one of more than 2 GiB.
void save(const Model& model, const std::string& path, const SaveRules& rules = {});

}  // namespace hone::edit
