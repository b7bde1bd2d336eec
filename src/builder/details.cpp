// SPDX-License-Identifier: Apache-2.0
//
// Layer kinds, parameters and work, read off the region's first node and its epilogue.
#include "builder/details.h"

#include <algorithm>
#include <set>

#include "ops/channel_shuffle.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

int64_t elements_of(const Value* value) {
  return value != nullptr && value->is_constant() ? value->constant->size() : 0;
}

/// The list under `name`, or `count` copies of `fallback` when the node has none.
std::vector<int64_t> list_or(const Node& node, std::string_view name, size_t count, int64_t fallback) {
  const AttrValue* value = node.attrs.find(name);
  if (value == nullptr || !std::holds_alternative<std::vector<int64_t>>(*value) ||
      std::get<std::vector<int64_t>>(*value).size() != count)
    return std::vector<int64_t>(count, fallback);
  return std::get<std::vector<int64_t>>(*value);
}

void window_details(const Node& node, Attrs& details, std::string_view window_name) {
  const size_t spatial = node.input(0)->type.shape.rank() - 2;
  const std::vector<int64_t> pads = list_or(node, "pads", 2 * spatial, 0);
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(spatial);
  details.set(std::string(window_name), list_or(node, "kernel_shape", spatial, 1));
  details.set("PaddingMode", std::string("kEXPLICIT_ROUND_DOWN"));
  details.set("PrePadding", std::vector<int64_t>(pads.begin(), middle));
  details.set("PostPadding", std::vector<int64_t>(middle, pads.end()));
  details.set("Stride", list_or(node, "strides", spatial, 1));
}

void epilogue_details(const Region& region, Attrs& details) {
  std::string activation = "NONE";
  bool residual = false;
  for (size_t i = 1; i < region.nodes.size(); ++i) {
    if (region.nodes[i]->is(ops::add)) {
      residual = true;
      continue;
    }
    activation = region.nodes[i]->op_name();
    std::transform(activation.begin(), activation.end(), activation.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  }
  details.set("HasResidual", int64_t{residual});
  details.set("HasReLU", int64_t{activation == "RELU"});
  details.set("Activation", activation);
}

void weight_details(const Node& node, Attrs& details) {
  details.set("WeightsCount", elements_of(node.input(1)));
  details.set("BiasCount", elements_of(node.input(2)));
  details.set("HasBias", int64_t{node.input(2) != nullptr});
}

void convolution_details(const Region& region, Attrs& details) {
  const Node& node = *region.nodes[0];
  window_details(node, details, "Kernel");
  const Shape& weights = node.input(1)->type.shape;
  if (node.attrs.find("kernel_shape") == nullptr)
    details.set("Kernel", Shape({weights.dims().begin() + 2, weights.dims().end()}).values());
  details.set("Dilation", list_or(node, "dilations", node.input(0)->type.shape.rank() - 2, 1));
  details.set("Groups", node.attrs.integer_or("group", 1));
  if (const Dim& channels = node.output()->type.shape[1]; channels.is_constant())
    details.set("OutMaps", channels.value());
  weight_details(node, details);
  epilogue_details(region, details);
}

bool has_size(const Value* value) { return value == nullptr || (value->type.ranked && value->type.shape.is_static()); }

bool has_sizes(const Node& node) {
  return std::ranges::all_of(node.inputs, has_size) && std::ranges::all_of(node.outputs, has_size);
}

double bytes_of(const Value& value) {
  if (value.type.element != nullptr || !has_size(&value)) return 0;
  return static_cast<double>(byte_size(value.type.dtype, value.type.shape.values()));
}

}  // namespace

std::string layer_kind(const Region& region) {
  Node* const last = region.nodes.back();
  const Node& first = last->is(ops::concat) || channel_shuffle(last) ? *last : *region.nodes[0];
  if (!first.op->traits.layer.empty()) return std::string(first.op->traits.layer);
  if (first.op->is_pointwise()) return "PointWise";
  return std::string(first.op_name());
}

Attrs layer_details(const Region& region) {
  Attrs details;
  const Node& first = *region.nodes[0];
  const std::string kind = layer_kind(region);
  if (kind == "Convolution" || kind == "Deconvolution") convolution_details(region, details);
  if (kind == "MatrixMultiply") {
    weight_details(first, details);
    epilogue_details(region, details);
  }
  if (first.is(ops::max_pool) || first.is(ops::average_pool)) {
    window_details(first, details, "WindowSize");
    details.set("PoolingType", std::string(first.is(ops::max_pool) ? "MAX" : "AVERAGE"));
  }
  if (kind == "PointWise") {
    std::vector<std::string> operations;
    for (const Node* node : region.nodes) operations.emplace_back(node->op_name());
    details.set("Operations", std::move(operations));
  }
  return details;
}

int64_t flops_of(const Region& region, const SymbolValues& sizes) {
  int64_t total = 0;
  for (const Node* node : region.nodes)
    if (node->op->traits.flops != nullptr) total += node->op->traits.flops(*node, sizes);
  return total;
}

Work work_of(const Problem& problem) {
  Work work;
  for (const Value* input : problem.region.inputs()) work.operands += bytes_of(*input);
  for (const Value* output : problem.region.outputs()) work.operands += bytes_of(*output);
  std::set<const Value*> constants;
  for (const Node* node : problem.region.nodes()) {
    if (node->op->traits.flops != nullptr && has_sizes(*node))
      work.flops += static_cast<double>(node->op->traits.flops(*node, {}));
    for (const Value* operand : node->inputs)
      if (operand != nullptr && operand->is_constant() && constants.insert(operand).second)
        work.weights += bytes_of(*operand);
  }
  return work;
}

}  // namespace hone
