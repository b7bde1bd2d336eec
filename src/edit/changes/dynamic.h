// SPDX-License-Identifier: Apache-2.0
//
// Sizes of inputs, and what has to change with them: shapes that an exporter wrote down as constants.
#pragma once

#include "edit/values.h"

namespace hone::edit {

/// Declares an input's sizes anew; its type stays. Throws UnknownName.
void set_input_sizes(Model& model, const std::string& input, const std::vector<Size>& sizes);

/// An axis of an input that gets a name instead of a number.
struct OpenAxis {
  std::string input;
  size_t axis = 0;
  std::string name;
};
struct OpenedSizes {
  std::vector<std::string> reshapes;  // nodes whose constant shape was changed
  std::vector<std::string> slices;    // nodes that reach to their axis's end now
  std::vector<std::string> others;    // nodes whose constant sizes come from an input now
  std::vector<std::string> fixed;     // outputs that still do not depend on any name
};
/// Opens them all. Constant shapes of Reshape nodes that held a number get -1 in its place, ends of Slice nodes that were the axis's end
/// follow it. Constant sizes of Expand, Tile, ConstantOfShape and Reshape that are the number become the input's size, where without that
/// a node would not take inputs of other sizes. All types are inferred anew. Throws UnknownName for what is no input.
OpenedSizes open_sizes(Model& model, const std::vector<OpenAxis>& axes);

}  // namespace hone::edit
