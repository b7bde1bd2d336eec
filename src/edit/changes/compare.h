// SPDX-License-Identifier: Apache-2.0
//
// How two models differ: nodes by name, and where names say nothing by what they make; weights by their elements.
#pragma once

#include "edit/values.h"

namespace hone::edit {

struct ModelDifference {
  std::vector<std::string> added, removed;                   // nodes
  std::vector<std::pair<std::string, std::string>> changed;  // node, how
  std::vector<std::string> others;  // inputs, outputs, weights, operator sets, functions: a sentence each

  bool empty() const { return added.empty() && removed.empty() && changed.empty() && others.empty(); }
};

ModelDifference compare(const Model& before, const Model& after);

}  // namespace hone::edit
