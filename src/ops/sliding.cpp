// SPDX-License-Identifier: Apache-2.0
//
// Sliding windows.
#include "ops/sliding.h"

#include <algorithm>

namespace hone::ops {

std::vector<AttrSpec> window_attrs() {
  return {{"kernel_shape", AttrKind::integers}, {"strides", AttrKind::integers}, {"dilations", AttrKind::integers}, {"pads", AttrKind::integers}, {"auto_pad", AttrKind::text, std::string("NOTSET")}};
}

Window window_of(const Attrs& attrs, size_t spatial, std::vector<int64_t> kernel) {
  const auto list = [&](std::string_view name, size_t count, int64_t fallback) {
    if (!attrs.has(name)) return std::vector<int64_t>(count, fallback);
    const std::vector<int64_t>& values = attrs.integers(name);
    HONE_CHECK(values.size() == count, "attribute '{}' has {} values, {} are needed for {} spatial axes", name, values.size(), count, spatial);
    return values;
  };
  Window window;
  if (attrs.has("kernel_shape")) {
    window.kernel = list("kernel_shape", spatial, 1);
    HONE_CHECK(kernel.empty() || window.kernel == kernel, "kernel_shape [{}] differs from the weights' [{}]", join_dims(window.kernel, ","), join_dims(kernel, ","));
  } else {
    HONE_CHECK(kernel.size() == spatial, "attribute 'kernel_shape' is missing");
    window.kernel = std::move(kernel);
  }
  window.strides = list("strides", spatial, 1);
  window.dilations = list("dilations", spatial, 1);
  window.pads = list("pads", 2 * spatial, 0);
  for (size_t i = 0; i < spatial; ++i) {
    HONE_CHECK(window.kernel[i] > 0 && window.strides[i] > 0 && window.dilations[i] > 0, "kernel, strides and dilations must be positive");
    HONE_CHECK(window.kernel[i] < 1 << 20 && window.strides[i] < 1 << 20 && window.dilations[i] < 1 << 20, "kernel, strides or dilations are absurdly large");
  }
  window.ceil_mode = attrs.integer_or("ceil_mode", 0) != 0;
  return window;
}

Dim window_output(const Dim& size, const Window& w, size_t axis) {
  if (size.is_constant()) return Dim(window_output(size.value(), w, axis));
  const size_t spatial = w.kernel.size();
  const Dim span = size + Dim(w.pads[axis] + w.pads[axis + spatial] - (w.dilations[axis] * (w.kernel[axis] - 1) + 1));
  return (w.ceil_mode ? ceil_divide(span, Dim(w.strides[axis])) : floor_divide(span, Dim(w.strides[axis]))) + Dim(1);
}

int64_t window_output(int64_t size, const Window& w, size_t axis) {
  const size_t spatial = w.kernel.size();
  const int64_t span = size + w.pads[axis] + w.pads[axis + spatial] - (w.dilations[axis] * (w.kernel[axis] - 1) + 1);
  HONE_CHECK(span >= 0, "a window of {} does not fit {} elements with pads {} and {}", w.dilations[axis] * (w.kernel[axis] - 1) + 1, size, w.pads[axis], w.pads[axis + spatial]);
  if (!w.ceil_mode) return span / w.strides[axis] + 1;
  int64_t count = (span + w.strides[axis] - 1) / w.strides[axis] + 1;
  // A window must not begin in the padding behind the data.
  if ((count - 1) * w.strides[axis] >= size + w.pads[axis]) --count;
  return count;
}

void complete_window(ImportContext& context, std::vector<int64_t> kernel) {
  Attrs& attrs = context.attrs();
  const Shape& shape = context.input(0)->type.shape;
  HONE_CHECK(shape.rank() >= 3, "an operand of rank {} has no spatial axes", shape.rank());
  const size_t spatial = shape.rank() - 2;
  const Window window = window_of(attrs, spatial, std::move(kernel));
  attrs.set("kernel_shape", window.kernel);
  attrs.set("strides", window.strides);
  attrs.set("dilations", window.dilations);
  std::vector<int64_t> pads = window.pads;
  const std::string mode = attrs.has("auto_pad") ? attrs.text("auto_pad") : "NOTSET";
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (size_t i = 0; i < spatial; ++i) {
      HONE_CHECK(shape[i + 2].is_constant(), "auto_pad {} needs fixed sizes, axis {} is {}", mode, i + 2, shape[i + 2].text());
      const int64_t size = shape[i + 2].value(), out = (size + window.strides[i] - 1) / window.strides[i];
      const int64_t total = std::max<int64_t>(0, (out - 1) * window.strides[i] + window.dilations[i] * (window.kernel[i] - 1) + 1 - size);
      const int64_t small = total / 2;
      pads[i] = mode == "SAME_UPPER" ? small : total - small;
      pads[i + spatial] = total - pads[i];
    }
  } else if (mode == "VALID") {
    std::fill(pads.begin(), pads.end(), 0);
  }
  attrs.set("pads", pads);
  attrs.set("auto_pad", std::string("NOTSET"));
}

}  // namespace hone::ops
