// SPDX-License-Identifier: Apache-2.0
#include "tools/debug/golden.h"

#include "capi/operators/operators.h"
#include "ir/op.h"
#include "onnx/importer.h"
#include "tools/compare/runner.h"

namespace hone {

GoldenValues::GoldenValues(const ModelFace& face, const TensorList& inputs, const Narrator& narrator) {
  for (const NamedTensor& input : inputs) values_.emplace(input.name, input.tensor);
  try {
    const ImportedModel model =
        import_onnx_bytes(face.bytes, narrator.engine_log(), face.folder, capi::program_operators());
    std::map<const Value*, Tensor> known;
    for (const Value* input : model.graph.inputs()) known.emplace(input, input_for(inputs, input->name));
    for (const Node* node : model.graph.nodes()) {
      std::vector<const Tensor*> operands;
      for (const Value* input : node->inputs)
        operands.push_back(input == nullptr ? nullptr : input->is_constant() ? &*input->constant : &known.at(input));
      std::vector<Tensor> results = evaluate_node(*node, std::move(operands));
      for (size_t i = 0; i < results.size(); ++i) {
        if (node->outputs[i] == nullptr) continue;
        values_.insert_or_assign(node->outputs[i]->name, results[i]);
        known.insert_or_assign(node->outputs[i], std::move(results[i]));
      }
    }
  } catch (const Error& error) {
    narrator.warning("What flows inside the model is not known, and parts of it are fed with random values: {}",
                     error.message());
  }
}

TensorList GoldenValues::of(const std::vector<std::string>& names) const {
  TensorList list;
  for (const std::string& name : names)
    if (const auto found = values_.find(name); found != values_.end()) list.push_back({name, found->second});
  return list;
}

}  // namespace hone
