// SPDX-License-Identifier: Apache-2.0
#include "regions/custom_region.h"

#include <algorithm>

#include "base/checked.h"
#include "device/code.h"
#include "ops/all.h"
#include "ops/ops.h"

namespace hone {
namespace {

constexpr int64_t kPlaceAlignment = 256;  // of what lies in a workspace
constexpr size_t kChannelsRank = 3;       // from here on a tensor has channels

size_t place_of(const std::vector<Value*>& list, const Value* value) {
  return static_cast<size_t>(std::ranges::find(list, value) - list.begin());
}

std::vector<Layout> layouts_of(const std::vector<Value*>& values, Layout layout) {
  std::vector<Layout> layouts;
  for (const Value* value : values)
    layouts.push_back(value->type.shape.rank() >= kChannelsRank ? layout : Layout::linear);
  return layouts;
}

}  // namespace

const Node* custom_node(const Graph& region) {
  const Node* found = nullptr;
  for (const Node* node : region.nodes()) {
    if (node->is(ops::symbolic_constant)) continue;
    if (node->op->custom == nullptr || found != nullptr) return nullptr;
    found = node;
  }
  return found;
}

void offer_custom(const Problem& problem, std::string_view name, Candidates& out) {
  const Graph& region = problem.region;
  const Node& node = *custom_node(region);
  const auto bytes = [&] {
    std::vector<CustomTensor> inputs;
    for (const Value* input : node.inputs)
      inputs.push_back(input == nullptr ? CustomTensor{.given = false}
                                        : CustomTensor{.dtype = input->type.dtype, .dims = input->type.shape.values()});
    return static_cast<int64_t>(custom_workspace(*node.op->custom, custom_call(node, std::move(inputs))));
  }();
  for (const Layout layout : node.op->custom->layouts) {
    Tactic tactic{.source = "custom",
                  .name = std::string(name),
                  .params = {},
                  .in = layouts_of(region.inputs(), layout),
                  .out = layouts_of(region.outputs(), layout),
                  .workspace = bytes};
    const auto is_it = [&](Layout other) { return other == layout; };
    if (layout == Layout::linear || std::ranges::any_of(tactic.in, is_it) || std::ranges::any_of(tactic.out, is_it))
      out.offer(std::move(tactic));
  }
}

Compiled compile_custom(const Problem& problem) {
  Compiled compiled;
  Graph graph = problem.symbolic.clone();
  for (Node* node : graph.nodes())
    for (size_t i = 0; i < node->inputs.size(); ++i)
      if (const Value* value = node->inputs[i]; value != nullptr && value->is_constant()) {
        compiled.constants.push_back(*value->constant);
        graph.set_input(node, i, graph.add_input(fmt::format("constant{}", compiled.constants.size()), value->type));
      }
  compiled.code = serialize(graph);
  return compiled;
}

CustomLaunch::CustomLaunch(const Blob& code, const KernelShapes& shapes)
    : region_(deserialize(code, find_among(shapes.operators)).specialize(shapes.symbols)), node_(custom_node(region_)) {
  HONE_CHECK(node_ != nullptr, "a step of the source custom holds no operator of a program");
  op_ = node_->op->custom->shared_from_this();
  find_operands(shapes);
  find_results(shapes);
}

void CustomLaunch::find_operands(const KernelShapes& shapes) {
  const size_t given = shapes.inputs.size();
  HONE_CHECK(region_.inputs().size() >= given, "a step of {} has {} operands, planned were {}", op_->full_name, given,
             region_.inputs().size());
  for (const Value* input : region_.inputs())
    HONE_CHECK(input->type.ranked && input->type.shape.is_static(), "an operand of {} has no sizes", op_->full_name);
  std::vector<CustomTensor> tensors;
  for (const Value* value : node_->inputs) {
    operands_.emplace_back();
    tensors.push_back({.given = value != nullptr});
    if (value == nullptr) continue;
    Operand& operand = operands_.back();
    CustomTensor& tensor = tensors.back();
    if (const size_t place = place_of(region_.inputs(), value); place < region_.inputs().size()) {
      tensor = {.dtype = value->type.dtype, .dims = value->type.shape.values()};
      operand = place < given ? Operand{Operand::From::input, place} : Operand{Operand::From::constant, place - given};
    } else {
      operand = {Operand::From::host, host_.size()};
      host_.push_back(value->is_constant() ? *value->constant : evaluate_node(*value->producer, {})[value->index]);
      tensor = {.dtype = host_.back().dtype(), .dims = host_.back().dims()};
    }
    if (operand.from == Operand::From::constant)
      require_constant(shapes, static_cast<int64_t>(operand.index), tensor.dtype, tensor.dims);
    if (operand.from != Operand::From::input) continue;
    const ConcreteType& type = shapes.inputs[operand.index];
    HONE_CHECK(!type.managed && type.dtype == tensor.dtype && type.dims == tensor.dims,
               "{} of {} is given to {} as {} of {}", name_of(type.dtype), join_dims(type.dims), op_->full_name,
               name_of(tensor.dtype), join_dims(tensor.dims));
    tensor.layout = type.layout;
  }
  form_.emplace(custom_call(*node_, std::move(tensors)));
}

void CustomLaunch::find_results(const KernelShapes& shapes) {
  HONE_CHECK(shapes.outputs.size() == region_.outputs().size(), "a step of {} has {} results, planned were {}",
             op_->full_name, shapes.outputs.size(), region_.outputs().size());
  form_->workspace_bytes = custom_workspace(*op_, *form_);
  int64_t end = round_up(static_cast<int64_t>(form_->workspace_bytes), kPlaceAlignment);
  for (size_t i = 0; i < form_->outputs.size(); ++i) {
    CustomTensor& tensor = form_->outputs[i];
    const size_t place = place_of(region_.outputs(), node_->outputs[i]);
    if (place == region_.outputs().size()) {
      results_.push_back({.output = {}, .offset = static_cast<size_t>(end)});
      end = checked_add(end, round_up(byte_size(tensor.dtype, tensor.dims), kPlaceAlignment));
      continue;
    }
    results_.push_back({.output = place});
    const ConcreteType& type = shapes.outputs[place];
    HONE_CHECK(!type.managed && type.dtype == tensor.dtype && type.dims == tensor.dims,
               "result {} of {} is {} of {}, planned was {} of {}", i, op_->full_name, name_of(tensor.dtype),
               join_dims(tensor.dims), name_of(type.dtype), join_dims(type.dims));
    tensor.layout = type.layout;
  }
  workspace_ = static_cast<size_t>(end);
}

CustomCall CustomLaunch::call(const Bindings& bindings) const {
  CustomCall call = *form_;
  for (size_t i = 0; i < operands_.size(); ++i) switch (operands_[i].from) {
      case Operand::From::nowhere: break;
      case Operand::From::input: call.inputs[i].data = bindings.inputs[operands_[i].index]; break;
      case Operand::From::constant: call.inputs[i].data = bindings.constants[operands_[i].index]; break;
      case Operand::From::host: call.inputs[i].data = host_[operands_[i].index].bytes().data(); break;
    }
  for (size_t i = 0; i < results_.size(); ++i)
    call.outputs[i].data = results_[i].output ? bindings.outputs[*results_[i].output]
                                              : static_cast<std::byte*>(bindings.workspace) + results_[i].offset;
  call.workspace = form_->workspace_bytes == 0 ? nullptr : bindings.workspace;
  return call;
}

}  // namespace hone
