// SPDX-License-Identifier: Apache-2.0
//
// Types become Cast nodes, which fuse like any other; layouts become reformat layers, chosen and timed like any other.
#include "builder/prepare/io_formats.h"

#include "ops/ops.h"

namespace hone {
namespace {

/// One format per tensor, or none at all.
std::vector<IoFormat> broadcast(const std::vector<IoFormat>& formats, size_t tensors, std::string_view direction) {
  if (formats.size() == 1) return std::vector<IoFormat>(tensors, formats[0]);
  if (!formats.empty() && formats.size() != tensors)
    throw Error(fmt::format("The number of {0}IOFormats must match network's {0}s: {1} are given for {2}", direction,
                            formats.size(), tensors),
                "give one for each, or one for all");
  return formats;
}
std::vector<IoFormat> input_formats(const Graph& graph, const BuildOptions& options) {
  return broadcast(options.input_formats, graph.inputs().size(), "input");
}
std::vector<IoFormat> output_formats(size_t outputs, const BuildOptions& options) {
  return broadcast(options.output_formats, outputs, "output");
}

Node* cast(Graph& graph, Value* value, DType to, Node* before) {
  const Attrs attrs{{"to", std::string(name_of(to))}};
  const std::string name = fmt::format("{} to {}", value->name, name_of(to));
  return before != nullptr ? graph.insert(before, ops::cast, {value}, attrs, name)
                           : graph.add(ops::cast, {value}, attrs, name);
}

void cast_input(Graph& graph, Value* input, DType type) {
  const DType model_type = input->type.dtype;
  if (type == model_type) return;
  const std::vector<Node*> nodes = graph.nodes();
  input->type.dtype = type;
  Node* node = cast(graph, input, model_type, nodes.empty() ? nullptr : nodes.front());
  const std::string name = input->name;
  graph.replace(input, node->output());
  graph.set_input(node, 0, input);
  input->name = name;
}

Value* cast_output(Graph& graph, Value* output, DType type) {
  if (type == output->type.dtype) return output;
  Value* result = cast(graph, output, type, nullptr)->output();
  result->name = output->name;
  if (output->producer != nullptr) output->name = graph.unique_name(output->name + "_computed");
  return result;
}

void add_layouts(const std::vector<Value*>& values, const std::vector<IoFormat>& formats, const Listeners& listeners,
                 std::map<const Value*, Layout>& layouts) {
  for (size_t i = 0; i < formats.size(); ++i) {
    if (formats[i].layout == Layout::linear) continue;
    const size_t rank = values[i]->type.shape.rank();
    if (rank >= 3 && rank <= 5) layouts[values[i]] = formats[i].layout;
    else listeners.tell(&BuildListener::stays_linear, *values[i], formats[i].layout);
  }
}

}  // namespace

void cast_io(Graph& graph, const BuildOptions& options) {
  const std::vector<IoFormat> in = input_formats(graph, options), out = output_formats(graph.outputs().size(), options);
  for (size_t i = 0; i < in.size(); ++i)
    cast_input(graph, graph.inputs()[i], in[i].dtype.value_or(graph.inputs()[i]->type.dtype));
  std::vector<Value*> outputs = graph.outputs();
  for (size_t i = 0; i < out.size(); ++i)
    outputs[i] = cast_output(graph, outputs[i], out[i].dtype.value_or(outputs[i]->type.dtype));
  graph.set_outputs(std::move(outputs));
}

EdgeLayouts edge_layouts(const Graph& graph, size_t outputs, const BuildOptions& options, const Listeners& listeners) {
  EdgeLayouts result;
  add_layouts(graph.inputs(), input_formats(graph, options), listeners, result.inputs);
  add_layouts(graph.outputs(), output_formats(outputs, options), listeners, result.outputs);
  return result;
}

}  // namespace hone
