// SPDX-License-Identifier: Apache-2.0
//
// What the C interface tells of models, plans and devices, as values.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measured/random_values.h"
#include "tensor/attrs.h"
#include "tensor/tensor.h"
#include "tools/common/api.h"

namespace hone {

/// A network input or output.
struct NetworkTensor {
  std::string name;
  bool is_input = true, by_value = false, ranked = true;
  DType dtype = DType::f32;
  Dims dims;                // -1: not fixed
  std::string type, sizes;  // "f32[n,3,8,8]" and "n,3,8,8"
  Layout layout = Layout::linear;
  std::optional<RandomRange> range;

  bool is_static() const;
  RandomInput random_input() const { return {name, dtype, layout, range}; }
};

struct InputRange {
  std::string input;
  Dims min, opt, max;
};
struct PlanProfile {
  std::vector<InputRange> ranges;  // of inputs whose sizes are not all fixed
  std::string precision;
  int64_t memory_bytes = 0;
};
struct PlanLayer {
  hone_layer known;  // its texts are the plan's
  std::vector<std::string> nodes;

  bool is_view() const { return known.is_view != 0; }
  Attrs parameters() const;
};

std::vector<NetworkTensor> tensors_of(const hone_model* model);
std::vector<NetworkTensor> tensors_of(const hone_plan* plan);
std::vector<PlanProfile> profiles_of(const hone_plan* plan);
std::vector<PlanLayer> layers_of(const hone_plan* plan, int profile);
/// Sizes of a tensor in a context.
Dims shape_in(hone_context* context, const std::string& tensor);
/// A value with all that is in it; numbers are the value's own memory.
Tensor tensor_of(const hone_value* value);
hone_plan_info info_of(const hone_plan* plan);
hone_device_info info_of(const hone_device* device);

/// A plan's file, read and held against its checksums, which takes a while.
struct PlanFile {
  Owned<hone_plan> plan;
  size_t bytes = 0;
  double seconds = 0;  // that reading took
};
PlanFile read_plan_file(const std::string& path);

using InputShapes = std::map<std::string, Dims>;
/// See hone_plan_layers_text().
std::string layers_text(const hone_plan* plan, int profile, const InputShapes& shapes, hone_layers_form form);

}  // namespace hone
