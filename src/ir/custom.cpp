// SPDX-License-Identifier: Apache-2.0
//
// Inference and meaning of all operators of programs: what theirs says, checked.
#include "ir/custom.h"

#include <algorithm>

#include "base/checked.h"
#include "ir/size_text.h"

namespace hone {
namespace {

constexpr size_t kMostWorkspace = size_t{1} << 46;

const CustomOperator& operator_of(const Node& node) {
  HONE_ASSERT(node.op->custom != nullptr, "{} is no operator of a program", node.op->name);
  return *node.op->custom;
}

std::string names_of(uint32_t types) {
  std::string names;
  for (size_t i = 0; i < kDTypes; ++i)
    if ((types >> i & 1) != 0) names += (names.empty() ? "" : ", ") + std::string(name_of(static_cast<DType>(i)));
  return names;
}

void check_operand(const CustomOperator& op, size_t operand, DType dtype) {
  if (op.input_types.empty()) return;
  const uint32_t types = op.input_types[std::min(operand, op.input_types.size() - 1)];
  if ((types >> static_cast<int>(dtype) & 1) != 0) return;
  throw Error(
      fmt::format("operand {} of {} is {}; it takes {}", operand, op.full_name, name_of(dtype), names_of(types)),
      "put a Cast before it, or let the operator take the type");
}

/// The types of the results; `operand` gives that of an operand, or nothing where it is left out.
template <typename Operand>
std::vector<DType> result_types_of(const CustomOperator& op, const Operand& operand) {
  std::vector<DType> types;
  for (size_t i = 0; i < op.results.size(); ++i) {
    const CustomOperator::Result& result = op.results[i];
    const std::optional<DType> as_input = result.as_input ? operand(*result.as_input) : std::nullopt;
    HONE_CHECK(!result.as_input || as_input, "result {} of {} has the type of operand {}, which is left out", i,
               op.full_name, *result.as_input);
    types.push_back(as_input.value_or(result.dtype));
  }
  return types;
}

void ask_sizes(const CustomOperator& op, CustomCall& call) {
  with_note([&] { return fmt::format("asking {} for the sizes of its results", op.full_name); },
            [&] { op.sizes(call); });
}

void infer_custom(InferContext& context) {
  const CustomOperator& op = operator_of(context.node());
  SizeScope scope{.inputs = {}, .outputs = {}, .attrs = context.attrs()};
  bool known = true;
  std::vector<CustomTensor> inputs;
  for (size_t i = 0; i < context.inputs(); ++i) {
    const bool given = context.has(i);
    scope.inputs.push_back(given ? &context.shape(i) : nullptr);
    inputs.push_back({.given = given});
    if (!given) continue;
    HONE_CHECK(!is_object(context.dtype(i)), "operand {} of {} holds {}, which operators of programs do not read", i,
               op.full_name, name_of(context.dtype(i)));
    check_operand(op, i, context.dtype(i));
    known &= context.shape(i).is_static();
  }
  const std::vector<DType> types =
      result_types_of(op, [&](size_t i) { return context.has(i) ? std::optional(context.dtype(i)) : std::nullopt; });
  std::optional<CustomCall> call;
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (!op.results[i].sizes.empty()) {
      context.set(i, types[i], sizes_from_text(op.results[i].sizes, scope));
      continue;
    }
    if (!call) {
      // Where sizes are symbols the function cannot say what becomes of them: a call at some sizes tells the ranks.
      constexpr int64_t kSomeSize = 64;
      SymbolValues some;
      std::set<std::string> symbols;
      for (size_t k = 0; k < inputs.size(); ++k)
        if (inputs[k].given)
          for (const Dim& dim : context.shape(k)) dim.collect_symbols(symbols);
      for (const std::string& symbol : symbols) some.emplace(symbol, kSomeSize);
      for (size_t k = 0; k < inputs.size(); ++k)
        if (inputs[k].given)
          inputs[k] = {.dtype = context.dtype(k), .dims = context.shape(k).evaluate(some), .data = nullptr};
      call.emplace(custom_call(context.node(), inputs));
    }
    std::vector<Dim> dims;
    for (size_t axis = 0; axis < call->outputs[i].dims.size(); ++axis)
      dims.push_back(known ? Dim(call->outputs[i].dims[axis]) : context.data_dependent(i, axis));
    context.set(i, types[i], Shape(std::move(dims)));
  }
}

void eval_custom(EvalContext& context) {
  const CustomOperator& op = operator_of(context.node());
  if (!op.on_host)
    throw Error(fmt::format("{} has no function for memory of the host", op.text()),
                "give it one, or run the network on the device that it is for");
  std::vector<CustomTensor> inputs;
  for (size_t i = 0; i < context.inputs(); ++i) {
    inputs.push_back({.given = context.has(i)});
    if (!context.has(i)) continue;
    const Tensor& tensor = context.input(i);
    inputs.back() = {.dtype = tensor.dtype(), .dims = tensor.dims(), .data = tensor.bytes().data()};
  }
  CustomCall call = custom_call(context.node(), std::move(inputs));
  std::vector<TensorBuilder> results;
  for (CustomTensor& output : call.outputs) {
    results.emplace_back(output.dtype, output.dims);
    output.data = results.back().bytes();
  }
  const AlignedBuffer workspace(custom_workspace(op, call));
  call.workspace = workspace.data();
  call.workspace_bytes = workspace.size();
  op.on_host(call);
  for (size_t i = 0; i < results.size(); ++i) context.set(i, results[i].finish());
}

}  // namespace

