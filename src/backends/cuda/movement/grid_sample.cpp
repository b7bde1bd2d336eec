// SPDX-License-Identifier: Apache-2.0
//
// GridSample of images in up to three dimensions, channels first or last.
#include "backends/cuda/family.h"
#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "ops/ops.h"
#include "regions/region_match.h"

namespace hone::cuda {
namespace {

constexpr size_t kMostAxes = 3;
constexpr int64_t kThreads = 128;
constexpr int64_t kChannels = 8;  // of a thread, of a plane each; side by side a vector

struct Sampling {
  static constexpr std::string_view kName = "Sampling";
  int32_t size[kMostAxes] = {1, 1, 1}, area = 0, channels = 0, points = 0, groups = 0, items = 0;
  static void fields(auto& self, auto& visit) {
    visit("size", self.size);
    visit("area", self.area);
    visit("channels", self.channels);
    visit("points", self.points);
    visit("groups", self.groups);
    visit("items", self.items);
  }
};

struct GridSampleParameters {
  static constexpr std::string_view kKernel = "grid_sample";
  Reads x, grid;
  Writes y;
  Sampling sampling;
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, "T");
    visit("grid", self.grid, "Grid");
    visit("y", self.y, "T");
    visit("s", self.sampling);
  }
};

struct GridSampleCode {
  int64_t x = 0;  // which input
  GivenPlace grid;
  int64_t channels = kChannels;  // of a thread
  static void fields(auto& self, auto& visit) {
    visit("x", self.x, 0, 1);
    GivenPlace::fields(self.grid, visit, "grid");
    visit("channels", self.channels, 1, 64);
  }
};

std::string reason_against(const Problem& problem, const Node& node) {
  for (const size_t i : {0, 1}) {
    if (!is_kernel_float(node.input(i)->type.dtype))
      return fmt::format("operand {} is {}", i, name_of(node.input(i)->type.dtype));
  }
  if (input_index(problem.region, node.input(0)) < 0) return "its image is constant";
  if (node.input(0)->type.shape.rank() > 2 + kMostAxes) return "in more than three dimensions";
  if (node.output()->type.shape.elements() == Dim(0) || node.input(0)->type.shape.elements() == Dim(0))
    return "empty operand";
  return {};
}

int taps_of(const std::string& mode) { return mode == "nearest" ? 1 : mode == "linear" ? 2 : 4; }

struct GridSampleFamily {
  static constexpr std::string_view kName = "grid_sample";
  static constexpr int kVersion = 3;
  using Params = NoParams;
  using Code = GridSampleCode;

  static void propose(const Problem& problem, Candidates& out) {
    const Node* node = problem.only();
    if (node == nullptr || !node->is(ops::grid_sample)) return;
    if (std::string reason = reason_against(problem, *node); !reason.empty())
      return out.refuse(kName, std::move(reason));
    for (const Layout layout : {Layout::linear, Layout::channels_last}) {
      std::vector<Layout> in(problem.region.inputs().size(), Layout::linear);
      if (layout != Layout::linear && node->input(0) == node->input(1)) continue;
      in[static_cast<size_t>(input_index(problem.region, node->input(0)))] = layout;
      out.offer({"cuda", std::string(kName), {}, std::move(in), {layout}});
    }
  }

  static Built<Code> generate(const Problem& problem, const std::string&, const Params&, const Tactic& tactic) {
    const Node* node = problem.only();
    const bool last = tactic.out[0] == Layout::channels_last;
    Built<Code> built;
    built.code = {.x = input_index(problem.region, node->input(0)),
                  .grid = place_of(problem, node->input(1), built.constants),
                  .channels = last ? vector_width(node->input(0)->type.dtype) : kChannels};
    const std::string &padding = node->attrs.text("padding_mode"), &mode = node->attrs.text("mode");
    const std::string switches = fmt::format(
        "typedef {} T;\ntypedef {} Grid;\ntypedef {} Position;\n#define AXES {}\n#define TAPS {}\n"
        "#define BORDER {:d}\n#define REFLECTION {:d}\n#define ALIGN_CORNERS {:d}\n"
        "#define CHANNELS_LAST {:d}\n#define CHANNELS {}\n",
        type_name(node->input(0)->type.dtype), type_name(node->input(1)->type.dtype),
        taps_of(mode) > 1 && node->input(0)->type.dtype != DType::f32 ? "float" : "double",
        node->input(0)->type.shape.rank() - 2, taps_of(mode), padding == "border", padding == "reflection",
        node->attrs.integer("align_corners") != 0, last, built.code.channels);
    built.source = switches + declare<GridSampleParameters>() + kernels::grid_sample;
    return built;
  }

  static std::shared_ptr<const CudaKernel> load(const Code& code, const LoadContext& context) {
    const std::vector<ConcreteType>& inputs = context.shapes.inputs;
    HONE_CHECK(code.x < static_cast<int64_t>(inputs.size()) && context.shapes.outputs.size() == 1,
               "a GridSample in the plan has {} inputs", inputs.size());
    const Dims &in = inputs[static_cast<size_t>(code.x)].dims, &grid = context.dims_of(code.grid),
               &out = context.shapes.outputs[0].dims;
    HONE_CHECK(in.size() >= 3 && in.size() <= 2 + kMostAxes && out.size() == in.size() && in[0] == out[0] &&
                   in[1] == out[1] && elements(in) > 0 && grid == grid_of(out),
               "a GridSample in the plan turns {} and {} into {}", join_dims(in), join_dims(grid), join_dims(out));
    if (elements(out) == 0) return std::make_shared<GridKernel>(context.module, std::vector<GridLaunch>{});
    const int64_t groups = blocks_of(in[1], code.channels), points = elements(out) / (out[0] * out[1]),
                  area = elements(in) / (in[0] * in[1]);
    for (const int64_t size : {in[0] * groups * points, in[1], area})
      HONE_CHECK(size > 0 && size < int64_t{1} << 31, "a GridSample in the plan has the size {}", size);
    const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
    Sampling sampling{.area = number(area),
                      .channels = number(in[1]),
                      .points = number(points),
                      .groups = number(groups),
                      .items = number(in[0] * groups * points)};
    for (size_t axis = 2; axis < in.size(); ++axis) sampling.size[axis - 2] = number(in[axis]);
    const GridSampleParameters parameters{
        .x = input(code.x), .grid = code.grid.pointer(), .y = output(0), .sampling = sampling};
    return single(context, launch_of(*context.module, parameters, {{blocks_of(sampling.items, kThreads)}, kThreads}));
  }

 private:
  static Dims grid_of(const Dims& out) {
    Dims grid{out[0]};
    grid.insert(grid.end(), out.begin() + 2, out.end());
    grid.push_back(static_cast<int64_t>(out.size()) - 2);
    return grid;
  }
};

}  // namespace

const CudaTactic tactics::grid_sample = describe<GridSampleFamily>();

}  // namespace hone::cuda
