// SPDX-License-Identifier: Apache-2.0
//
// Resize of images by nearest neighbour or linear interpolation, in every coordinate mode that is affine and keeps to the image.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "backends/cuda/family.h"
#include "backends/cuda/support/divisor.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

enum class CoordinateMode { half_pixel, asymmetric, align_corners, pytorch_half_pixel, half_pixel_symmetric };
constexpr std::array<std::string_view, 5> field_names(CoordinateMode) {
  return {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"};
}

/// Depth, height and width.
template <typename Position>
struct Resize {
  static constexpr std::string_view kName = "Resize";
  Position factor[3] = {}, shift[3] = {};
  int32_t input[3] = {1, 1, 1}, channels = 0, items = 0;  // channels: or planes
  Divisor result[3], across;                              // what threads beside each other make: channels, or a row
  static void fields(auto& self, auto& visit) {
    visit("factor", self.factor);
    visit("shift", self.shift);
    visit("input", self.input);
    visit("channels", self.channels);
    visit("items", self.items);
    visit("result", self.result);
    visit("across", self.across);
  }
};

template <typename Position>
struct ResizeParameters {
  static constexpr std::string_view kKernel = "resize";
  Reads x;
  Writes y;
  Resize<Position> resize;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("y", self.y, "T");
    visit("r", self.resize);
  }
};

struct ResizeCode {
  CoordinateMode mode = CoordinateMode::half_pixel;
  std::vector<double> scales = {};  // of every axis; 0: the ratio of the sizes
  int64_t width = 1;                // results of a thread, side by side
  int64_t planes = 1;               // and in so many planes; 0: channels lie innermost
  bool in_floats = false;           // positions; else in doubles
  static void fields(auto& self, auto& visit) {
    visit("mode", self.mode);
    visit("scales", self.scales, size_t{5});
    visit("width", self.width, 1, 16);
    visit("planes", self.planes, 0, 16);
    visit("in_floats", self.in_floats);
  }
};

std::string_view nearest_text(const std::string& mode) {
  if (mode == "round_prefer_floor") return "ceil((x) - 0.5)";
  if (mode == "round_prefer_ceil") return "floor((x) + 0.5)";
  return mode == "floor" ? "floor(x)" : "ceil(x)";
}

/// Nothing for one that is not affine.
std::optional<CoordinateMode> mode_of(const Node& node) {
  const auto names = field_names(CoordinateMode{});
  const auto at = std::find(names.begin(), names.end(), node.attrs.text("coordinate_transformation_mode"));
  if (at == names.end()) return std::nullopt;
  return static_cast<CoordinateMode>(at - names.begin());
}

/// The factor of every axis, where given as such; sizes follow from the result.
Dims axes_of(const Node& node) {
  Dims axes;
  if (node.attrs.has("axes") && !node.attrs.integers("axes").empty())
    for (const int64_t axis : node.attrs.integers("axes"))
      axes.push_back(static_cast<int64_t>(normalize_axis(axis, node.input(0)->type.shape.rank())));
  else
    for (size_t axis = 0; axis < node.input(0)->type.shape.rank(); ++axis) axes.push_back(static_cast<int64_t>(axis));
  return axes;
}

std::string reason_against(const Problem& problem, const Node& node) {
  const Value* x = node.input(0);
  if (problem.region.outputs().size() != 1 || x->is_constant() || !is_kernel_float(x->type.dtype))
    return "input is not a float";
  const std::string& mode = node.attrs.text("mode");
  if (mode != "nearest" && mode != "linear") return "interpolates cubically";
  if (!mode_of(node)) return "coordinates are " + node.attrs.text("coordinate_transformation_mode");
  const Shape &from = x->type.shape, &to = node.output()->type.shape;
  if (from.rank() < 3 || from.rank() > 5 || from[0] != to[0] || from[1] != to[1]) return "resizes batch or channels";
  return {};
}

/// 0 where the sizes decide.
std::vector<double> scales_of(const Node& node) {
  std::vector<double> scales(node.input(0)->type.shape.rank(), 0.0);
  if (node.input(3) != nullptr) return scales;
  const Dims axes = axes_of(node);
  for (size_t i = 0; i < axes.size(); ++i)
    scales[static_cast<size_t>(axes[i])] = node.input(2)->constant->real(static_cast<int64_t>(i));
  return scales;
}

/// Factor and shift of an axis.
std::pair<double, double> line_of(CoordinateMode mode, double scale, int64_t in, int64_t out) {
  if (scale == 0) scale = static_cast<double>(out) / static_cast<double>(in);
  const double shift = 0.5 / scale - 0.5;
  switch (mode) {
    case CoordinateMode::asymmetric: return {1 / scale, 0};
    case CoordinateMode::align_corners:
      return {out == 1 ? 0 : static_cast<double>(in - 1) / static_cast<double>(out - 1), 0};
    case CoordinateMode::half_pixel_symmetric: {
      const double length = static_cast<double>(in), adjustment = static_cast<double>(out) / (scale * length);
      return {1 / scale, shift + length / 2 * (1 - adjustment)};
    }
    case CoordinateMode::pytorch_half_pixel:
      if (out <= 1) return {0, 0};
      break;
    case CoordinateMode::half_pixel: break;
  }
  return {1 / scale, shift};
}

