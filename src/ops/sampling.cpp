// SPDX-License-Identifier: Apache-2.0
//
// Reading images between their elements: GridSample in any number of dimensions, AffineGrid, which makes its grids,
// DeformConv, whose taps wander, and MaxRoiPool.
#include <algorithm>
#include <cmath>

#include "base/numbers.h"
#include "ops/expansions.h"
#include "ops/movement.h"
#include "ops/ops.h"
#include "ops/support.h"
#include "ops/window.h"

namespace hone {
namespace {

// ---- GridSample ----

struct Sampling {
  bool align_corners;
  std::string mode, padding;
};

/// Mirrors a position into [low, high].
double reflected(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  const double away = std::fmod(std::abs(x - low), 2 * range);
  return away <= range ? low + away : high - (away - range);
}

/// A grid value of -1 to 1 as a position in elements.
double position_of(double grid, int64_t size, bool align_corners) {
  const auto length = static_cast<double>(size);
  return align_corners ? (grid + 1) / 2 * (length - 1) : ((grid + 1) * length - 1) / 2;
}

double padded_position(double x, int64_t size, const Sampling& s) {
  const auto last = static_cast<double>(size - 1);
  if (s.padding == "border") return std::clamp(x, 0.0, last);
  if (s.padding == "reflection") return s.align_corners ? reflected(x, 0, last) : reflected(x, -0.5, last + 0.5);
  return x;
}

/// Taps of one axis and their weights; index -1 reads zero.
struct Taps {
  int64_t index[4];
  double weight[4];
  int count;
};

int64_t padded_index(int64_t i, int64_t size, const Sampling& s) {
  if (i >= 0 && i < size) return i;
  if (s.padding == "zeros") return -1;
  return std::clamp<int64_t>(saturated<int64_t>(std::nearbyint(padded_position(static_cast<double>(i), size, s))), 0,
                             size - 1);
}

Taps taps_at(double x, int64_t size, const Sampling& s) {
  Taps taps{};
  const auto tap = [&](int64_t index, double weight) {
    taps.index[taps.count] = padded_index(index, size, s);
    taps.weight[taps.count++] = weight;
  };
  if (std::isnan(x)) x = -2;
  x = std::clamp(x, -1e15, 1e15);
  if (s.mode == "nearest") {
    tap(saturated<int64_t>(std::nearbyint(padded_position(x, size, s))), 1);
  } else if (s.mode == "linear") {
    x = padded_position(x, size, s);
    const double low = std::floor(x);
    tap(static_cast<int64_t>(low), 1 - (x - low));
    tap(static_cast<int64_t>(low) + 1, x - low);
  } else {
    // Only the taps are padded, so that the curve keeps its support.
    const double a = -0.75, low = std::floor(x), t = x - low;
    const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
    const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
    const double weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    for (int i = 0; i < 4; ++i) tap(static_cast<int64_t>(low) - 1 + i, weights[i]);
  }
  return taps;
}

/// The weighted sum over all combinations of the axes' taps.
double sample(const float* image, std::span<const int64_t> sizes, std::span<const Taps> taps) {
  if (sizes.empty()) return *image;
  const int64_t stride = elements(sizes.subspan(1));
  double sum = 0;
  for (int i = 0; i < taps[0].count; ++i)
    if (taps[0].index[i] >= 0 && taps[0].weight[i] != 0)
      sum += taps[0].weight[i] * sample(image + taps[0].index[i] * stride, sizes.subspan(1), taps.subspan(1));
  return sum;
}

void infer_grid_sample(InferContext& context) {
  const Shape &x = context.shape(0), &grid = context.shape(1);
  HONE_CHECK(x.rank() >= 3, "GridSample reads images of rank 3 or more, not {}", x.rank());
  check_rank(context, 1, x.rank(), "the grid of GridSample");
  check_equal(grid[grid.rank() - 1], Dim(static_cast<int64_t>(x.rank()) - 2),
              "coordinates and spatial axes of GridSample");
  Shape result{x[0], x[1]};
  for (size_t i = 1; i + 1 < grid.rank(); ++i) result.push_back(grid[i]);
  context.set(0, context.dtype(0), std::move(result));
}

void eval_grid_sample(EvalContext& context) {
  const Tensor &x = context.input(0), &grid = context.input(1);
  const Sampling s{context.attrs().integer("align_corners") != 0, context.attrs().text("mode"),
                   context.attrs().text("padding_mode")};
  const Dims sizes = spatial_of(x.dims());
  const auto axes = static_cast<int64_t>(sizes.size());
  HONE_CHECK(grid.dims()[0] == x.dims()[0] && grid.dims().back() == axes, "the grid [{}] does not fit the image [{}]",
             join_dims(grid.dims(), ","), join_dims(x.dims(), ","));
  const int64_t area = elements(sizes), channels = x.dims()[1],
                points = grid.size() / std::max<int64_t>(axes * grid.dims()[0], 1);
  const Floats image(x);
  const std::vector<double> coordinates = read_doubles(grid);
  Dims dims{x.dims()[0], channels};
  dims.insert(dims.end(), grid.dims().begin() + 1, grid.dims().end() - 1);
  std::vector<double> out(static_cast<size_t>(elements(dims)));
  std::vector<Taps> taps(sizes.size());
  for (int64_t n = 0; n < x.dims()[0]; ++n)
    for (int64_t p = 0; p < points; ++p) {
      for (int64_t axis = 0; axis < axes; ++axis) {  // coordinates run from the last axis to the first
        const double at = coordinates[static_cast<size_t>((n * points + p) * axes + axes - 1 - axis)];
        taps[static_cast<size_t>(axis)] = taps_at(position_of(at, sizes[static_cast<size_t>(axis)], s.align_corners),
                                                  sizes[static_cast<size_t>(axis)], s);
      }
      for (int64_t c = 0; c < channels; ++c)
        out[static_cast<size_t>((n * channels + c) * points + p)] =
            sample(image.data() + (n * channels + c) * area, sizes, taps);
    }
  context.set(0, write_doubles(x.dtype(), std::move(dims), out));
}

void import_grid_sample(ImportContext& context) {
  Attrs attrs = context.attrs();
  if (attrs.has("mode") && attrs.text("mode") == "bilinear") attrs.set("mode", std::string("linear"));
  if (attrs.has("mode") && attrs.text("mode") == "bicubic") attrs.set("mode", std::string("cubic"));
  context.set_output(0, context.add("GridSample", {context.input(0), context.input(1)}, std::move(attrs))->output());
}

// ---- AffineGrid(theta, size) ----

void infer_affine_grid(InferContext& context) {
  check_rank(context, 0, 3, "theta of AffineGrid");
  const size_t count = known_count(context, 1);
  HONE_CHECK(count >= 3, "AffineGrid is asked for an image of {} sizes; batch, channels and one more at least", count);
  const size_t axes = count - 2;
  const std::optional<SymbolicData> size = context.symbolic(1);
  Shape result{context.shape(0)[0]};
  for (size_t i = 0; i < axes; ++i) result.push_back(size ? (*size)[2 + i] : context.data_dependent(0, 1 + i));
  result.push_back(Dim(static_cast<int64_t>(axes)));
  context.set(0, context.dtype(0), std::move(result));
}

/// The places of an image's elements between -1 and 1, the last axis first, and a 1 behind them: [points, axes + 1].
std::vector<double> grid_places(const Dims& sizes, bool align) {
  std::vector<double> places;
  for (int64_t p = 0; p < elements(sizes); ++p) {
    int64_t rest = p;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const int64_t length = sizes[sizes.size() - 1 - i], index = rest % length;
      rest /= length;
      const auto step = static_cast<double>(length);
      places.push_back(align ? (length > 1 ? -1 + 2.0 * static_cast<double>(index) / (step - 1) : -1)
                             : (2.0 * static_cast<double>(index) + 1) / step - 1);
    }
    places.push_back(1);
  }
  return places;
}

void eval_affine_grid(EvalContext& context) {
  const std::vector<double> theta = read_doubles(context.input(0));
  const Dims size = context.input(1).integers(), sizes(size.begin() + 2, size.end());
  const size_t axes = sizes.size();
  HONE_CHECK(theta.size() == static_cast<size_t>(size[0]) * axes * (axes + 1),
             "theta has {} numbers for {} grids of {} axes", theta.size(), size[0], axes);
  const std::vector<double> places = grid_places(sizes, context.attrs().integer("align_corners") != 0);
  std::vector<double> out;
  for (size_t n = 0; n < static_cast<size_t>(size[0]); ++n)
    for (size_t at = 0; at < places.size(); at += axes + 1)
      for (size_t row = 0; row < axes; ++row) {
        double sum = 0;
        for (size_t i = 0; i <= axes; ++i) sum += theta[(n * axes + row) * (axes + 1) + i] * places[at + i];
        out.push_back(sum);
      }
  Dims dims{size[0]};
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  dims.push_back(static_cast<int64_t>(axes));
  context.set(0, write_doubles(context.input(0).dtype(), std::move(dims), out));
}

/// Of floats, where the sizes are known, a product by the places.
void import_affine_grid(ImportContext& context) {
  constexpr int64_t kMostPoints = 1 << 22;  // more are not worth a constant
  Value *theta = context.input(0), *asked = context.input(1);
  const bool known = theta->type.ranked && theta->type.dtype == DType::f32 && asked->is_constant() &&
                     (asked->constant->size() == 4 || asked->constant->size() == 5);
  const Dims size = known ? asked->constant->integers() : Dims(), sizes(size.begin() + (known ? 2 : 0), size.end());
  const auto axes = static_cast<int64_t>(sizes.size());
  const bool fits =
      known && std::all_of(size.begin(), size.end(), [](int64_t n) { return n > 0 && n <= kMostPoints; }) &&
      elements(sizes) <= kMostPoints && theta->type.shape == Shape{Dim(size[0]), Dim(axes), Dim(axes + 1)};
  if (!fits) return context.set_output(0, context.add("AffineGrid", {theta, asked}, context.attrs())->output());
  const std::vector<double> places = grid_places(sizes, context.attrs().integer_or("align_corners", 0) != 0);
  Value* points = context.constant(write_doubles(DType::f32, {elements(sizes), axes + 1}, places));
  points = made(context, "Transpose", {points}, {{"perm", std::vector<int64_t>{1, 0}}});
  Value* grid =
      made(context, "Transpose", {made(context, "MatMul", {theta, points})}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  Dims dims{size[0]};
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  dims.push_back(axes);
  context.set_output(0, made(context, "Reshape", {grid, integer_constant(context, dims)}));
}

// ---- DeformConv(x, w, offset, bias, mask), two spatial axes ----

void infer_deform_conv(InferContext& context) {
  check_rank(context, 0, 4, "the input of DeformConv");
  check_rank(context, 1, 4, "the weight of DeformConv");
  check_rank(context, 2, 4, "the offset of DeformConv");
  const Shape &x = context.shape(0), &w = context.shape(1);
  const WindowAttrs window(context.attrs(), 2, kernel_of_weight(w));
  context.set(0, context.dtype(0), {x[0], w[0], window.result_size(x[2], 0), window.result_size(x[3], 1)});
}

/// What every tap of every filter reads: [batch, positions, taps * channels].
std::vector<double> deformed_columns(const Tensor& x, const Tensor& offset, const Tensor* mask,
                                     const WindowAttrs& window, int64_t offset_groups) {
  const int64_t batch = x.dims()[0], channels = x.dims()[1], height = x.dims()[2], width = x.dims()[3];
  const int64_t taps = window.kernel[0] * window.kernel[1], columns = offset.dims()[3],
                area = offset.dims()[2] * columns;
  HONE_CHECK(offset_groups > 0 && channels % offset_groups == 0, "{} channels do not divide into {} groups of offsets",
             channels, offset_groups);
  HONE_CHECK(offset.size() == batch * offset_groups * taps * 2 * area,
             "offsets [{}] do not fit {} taps of an image [{}]", join_dims(offset.dims(), ","), taps,
             join_dims(x.dims(), ","));
  HONE_CHECK(mask == nullptr || mask->size() == batch * offset_groups * taps * area,
             "the mask has {} elements where {} are needed", mask->size(), batch * offset_groups * taps * area);
  const Floats image(x), offsets(offset);
  std::optional<Floats> factors;
  if (mask != nullptr) factors.emplace(*mask);
  const Sampling sampling{.align_corners = false, .mode = "linear", .padding = "zeros"};
  const Dims sizes{height, width};
  std::vector<double> out;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t at = 0; at < area; ++at)
      for (int64_t tap = 0; tap < taps; ++tap)
        for (int64_t c = 0; c < channels; ++c) {
          const int64_t g = c / (channels / offset_groups), slot = (n * offset_groups + g) * taps + tap;
          const int64_t i = tap / window.kernel[1], j = tap % window.kernel[1];
          const double y =
              static_cast<double>(at / columns * window.strides[0] - window.pads[0] + i * window.dilations[0]) +
              offsets[(slot * 2) * area + at];
          const double z =
              static_cast<double>(at % columns * window.strides[1] - window.pads[1] + j * window.dilations[1]) +
              offsets[(slot * 2 + 1) * area + at];
          const Taps both[] = {taps_at(y, height, sampling), taps_at(z, width, sampling)};
          out.push_back(sample(image.data() + (n * channels + c) * height * width, sizes, both) *
                        (factors ? (*factors)[slot * area + at] : 1));
        }
  return out;
}

void eval_deform_conv(EvalContext& context) {
  const Tensor &x = context.input(0), &w = context.input(1), &offset = context.input(2);
  const WindowAttrs window(context.attrs(), 2, spatial_of(w.dims()));
  const int64_t batch = x.dims()[0], channels = x.dims()[1], filters = w.dims()[0], group_channels = w.dims()[1];
  const int64_t taps = window.kernel[0] * window.kernel[1], groups = context.attrs().integer("group"),
                area = offset.dims()[2] * offset.dims()[3];
  HONE_CHECK(groups > 0 && channels == group_channels * groups && filters % groups == 0,
             "DeformConv's channels do not divide into its groups");
  HONE_CHECK(!context.has(3) || context.input(3).size() == filters,
             "operand 3 of DeformConv has {} elements for {} filters", context.input(3).size(), filters);
  const Floats weight(w);
  std::optional<Floats> bias;
  if (context.has(3)) bias.emplace(context.input(3));
  const std::vector<double> columns = deformed_columns(x, offset, context.has(4) ? &context.input(4) : nullptr, window,
                                                       context.attrs().integer("offset_group"));
  std::vector<double> out;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t f = 0; f < filters; ++f)
      for (int64_t at = 0; at < area; ++at) {
        double sum = bias ? (*bias)[f] : 0;
        for (int64_t c = 0; c < group_channels; ++c)
          for (int64_t tap = 0; tap < taps; ++tap)
            sum += weight[(f * group_channels + c) * taps + tap] *
                   columns[static_cast<size_t>(((n * area + at) * taps + tap) * channels +
                                               f / (filters / groups) * group_channels + c)];
        out.push_back(sum);
      }
  context.set(0, write_doubles(x.dtype(), {batch, filters, offset.dims()[2], offset.dims()[3]}, out));
}

