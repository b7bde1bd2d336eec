// SPDX-License-Identifier: Apache-2.0
//
// Element types and layouts in which the caller hands tensors over, where they differ from the model's own.
#pragma once

#include <map>
#include <set>
#include <string>

#include "builder/events/listener.h"
#include "builder/options.h"
#include "ir/graph.h"

namespace hone {

/// Layouts at the edge of the network; what is not named is linear. Inside, layouts belong to tactics, not to values.
struct EdgeLayouts {
  std::map<const Value*, Layout> inputs, outputs;

  Layout of_input(const Value* value) const { return find(inputs, value); }
  Layout of_output(const Value* value) const { return find(outputs, value); }

 private:
  static Layout find(const std::map<const Value*, Layout>& layouts, const Value* value) {
    const auto at = layouts.find(value);
    return at == layouts.end() ? Layout::linear : at->second;
  }
};

/// Puts a Cast behind every input and before every output whose element type is asked to differ; in int8 and fp8, where the model has
/// floats, a DequantizeLinear and a QuantizeLinear with the tensor's scale. Names stay.
/// Throws Error when the number of formats is not the number of tensors, or where a scale is missing.
void cast_io(Graph& graph, const BuildOptions& options, const TensorScales& scales, const Listeners& listeners);
/// Inputs and outputs in floats that are asked for in int8 or fp8 and of which the model itself says no scale.
std::set<std::string> edges_without_scale(const Graph& graph, const BuildOptions& options);
/// The layouts asked for of the inputs and the first `outputs` outputs; tensors without a channel axis and an image behind it
/// (rank < 3 or > 5) are linear, which listeners are told.
EdgeLayouts edge_layouts(const Graph& graph, size_t outputs, const BuildOptions& options, const Listeners& listeners);

}  // namespace hone
