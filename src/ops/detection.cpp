// SPDX-License-Identifier: Apache-2.0
//
// Operators of object detection: NonMaxSuppression and RoiAlign. Also ReverseSequence, which nothing else is like.
#include <algorithm>
#include <cmath>

#include "base/node_error.h"
#include "base/numbers.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"

namespace hone {
namespace {

// ---- NonMaxSuppression: boxes [batch, boxes, 4], scores [batch, classes, boxes] -> [selected, 3] ----

struct Box {
  float y1, x1, y2, x2;
  float area() const { return (y2 - y1) * (x2 - x1); }
};

Box box_of(std::span<const float> boxes, int64_t i, bool centered) {
  const float* b = boxes.data() + i * 4;
  if (centered) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

float overlap(const Box& a, const Box& b) {
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1), width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
  if (height <= 0 || width <= 0) return 0;
  const float shared = height * width, together = a.area() + b.area() - shared;
  return together <= 0 ? 0 : shared / together;
}

void infer_nms(InferContext& context) {
  HONE_CHECK(context.rank(0) == 3 && context.rank(1) == 3, "boxes and scores must have rank 3, not {} and {}",
             context.rank(0), context.rank(1));
  HONE_CHECK_AS(TypeError, context.dtype(0) == DType::f32 && context.dtype(1) == DType::f32,
                "boxes and scores are {} and {}, not f32", name_of(context.dtype(0)), name_of(context.dtype(1)));
  context.set(0, DType::i64, Shape{context.data_dependent(0, 0), Dim(3)});
}

/// Exporters write "as many as there are" as the largest number that there is.
constexpr int64_t kAnyNumber = int64_t{1} << 40;

Shape most_nms(const Node& node) {
  const Shape& scores = node.input(1)->type.shape;
  const Value* limit = node.input(2);
  Dim kept = scores[2];  // of a class
  if (limit == nullptr) kept = 0;
  else if (limit->is_constant()) {
    const int64_t number = limit->constant->size() > 0 ? std::max<int64_t>(limit->constant->integer(0), 0) : 0;
    kept = number >= kAnyNumber ? kept : minimum(kept, number);
  }
  return {scores[0] * scores[1] * kept, Dim(3)};
}

void eval_nms(EvalContext& context) {
  const Tensor &boxes = context.input(0), &scores = context.input(1);
  const int64_t batches = scores.dims()[0], classes = scores.dims()[1], count = scores.dims()[2];
  HONE_CHECK(boxes.dims() == (Dims{batches, count, 4}), "boxes [{}] do not fit scores [{}]",
             join_dims(boxes.dims(), ","), join_dims(scores.dims(), ","));
  const int64_t most = context.has(2) && context.input(2).size() > 0 ? context.input(2).integer(0) : 0;
  const float limit =
      context.has(3) && context.input(3).size() > 0 ? static_cast<float>(context.input(3).real(0)) : 0.0f;
  const bool thresholded = context.has(4) && context.input(4).size() > 0;
  const float least = thresholded ? static_cast<float>(context.input(4).real(0)) : 0.0f;
  const bool centered = context.attrs().integer("center_point_box") != 0;
  std::vector<int64_t> selected;
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t cls = 0; cls < classes; ++cls) {
      const std::span<const float> score = scores.data<float>().subspan(
          static_cast<size_t>((batch * classes + cls) * count), static_cast<size_t>(count));
      const std::span<const float> own_boxes = boxes.data<float>().subspan(static_cast<size_t>(batch * count * 4));
      std::vector<int64_t> order;
      for (int64_t i = 0; i < count; ++i)
        if (!thresholded || score[static_cast<size_t>(i)] > least) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return score[static_cast<size_t>(a)] > score[static_cast<size_t>(b)];
      });
      std::vector<Box> kept;
      for (const int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        const Box box = box_of(own_boxes, i, centered);
        if (std::any_of(kept.begin(), kept.end(), [&](const Box& other) { return overlap(box, other) > limit; }))
          continue;
        kept.push_back(box);
        selected.insert(selected.end(), {batch, cls, i});
      }
    }
  context.set(0,
              Tensor::of<int64_t>({static_cast<int64_t>(selected.size()) / 3, 3}, std::span<const int64_t>(selected)));
}

// ---- RoiAlign: x [n, c, h, w], rois [r, 4], batch_indices [r] -> [r, c, oh, ow] ----

