// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

const CheckOptions kSizes{
    .tolerance = 1e-5, .seed = 12, .tuned = {{"N", 2}}, .run = {{{"N", 2}}, {{"N", 1}}, {{"N", 3}}}};
constexpr const char* kCoordinates[] = {"half_pixel",         "asymmetric",           "align_corners",
                                        "pytorch_half_pixel", "half_pixel_symmetric", "tf_half_pixel_for_nn"};

int check_sizes(const std::string& shape, const std::string& sizes, const std::string& attrs) {
  const size_t count = static_cast<size_t>(std::count(sizes.begin(), sizes.end(), ',')) + 1;
  std::string quoted;
  for (const char c : sizes) quoted += c == ',' ? std::string("\", \"") : std::string(1, c);
  const auto check = [&](const char* type) {
    return check_tactics(fmt::format("(%x: {}[{}]) {{\n %s = SymbolicConstant() {{values=[\"{}\"], dims=[{}]}}\n %y = "
                                     "Resize(%x, _, _, %s) {{{}}}\n return %y\n}}",
                                     type, shape, quoted, count, attrs),
                         "resize", kSizes);
  };
  return std::min(check("f32"), check("bf16"));
}

TEST(ResizeTactic, EveryModeInEveryCoordinateSystem) {
  for (const char* coordinates : kCoordinates)
    for (const char* mode : {"linear", "cubic", "nearest"})
      for (const char* sizes : {"N,3,17,40", "N,3,4,3", "N,3,12,5", "N,3,1,1", "N,3,5,18"})
        EXPECT_GT(check_sizes("N,3,5,9", sizes,
                              fmt::format("mode=\"{}\", coordinate_transformation_mode=\"{}\"", mode, coordinates)),
                  0);
}

TEST(ResizeTactic, RoundsToTheNearestInEveryWay) {
  for (const char* rounding : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})
    for (const char* sizes : {"N,2,7,33", "N,2,3,4"})
      EXPECT_GT(check_sizes("N,2,5,9", sizes, fmt::format("mode=\"nearest\", nearest_mode=\"{}\"", rounding)), 0);
}

TEST(ResizeTactic, OneAxisSeveralAxesAndNone) {
  for (const char* sizes : {"N,6,5,9", "N,6,11,9", "N,6,5,20", "N,9,5,9", "N,9,5,4", "N,4,11,20", "2*N,9,4,11"})
    for (const char* mode : {"linear", "cubic"})
      EXPECT_GT(check_sizes("N,6,5,9", sizes, fmt::format("mode=\"{}\"", mode)), 0);
  EXPECT_GT(check_sizes("N,2,5", "N,2,11", "mode=\"linear\""), 0);
  EXPECT_GT(check_sizes("N,2,5,3,6", "N,2,7,9,4", "mode=\"linear\""), 0);
  EXPECT_GT(check_sizes("N,70,5,9", "N,70,9,20", "mode=\"linear\""), 0);
}

TEST(ResizeTactic, ByScalesOfSomeAxes) {
  const auto by_scales = [](const char* attrs) {
    return fmt::format(
        "(%x: f32[N,3,6,8]) {{\n %r = constant f32[0]{{}}\n %s = constant f32[2]{{1.7, 0.6}}\n %y = Resize(%x, %r, %s) "
        "{{{}}}\n return %y\n}}",
        attrs);
  };
  for (const char* coordinates : kCoordinates)
    EXPECT_GT(check_tactics(by_scales(fmt::format("mode=\"linear\", axes=[2, 3], coordinate_transformation_mode=\"{}\"",
                                                  coordinates)
                                          .c_str()),
                            "resize", kSizes),
              0);
  EXPECT_GT(check_tactics(by_scales("mode=\"cubic\", axes=[-1, -2], exclude_outside=1, cubic_coeff_a=-0.5"), "resize",
                          kSizes),
            0);
}

TEST(ResizeTactic, CropsARegionAndExtrapolates) {
  for (const char* mode : {"linear", "nearest", "cubic"})
    for (const auto& [type, region] : {std::pair{"f32", "0.2, 0.1, 0.8, 0.7"}, {"bf16", "-0.4, 0.3, 1.2, 1.6"}})
      EXPECT_GT(
          check_tactics(
              fmt::format(
                  "(%x: {}[N,3,6,8]) {{\n %r = constant f32[4]{{{}}}\n %s = constant i64[2]{{9, 21}}\n"
                  " %y = Resize(%x, %r, _, %s) {{axes=[2, 3], mode=\"{}\", "
                  "coordinate_transformation_mode=\"tf_crop_and_resize\", extrapolation_value=-3.5}}\n return %y\n}}",
                  type, region, mode),
              "resize", kSizes),
          0);
}

}  // namespace
}  // namespace hone::cpu
