// SPDX-License-Identifier: Apache-2.0
//
// RoiAlign, the image in any layout whose channels lie first or last.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cuda {
namespace {

constexpr int64_t kMostSamples = (1 << 16) - 1;  // per bin and axis, as the reference

struct Geometry {
  static constexpr std::string_view kName = "Geometry";
  int32_t count = 0, channels = 0, height = 0, width = 0;  // of the images
  int32_t rows = 0, columns = 0, samples = 0, results = 0;
  float scale = 1;
  static void fields(auto& self, auto& visit) {
    visit("count", self.count);
    visit("channels", self.channels);
    visit("height", self.height);
    visit("width", self.width);
    visit("rows", self.rows);
    visit("columns", self.columns);
    visit("samples", self.samples);
    visit("results", self.results);
    visit("scale", self.scale);
  }
};

struct RoiAlignParameters {
  static constexpr std::string_view kKernel = "roi_align";
  Reads x, regions, images;
  Writes y;
  Geometry geometry;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("regions", self.regions, "T");
    visit("images", self.images, "Index");
    visit("y", self.y, "T");
    visit("geometry", self.geometry);
  }
};

struct RoiAlignCode {
  int64_t x = 0, regions = 1, images = 2;  // which inputs
  double scale = 1;                        // from a region's coordinates to pixels
  int64_t samples = 0;                     // per bin and axis; 0: as many as a bin has pixels
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, 2);
    visit("regions", self.regions, 0, 2);
    visit("images", self.images, 0, 2);
    visit("scale", self.scale);
    visit("samples", self.samples, 0, kMostSamples);
  }
};

std::string reason_against(const Problem& problem, const Node& node) {
  const DType dtype = node.input(0)->type.dtype;
  if (!is_kernel_float(dtype)) return fmt::format("input is {}", name_of(dtype));
  if (node.input(1)->type.dtype != dtype) return "regions are of another type than the image";
  for (size_t i = 0; i < 3; ++i)
    if (input_index(problem.region, node.input(i)) < 0) return "an operand is constant";
  if (node.output()->type.shape.elements() == Dim(0) || node.input(0)->type.shape.elements() == Dim(0))
    return "empty operand";
  return {};
}

struct RoiAlignFamily {
  static constexpr std::string_view kName = "roi_align";
  static constexpr int kVersion = 1;
  using Params = NoParams;
  using Code = RoiAlignCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !node->is(ops::roi_align)) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    for (const Layout layout : {Layout::linear, Layout::channels_last}) {
      std::vector<Layout> in(problem.region.inputs().size(), Layout::linear);
      in[static_cast<size_t>(input_index(problem.region, node->input(0)))] = layout;
      out.offer({"cuda", std::string(kName), {}, std::move(in), {layout}});
    }
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic& tactic) {
    const Node* node = problem.only();
    const auto place = [&](size_t i) { return int64_t{input_index(problem.region, node->input(i))}; };
    const Code code{.x = place(0),
                    .regions = place(1),
                    .images = place(2),
                    .scale = node->attrs.real("spatial_scale"),
                    .samples = std::min(node->attrs.integer("sampling_ratio"), kMostSamples)};
    const std::string switches = fmt::format(
        "typedef {} T;\ntypedef {} Index;\n#define LARGEST {}\n#define HALF_PIXEL {}\n#define CHANNELS_LAST {}\n",
        type_name(node->input(0)->type.dtype), type_name(node->input(2)->type.dtype), node->attrs.text("mode") == "max",
        node->attrs.text("coordinate_transformation_mode") == "half_pixel", tactic.out[0] == Layout::channels_last);
    return {code, switches + declare<RoiAlignParameters>() + kernels::roi_align};
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const std::vector<ConcreteType>& inputs = context.shapes.inputs;
    HONE_CHECK(std::max({code.x, code.regions, code.images}) < static_cast<int64_t>(inputs.size()) &&
                   context.shapes.outputs.size() == 1,
               "a RoiAlign in the plan has {} inputs", inputs.size());
    const Dims &in = inputs[static_cast<size_t>(code.x)].dims,
               &regions = inputs[static_cast<size_t>(code.regions)].dims,
               &images = inputs[static_cast<size_t>(code.images)].dims, &out = context.shapes.outputs[0].dims;
    HONE_CHECK(in.size() == 4 && out.size() == 4 && in[1] == out[1] && elements(in) > 0 &&
                   (regions == Dims{out[0], 4}) && elements(images) == out[0],
               "a RoiAlign in the plan turns {} into {}", join_dims(in), join_dims(out));
    const int64_t results = elements(out);
    if (results == 0) return std::make_shared<GridKernel>(context.module, std::vector<GridLaunch>{});
    for (const int64_t size : {results, in[0], in[1], in[2], in[3], in[2] * in[3]})
      HONE_CHECK(size > 0 && size < int64_t{1} << 31, "a RoiAlign in the plan has the size {}", size);
    const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
    const RoiAlignParameters parameters{.x = input(code.x),
                                        .regions = input(code.regions),
                                        .images = input(code.images),
                                        .y = output(0),
                                        .geometry = {.count = number(in[0]),
                                                     .channels = number(in[1]),
                                                     .height = number(in[2]),
                                                     .width = number(in[3]),
                                                     .rows = number(out[2]),
                                                     .columns = number(out[3]),
                                                     .samples = number(code.samples),
                                                     .results = number(results),
                                                     .scale = static_cast<float>(code.scale)}};
    return single(context, launch_of(*context.module, parameters, {{blocks_of(results, 128)}, 128}));
  }
};

}  // namespace

const CudaTactic tactics::roi_align = describe<RoiAlignFamily>();

}  // namespace hone::cuda