void infer_roi_align(InferContext& context) {
  HONE_CHECK(context.rank(0) == 4 && context.rank(1) == 2, "RoiAlign needs a rank-4 input and rank-2 regions");
  const Attrs& attrs = context.attrs();
  context.set(0, context.dtype(0),
              Shape{context.shape(1)[0], context.shape(0)[1], Dim(attrs.integer("output_height")),
                    Dim(attrs.integer("output_width"))});
}

/// Bilinear sample; outside by more than one pixel counts as 0. For "max" the largest of the four weighted neighbours.
float sample(std::span<const float> plane, int64_t height, int64_t width, float y, float x, bool largest) {
  const bool inside = y >= -1 && y <= static_cast<float>(height) && x >= -1 && x <= static_cast<float>(width);
  if (!inside) return 0;  // neither is not-a-number
  y = std::max(y, 0.0f);
  x = std::max(x, 0.0f);
  auto top = static_cast<int64_t>(y), left = static_cast<int64_t>(x);
  int64_t bottom = top + 1, right = left + 1;
  if (top >= height - 1) {
    top = bottom = height - 1;
    y = static_cast<float>(top);
  }
  if (left >= width - 1) {
    left = right = width - 1;
    x = static_cast<float>(left);
  }
  const float dy = y - static_cast<float>(top), dx = x - static_cast<float>(left);
  const auto at = [&](int64_t row, int64_t column) { return plane[static_cast<size_t>(row * width + column)]; };
  const float a = (1 - dy) * (1 - dx) * at(top, left), b = (1 - dy) * dx * at(top, right),
              c = dy * (1 - dx) * at(bottom, left), d = dy * dx * at(bottom, right);
  return largest ? std::max({a, b, c, d}) : a + b + c + d;
}

void eval_roi_align(EvalContext& context) {
  const Tensor &x = context.input(0), &rois = context.input(1), &batch_indices = context.input(2);
  const Attrs& attrs = context.attrs();
  const Dims& d = x.dims();
  const int64_t out_height = attrs.integer("output_height"), out_width = attrs.integer("output_width"),
                regions = rois.dims()[0];
  HONE_CHECK(out_height > 0 && out_width > 0, "the output size {} x {} is not positive", out_height, out_width);
  HONE_CHECK(rois.dims()[1] == 4 && batch_indices.size() == regions, "{} regions do not fit {} batch indices", regions,
             batch_indices.size());
  const auto scale = static_cast<float>(attrs.real("spatial_scale"));
  const bool half_pixel = attrs.text("coordinate_transformation_mode") == "half_pixel",
             largest = attrs.text("mode") == "max";
  const float offset = half_pixel ? 0.5f : 0.0f;
  const Floats values(x), corners(rois);
  std::vector<float> result;
  for (int64_t region = 0; region < regions; ++region) {
    const std::span<const float> roi(corners.data() + region * 4, 4);
    const float left = roi[0] * scale - offset, top = roi[1] * scale - offset;
    float width = roi[2] * scale - offset - left, height = roi[3] * scale - offset - top;
    if (!half_pixel) {
      width = std::max(width, 1.0f);
      height = std::max(height, 1.0f);
    }
    const float bin_height = height / static_cast<float>(out_height), bin_width = width / static_cast<float>(out_width);
    const int64_t ratio = attrs.integer("sampling_ratio");
    const int64_t rows = ratio > 0 ? ratio : saturated<int64_t>(std::ceil(bin_height)),
                  columns = ratio > 0 ? ratio : saturated<int64_t>(std::ceil(bin_width));
    HONE_CHECK(rows < 1 << 16 && columns < 1 << 16, "region {} is too large", region);
    const int64_t image = checked_index(batch_indices.integer(region), d[0]);
    for (int64_t channel = 0; channel < d[1]; ++channel) {
      const std::span<const float> plane(values.data() + (image * d[1] + channel) * d[2] * d[3],
                                         static_cast<size_t>(d[2] * d[3]));
      for (int64_t oy = 0; oy < out_height; ++oy)
        for (int64_t ox = 0; ox < out_width; ++ox) {
          float total = 0, best = rows > 0 && columns > 0 ? -INFINITY : 0.0f;
          for (int64_t iy = 0; iy < rows; ++iy)
            for (int64_t ix = 0; ix < columns; ++ix) {
              const float sy = top + static_cast<float>(oy) * bin_height +
                               (static_cast<float>(iy) + 0.5f) * bin_height / static_cast<float>(rows);
              const float sx = left + static_cast<float>(ox) * bin_width +
                               (static_cast<float>(ix) + 0.5f) * bin_width / static_cast<float>(columns);
              const float value = sample(plane, d[2], d[3], sy, sx, largest);
              total += value;
              best = std::max(best, value);
            }
          result.push_back(largest ? best : total / static_cast<float>(std::max<int64_t>(rows * columns, 1)));
        }
    }
  }
  context.set(0, write_floats(x.dtype(), {regions, d[1], out_height, out_width}, result));
}

