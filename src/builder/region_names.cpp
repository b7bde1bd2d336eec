// SPDX-License-Identifier: Apache-2.0
//
// What a region is called, and which nodes of the model it stands for.
#include <algorithm>

#include "base/text.h"
#include "builder/regions.h"
#include "passes/edit.h"

namespace hone {

/// Several nodes that a pass made of one carry its name with numbers behind it: they are named once. A node of the model may be named
/// like that, too, and stays.
std::string Region::name() const {
  const std::vector<std::string> of_the_model = origin();
  std::vector<std::string_view> names;
  const auto is_known = [&](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
  const auto is_numbered = [&](std::string_view name) {
    const size_t end = name.find_last_not_of("0123456789");
    return end != std::string_view::npos && end + 1 < name.size() && name[end] == '_' &&
           is_known(name.substr(0, end)) && std::ranges::find(of_the_model, name) == of_the_model.end();
  };
  for (const Node* node : nodes)
    for (const std::string_view name : name_parts(node->name))
      if (!is_known(name) && !is_numbered(name)) names.push_back(name);
  return join(names, " + ");
}

std::vector<std::string> Region::origin() const {
  std::vector<std::string> result;
  for (const Node* node : nodes)
    for (const std::string& name : node->origin)
      if (std::find(result.begin(), result.end(), name) == result.end()) result.push_back(name);
  return result;
}

}  // namespace hone
