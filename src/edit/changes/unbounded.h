// SPDX-License-Identifier: Apache-2.0
//
// Sizes that only a run knows and nothing bounds (the limit of a Range, ...), and bounds for them: a Min before the node that reads them.
#pragma once

#include "edit/values.h"

namespace hone::edit {

/// The tensors that hold such sizes, in the graph's order: results of nodes that are not Min themselves.
std::vector<std::string> unbounded_sizes(const Model& model);
/// The tensor is what a Min of it and the bound makes; the Min stands before its readers.
void set_upper_bound(Model& model, const std::string& tensor, int64_t bound);

}  // namespace hone::edit
