// SPDX-License-Identifier: Apache-2.0
#include "tools/common/observed_network.h"

#include <algorithm>

namespace hone {
namespace {

void show(const std::string& name, const Tensor& tensor, const Visit& visit) {
  with_note([&] { return "reading what tensor " + name + " holds"; },
            [&] {
              if (tensor.dtype() == DType::f32) return visit(name, tensor.dims(), tensor.data<float>());
              std::vector<float> values(static_cast<size_t>(elements(tensor.dims())));
              for (size_t i = 0; i < values.size(); ++i)
                values[i] = static_cast<float>(tensor.real(static_cast<int64_t>(i)));
              visit(name, tensor.dims(), values);
            });
}

}  // namespace

ObservedNetwork::ObservedNetwork(const hone_model& model, const hone_device& device,
                                 const std::set<std::string>& tensors, const std::map<std::string, Dims>& shapes) {
  hone_options options;
  options.build.optimization_level = 0;
  ProfileOptions& profile = options.build.profiles.emplace_back();
  for (const Value* input : model.graph.inputs())
    if (!input->type.shape.is_static())
      profile[input->name] = {shapes.at(input->name), shapes.at(input->name), shapes.at(input->name)};
  for (const std::string& tensor : tensors) (shapes.contains(tensor) ? inputs_ : computed_).push_back(tensor);
  options.build.debug_tensors = computed_;
  const hone_log* const quiet = nullptr;
  const auto plan =
      make<hone_plan>(hone_plan_create_from_model, &model, &device, static_cast<const hone_options*>(&options), quiet);
  engine_ = make<hone_engine>(hone_engine_create, static_cast<const hone_plan*>(plan.get()), &device, quiet);
  context_ = make<hone_context>(hone_context_create, static_cast<const hone_engine*>(engine_.get()), 0);
  for (const auto& [name, dims] : shapes)
    check(hone_context_set_shape(context_.get(), name.c_str(), dims.data(), static_cast<int>(dims.size())));
  for (const IoTensor& io : engine_->engine->plan().io) bind(io);
}

void ObservedNetwork::run(const std::function<void(const IoTensor&, const Dims&, std::span<std::byte>)>& fill,
                          const Visit& visit) {
  for (const IoTensor& io : engine_->engine->plan().io)
    if (io.is_input) fill(io, context_->context->shape(io.name), memory_of(io.name));
  check(hone_context_run(context_.get()));
  for (const IoTensor& io : engine_->engine->plan().io)
    if (std::ranges::find(inputs_, io.name) != inputs_.end())
      show(io.name, Tensor(io.type.dtype, context_->context->shape(io.name), Blob(nullptr, memory_of(io.name))), visit);
  for (const std::string& name : computed_) {
    const auto value = make<hone_value>(hone_value_create_from_debug_tensor, context_.get(), name.c_str());
    show(name, value->tensor, visit);
  }
}

void ObservedNetwork::bind(const IoTensor& io) {
  if (engine_->engine->by_value(io.name)) return;
  AlignedBuffer& buffer = memory_[io.name];
  int64_t bytes = 0;
  check(hone_context_bytes(context_.get(), io.name.c_str(), &bytes));
  buffer = AlignedBuffer(static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  sizes_[io.name] = static_cast<size_t>(bytes);
  check(hone_context_bind(context_.get(), io.name.c_str(), buffer.data(), HONE_MEMORY_HOST));
}

}  // namespace hone
