// SPDX-License-Identifier: Apache-2.0
//
// MaxRoiPool against the reference: regions inside, across the edges, outside, of one pixel and reversed.
#include <fmt/format.h>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

std::vector<Tensor> with_regions(const Graph& graph) {
  std::vector<Tensor> tensors = random_inputs(graph, 3);
  const auto dims = [&](size_t i) { return graph.inputs()[i]->type.shape.values(); };
  const Tensor random = random_tensor(DType::f32, dims(1), 5, -6, 30);
  std::vector<float> numbers(random.data<float>().begin(), random.data<float>().end());
  constexpr float kSpecial[][4] = {{0, 0, 22, 18},   {3, 4, 3, 4},           {-9, -9, -3, -3},
                                   {40, 40, 50, 50}, {-100, -100, 200, 200}, {9, 9, 2, 2}};
  for (size_t i = 0; i < numbers.size() / 5; ++i) {
    float* region = numbers.data() + 5 * i;
    region[0] = static_cast<float>(i % static_cast<size_t>(dims(0)[0]));
    if (i < std::size(kSpecial)) std::copy_n(kSpecial[i], 4, region + 1);
  }
  tensors[1] = Tensor::of<float>(dims(1), std::span<const float>(numbers));
  return tensors;
}

TEST(MaxRoiPoolTactic, RegionsInsideAndOutside) {
  CheckOptions options{.tolerance = 0,
                       .tuned = {{"N", 2}, {"R", 9}},
                       .run = {{{"N", 2}, {"R", 9}}, {{"N", 1}, {"R", 1}}, {{"N", 3}, {"R", 40}}}};
  options.inputs = with_regions;
  for (const char* sizes : {"7, 7", "3, 5", "1, 1"})
    for (const double scale : {1.0, 0.4})
      EXPECT_GT(check_tactics(fmt::format("(%x: f32[N,11,19,23], %r: f32[R,5]) {{\n %y = MaxRoiPool(%x, %r) "
                                          "{{pooled_shape=[{}], spatial_scale={}}}\n return %y\n}}",
                                          sizes, scale),
                              "max_roi_pool", options),
                0);
}

}  // namespace
}  // namespace hone::cpu