/// The places between -1 and 1 that the taps read, [groups, taps * rows, columns, 2]: where they would be, and from the offsets where
/// they are. `offset` is [groups, taps, 2, rows, columns], rows first.
Value* grid_of_offsets(ImportContext& context, Value* offset, const WindowAttrs& window, const Dims& image,
                       const Dims& positions) {
  const int64_t taps = window.kernel[0] * window.kernel[1];
  std::vector<double> places;
  for (int64_t tap = 0; tap < taps; ++tap)
    for (size_t axis = 0; axis < 2; ++axis)
      for (int64_t at = 0; at < positions[0] * positions[1]; ++at) {
        const int64_t place = axis == 0 ? at / positions[1] : at % positions[1],
                      step = axis == 0 ? tap / window.kernel[1] : tap % window.kernel[1];
        const int64_t pixel = place * window.strides[axis] - window.pads[axis] + step * window.dilations[axis];
        places.push_back((2.0 * static_cast<double>(pixel) + 1) / static_cast<double>(image[axis]) - 1);
      }
  const std::vector<double> scales{2.0 / static_cast<double>(image[0]), 2.0 / static_cast<double>(image[1])};
  Value* grid = made(context, "Mul", {offset, context.constant(write_doubles(DType::f32, {2, 1, 1}, scales))});
  grid = made(context, "Add",
              {grid, context.constant(write_doubles(DType::f32, {taps, 2, positions[0], positions[1]}, places))});
  grid = made(context, "Gather", {grid, integer_constant(context, {1, 0})}, {{"axis", int64_t{2}}});
  grid = made(context, "Transpose", {grid}, {{"perm", std::vector<int64_t>{0, 1, 3, 4, 2}}});
  return made(context, "Reshape", {grid, integer_constant(context, {-1, taps * positions[0], positions[1], 2})});
}

