// SPDX-License-Identifier: Apache-2.0
#include "tools/common/plan_view.h"

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "tensor/json.h"

namespace hone {
namespace {

/// What stands between the brackets of a type.
std::string sizes_in(const std::string& type) {
  const size_t open = type.find('['), close = type.rfind(']');
  return open == std::string::npos || close == std::string::npos ? "" : type.substr(open + 1, close - open - 1);
}

NetworkTensor tensor_from(const hone_tensor& told, const hone_tensor_details& details) {
  NetworkTensor tensor{.name = told.name == nullptr ? "" : told.name,
                       .is_input = told.is_input != 0,
                       .by_value = told.by_value != 0,
                       .ranked = told.rank >= 0,
                       .dtype = static_cast<DType>(told.dtype)};
  if (tensor.ranked) tensor.dims.assign(told.dims, told.dims + told.rank);
  tensor.type = details.type;
  tensor.sizes = sizes_in(tensor.type);
  tensor.layout = parse_layout(details.layout).value_or(Layout::linear);
  if (details.has_range != 0) tensor.range = {details.low, details.high};
  return tensor;
}

InputRange range_from(const hone_range& told) {
  const auto dims = [&](const int64_t* sizes) { return Dims(sizes, sizes + told.rank); };
  return {told.input, dims(told.min), dims(told.opt), dims(told.max)};
}

}  // namespace

bool NetworkTensor::is_static() const { return std::ranges::find(dims, -1) == dims.end(); }

Attrs PlanLayer::parameters() const { return attrs_from_json(Json::parse(known.parameters)); }

std::vector<NetworkTensor> tensors_of(const hone_model* model) {
  std::vector<NetworkTensor> tensors;
  for (size_t i = 0; i < hone_model_tensors(model); ++i)
    tensors.push_back(tensor_from(ask<hone_tensor>(hone_model_tensor, model, i),
                                  ask<hone_tensor_details>(hone_model_tensor_details, model, i)));
  return tensors;
}

std::vector<NetworkTensor> tensors_of(const hone_plan* plan) {
  std::vector<NetworkTensor> tensors;
  for (size_t i = 0; i < hone_plan_tensors(plan); ++i)
    tensors.push_back(tensor_from(ask<hone_tensor>(hone_plan_tensor, plan, i),
                                  ask<hone_tensor_details>(hone_plan_tensor_details, plan, i)));
  return tensors;
}

std::vector<PlanProfile> profiles_of(const hone_plan* plan) {
  std::vector<PlanProfile> profiles(info_of(plan).profiles);
  for (int at = 0; PlanProfile & profile : profiles) {
    const auto told = ask<hone_profile>(hone_plan_profile, plan, at);
    profile.precision = told.precision;
    profile.memory_bytes = told.memory_bytes;
    for (size_t i = 0; i < told.ranges; ++i)
      profile.ranges.push_back(range_from(ask<hone_range>(hone_plan_range, plan, at, i)));
    ++at;
  }
  return profiles;
}

std::vector<PlanLayer> layers_of(const hone_plan* plan, int profile) {
  std::vector<PlanLayer> layers;
  for (size_t i = 0; i < hone_plan_layers(plan, profile); ++i) {
    layers.push_back({ask<hone_layer>(hone_plan_layer, plan, profile, i), {}});
    PlanLayer& layer = layers.back();
    for (size_t node = 0; node < layer.known.nodes; ++node)
      layer.nodes.emplace_back(ask<const char*>(hone_plan_layer_node, plan, profile, i, node));
  }
  return layers;
}

Dims shape_in(hone_context* context, const std::string& tensor) {
  int64_t dims[HONE_MAX_RANK];
  int rank = 0;
  check(hone_context_shape(context, tensor.c_str(), dims, &rank));
  return Dims(dims, dims + rank);
}

Tensor tensor_of(const hone_value* value) {
  const auto told = ask<hone_tensor>(hone_value_describe, value);
  const auto dtype = static_cast<DType>(told.dtype);
  const Dims dims(told.dims, told.dims + told.rank);
  if (is_container(dtype)) {
    std::vector<Tensor> items;
    for (int64_t i = 0; i < dims.at(0); ++i)
      items.push_back(tensor_of(make<hone_value>(hone_value_create_from_item, value, static_cast<size_t>(i)).get()));
    return dtype == DType::map ? Tensor::of_map(items.at(0), items.at(1)) : Tensor::of_items(dtype, std::move(items));
  }
  if (dtype != DType::string) {
    const auto bytes = static_cast<size_t>(byte_size(dtype, dims));
    return Tensor(dtype, dims, Blob(nullptr, {static_cast<const std::byte*>(hone_value_data(value)), bytes}));
  }
  std::vector<std::string> texts(static_cast<size_t>(elements(dims)));
  for (size_t i = 0; i < texts.size(); ++i) {
    const char* text = nullptr;
    size_t length = 0;
    check(hone_value_string(value, i, &text, &length));
    texts[i].assign(text, length);
  }
  return Tensor::of_strings(dims, std::move(texts));
}

hone_plan_info info_of(const hone_plan* plan) { return ask<hone_plan_info>(hone_plan_describe, plan); }
hone_device_info info_of(const hone_device* device) { return ask<hone_device_info>(hone_device_describe, device); }

PlanFile read_plan_file(const std::string& path) {
  const double start = now_ms();
  auto plan = make<hone_plan>(hone_plan_create_from_file, path.c_str());
  return {std::move(plan), std::filesystem::file_size(path), seconds_since(start)};
}

std::string layers_text(const hone_plan* plan, int profile, const InputShapes& shapes, hone_layers_form form) {
  std::vector<hone_shape> given;
  for (const auto& [input, dims] : shapes)
    given.push_back({sizeof(hone_shape), input.c_str(), dims.data(), static_cast<int>(dims.size())});
  return ask<const char*>(hone_plan_layers_text, plan, profile, given.data(), given.size(), form);
}

}  // namespace hone
