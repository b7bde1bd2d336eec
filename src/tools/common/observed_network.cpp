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
                                 const std::set<std::string>& tensors, const InputShapes& shapes) {
  const char* const flags[] = {"--builderOptimizationLevel=0"};
  const auto options = make<hone_options>(hone_options_create, flags, std::size(flags));
  const int profile = ask<int>(hone_options_add_profile, options.get());
  for (const NetworkTensor& input : tensors_of(&model)) {
    if (!input.is_input || input.is_static()) continue;
    const Dims& dims = shapes.at(input.name);
    check(hone_options_set_range(options.get(), profile, input.name.c_str(), dims.data(), dims.data(), dims.data(),
                                 static_cast<int>(dims.size())));
  }
  for (const std::string& tensor : tensors) (shapes.contains(tensor) ? inputs_ : computed_).push_back(tensor);
  for (const std::string& tensor : computed_) check(hone_options_mark_debug(options.get(), tensor.c_str()));
  const auto plan = make<hone_plan>(hone_plan_create_from_model, &model, &device, options.get(), nullptr);
  const auto engine = make<hone_engine>(hone_engine_create, plan.get(), &device, nullptr);
  context_ = make<hone_context>(hone_context_create, engine.get(), 0);
  for (const auto& [name, dims] : shapes)
    check(hone_context_set_shape(context_.get(), name.c_str(), dims.data(), static_cast<int>(dims.size())));
  tensors_ = tensors_of(plan.get());
  for (const NetworkTensor& io : tensors_) bind(io);
}

void ObservedNetwork::run(const std::function<void(const NetworkTensor&, const Dims&, std::span<std::byte>)>& fill,
                          const Visit& visit) {
  for (const NetworkTensor& io : tensors_)
    if (io.is_input) fill(io, shape_in(context_.get(), io.name), memory_of(io.name));
  check(hone_context_run(context_.get()));
  for (const NetworkTensor& io : tensors_)
    if (std::ranges::find(inputs_, io.name) != inputs_.end())
      show(io.name, Tensor(io.dtype, shape_in(context_.get(), io.name), Blob(nullptr, memory_of(io.name))), visit);
  for (const std::string& name : computed_) {
    const auto value = make<hone_value>(hone_value_create_from_debug_tensor, context_.get(), name.c_str());
    show(name, tensor_of(value.get()), visit);
  }
}

void ObservedNetwork::bind(const NetworkTensor& io) {
  if (io.by_value) return;
  AlignedBuffer& buffer = memory_[io.name];
  const auto bytes = ask<int64_t>(hone_context_bytes, context_.get(), io.name.c_str());
  buffer = AlignedBuffer(static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  sizes_[io.name] = static_cast<size_t>(bytes);
  check(hone_context_bind(context_.get(), io.name.c_str(), buffer.data(), HONE_MEMORY_HOST));
}

}  // namespace hone
