// SPDX-License-Identifier: Apache-2.0

#include "device/code.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"

namespace hone {
namespace {

Attrs all_kinds() {
  return {{"integer", std::numeric_limits<int64_t>::min()},
          {"real", 0.1},
          {"whole_real", 2.0},
          {"infinite", -std::numeric_limits<double>::infinity()},
          {"text", std::string("a \"text\"\n")},
          {"integers", std::vector<int64_t>{1, -2}},
          {"none", std::vector<int64_t>{}},
          {"reals", std::vector<double>{1, std::numeric_limits<double>::infinity()}},
          {"texts", std::vector<std::string>{"a", ""}},
          {"tensor", Tensor::of<float>({2, 1}, {1.5f, -0.0f})}};
}

TEST(KernelCode, DecodingIsTheInverseOfEncoding) {
  const Attrs attrs = all_kinds();
  const Blob code = encode_code("family", attrs);
  const KernelCode decoded = decode_code(code);
  EXPECT_EQ(decoded.family, "family");
  EXPECT_EQ(decoded.attrs.size(), attrs.size());
  EXPECT_EQ(encode_code(decoded.family, decoded.attrs).text(), code.text());
  EXPECT_EQ(decoded.attrs.integer("integer"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(decoded.attrs.real("real"), 0.1);
  EXPECT_EQ(decoded.attrs.real("whole_real"), 2.0);
  EXPECT_EQ(decoded.attrs.real("infinite"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(decoded.attrs.integers("none").empty());
  EXPECT_TRUE(std::signbit(decoded.attrs.tensor("tensor").data<float>()[1]));
}

TEST(KernelCode, KeepsNotANumber) {
  const KernelCode decoded = decode_code(encode_code("f", {{"x", std::nan("")}}));
  EXPECT_TRUE(std::isnan(decoded.attrs.real("x")));
}

TEST(KernelCode, RefusesWhatItDoesNotWrite) {
  for (const char* text :
       {"", "{", "[]", "3", R"({"family":"f"})", R"({"family":"f","attrs":{}})",
        R"({"family":"f","version":"1","attrs":{}})", R"({"family":3,"version":1,"attrs":{}})",
        R"({"family":"f","version":1,"attrs":[]})", R"({"family":"f","version":1,"attrs":{"a":null}})",
        R"({"family":"f","version":1,"attrs":{"a":true}})",
        R"({"family":"f","version":1,"attrs":{"a":18446744073709551615}})",
        R"({"family":"f","version":1,"attrs":{"a":{"integers":[1.5]}}})",
        R"({"family":"f","version":1,"attrs":{"a":{"unknown":[]}}})",
        R"({"family":"f","version":1,"attrs":{"a":{"integers":3}}})",
        R"({"family":"f","version":1,"attrs":{"a":{"tensor":{"dtype":"f32","dims":[2],"bytes":"00"}}}})",
        R"({"family":"f","version":1,"attrs":{"a":{"tensor":{"dtype":"f32","dims":[-1],"bytes":""}}}})",
        R"({"family":"f","version":1,"attrs":{"a":{"tensor":{"dtype":"string","dims":[0],"bytes":""}}}})",
        R"({"family":"f","version":1,"attrs":{"a":{"tensor":{"dtype":"u8","dims":[1],"bytes":"zz"}}}})"})
    EXPECT_THROW(decode_code(Blob::copy(std::string_view(text))), Error) << text;
}

TEST(KernelCode, ConstantsThatAPlanDoesNotBringAreRefused) {
  KernelShapes shapes;
  EXPECT_NO_THROW(require_constant(shapes, 7, DType::f32, Dims{100})) << "compile() is believed";
  shapes.constant_bytes = {16, 8};
  EXPECT_NO_THROW(require_constant(shapes, 0, DType::f32, Dims{2, 2}));
  EXPECT_THROW(require_constant(shapes, 0, DType::f32, Dims{5}), Error);
  EXPECT_THROW(require_constant(shapes, 1, DType::f32, Dims{2, 2}), Error);
  for (const int64_t place : {int64_t{-1}, int64_t{2}, int64_t{1} << 32})
    EXPECT_THROW(require_constant(shapes, place, DType::f32, Dims{1}), Error);
  EXPECT_THROW(require_constant(shapes, 0, DType::f32, Dims{-1, -2}), Error);
  EXPECT_THROW(require_constant(shapes, 0, DType::f32, Dims{0, int64_t{1} << 62, 4}), Error);
  EXPECT_EQ(constant_operand(shapes, 1, DType::f32, {2}).dims, Dims{2});
  EXPECT_THROW(constant_operand(shapes, 1, DType::string, {0}), Error);
}

TEST(KernelCode, SurvivesAnyDamage) {
  const std::string whole(encode_code("family", all_kinds()).text());
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    std::mt19937_64 engine(seed);
    std::string text = whole;
    for (int i = 0; i < 3; ++i) text[engine() % text.size()] = static_cast<char>(engine());
    try {
      decode_code(Blob::copy(text));
    } catch (const Error&) {}
  }
}

}  // namespace
}  // namespace hone
