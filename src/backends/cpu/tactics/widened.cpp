// SPDX-License-Identifier: Apache-2.0
//
// Regions of f16 or bf16 by way of f32: the inputs are widened into the workspace, any family's kernel for the same region in
// f32 runs there, the results are narrowed. So every operator that has a kernel has one for the small floats, which are
// rounded once per region instead of once per node.
#include <algorithm>

#include "backends/cpu/kernels/convert.h"
#include "backends/cpu/region_match.h"
#include "backends/cpu/sources.h"
#include "backends/cpu/tactic_table.h"
#include "base/checked.h"
#include "ops/ops.h"

namespace hone::cpu {
namespace {

constexpr size_t kMaxTensors = 32;
constexpr int64_t kPiece = 4096;    // elements that are converted at a time

bool is_small(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
DType wide(DType dtype) { return is_small(dtype) ? DType::f32 : dtype; }

Tensor widened_tensor(const Tensor& tensor) {
  if (!is_small(tensor.dtype())) return tensor;
  TensorBuilder builder(DType::f32, tensor.dims());
  convert_elements(tensor.dtype(), DType::f32, Isa::scalar)(tensor.bytes().data(), builder.bytes(), tensor.size());
  return builder.finish();
}

/// The same graph with f32 in the place of the small floats.
Graph widened_graph(const Graph& graph) {
  Graph result;
  std::map<const Value*, Value*> map;
  for (const Value* input : graph.inputs()) {
    TensorType type = input->type;
    type.dtype = wide(type.dtype);
    map[input] = result.add_input(input->name, std::move(type));
  }
  for (const Node* node : graph.nodes()) {
    std::vector<Value*> inputs;
    for (const Value* input : node->inputs) {
      if (input != nullptr && !map.contains(input)) map[input] = result.add_constant(widened_tensor(*input->constant));
      inputs.push_back(input == nullptr ? nullptr : map.at(input));
    }
    const Node* made = result.add(*node->op, std::move(inputs), node->attrs, node->name, node->outputs.size());
    for (size_t i = 0; i < node->outputs.size(); ++i) map[node->outputs[i]] = made->outputs[i];
  }
  std::vector<Value*> outputs;
  for (const Value* output : graph.outputs()) outputs.push_back(map.at(output));
  result.set_outputs(std::move(outputs));
  return result;
}

Problem widened_problem(const Problem& problem) {
  return {.region = widened_graph(problem.region), .symbolic = widened_graph(problem.symbolic), .symbols = problem.symbols, .device = problem.device, .allowed = problem.allowed};
}

/// Whether there are small floats, and nothing whose meaning depends on the type itself.
bool applies(const Graph& region) {
  bool small = false;
  for (const Node* node : region.nodes()) {
    if (node->is(ops::cast) || node->is(ops::constant_of_shape) || !node->bodies.empty()) return false;
    for (const auto* list : {&node->inputs, &node->outputs})
      for (const Value* value : *list) {
        if (value == nullptr) continue;
        if (value->type.dtype == DType::f64 || value->type.dtype == DType::string) return false;
        small |= is_small(value->type.dtype);
      }
  }
  return small && region.inputs().size() + region.outputs().size() <= kMaxTensors;
}

const CpuTactic* find_family(std::string_view name) {
  for (const CpuTactic* family : cpu_tactics())
    if (family->name == name && family != &tactics::widened) return family;
  return nullptr;
}

void propose(const Problem& problem, const CpuInfo& info, Candidates& out) {
  if (!applies(problem.region)) return;
  const Problem twin = widened_problem(problem);
  for (const CpuTactic* family : cpu_tactics()) {
    if (family == &tactics::widened) continue;
    Candidates offers;
    family->propose(twin, info, offers);
    for (const Tactic& tactic : offers.offers()) {
      if (std::any_of(tactic.in.begin(), tactic.in.end(), is_blocked) || std::any_of(tactic.out.begin(), tactic.out.end(), is_blocked)) continue;
      Tactic outer = tactic;
      outer.name = "widened";
      outer.params.set("family", tactic.name);
      out.offer(std::move(outer));
    }
  }
}

Compiled compile(const Problem& problem, const Tactic& tactic) {
  Tactic inner = tactic;
  inner.name = tactic.params.text("family");
  inner.params.erase("family");
  const CpuTactic* family = find_family(inner.name);
  HONE_ASSERT(family != nullptr, "there is no tactic cpu.{}", inner.name);
  Compiled compiled = family->compile(widened_problem(problem), inner);
  const std::span<const std::byte> code = compiled.code.bytes();
  const Attrs attrs{{"inner", Tensor(DType::u8, {static_cast<int64_t>(code.size())}, compiled.code)}};
  return {encode_code("widened", attrs), std::move(compiled.constants)};
}

/// A tensor that is converted: its bytes outside, and where its floats lie in the workspace.
struct Converted {
  int64_t count;
  size_t element;
  ConvertElements convert;
  int64_t offset;
};

class Widened final : public CpuKernel {
 public:
  Widened(std::shared_ptr<const CpuKernel> inner, const KernelShapes& shapes, Isa isa) : inner_(std::move(inner)) {
    HONE_CHECK(shapes.inputs.size() + shapes.outputs.size() <= kMaxTensors && !inner_->self_parallel(), "a widened kernel in the plan has {} inputs", shapes.inputs.size());
    const int64_t own = round_up(static_cast<int64_t>(inner_->workspace_bytes()), kAlignment);
    workspace_ = own;
    const auto plan = [&](const std::vector<ConcreteType>& types, bool is_input, std::vector<Converted>& list) {
      for (const ConcreteType& type : types) {
        const int64_t count = type.bytes() / static_cast<int64_t>(size_of(type.dtype));
        const ConvertElements loop = is_input ? convert_elements(type.dtype, DType::f32, isa) : convert_elements(DType::f32, type.dtype, isa);
        list.push_back({count, size_of(type.dtype), is_small(type.dtype) ? loop : nullptr, workspace_});
        if (is_small(type.dtype)) workspace_ += round_up(count * int64_t{sizeof(float)}, kAlignment);
      }
    };
    plan(shapes.inputs, true, inputs_);
    plan(shapes.outputs, false, outputs_);
  }

  int phases() const override { return inner_->phases() + 2; }
  bool serial() const override { return inner_->serial(); }
  size_t workspace_bytes() const override { return static_cast<size_t>(workspace_); }

  void run(int phase, int worker, int workers, const Bindings& bindings) const override {
    std::byte* room = static_cast<std::byte*>(bindings.workspace);
    if (phase == 0) {
      for (size_t i = 0; i < inputs_.size(); ++i) convert(inputs_[i], static_cast<const std::byte*>(bindings.inputs[i]), inputs_[i].element, room + inputs_[i].offset, sizeof(float), worker, workers);
      return;
    }
    if (phase == phases() - 1) {
      for (size_t i = 0; i < outputs_.size(); ++i) convert(outputs_[i], room + outputs_[i].offset, sizeof(float), static_cast<std::byte*>(bindings.outputs[i]), outputs_[i].element, worker, workers);
      return;
    }
    const void* inputs[kMaxTensors];
    void* outputs[kMaxTensors];
    for (size_t i = 0; i < inputs_.size(); ++i) inputs[i] = inputs_[i].convert != nullptr ? room + inputs_[i].offset : bindings.inputs[i];
    for (size_t i = 0; i < outputs_.size(); ++i) outputs[i] = outputs_[i].convert != nullptr ? room + outputs_[i].offset : bindings.outputs[i];
    inner_->run(phase - 1, worker, workers, {{inputs, inputs_.size()}, {outputs, outputs_.size()}, bindings.constants, bindings.workspace});
  }

 private:
  static void convert(const Converted& tensor, const std::byte* from, size_t from_size, std::byte* to, size_t to_size, int worker, int workers) {
    if (tensor.convert == nullptr) return;
    const Share share = share_of((tensor.count + kPiece - 1) / kPiece, worker, workers);
    const int64_t first = share.begin * kPiece, last = std::min(share.end * kPiece, tensor.count);
    if (first < last) tensor.convert(from + static_cast<size_t>(first) * from_size, to + static_cast<size_t>(first) * to_size, last - first);
  }

  std::shared_ptr<const CpuKernel> inner_;
  std::vector<Converted> inputs_, outputs_;
  int64_t workspace_ = 0;
};

std::shared_ptr<const CpuKernel> load(const Attrs& attrs, const KernelShapes& shapes, const CpuInfo& info) {
  KernelShapes wide_shapes = shapes;
  for (auto* list : {&wide_shapes.inputs, &wide_shapes.outputs})
    for (ConcreteType& type : *list) type.dtype = wide(type.dtype);
  const Tensor& code = attrs.tensor("inner");
  HONE_CHECK(decode_code(code.blob()).family != "widened", "a kernel in the plan is widened twice");
  DeviceInfo device;
  device.architecture = to_string(info.isa);
  device.workers = info.workers;
  return std::make_shared<Widened>(cpu::load(device, code.blob(), wide_shapes), shapes, info.isa);
}

}  // namespace

const CpuTactic tactics::widened = {"widened", propose, compile, load};

}  // namespace hone::cpu
