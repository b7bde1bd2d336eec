// SPDX-License-Identifier: Apache-2.0
//
// RoiAlign against the reference: regions inside, across the edges, outside, of no size and reversed.
#include <fmt/format.h>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

CheckOptions with_regions() {
  CheckOptions options{.tolerance = 2e-5,
                       .seed = 16,
                       .tuned = {{"N", 2}, {"R", 9}},
                       .run = {{{"N", 2}, {"R", 9}}, {{"N", 1}, {"R", 1}}, {{"N", 3}, {"R", 40}}}};
  options.inputs = [](const Graph& graph) {
    std::vector<Tensor> tensors = random_inputs(graph, 3);
    const auto dims = [&](size_t i) { return graph.inputs()[i]->type.shape.values(); };
    tensors[1] = random_tensor(DType::f32, dims(1), 5, -6, 30);
    std::vector<float> corners(tensors[1].data<float>().begin(), tensors[1].data<float>().end());
    constexpr float kSpecial[][4] = {
        {0, 0, 23, 19}, {3, 4, 3, 4}, {-9, -9, -3, -3}, {40, 40, 50, 50}, {-100, -100, 200, 200}};
    for (size_t i = 0; i < corners.size() / 4; ++i) {
      float* box = corners.data() + 4 * i;
      if (i < std::size(kSpecial)) std::copy_n(kSpecial[i], 4, box);
      else if (i % 3 != 0 && box[0] > box[2]) std::swap(box[0], box[2]);
    }
    tensors[1] = Tensor::of<float>(dims(1), std::span<const float>(corners));
    tensors[2] = random_tensor(graph.inputs()[2]->type.dtype, dims(2), 7, 0, static_cast<double>(dims(0)[0]));
    return tensors;
  };
  return options;
}

TEST(RoiAlignTactic, MeansAndLargestOfSamples) {
  for (const char* mode : {"avg", "max"})
    for (const char* transformation : {"half_pixel", "output_half_pixel"})
      for (const char* sizes :
           {"output_height=7, output_width=7", "output_height=3, output_width=5", "output_height=1, output_width=1"})
        for (const int ratio : {0, 1, 2, 5})
          for (const double scale : {1.0, 0.4})
            EXPECT_GT(check_tactics(
                          fmt::format("(%x: f32[N,11,19,23], %r: f32[R,4], %i: i64[R]) {{\n %y = RoiAlign(%x, %r, %i) "
                                      "{{mode=\"{}\", coordinate_transformation_mode=\"{}\", {}, sampling_ratio={}, "
                                      "spatial_scale={}}}\n return %y\n}}",
                                      mode, transformation, sizes, ratio, scale),
                          "roi_align", with_regions()),
                      0);
}

}  // namespace
}  // namespace hone::cpu
