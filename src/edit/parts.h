// SPDX-License-Identifier: Apache-2.0
//
// Bodies and functions as values: copies that share nothing with what they come from, and a function as a graph of its own, so that
// all that edits graphs edits functions. Words of a model (documentation, producer) that stand among what is kept.
#pragma once

#include "edit/values.h"

namespace hone::edit {

/// A copy whose bodies are its own.
Graph deep_copy(const Graph& graph);
Node deep_copy(const Node& node);

/// A function taken apart.
struct FunctionParts {
  Model model;  // its nodes, inputs and outputs as the graph; its operator sets
  std::string domain, overload;
  std::vector<Attribute> parameters;  // type 0: one without a default
};
/// The parts view what the function views.
FunctionParts parts_of(const Function& function);
/// What is made anew is kept by `into`. Weights of the parts become Constant nodes.
Function function_of(Model& into, const FunctionParts& parts);

/// The text of a field that nobody takes; "" where there is none.
std::string_view text_in(const Rest& rest, uint32_t number);
void set_text(Model& model, Rest& rest, uint32_t number, std::string_view text);

}  // namespace hone::edit
