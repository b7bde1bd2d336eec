// SPDX-License-Identifier: Apache-2.0
//
// The C interface's weights of a model, by name.
#include <algorithm>

#include "base/text.h"
#include "capi/build_handles.h"
#include "capi/guard.h"
#include "capi/tensor.h"

using hone::capi::ArgumentError;
using hone::capi::guarded;
using hone::capi::require;
using hone::capi::require_index;

namespace {

/// Constants that have a name, in the order in which nodes use them.
std::vector<hone::Value*> weights_of(const hone_model& model) {
  std::vector<hone::Value*> weights;
  for (const hone::Node* node : model.graph.nodes())
    for (hone::Value* input : node->inputs)
      if (input != nullptr && input->is_constant() && !input->name.empty() &&
          std::ranges::find(weights, input) == weights.end())
        weights.push_back(input);
  return weights;
}

}  // namespace

size_t hone_model_weights(const hone_model* model) {
  size_t count = 0;
  guarded([&] {
    require(model, "model");
    count = weights_of(*model).size();
  });
  return count;
}

hone_status hone_model_weight(const hone_model* model, size_t index, hone_tensor* tensor) {
  return guarded([&] {
    require(model, "model");
    const std::vector<hone::Value*> weights = weights_of(*model);
    require_index(index, weights.size(), "weight");
    hone::capi::describe(weights[index]->name, weights[index]->type, true, tensor);
  });
}

hone_status hone_model_set_weight(hone_model* model, const char* name, const void* data, size_t bytes) {
  return guarded([&] {
    require(model, "model");
    require(name, "name");
    require(data, "data");
    std::vector<std::string_view> names;
    for (hone::Value* weight : weights_of(*model)) {
      names.push_back(weight->name);
      if (weight->name != name) continue;
      const hone::Tensor& present = *weight->constant;
      HONE_CHECK(!hone::is_object(present.dtype()), "{} holds {}, which are no bytes", name,
                 hone::name_of(present.dtype()));
      if (present.bytes().size() != bytes)
        throw ArgumentError(fmt::format("bytes is {}, the weight {} has {}", bytes, name, present.bytes().size()));
      const std::span<const std::byte> contents(static_cast<const std::byte*>(data), bytes);
      weight->constant = hone::Tensor(present.dtype(), present.dims(), hone::Blob::copy(contents));
      return;
    }
    throw hone::Error(fmt::format("the model has no weight called {}", name),
                      names.empty() ? std::string("it has none at all")
                                    : fmt::format("the nearest is {}", hone::nearest(name, names)));
  });
}
