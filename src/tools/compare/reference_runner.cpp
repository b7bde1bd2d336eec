// SPDX-License-Identifier: Apache-2.0
//
// The golden values: every operator by its plain meaning on the imported graph, before any pass has touched it.
#include <fmt/format.h>

#include "capi/operators/operators.h"
#include "onnx/importer.h"
#include "tools/compare/runner.h"

namespace hone {
namespace {

class ReferenceRunner final : public Runner {
 public:
  ReferenceRunner(std::string name, const ModelFace& face, const Narrator& narrator)
      : Runner(std::move(name), "fp32"), face_(face), narrator_(narrator) {}

  void prepare(const std::vector<TensorList>& /*iterations*/) override {
    model_.emplace(import_onnx_bytes(face_.bytes, narrator_.engine_log(), face_.folder, capi::program_operators()));
  }

  TensorList infer(const TensorList& inputs) override {
    std::vector<Tensor> values;
    for (const Value* input : model_->graph.inputs()) values.push_back(input_for(inputs, input->name));
    const std::vector<Tensor> results = evaluate(model_->graph, values);
    TensorList outputs;
    for (size_t i = 0; i < results.size(); ++i) outputs.push_back({face_.outputs.at(i), results[i]});
    return outputs;
  }

  std::string kernel_of(const std::string& /*tensor*/) const override { return "reference"; }

 private:
  const ModelFace& face_;
  const Narrator& narrator_;
  std::optional<ImportedModel> model_;
};

}  // namespace

std::unique_ptr<Runner> make_reference_runner(std::string name, const ModelFace& face, const Narrator& narrator) {
  return std::make_unique<ReferenceRunner>(std::move(name), face, narrator);
}

}  // namespace hone
