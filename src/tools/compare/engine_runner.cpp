// SPDX-License-Identifier: Apache-2.0
//
// Hone's own engines, of a model or of a plan, by the C interface alone.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "tools/common/plan_view.h"
#include "tools/compare/engine_build.h"
#include "tools/compare/runner.h"
#include "tools/model/handles.h"

namespace hone {
namespace {

class EngineRunner final : public Runner {
 public:
  EngineRunner(std::string name, const ModelFace* face, std::string plan_path, EngineRequest request,
               const Narrator& narrator)
      : Runner(std::move(name), request.precision),
        face_(face),
        plan_path_(std::move(plan_path)),
        request_(std::move(request)),
        narrator_(narrator),
        device_(open_device_named(request_.device)) {}

  void prepare(const std::vector<TensorList>& iterations) override {
    if (face_ != nullptr) plan_ = build_plan(*face_, request_, *device_, iterations, narrator_);
    else read();
    const hone_log log = engine_log(narrator_);
    engine_ = make<hone_engine>(hone_engine_create, plan_.get(), device_.get(), &log);
    plan_ = make<hone_plan>(hone_plan_create_from_engine, engine_.get());
    context_ = make<hone_context>(hone_context_create, engine_.get(), request_.profile);
    tensors_ = tensors_of(plan_.get());
  }

  TensorList infer(const TensorList& inputs) override {
    for (const NetworkTensor& io : tensors_) {
      if (!io.is_input) continue;
      const hone_value value(converted(input_for(inputs, io.name), io));
      check(hone_context_set_value(context_.get(), io.name.c_str(), &value));
    }
    for (const NetworkTensor& io : tensors_)
      if (!io.is_input && !io.by_value) bind_output(io);
    check(hone_context_run(context_.get()));
    TensorList outputs;
    for (const NetworkTensor& io : tensors_) {
      if (io.is_input) continue;
      const auto value = make<hone_value>(hone_value_create_from_output, context_.get(), io.name.c_str());
      const Tensor found = tensor_of(value.get());
      outputs.push_back(
          {io.name, is_object(found.dtype()) ? found : Tensor(found.dtype(), found.dims(), Blob::copy(found.bytes()))});
    }
    return outputs;
  }

  std::string kernel_of(const std::string& tensor) const override {
    const size_t count = hone_plan_layers(plan_.get(), request_.profile);
    for (size_t i = 0; i < count; ++i) {
      const auto layer = ask<hone_layer>(hone_plan_layer, plan_.get(), request_.profile, i);
      for (size_t k = layer.inputs; k < layer.inputs + layer.outputs; ++k)
        if (ask<hone_tensor>(hone_plan_layer_tensor, plan_.get(), request_.profile, i, k).name == tensor)
          return layer.is_view != 0 ? "(view)" : fmt::format("{}.{}", layer.source, layer.tactic);
    }
    return "";
  }

 private:
  /// A plan's input of another format or type than what the model says.
  static Tensor converted(const Tensor& given, const NetworkTensor& io) {
    if (given.dtype() == io.dtype) return given;
    if (is_object(given.dtype()) || is_object(io.dtype) || !is_float(given.dtype()) || !is_float(io.dtype))
      throw UsageError(fmt::format("input {} is {}, the values that are given {}", io.name, numpy_word(io.dtype),
                                   numpy_word(given.dtype())),
                       "give values of the input's type");
    const std::vector<double> numbers = doubles_of(given);
    TensorBuilder builder(io.dtype, given.dims());
    visit(io.dtype, [&]<typename T>() {
      for (size_t i = 0; i < numbers.size(); ++i) builder.data<T>()[i] = T(static_cast<float>(numbers[i]));
    });
    return builder.finish();
  }

  void bind_output(const NetworkTensor& io) {
    const auto bytes = static_cast<size_t>(ask<int64_t>(hone_context_bytes, context_.get(), io.name.c_str()));
    AlignedBuffer& memory = memory_[io.name];
    memory = AlignedBuffer(std::max<size_t>(bytes, 1));
    check(hone_context_bind(context_.get(), io.name.c_str(), memory.data(), HONE_MEMORY_HOST));
  }

  void read() {
    need_file(plan_path_);
    try {
      plan_ = make<hone_plan>(hone_plan_create_from_file, plan_path_.c_str());
    } catch (const Error& error) {
      throw StatusError(ExitStatus::no_file, fmt::format("{} cannot be loaded: {}", plan_path_, error.message()),
                        error.hint());
    }
  }

  const ModelFace* face_;
  const std::string plan_path_;
  const EngineRequest request_;
  const Narrator& narrator_;
  Owned<hone_device> device_;
  Owned<hone_plan> plan_;
  Owned<hone_engine> engine_;
  Owned<hone_context> context_;
  std::vector<NetworkTensor> tensors_;
  std::map<std::string, AlignedBuffer> memory_;
};

}  // namespace

const Tensor& input_for(const TensorList& inputs, const std::string& name) {
  if (const Tensor* found = find_tensor(inputs, name)) return *found;
  std::vector<std::string_view> names;
  for (const NamedTensor& each : inputs) names.push_back(each.name);
  throw UsageError(fmt::format("there are no values for input {}", name),
                   names.empty() ? "" : fmt::format("those that are given are called {}", join(names, ", ")));
}

std::unique_ptr<Runner> make_engine_runner(std::string name, const ModelFace& face, EngineRequest request,
                                           const Narrator& narrator) {
  return std::make_unique<EngineRunner>(std::move(name), &face, "", std::move(request), narrator);
}

std::unique_ptr<Runner> make_plan_runner(std::string name, std::string path, std::string device, int profile,
                                         const Narrator& narrator) {
  EngineRequest request;
  request.device = std::move(device);
  request.profile = profile;
  return std::make_unique<EngineRunner>(std::move(name), nullptr, std::move(path), std::move(request), narrator);
}

}  // namespace hone
