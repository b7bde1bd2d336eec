// SPDX-License-Identifier: Apache-2.0
//
// Sliding windows: what convolutions and poolings share. Attributes always have full length in the graph; the ONNX rule
// fills them in and turns auto_pad into explicit pads.
#pragma once

#include "ir/op.h"

namespace hone::ops {

struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;     // pads: all begins, then all ends
  bool ceil_mode = false;
};

std::vector<AttrSpec> window_attrs();
/// Checks the lengths against `spatial`; `kernel` for operators whose kernel follows from the weights.
Window window_of(const Attrs& attrs, size_t spatial, std::vector<int64_t> kernel = {});
Dim window_output(const Dim& size, const Window& window, size_t axis);
int64_t window_output(int64_t size, const Window& window, size_t axis);
/// ONNX rule: fills kernel_shape, strides, dilations, pads.
void complete_window(ImportContext& context, std::vector<int64_t> kernel);

}  // namespace hone::ops
