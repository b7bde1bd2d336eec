// SPDX-License-Identifier: Apache-2.0
#include "ir/size_text.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace hone {
namespace {

const Shape kImage{Dim::symbol("N"), Dim(3), Dim::symbol("H"), Dim::symbol("W")};
const Shape kWeights{Dim(16), Dim(3)};
const Attrs kAttrs{{"scale", int64_t{2}}, {"pads", std::vector<int64_t>{1, 4}}, {"mode", std::string("same")}};

std::string read(std::string_view text) {
  return sizes_from_text(text, {.inputs = {&kImage, nullptr, &kWeights}, .outputs = {&kWeights}, .attrs = kAttrs})
      .text();
}

TEST(SizeText, SaysSizesByThoseOfTensorsAndByAttributes) {
  EXPECT_EQ(read("x0"), "N,3,H,W");
  EXPECT_EQ(read(" x0[0], x2[-2] , x0[2:]"), "N,16,H,W");
  EXPECT_EQ(read("x0[:-1], 7"), "N,3,H,7");
  EXPECT_EQ(read("x0[5:9]"), "");
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("x0[2] * scale + pads[0] + pads[-1]"), "2*H + 5");
  EXPECT_EQ(read("(x0[2] * 4 - 2 + 2) / 2 / 2, 7 % 4, 7 / 2, -(3 - 5)"), "H,3,3,2");
  EXPECT_EQ(read("min(x2[0], 4), max(1, 2, 3), count(x2), rank(x0), count(y0) / 3"), "4,3,48,4,16");
  EXPECT_EQ(read("(x0[2] + 1) / 2"), "floordiv(H + 1, 2)");
}

TEST(SizeText, SaysWhereItCannotBeRead) {
  const std::string deep(500, '('), dashes(500, '-');
  for (const auto& [text, said] :
       std::vector<std::pair<std::string, std::string>>{{"x9", "there is no x9"},
                                                        {"x1", "there is no x1"},
                                                        {"x0[4]", "[4] is asked of 4"},
                                                        {"x0 x2", "column 4"},
                                                        {"x0 +", "column 4"},
                                                        {"zoom", "no attribute 'zoom'"},
                                                        {"mode", "'mode' is no integer"},
                                                        {"pads", "'[' is expected"},
                                                        {"pads[2]", "[2] is asked of 2"},
                                                        {"sqrt(4)", "no function sqrt"},
                                                        {"3 / (1 - 1)", "divides by 0"},
                                                        {"3 % 0", "divides by 0"},
                                                        {"1,", "a size is expected"},
                                                        {"count(7)", "of a tensor"},
                                                        {"99999999999999999999", "a number is expected"},
                                                        {"9223372036854775807 * 2", "overflow"},
                                                        {deep + "1", "nested too deeply"},
                                                        {dashes + "1", "nested too deeply"}}) {
    try {
      FAIL() << text << " is read as " << read(text);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(said), std::string::npos) << text << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace hone