/// Without groups of filters, where sizes are known: a GridSample gives what the taps read, and a product does the rest.
bool import_as_product(ImportContext& context, const Attrs& attrs) {
  Value *x = context.input(0), *w = context.input(1), *offset = context.input(2), *bias = given(context, 3),
        *mask = given(context, 4);
  for (const Value* value : {x, w, offset})
    if (!value->type.ranked || value->type.dtype != DType::f32 || value->type.shape.rank() != 4) return false;
  if (attrs.integer_or("group", 1) != 1 || (attrs.has("auto_pad") && attrs.text("auto_pad") != "NOTSET")) return false;
  const Shape &filters = w->type.shape, &places = offset->type.shape, &image = x->type.shape;
  for (const Dim& size : {places[1], places[2], places[3], image[1], image[2], image[3]})
    if (!size.is_constant()) return false;
  if (!filters.is_static() || image[1] != filters[1] || image[2] == Dim(0) || image[3] == Dim(0)) return false;
  const WindowAttrs window(attrs, 2, kernel_of_weight(filters));
  const int64_t groups = attrs.integer_or("offset_group", 1), taps = window.kernel[0] * window.kernel[1],
                channels = image[1].value(), count = filters[0].value();
  if (groups < 1 || channels % groups != 0 || places[1] != Dim(groups * taps * 2)) return false;
  const Dims sizes{image[2].value(), image[3].value()}, positions{places[2].value(), places[3].value()};
  const auto shaped = [&](Value* value, std::vector<int64_t> dims) {
    return made(context, "Reshape", {value, integer_constant(context, std::move(dims))});
  };
  Value* grid =
      grid_of_offsets(context, shaped(offset, {-1, taps, 2, positions[0], positions[1]}), window, sizes, positions);
  Value* images = groups == 1 ? x : shaped(x, {-1, channels / groups, sizes[0], sizes[1]});
  Value* read = made(context, "GridSample", {images, grid});
  if (mask != nullptr) read = made(context, "Mul", {read, shaped(mask, {-1, 1, taps * positions[0], positions[1]})});
  Value* y =
      made(context, "MatMul",
           {shaped(w, {count, channels * taps}), shaped(read, {-1, channels * taps, positions[0] * positions[1]})});
  y = shaped(y, {-1, count, positions[0], positions[1]});
  context.set_output(0, bias == nullptr ? y : plus(context, y, shaped(bias, {count, 1, 1})));
  return true;
}

