// SPDX-License-Identifier: Apache-2.0
//
// Types become Cast nodes, or those of a quantisation, which fuse like any other; layouts become reformat layers, chosen and timed like any other.
#include "builder/prepare/io_formats.h"

#include "builder/prepare/scales.h"
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

/// Floats of the model that the caller wants in 8 bits.
bool is_coded(DType model, DType asked) {
  return is_code(asked) && (model == DType::f32 || model == DType::f16 || model == DType::bf16);
}

/// What a caller and a tensor in floats exchange in 8 bits.
class Coding {
 public:
  Coding(const BuildOptions& options, const TensorScales& scales, const Listeners& listeners)
      : options_(options), scales_(scales), listeners_(listeners) {}

  /// Throws Error where nothing says the scale.
  CodeScale of(const Value& value, DType type, std::string_view direction) const {
    const CodeScale scale = find(value, type, direction);
    const std::string zero = scale.zero == 0 ? "" : fmt::format(" less {}", scale.zero);
    listeners_.tell(&BuildListener::pass_said, Severity::info,
                    fmt::format("{} {} is {}: its values are the codes{} times {:g}.", direction, value.name,
                                type == DType::i8 ? "INT8" : "FP8", zero, scale.scale));
    return scale;
  }

 private:
  CodeScale find(const Value& value, DType type, std::string_view direction) const {
    if (const auto said = model_scale(value, type)) return *said;
    for (const TensorScales* scales : {&scales_, &options_.other_scales})
      if (const auto at = scales->find(value.name); at != scales->end())
        return calibrated_scale(at->second, options_.codes, type);
    const std::string_view word = type == DType::i8 ? "int8" : "fp8";
    throw Error(
        fmt::format("{} {} is to be {}, but nothing says its scale: the model quantises it nowhere, and {}", direction,
                    value.name, word, scales_.empty() ? "there is no calibration" : "the calibration does not name it"),
        type == DType::i8 ? "calibrate with --int8 and --calib or --calibData, or give a model with QuantizeLinear "
                            "and DequantizeLinear at its edge"
                          : "give a calibration cache with --calib, or a model with QuantizeLinear and "
                            "DequantizeLinear at its edge");
  }

  const BuildOptions& options_;
  const TensorScales& scales_;
  const Listeners& listeners_;
};

void cast_input(Graph& graph, Value* input, DType type, const Coding& coding) {
  const DType model_type = input->type.dtype;
  if (type == model_type) return;
  const std::vector<Node*> nodes = graph.nodes();
  Node* const first = nodes.empty() ? nullptr : nodes.front();
  const bool coded = is_coded(model_type, type);
  const std::optional<CodeScale> scale = coded ? std::optional(coding.of(*input, type, "Input")) : std::nullopt;
  input->type.dtype = type;
  Value* value = coded ? dequantized(graph, input, *scale, first) : cast(graph, input, model_type, first)->output();
  Node* const reader = value->producer;
  if (value->type.dtype != model_type) value = cast(graph, value, model_type, first)->output();
  const std::string name = input->name;
  graph.replace(input, value);
  graph.set_input(reader, 0, input);
  input->name = name;
}

Value* cast_output(Graph& graph, Value* output, DType type, const Coding& coding) {
  if (type == output->type.dtype) return output;
  Value* result = nullptr;
  if (is_coded(output->type.dtype, type)) {
    const CodeScale scale = coding.of(*output, type, "Output");
    Value* wide = output->type.dtype == DType::f32 ? output : cast(graph, output, DType::f32, nullptr)->output();
    result = quantized(graph, wide, scale, nullptr);
  } else {
    result = cast(graph, output, type, nullptr)->output();
  }
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

std::set<std::string> without_scale(const std::vector<Value*>& values, const std::vector<IoFormat>& formats) {
  std::set<std::string> names;
  for (size_t i = 0; i < formats.size(); ++i) {
    const DType type = formats[i].dtype.value_or(values[i]->type.dtype);
    if (is_coded(values[i]->type.dtype, type) && !model_scale(*values[i], type)) names.insert(values[i]->name);
  }
  return names;
}

}  // namespace

std::set<std::string> edges_without_scale(const Graph& graph, const BuildOptions& options) {
  std::set<std::string> names = without_scale(graph.inputs(), input_formats(graph, options));
  names.merge(without_scale(graph.outputs(), output_formats(graph.outputs().size(), options)));
  return names;
}

void cast_io(Graph& graph, const BuildOptions& options, const TensorScales& scales, const Listeners& listeners) {
  const Coding coding(options, scales, listeners);
  const std::vector<IoFormat> in = input_formats(graph, options), out = output_formats(graph.outputs().size(), options);
  for (size_t i = 0; i < in.size(); ++i)
    cast_input(graph, graph.inputs()[i], in[i].dtype.value_or(graph.inputs()[i]->type.dtype), coding);
  std::vector<Value*> outputs = graph.outputs();
  for (size_t i = 0; i < out.size(); ++i)
    outputs[i] = cast_output(graph, outputs[i], out[i].dtype.value_or(outputs[i]->type.dtype), coding);
  graph.set_outputs(std::move(outputs));
}

EdgeLayouts edge_layouts(const Graph& graph, size_t outputs, const BuildOptions& options, const Listeners& listeners) {
  EdgeLayouts result;
  add_layouts(graph.inputs(), input_formats(graph, options), listeners, result.inputs);
  add_layouts(graph.outputs(), output_formats(outputs, options), listeners, result.outputs);
  return result;
}

}  // namespace hone