constexpr int64_t kPlanes = 4, kOfRow = 4;  // planes of a thread, and of each so many pixels: places take registers

/// As many as divide the innermost axis and fit 16 bytes; one where the size is not fixed.
int64_t width_of(const Problem& problem, bool channels_last) {
  const TensorType& type = problem.symbolic.outputs()[0]->type;
  const Dim& innermost = channels_last ? type.shape[1] : type.shape[type.shape.rank() - 1];
  const auto size = static_cast<int64_t>(size_of(type.dtype));
  const int64_t width = innermost.is_constant() ? unit_of(innermost.value() * size) / size : 1;
  return channels_last ? width : std::min(width, kOfRow);
}

struct ResizeFamily {
  static constexpr std::string_view kName = "resize";
  static constexpr int kVersion = 5;
  using Params = NoParams;
  using Code = ResizeCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !node->is(ops::resize)) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    offer_layouts(problem, "cuda", kName, out);
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic& tactic) {
    const Node& node = *problem.only();
    const DType dtype = node.output()->type.dtype;
    const bool channels_last = tactic.out[0] == Layout::channels_last;
    const int64_t width = width_of(problem, channels_last), planes = channels_last ? 0 : kPlanes;
    const bool linear = node.attrs.text("mode") == "linear", in_floats = linear && size_of(dtype) == 2;
    const std::string switches = fmt::format(
        "typedef {} T;\ntypedef {} Position;\n#define CHANNELS_LAST {:d}\n#define LINEAR {:d}\n#define DEEP {:d}\n"
        "#define WIDTH {}\n#define PLANES {}\n#define NEAREST(x) {}\n",
        type_name(dtype), in_floats ? "float" : "double", channels_last, linear, node.output()->type.shape.rank() > 4,
        width, planes, nearest_text(node.attrs.text("nearest_mode")));
    const std::string declarations =
        in_floats ? declare<ResizeParameters<float>>() : declare<ResizeParameters<double>>();
    return {
        {.mode = *mode_of(node), .scales = scales_of(node), .width = width, .planes = planes, .in_floats = in_floats},
        switches + declarations + kernels::division + kernels::resize};
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    HONE_CHECK(!context.shapes.inputs.empty() && context.shapes.outputs.size() == 1,
               "a resize in the plan has no input");
    const Dims &in = context.shapes.inputs[0].dims, &out = context.shapes.outputs[0].dims;
    const bool valid = in.size() >= 3 && in.size() <= 5 && in.size() == out.size() && code.scales.size() == in.size() &&
                       in[0] == out[0] && in[1] == out[1];
    HONE_CHECK(valid && elements(out) < int64_t{1} << 31, "a resize in the plan turns {} into {}", join_dims(in),
               join_dims(out));
    for (const double scale : code.scales) HONE_CHECK(scale >= 0, "a resize in the plan has the scale {}", scale);
    return code.in_floats ? load_at<float>(code, context, in, out) : load_at<double>(code, context, in, out);
  }

 private:
  template <typename Position>
  static std::shared_ptr<const CudaKernel> load_at(const Code& code, const LoadContext& context, const Dims& in,
                                                   const Dims& out) {
    ResizeParameters<Position> parameters{.x = input(0), .y = output(0), .resize = {}};
    Resize<Position>& resize = parameters.resize;
    for (size_t i = 2; i < in.size(); ++i) {
      const size_t axis = 5 - in.size() + i - 2;
      const auto [factor, shift] = line_of(code.mode, code.scales[i], in[i], out[i]);
      resize.factor[axis] = static_cast<Position>(factor);
      resize.shift[axis] = static_cast<Position>(shift);
      resize.input[axis] = static_cast<int32_t>(in[i]);
      resize.result[axis] = Divisor(out[i]);
    }
    const int64_t planes = in[0] * in[1], threads = elements(out) / code.width;
    const int64_t items =
        code.planes == 0 ? threads : threads / std::max<int64_t>(planes, 1) * blocks_of(planes, code.planes);
    resize.channels = static_cast<int32_t>(code.planes == 0 ? in[1] : planes);
    resize.across = Divisor((code.planes == 0 ? in[1] : out.back()) / code.width);
    resize.items = static_cast<int32_t>(items);
    const int64_t blocks = blocks_of(std::max<int64_t>(items, 1), 128);
    return single(context, launch_of(*context.module, parameters, {{blocks}, 128}));
  }
};

}  // namespace

const CudaTactic tactics::resize = describe<ResizeFamily>();

}  // namespace hone::cuda