void import_deform_conv(ImportContext& context) {
  Attrs attrs = context.attrs();
  complete_window_attrs(context, attrs, context.input(0)->type.shape, kernel_of_weight(context.input(1)->type.shape));
  if (import_as_product(context, attrs)) return;
  std::vector<Value*> inputs;
  for (size_t i = 0; i < context.inputs(); ++i) inputs.push_back(context.input(i));
  context.set_output(0, context.add("DeformConv", std::move(inputs), std::move(attrs))->output());
}

// ---- MaxRoiPool(x, rois): every region is divided into pooled_shape parts ----

void infer_max_roi_pool(InferContext& context) {
  check_rank(context, 0, 4, "the input of MaxRoiPool");
  check_rank(context, 1, 2, "the regions of MaxRoiPool");
  const Dims& pooled = context.attrs().integers("pooled_shape");
  HONE_CHECK(pooled.size() == 2 && pooled[0] > 0 && pooled[1] > 0, "pooled_shape is [{}]", join_dims(pooled, ","));
  context.set(0, context.dtype(0), {context.shape(1)[0], context.shape(0)[1], Dim(pooled[0]), Dim(pooled[1])});
}

void eval_max_roi_pool(EvalContext& context) {
  const Tensor& x = context.input(0);
  const Floats image(x), rois(context.input(1));
  const int64_t channels = x.dims()[1], height = x.dims()[2], width = x.dims()[3], regions = context.input(1).dims()[0];
  HONE_CHECK(context.input(1).dims()[1] == 5, "regions have {} numbers where 5 are needed", context.input(1).dims()[1]);
  const Dims& pooled = context.attrs().integers("pooled_shape");
  const double scale = context.attrs().real("spatial_scale");
  std::vector<double> out;
  for (int64_t r = 0; r < regions; ++r) {
    const int64_t n = checked_index(static_cast<int64_t>(rois[r * 5]), x.dims()[0]);
    double edge[4];
    for (int64_t i = 0; i < 4; ++i) edge[i] = std::round(rois[r * 5 + 1 + i] * scale);
    const double bin_width = std::max(edge[2] - edge[0] + 1, 1.0) / static_cast<double>(pooled[1]),
                 bin_height = std::max(edge[3] - edge[1] + 1, 1.0) / static_cast<double>(pooled[0]);
    const auto bound = [](double at, int64_t size) { return std::clamp<int64_t>(static_cast<int64_t>(at), 0, size); };
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t i = 0; i < pooled[0]; ++i)
        for (int64_t j = 0; j < pooled[1]; ++j) {
          const int64_t top = bound(std::floor(static_cast<double>(i) * bin_height) + edge[1], height),
                        bottom = bound(std::ceil(static_cast<double>(i + 1) * bin_height) + edge[1], height);
          const int64_t left = bound(std::floor(static_cast<double>(j) * bin_width) + edge[0], width),
                        right = bound(std::ceil(static_cast<double>(j + 1) * bin_width) + edge[0], width);
          double best = top < bottom && left < right ? -INFINITY : 0;
          for (int64_t h = top; h < bottom; ++h)
            for (int64_t w = left; w < right; ++w)
              best = std::max<double>(best, image[((n * channels + c) * height + h) * width + w]);
          out.push_back(best);
        }
  }
  context.set(0, write_doubles(x.dtype(), {regions, channels, pooled[0], pooled[1]}, out));
}

}  // namespace

