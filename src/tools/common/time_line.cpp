// SPDX-License-Identifier: Apache-2.0

#include "tools/common/time_line.h"

#include <algorithm>

namespace hone {
namespace {

/// From the first layer that has a tensor to the last.
struct Life {
  size_t first = 0, last = 0;
  int64_t bytes = 0;
};

int64_t bytes_of(const hone_tensor& tensor) {
  const Dims dims(tensor.dims, tensor.dims + std::max(tensor.rank, 0));
  if (std::ranges::any_of(dims, [](int64_t size) { return size < 0; })) return 0;
  const auto dtype = static_cast<DType>(tensor.dtype);
  return is_object(dtype) ? 0 : (elements(dims) * bits_of(dtype) + 7) / 8;
}

std::map<std::string, Life> lives_of(const hone_plan* plan, int profile, std::span<const PlanLayer> layers) {
  std::map<std::string, Life> lives;
  for (size_t i = 0; i < layers.size(); ++i)
    for (size_t t = 0; t < layers[i].known.inputs + layers[i].known.outputs; ++t) {
      const auto tensor = ask<hone_tensor>(hone_plan_layer_tensor, plan, profile, i, t);
      Life& life = lives.try_emplace(tensor.name, Life{i, i, bytes_of(tensor)}).first->second;
      life.last = i;
    }
  return lives;
}

}  // namespace

std::vector<TimeLineLayer> time_line_layers(const hone_plan* plan, int profile) {
  const std::vector<PlanLayer> layers = layers_of(plan, profile);
  std::vector<TimeLineLayer> result;
  for (const PlanLayer& layer : layers) {
    const hone_layer& known = layer.known;
    result.push_back({known.name, known.kind, layer.is_view() ? "" : fmt::format("{}.{}", known.source, known.tactic),
                      layer.nodes, known.flops, known.bytes});
  }
  for (const auto& [name, life] : lives_of(plan, profile, layers))
    for (size_t i = life.first; i <= life.last; ++i) result[i].activations += life.bytes;
  return result;
}

}  // namespace hone