/// Before opset 16 coordinates are not shifted by half a pixel.
void import_roi_align_10(ImportContext& context) {
  Attrs attrs = context.attrs();
  attrs.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  set_outputs(context,
              *context.add("RoiAlign", {context.input(0), context.input(1), context.input(2)}, std::move(attrs)));
}

// ---- ReverseSequence: the first `length` steps of each sequence in reverse ----

void infer_reverse_sequence(InferContext& context) {
  HONE_CHECK(context.rank(0) >= 2, "the input must have at least rank 2");
  context.set(0, context.dtype(0), context.shape(0));
}

void eval_reverse_sequence(EvalContext& context) {
  const Tensor& data = context.input(0);
  const Dims& dims = data.dims();
  const size_t time = normalize_axis(context.attrs().integer("time_axis"), dims.size()),
               batch = normalize_axis(context.attrs().integer("batch_axis"), dims.size());
  HONE_CHECK(time != batch, "time and batch are the same axis");
  const std::vector<int64_t> lengths = context.input(1).integers();
  HONE_CHECK(static_cast<int64_t>(lengths.size()) == dims[batch], "{} lengths are given for {} sequences",
             lengths.size(), dims[batch]);
  for (const int64_t length : lengths)
    HONE_CHECK(length >= 0 && length <= dims[time], "the length {} exceeds the {} steps", length, dims[time]);
  const Dims strides = strides_of(dims);
  std::vector<int64_t> flat = iota(data.size());
  for (int64_t& number : flat) {
    const int64_t step = number / strides[time] % dims[time],
                  length = lengths[static_cast<size_t>(number / strides[batch] % dims[batch])];
    if (step < length) number += (length - 1 - 2 * step) * strides[time];
  }
  context.set(0, pick_flat(data, dims, flat));
}

std::optional<IntegerRange> accepts_lengths(const Node& node, size_t operand) {
  if (operand != 1) return std::nullopt;
  return lengths_along(node.input(0)->type.shape, node.attrs.integer_or("time_axis", 0));
}

std::optional<IntegerRange> accepts_images(const Node& node, size_t operand) {
  if (operand != 2) return std::nullopt;
  return positions_along(node.input(0)->type.shape, 0);
}

}  // namespace

namespace ops {

const OpDef non_max_suppression = {
    .name = "NonMaxSuppression",
    .attrs = {{"center_point_box", AttrKind::integer, int64_t{0}, false, "0: corners, 1: centre and size"}},
    .min_inputs = 2,
    .max_inputs = 5,
    .infer = infer_nms,
    .eval = eval_nms,
    .onnx = {{"NonMaxSuppression"}},
    .traits = {.data_dependent = true, .most = most_nms},
};

const OpDef roi_align = {
    .name = "RoiAlign",
    .attrs = {{"coordinate_transformation_mode", AttrKind::text, std::string("half_pixel"), false,
               "half_pixel or output_half_pixel"},
              {"mode", AttrKind::text, std::string("avg"), false, "avg or max"},
              {"output_height", AttrKind::integer, int64_t{1}, false, "rows of the result"},
              {"output_width", AttrKind::integer, int64_t{1}, false, "columns of the result"},
              {"sampling_ratio", AttrKind::integer, int64_t{0}, false,
               "samples per bin and axis; 0: as many as pixels"},
              {"spatial_scale", AttrKind::real, 1.0, false, "input pixels per unit of the regions"}},
    .min_inputs = 3,
    .max_inputs = 3,
    .infer = infer_roi_align,
    .eval = eval_roi_align,
    .onnx = {{"RoiAlign", 16}, {"RoiAlign", 1, 15, import_roi_align_10}},
    .traits = {.accepts = accepts_images},
};

const OpDef reverse_sequence = {
    .name = "ReverseSequence",
    .attrs = {{"time_axis", AttrKind::integer, int64_t{0}, false, "axis of the steps"},
              {"batch_axis", AttrKind::integer, int64_t{1}, false, "axis of the sequences"}},
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_reverse_sequence,
    .eval = eval_reverse_sequence,
    .onnx = {{"ReverseSequence"}},
    .traits = {.accepts = accepts_lengths},
};

}  // namespace ops
}  // namespace hone
