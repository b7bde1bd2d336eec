// SPDX-License-Identifier: Apache-2.0
//
// Sizes of inputs, and what has to change with them: shapes that an exporter wrote down as constants.
#pragma once

#include "edit/values.h"

namespace hone::edit {

/// Declares an input's sizes anew; its type stays. Throws UnknownName.
void set_input_sizes(Model& model, const std::string& input, const std::vector<Size>& sizes);

struct OpenedSize {
  std::vector<std::string> reshapes;  // nodes whose constant shape was changed
  std::vector<std::string> fixed;     // outputs that still do not depend on the name
};
/// Gives an axis of an input a name instead of a number. Constant shapes of Reshape nodes that held the number get -1 in its place, and all
/// types are inferred anew.
OpenedSize open_size(Model& model, const std::string& input, size_t axis, const std::string& name);

}  // namespace hone::edit
