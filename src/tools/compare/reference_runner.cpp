// SPDX-License-Identifier: Apache-2.0
//
// The golden values: every operator by its plain meaning on the imported graph, before any pass has touched it.
#include <fmt/format.h>

#include "tools/compare/engine_build.h"
#include "tools/compare/runner.h"
#include "tools/model/handles.h"

namespace hone {
namespace {

class ReferenceRunner final : public Runner {
 public:
  ReferenceRunner(std::string name, const ModelFace& face, const Narrator& narrator)
      : Runner(std::move(name), "fp32"), face_(face), narrator_(narrator) {}

  void prepare(const std::vector<TensorList>& /*iterations*/) override {
    model_ = model_of(face_, narrator_);
    reference_ = make<hone_reference>(hone_reference_create, model_.get());
  }

  TensorList infer(const TensorList& inputs) override {
    TensorList outputs;
    std::vector<std::string> names;
    for (const NetworkTensor& io : tensors_of(model_.get())) {
      if (!io.is_input) {
        names.push_back(io.name);
        continue;
      }
      const hone_value value(input_for(inputs, io.name));
      check(hone_reference_set_input(reference_.get(), io.name.c_str(), &value));
    }
    check(hone_reference_run(reference_.get()));
    for (size_t i = 0; i < names.size(); ++i) {
      const auto value = make<hone_value>(hone_value_create_from_reference, reference_.get(), names[i].c_str());
      outputs.push_back({face_.outputs.at(i), tensor_of(value.get())});
    }
    return outputs;
  }

  std::string kernel_of(const std::string& /*tensor*/) const override { return "reference"; }

 private:
  const ModelFace& face_;
  const Narrator& narrator_;
  Owned<hone_model> model_;
  Owned<hone_reference> reference_;
};

}  // namespace

std::unique_ptr<Runner> make_reference_runner(std::string name, const ModelFace& face, const Narrator& narrator) {
  return std::make_unique<ReferenceRunner>(std::move(name), face, narrator);
}

}  // namespace hone
