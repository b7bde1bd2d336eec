// SPDX-License-Identifier: Apache-2.0
#include "tools/taps/exact_stream.h"

#include <algorithm>

#include "capi/operators/operators.h"
#include "ir/op.h"
#include "tools/compare/runner.h"

namespace hone {
namespace {

ImportedModel imported(const ModelFace& face, const Logger& log) {
  const auto import = [&](WeightPlaces places) {
    return import_onnx_bytes(face.bytes, log, face.folder, capi::program_operators(), places);
  };
  ImportedModel model = import(WeightPlaces::in_file);
  const bool has_bodies =
      std::ranges::any_of(model.graph.nodes(), [](const Node* node) { return !node->bodies.empty(); });
  return has_bodies ? import(WeightPlaces::aligned) : std::move(model);
}

bool is_aligned(const Tensor& tensor) {
  return is_object(tensor.dtype()) || reinterpret_cast<uintptr_t>(tensor.bytes().data()) % size_of(tensor.dtype()) == 0;
}

}  // namespace

ExactStream::ExactStream(const ModelFace& face, const TensorList& inputs, const Narrator& narrator)
    : face_(face), inputs_(inputs), model_(imported(face, narrator.engine_log())), nodes_(model_.graph.nodes()) {
  for (const Node* node : nodes_) {
    for (const Value* input : node->inputs)
      if (input != nullptr) ++uses_[input];
    for (const Value* output : node->outputs) computed_.insert(output->name);
  }
  if (face_.file != nullptr) face_.file->give_back(face_.file->bytes());
}

void ExactStream::expect(std::map<std::string, int> asked) {
  asked_ = std::move(asked);
  for (const Value* input : model_.graph.inputs()) keep(input, input_for(inputs_, input->name));
}

const Tensor* ExactStream::find(const std::string& name) {
  while (true) {
    if (const auto found = named_.find(name); found != named_.end()) return &found->second;
    if (next_ == nodes_.size()) return nullptr;
    step();
  }
}

void ExactStream::release(const std::string& name) {
  if (--asked_[name] <= 0) named_.erase(name);
}

void ExactStream::keep(const Value* value, Tensor tensor) {
  if (const auto asked = asked_.find(value->name); asked != asked_.end() && asked->second > 0)
    named_.insert_or_assign(value->name, tensor);
  if (uses_.contains(value)) values_.insert_or_assign(value, std::move(tensor));
  most_ = std::max(most_, named_.size());
}

const Tensor* ExactStream::operand(const Value* input, std::vector<Tensor>& copies) const {
  if (input == nullptr) return nullptr;
  if (!input->is_constant()) return &values_.at(input);
  const Tensor& weights = *input->constant;
  if (is_aligned(weights)) return &weights;
  return &copies.emplace_back(weights.dtype(), weights.dims(), Blob::copy(weights.bytes()));
}

void ExactStream::step() {
  const Node* node = nodes_[next_++];
  std::vector<Tensor> copies;
  copies.reserve(node->inputs.size());  // pointers into it stay good
  std::vector<const Tensor*> operands;
  for (const Value* input : node->inputs) operands.push_back(operand(input, copies));
  std::vector<Tensor> results = evaluate_node(*node, std::move(operands));
  for (size_t i = 0; i < results.size(); ++i) keep(node->outputs[i], std::move(results[i]));
  for (const Value* input : node->inputs) {
    if (input == nullptr) continue;
    if (input->is_constant() && face_.file != nullptr) face_.file->give_back(input->constant->bytes());
    if (--uses_[input] == 0) values_.erase(input);
  }
}

}  // namespace hone
