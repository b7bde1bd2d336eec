// SPDX-License-Identifier: Apache-2.0

#include "device/tactic.h"

#include "base/text.h"
#include "ir/custom.h"

namespace hone {
namespace {

std::string join_layouts(const std::vector<Layout>& layouts) {
  // Commonly all are the same: say it once.
  bool uniform = true;
  for (const Layout layout : layouts) uniform &= layout == layouts[0];
  if (layouts.empty()) return "-";
  if (uniform) return std::string(name_of(layouts[0]));
  std::vector<std::string_view> names;
  for (const Layout layout : layouts) names.push_back(name_of(layout));
  return join(names, ",");
}

}  // namespace

std::string Problem::key() const {
  std::string text = structure_key(region);
  if (allowed.f16) text += " +f16";
  if (allowed.bf16) text += " +bf16";
  if (allowed.i8) text += " +i8";
  if (!allowed.tf32) text += " -tf32";
  if (allowed.sparse) text += " +2:4";
  return text;
}

const Node* Problem::only() const { return region.node_count() == 1 ? region.nodes().front() : nullptr; }

bool decides_sizes(const Graph& region) {
  const Node* writer = region.outputs().size() == 1 ? region.outputs()[0]->producer : nullptr;
  return writer != nullptr && writer->op->traits.most != nullptr;
}

std::vector<TensorType> result_types(const Graph& region) {
  std::vector<TensorType> types;
  for (const Value* output : region.outputs()) types.push_back(output->type);
  if (!decides_sizes(region)) return types;
  const Node& writer = *region.outputs()[0]->producer;
  types[0].shape = writer.op->traits.most(writer);
  types.push_back({DType::i64, Shape{Dim(static_cast<int64_t>(types[0].shape.rank()))}});
  return types;
}

KernelShapes shapes_of(const Graph& region, const Tactic& tactic, const SymbolValues& symbols) {
  KernelShapes shapes;
  const auto add = [](std::vector<ConcreteType>& types, const TensorType& type, const std::vector<Layout>& layouts) {
    const size_t i = types.size();
    types.push_back({type.dtype, type.shape.values(), i < layouts.size() ? layouts[i] : Layout::linear});
  };
  for (const Value* input : region.inputs()) add(shapes.inputs, input->type, tactic.in);
  for (const TensorType& type : result_types(region)) add(shapes.outputs, type, tactic.out);
  shapes.symbols = symbols;
  shapes.operators = custom_operators(region);
  return shapes;
}

std::string Tactic::text() const {
  std::string result = source + "." + name;
  if (!params.empty()) result += "(" + params.print() + ")";
  return result + " " + join_layouts(in) + " -> " + join_layouts(out);
}

}  // namespace hone