void CustomOperator::complete() {
  full_name = domain + "::" + name;
  def.name = full_name;
  def.custom = this;
  def.onnx = {OnnxRule{.op_type = name, .domain = domain}};
  def.outputs = results.size();
  def.infer = infer_custom;
  def.eval = eval_custom;
  def.traits.layer = "Plugin";
  def.traits.random = random;
  for (const auto& [attribute, value] : defaults)
    def.attrs.push_back({attribute, static_cast<AttrKind>(value.index()), value});
}

std::string CustomOperator::text() const {
  return fmt::format("the operator {}, version {}, of {}", full_name, version,
                     library.empty() ? "this program" : library);
}

CustomCall custom_call(const Node& node, std::vector<CustomTensor> inputs) {
  const CustomOperator& op = operator_of(node);
  CustomCall call{.node = node.name, .attrs = node.attrs, .inputs = std::move(inputs)};
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.inputs[i].given) check_operand(op, i, call.inputs[i].dtype);
  const std::vector<DType> types = result_types_of(op, [&](size_t i) {
    return i < call.inputs.size() && call.inputs[i].given ? std::optional(call.inputs[i].dtype) : std::nullopt;
  });
  for (const DType type : types) call.outputs.push_back({.dtype = type});
  if (op.sizes) ask_sizes(op, call);
  std::vector<Shape> shapes;
  for (const CustomTensor& input : call.inputs) shapes.emplace_back(input.dims);
  SizeScope scope{.inputs = {}, .outputs = {}, .attrs = node.attrs};
  for (size_t i = 0; i < shapes.size(); ++i) scope.inputs.push_back(call.inputs[i].given ? &shapes[i] : nullptr);
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (!op.results[i].sizes.empty()) call.outputs[i].dims = sizes_from_text(op.results[i].sizes, scope).values();
    with_note([&] { return fmt::format("reading the sizes of result {} of {}", i, op.full_name); },
              [&] { require_sizes(call.outputs[i].dims); });
  }
  return call;
}

size_t custom_workspace(const CustomOperator& op, const CustomCall& call) {
  size_t bytes = 0;
  if (op.workspace) {
    bytes = with_note([&] { return fmt::format("asking {} for its workspace", op.full_name); },
                      [&] { return op.workspace(call); });
  } else if (!op.workspace_text.empty()) {
    std::vector<Shape> inputs, outputs;
    for (const CustomTensor& input : call.inputs) inputs.emplace_back(input.dims);
    for (const CustomTensor& output : call.outputs) outputs.emplace_back(output.dims);
    SizeScope scope{.inputs = {}, .outputs = {}, .attrs = call.attrs};
    for (size_t i = 0; i < inputs.size(); ++i) scope.inputs.push_back(call.inputs[i].given ? &inputs[i] : nullptr);
    for (const Shape& output : outputs) scope.outputs.push_back(&output);
    const Dims sizes = sizes_from_text(op.workspace_text, scope).values();
    HONE_CHECK(sizes.size() == 1 && sizes[0] >= 0, "the workspace of {} is '{}', which is no number of bytes",
               op.full_name, op.workspace_text);
    bytes = static_cast<size_t>(sizes[0]);
  }
  HONE_CHECK(bytes <= kMostWorkspace, "{} asks for {} bytes to work in", op.full_name, bytes);
  return bytes;
}

OperatorList custom_operators(const Graph& graph) {
  OperatorList list;
  const auto add = [&](const std::shared_ptr<const OpDef>& op) {
    if (std::ranges::find(list, op) == list.end()) list.push_back(op);
  };
  for (const Node* node : graph.nodes()) {
    if (node->op->custom != nullptr) add(node->op->custom->as_op());
    for (const auto& body : node->bodies)
      for (const std::shared_ptr<const OpDef>& op : custom_operators(*body)) add(op);
  }
  return list;
}

}  // namespace hone
