// SPDX-License-Identifier: Apache-2.0
#include "edit/changes/unbounded.h"

#include <algorithm>

#include "edit/infer.h"
#include "edit/names.h"

namespace hone::edit {
namespace {

struct Reader {
  std::string_view op_type;
  size_t operand;  // which decides the sizes of the result
};
constexpr Reader kReaders[] = {{"Range", 1}, {"Pad", 1}, {"Resize", 3}, {"Tile", 1}, {"Expand", 1}};

/// Whether the tensor follows from weights and shapes alone.
bool is_known(const onnx::Survey& found, const std::string& tensor) {
  const auto at = found.values.find(tensor);
  return at != found.values.end() && (at->second->is_constant() || at->second->symbolic != nullptr);
}

}  // namespace

std::vector<std::string> unbounded_sizes(const Model& model) {
  const onnx::Survey found = survey(model, WeightData::small);
  const Index index(model.graph);
  std::vector<std::string> names;
  for (const Node& node : model.graph.nodes)
    for (const Reader& reader : kReaders) {
      if (node.op_type != reader.op_type || !node.domain.empty() || node.inputs.size() <= reader.operand) continue;
      const std::string& size = node.inputs[reader.operand];
      const auto producer = index.producer.find(size);
      if (producer == index.producer.end() || model.graph.nodes[producer->second].op_type == "Min") continue;
      if (!is_known(found, size) && std::ranges::find(names, size) == names.end()) names.push_back(size);
    }
  return names;
}

void set_upper_bound(Model& model, const std::string& tensor, int64_t bound) {
  Graph& graph = model.graph;
  const Index index(graph);
  const auto producer = index.producer.find(tensor);
  if (producer == index.producer.end()) {
    need_tensor(graph, index, tensor);
    throw Error(fmt::format("{} is no result of a node, so it cannot be bounded", tensor), "name a result of a node");
  }
  const ValueType type = KnownTypes(model).of(tensor).value_or(ValueType{7, {}, true});
  const std::optional<DType> dtype = onnx::dtype_of_onnx(type.element);
  HONE_CHECK(dtype && !is_object(*dtype) && !is_small(*dtype), "{} has the element type {}, which has no bounds",
             tensor, numpy_name(type.element));
  std::unordered_set<std::string> taken = tensor_names(graph);
  const std::string before = fresh_name(taken, tensor + "_copy"), limit = fresh_name(taken, tensor + "_upper_bound");
  TensorBuilder builder(*dtype, {});
  visit(*dtype, [&]<typename T>() { builder.data<T>()[0] = static_cast<T>(static_cast<double>(bound)); });
  graph.weights.push_back(make_weight(model, limit, builder.finish()));
  std::ranges::replace(graph.nodes[producer->second].outputs, tensor, before);
  Node minimum;
  minimum.name = before + "_Min";
  minimum.op_type = "Min";
  minimum.inputs = {before, limit};
  minimum.outputs = {tensor};
  graph.nodes.insert(graph.nodes.begin() + static_cast<std::ptrdiff_t>(producer->second) + 1, std::move(minimum));
}

}  // namespace hone::edit
