// SPDX-License-Identifier: Apache-2.0
//
// Resize of images by nearest neighbour or linear interpolation, in every coordinate mode that is affine and keeps to the image.
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/old.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"

namespace hone::cuda {
namespace {

struct ResizeArgument {
  double factor[3], shift[3];
  int32_t input[3], result[3], channels, results;
};

std::string_view nearest_text(const std::string& mode) {
  if (mode == "round_prefer_floor") return "ceil((x) - 0.5)";
  if (mode == "round_prefer_ceil") return "floor((x) + 0.5)";
  return mode == "floor" ? "floor(x)" : "ceil(x)";
}

bool is_affine(const std::string& mode) {
  for (const std::string_view known :
       {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"})
    if (mode == known) return true;
  return false;
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
  if (!is_affine(node.attrs.text("coordinate_transformation_mode")))
    return "coordinates are " + node.attrs.text("coordinate_transformation_mode");
  const Shape &from = x->type.shape, &to = node.output()->type.shape;
  if (from.rank() < 3 || from.rank() > 5 || from[0] != to[0] || from[1] != to[1]) return "resizes batch or channels";
  return {};
}

void propose(const Problem& problem, Candidates& out) {
  const Node* node = problem.only();
  if (node == nullptr || !node->is(ops::resize)) return;
  if (std::string reason = reason_against(problem, *node); !reason.empty())
    return out.refuse("resize", std::move(reason));
  offer_layouts(problem, "cuda", "resize", out);
}

Generated generate(const Problem& problem, const std::string&, const Tactic& tactic) {
  const Node& node = *problem.only();
  Generated result;
  result.attrs.set("mode", node.attrs.text("coordinate_transformation_mode"));
  std::vector<double> scales(node.input(0)->type.shape.rank(), 0.0);  // 0: the ratio of the sizes
  if (node.input(3) == nullptr) {
    const Dims axes = axes_of(node);
    for (size_t i = 0; i < axes.size(); ++i)
      scales[static_cast<size_t>(axes[i])] = node.input(2)->constant->real(static_cast<int64_t>(i));
  }
  result.attrs.set("scales", std::move(scales));
  result.source = fmt::format("typedef {} T;\n#define CHANNELS_LAST {}\n#define LINEAR {}\n#define NEAREST(x) {}\n",
                              type_name(node.output()->type.dtype), tactic.out[0] == Layout::channels_last,
                              node.attrs.text("mode") == "linear", nearest_text(node.attrs.text("nearest_mode")));
  result.source += kernels::resize;
  return result;
}

void set_axis(ResizeArgument& resize, size_t axis, const std::string& mode, double scale, int64_t in, int64_t out) {
  resize.input[axis] = static_cast<int32_t>(in);
  resize.result[axis] = static_cast<int32_t>(out);
  if (scale == 0) scale = static_cast<double>(out) / static_cast<double>(in);
  resize.factor[axis] = 1 / scale;
  resize.shift[axis] = 0.5 / scale - 0.5;
  if (mode == "asymmetric") resize.shift[axis] = 0;
  if (mode == "align_corners")
    resize.factor[axis] = out == 1 ? 0 : static_cast<double>(in - 1) / static_cast<double>(out - 1),
    resize.shift[axis] = 0;
  if (mode == "pytorch_half_pixel" && out <= 1) resize.factor[axis] = resize.shift[axis] = 0;
  if (mode == "half_pixel_symmetric") {
    const double length = static_cast<double>(in), adjustment = static_cast<double>(out) / (scale * length);
    resize.shift[axis] += length / 2 * (1 - adjustment);
  }
}

std::shared_ptr<const CudaKernel> load(const OldContext& context) {
  HONE_CHECK(!context.shapes.inputs.empty() && context.shapes.outputs.size() == 1, "a resize in the plan has no input");
  const Dims &in = context.shapes.inputs[0].dims, &out = context.shapes.outputs[0].dims;
  const std::vector<double>& scales = context.attrs.reals("scales");
  const bool valid = in.size() >= 3 && in.size() <= 5 && in.size() == out.size() && scales.size() == in.size() &&
                     in[0] == out[0] && in[1] == out[1];
  for (const double scale : scales)  // 0: as the sizes say
    HONE_CHECK(scale >= 0, "a resize in the plan has the scale {}", scale);
  HONE_CHECK(valid && elements(out) < int64_t{1} << 31, "a resize in the plan turns {} into {}", join_dims(in),
             join_dims(out));
  ResizeArgument resize{};
  for (size_t axis = 0; axis < 3; ++axis) resize.input[axis] = resize.result[axis] = 1;
  for (size_t i = 2; i < in.size(); ++i)
    set_axis(resize, 5 - in.size() + i - 2, context.attrs.text("mode"), scales[i], in[i], out[i]);
  resize.channels = static_cast<int32_t>(in[1]);
  resize.results = static_cast<int32_t>(elements(out));
  GridLaunch launch{.function = context.module->function("resize"),
                    .grid = {blocks_of(std::max<int64_t>(resize.results, 1), 128), 1, 1},
                    .block = 128};
  launch.arguments.input(0).output(0).value(resize);
  return std::make_shared<GridKernel>(context.module, std::vector{std::move(launch)});
}

}  // namespace

const CudaTactic tactics::resize = describe_old<generate, load>("resize", propose);

}  // namespace hone::cuda
