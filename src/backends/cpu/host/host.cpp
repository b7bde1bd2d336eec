// SPDX-License-Identifier: Apache-2.0
//
// As of the reference the region itself is the code. Results are tensors of the host, or memory where their sizes are known.
#include "backends/cpu/host/host.h"

#include <algorithm>

#include "backends/cpu/host/rules.h"
#include "ops/all.h"

namespace hone::cpu {
namespace {

const Node* only_node(const Graph& region) {
  const std::vector<Node*> nodes = region.nodes();
  return nodes.size() == 1 ? nodes[0] : nullptr;
}

bool is_plain(const Value* value) {
  return value == nullptr ||
         (value->type.ranked && !is_object(value->type.dtype) && value->type.layout == Layout::linear);
}

class HostSource final : public TacticSource {
 public:
  std::string_view name() const override { return "host"; }

  void propose(const Problem& problem, Candidates& out) const override {
    const Node* node = only_node(problem.symbolic);
    const HostRule* rule = node == nullptr ? nullptr : host_rule(*node);
    if (rule == nullptr) return;
    std::string reason = rule->reason_against(*node);
    if (!std::ranges::all_of(node->inputs, is_plain)) reason = "an operand is no tensor of known rank";
    if (!reason.empty()) return out.refuse("host.run", std::move(reason));
    out.offer({"host",
               "run",
               {},
               std::vector(problem.region.inputs().size(), Layout::linear),
               std::vector(problem.region.outputs().size(), Layout::linear)});
  }
  Compiled compile(const Problem& problem, const Tactic&) const override { return {serialize(problem.symbolic), {}}; }
};

class HostKernel final : public CpuKernel {
 public:
  HostKernel(const Blob& code, const KernelShapes& shapes)
      : region_(deserialize(code, find_among(shapes.operators)).specialize(shapes.symbols)),
        shapes_(shapes),
        node_(only_node(region_)) {
    rule_ = node_ == nullptr ? nullptr : host_rule(*node_);
    HONE_CHECK(rule_ != nullptr && rule_->reason_against(*node_).empty(),
               "a step of the source host holds no operator of it");
    HONE_CHECK(region_.inputs().size() == shapes.inputs.size() && region_.outputs().size() == shapes.outputs.size(),
               "a kernel of the source host has {} inputs and {} outputs, its step {} and {}", region_.inputs().size(),
               region_.outputs().size(), shapes.inputs.size(), shapes.outputs.size());
    for (size_t i = 0; i < shapes.inputs.size(); ++i) require_type(*region_.inputs()[i], shapes.inputs[i]);
    for (size_t i = 0; i < shapes.outputs.size(); ++i) {
      HONE_CHECK(region_.outputs()[i]->producer == node_, "a kernel of the source host hands on its operand");
      require_type(*region_.outputs()[i], shapes.outputs[i]);
    }
  }
  bool self_parallel() const override { return true; }

  void run(int, int, int, const Bindings& bindings) const override {
    std::vector<Tensor> given(region_.inputs().size());
    for (size_t i = 0; i < given.size(); ++i) given[i] = operand(i, bindings);
    std::vector<const Tensor*> operands;
    for (const Value* value : node_->inputs) {
      const auto at = std::ranges::find(region_.inputs(), value) - region_.inputs().begin();
      if (value == nullptr) operands.push_back(nullptr);
      else operands.push_back(value->is_constant() ? &*value->constant : &given[static_cast<size_t>(at)]);
    }
    std::vector<HostResults::Place> places(node_->outputs.size());
    for (size_t i = 0; i < region_.outputs().size(); ++i)
      places[region_.outputs()[i]->index] = {&shapes_.outputs[i], bindings.outputs[i]};
    rule_->run(*node_, operands, HostResults(std::move(places)));
  }

 private:
  static void require_type(const Value& value, const ConcreteType& type) {
    const bool sized = value.type.ranked && value.type.shape.is_static();
    HONE_CHECK(type.dtype == value.type.dtype && type.layout == Layout::linear &&
                   (type.managed || !sized || value.type.shape.values() == type.dims),
               "a kernel of the source host reads a {} of {} as {}", name_of(type.dtype), join_dims(type.dims),
               value.type.text());
  }

  Tensor operand(size_t i, const Bindings& bindings) const {
    const ConcreteType& type = shapes_.inputs[i];
    if (type.managed) return *static_cast<const Tensor*>(bindings.inputs[i]);
    return Tensor(
        type.dtype, type.dims,
        Blob(nullptr, {static_cast<const std::byte*>(bindings.inputs[i]), static_cast<size_t>(type.bytes())}));
  }

  Graph region_;
  KernelShapes shapes_;
  const Node* node_;
  const HostRule* rule_ = nullptr;
};

}  // namespace

std::span<std::byte> HostResults::room(size_t i, DType dtype, const Dims& dims) const {
  const Place& place = places_.at(i);
  HONE_CHECK(place.type->dtype == dtype && (place.type->managed || place.type->dims == dims),
             "result {} of a kernel came out as {} of {}, planned was {} of {}", i, name_of(dtype), join_dims(dims),
             name_of(place.type->dtype), join_dims(place.type->dims));
  const auto bytes = static_cast<size_t>(byte_size(dtype, dims));
  if (!place.type->managed) return {static_cast<std::byte*>(place.memory), bytes};
  TensorBuilder builder(dtype, dims);
  const std::span<std::byte> room(builder.bytes(), bytes);
  *static_cast<Tensor*>(place.memory) = builder.finish();  // which keeps the memory where it is
  return room;
}

const TacticSource& host_source() {
  static const HostSource instance;
  return instance;
}

std::shared_ptr<const CpuKernel> load_host(const Blob& code, const KernelShapes& shapes) {
  return std::make_shared<HostKernel>(code, shapes);
}

}  // namespace hone::cpu
