// SPDX-License-Identifier: Apache-2.0

#include "backends/reference/reference.h"

#include <cstring>

#include "ops/all.h"

namespace hone::reference {
namespace {

class ReferenceSource final : public TacticSource {
 public:
  std::string_view name() const override { return "reference"; }

  void propose(const Problem& problem, Candidates& out) const override {
    std::vector<Layout> in(problem.region.inputs().size(), Layout::linear);
    std::vector<Layout> results(problem.region.outputs().size(), Layout::linear);
    out.offer({"reference", "evaluate", {}, std::move(in), std::move(results)});
  }

  Compiled compile(const Problem& problem, const Tactic&) const override { return {serialize(problem.symbolic), {}}; }
};

/// The bytes of `memory` as a tensor, not owned: they outlive the evaluation.
Tensor view(const ConcreteType& type, const void* memory) {
  HONE_ASSERT(type.layout == Layout::linear, "the reference reads linear tensors only");
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(memory), static_cast<size_t>(type.bytes()));
  return Tensor(type.dtype, type.dims, Blob(nullptr, bytes));
}

/// The tensor with bytes of its own: a result may view an operand, whose memory is used again.
Tensor owned(const Tensor& tensor) {
  if (tensor.dtype() == DType::string) return tensor;
  if (is_object(tensor.dtype())) {
    std::vector<Tensor> items;
    for (const Tensor& item : tensor.items()) items.push_back(owned(item));
    return Tensor::of_items(tensor.dtype(), std::move(items));
  }
  return tensor.blob().owned() ? tensor : Tensor(tensor.dtype(), tensor.dims(), Blob::copy(tensor.bytes()));
}

}  // namespace

const TacticSource& source() {
  static const ReferenceSource instance;
  return instance;
}

namespace {

/// A region is evaluated for the types that it was written for.
void require_operand(const Value& value, const ConcreteType& type) {
  const bool same = value.type.ranked && value.type.shape.is_static() ? value.type.shape.values() == type.dims : true;
  HONE_CHECK(type.managed || (type.dtype == value.type.dtype && type.layout == Layout::linear && same),
             "a reference kernel of the plan reads a {} of {} as {}", name_of(type.dtype), join_dims(type.dims),
             value.type.text());
}

}  // namespace

Program::Program(const Blob& code, const KernelShapes& shapes)
    : region_(deserialize(code, find_among(shapes.operators)).specialize(shapes.symbols)), shapes_(shapes) {
  HONE_CHECK(region_.inputs().size() == shapes.inputs.size() && region_.outputs().size() == shapes.outputs.size(),
             "a reference kernel of the plan has {} inputs and {} outputs, its step {} and {}", region_.inputs().size(),
             region_.outputs().size(), shapes.inputs.size(), shapes.outputs.size());
  for (size_t i = 0; i < shapes.inputs.size(); ++i) require_operand(*region_.inputs()[i], shapes.inputs[i]);
}

void Program::run(const Bindings& bindings) const {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < shapes_.inputs.size(); ++i)
    inputs.push_back(shapes_.inputs[i].managed ? *static_cast<const Tensor*>(bindings.inputs[i])
                                               : view(shapes_.inputs[i], bindings.inputs[i]));
  const std::vector<Tensor> results = evaluate(region_, inputs);
  for (size_t i = 0; i < results.size(); ++i) {
    HONE_CHECK(results[i].dtype() == shapes_.outputs[i].dtype, "{} came out as {}, planned was {}",
               region_.outputs()[i]->label(), name_of(results[i].dtype()), name_of(shapes_.outputs[i].dtype));
    if (shapes_.outputs[i].managed) {
      *static_cast<Tensor*>(bindings.outputs[i]) = owned(results[i]);
      continue;
    }
    const int64_t expected = shapes_.outputs[i].bytes();
    HONE_CHECK(static_cast<int64_t>(results[i].bytes().size()) == expected,
               "the shape of {} is data-dependent: it came out as {}, planned were {} bytes",
               region_.outputs()[i]->label(), join_dims(results[i].dims()), expected);
    if (expected != 0) std::memcpy(bindings.outputs[i], results[i].bytes().data(), static_cast<size_t>(expected));
  }
}

}  // namespace hone::reference