const OpDef ops::grid_sample{
    .name = "GridSample",
    .attrs = {integer_attr("align_corners", 0), text_attr("mode", "linear"), text_attr("padding_mode", "zeros")},
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_grid_sample,
    .eval = eval_grid_sample,
    .onnx = {{"GridSample", 16, kEveryLater, import_grid_sample}}};

const OpDef ops::affine_grid{.name = "AffineGrid",
                             .attrs = {integer_attr("align_corners", 0)},
                             .min_inputs = 2,
                             .max_inputs = 2,
                             .infer = infer_affine_grid,
                             .eval = eval_affine_grid,
                             .onnx = {{"AffineGrid", 20, kEveryLater, import_affine_grid}}};

const OpDef ops::deform_conv{.name = "DeformConv",
                             .attrs = {text_attr("auto_pad", "NOTSET"), integers_attr("kernel_shape"),
                                       integers_attr("strides"), integers_attr("pads"), integers_attr("dilations"),
                                       integer_attr("group", 1), integer_attr("offset_group", 1)},
                             .min_inputs = 3,
                             .max_inputs = 5,
                             .infer = infer_deform_conv,
                             .eval = eval_deform_conv,
                             .onnx = {{"DeformConv", 19, kEveryLater, import_deform_conv}}};

const OpDef ops::max_roi_pool{
    .name = "MaxRoiPool",
    .attrs = {required_attr("pooled_shape", AttrKind::integers), real_attr("spatial_scale", 1)},
    .min_inputs = 2,
    .max_inputs = 2,
    .infer = infer_max_roi_pool,
    .eval = eval_max_roi_pool,
    .onnx = {{"MaxRoiPool"}}};

}  // namespace hone
