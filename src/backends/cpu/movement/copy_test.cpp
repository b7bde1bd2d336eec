// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/support/tactic_testing.h"
#include "regions/copy_code.h"

namespace hone::cpu {
namespace {

const CheckOptions kSizes{.tolerance = 0, .seed = 4, .tuned = {{"N", 2}}, .run = {{{"N", 2}}, {{"N", 1}}, {{"N", 3}}}};

/// Floats as bf16 too: the least number of tactics tried.
int check_copy(const std::string& input, const std::string& body) {
  const auto check = [&](const std::string& type) {
    return check_tactics(fmt::format("(%x: {}) {{\n{}\n return %y\n}}", type, body), "copy", kSizes);
  };
  const int tried = check(input);
  return input.starts_with("f32") ? std::min(tried, check("bf16" + input.substr(3))) : tried;
}

TEST(CopyTactics, TransposeByAnyOrder) {
  for (const char* order :
       {"0, 1, 2, 3", "0, 2, 3, 1", "0, 3, 1, 2", "3, 2, 1, 0", "1, 0, 2, 3", "0, 2, 1, 3", "0, 1, 3, 2", "2, 0, 3, 1"})
    for (const char* shape : {"N,5,7,9", "N,3,17,33", "N,16,20,36", "N,1,5,1"})
      EXPECT_GT(check_copy(fmt::format("f32[{}]", shape), fmt::format(" %y = Transpose(%x) {{perm=[{}]}}", order)), 0);
  for (const char* type : {"i64", "bool", "u8", "f16"})
    EXPECT_GT(check_copy(fmt::format("{}[N,37,18]", type), " %y = Transpose(%x) {perm=[0, 2, 1]}"), 0);
}

TEST(CopyTactics, ReformatBetweenAllLayouts) {
  const auto check = [](const char* type, const char* shape) {
    return check_tactics(fmt::format("(%x: {}[{}]) {{\n %y = Reformat(%x)\n return %y\n}}", type, shape), "copy",
                         kSizes);
  };
  for (const char* shape : {"N,3,5,7", "N,16,9,4", "N,24,3,3", "N,7,1,1", "N,40,6", "N,19,2,3,4", "N,64,14,14"})
    EXPECT_GE(check("f32", shape), 10);
  for (const char* shape : {"N,3,5,7", "N,37,8,9", "N,40,6"}) EXPECT_GE(check("bf16", shape), 10);
  EXPECT_GT(check("f32", "N,7"), 0);
}

TEST(CopyTactics, ConcatenateAlongAnyAxis) {
  for (const int axis : {0, 1, 2, 3, -1})
    EXPECT_GT(check_copy("f32[N,3,4,5]",
                         fmt::format(" %a = constant f32[1,1,1,1]{{2}}\n %y = Concat(%x, %x, %x) {{axis={}}}", axis)),
              0);
  for (const char* type : {"f32", "bf16"})
    EXPECT_GT(check_tactics(fmt::format("(%x: {0}[3,2]) {{\n %c = constant {0}[3,1]{{1, 2, 3}}\n %y = Concat(%c, %x, "
                                        "%c) {{axis=1}}\n return %y\n}}",
                                        type),
                            "copy", kSizes),
              0);
}

TEST(CopyTactics, SplitIntoParts) {
  for (const char* type : {"f32", "bf16"})
    for (const char* body : {" %s = constant i64[3]{1, 4, 2}\n %a, %b, %c = Split(%x, %s) {axis=1}\n return %a, %b, %c",
                             " %s = constant i64[2]{2, 3}\n %a, %b = Split(%x, %s) {axis=-1}\n return %b"})
      EXPECT_GT(check_tactics(fmt::format("(%x: {}[N,7,4,5]) {{\n{}\n}}", type, body), "copy", kSizes), 0);
}

TEST(CopyTactics, SliceForwardsAndBackwards) {
  const auto slice = [](const char* starts, const char* ends, const char* axes, const char* steps) {
    return fmt::format(
        " %s = constant i64[2]{{{}}}\n %e = constant i64[2]{{{}}}\n %a = constant i64[2]{{{}}}\n %t = constant "
        "i64[2]{{{}}}\n %y = Slice(%x, %s, %e, %a, %t)",
        starts, ends, axes, steps);
  };
  EXPECT_GT(check_copy("f32[N,6,9,8]", slice("1, 2", "5, 100", "1, 2", "1, 1")), 0);
  EXPECT_GT(check_copy("f32[N,6,9,8]", slice("0, 1", "9, 8", "2, 3", "2, 3")), 0);
  EXPECT_GT(check_copy("f32[N,6,9,8]", slice("-1, -2", "-100, 0", "2, 3", "-1, -2")), 0);
  EXPECT_GT(check_copy("i64[N,6,9]", slice("-3, 0", "100, 4", "1, 2", "1, 1")), 0);
}

/// x rolled by 2 along axis 1 and by 3 along axis 2, one row twice, and every second column backwards.
constexpr const char* kAssembly = R"(
 %1 = constant i64[1]{1}
 %2 = constant i64[1]{2}
 %3 = constant i64[1]{3}
 %all = constant i64[1]{9223372036854775807}
 %none = constant i64[1]{0}
 %before = constant i64[1]{-9223372036854775807}
 %last = constant i64[1]{-1}
 %back = constant i64[1]{-2}
 %a = Slice(%x, %2, %all, %1)
 %b = Slice(%x, %none, %2, %1)
 %c = Concat(%a, %b) {axis=1}
 %d = Slice(%c, %3, %all, %2)
 %e = Slice(%c, %none, %3, %2)
 %f = Slice(%c, %last, %before, %2, %back)
 %y = Concat(%d, %e, %f, %k) {axis=2})";

TEST(CopyTactics, AssembleSlicesOfConcats) {
  for (const char* type : {"f32", "bf16"})
    EXPECT_GT(check_tactics(fmt::format("(%x: {0}[N,7,8], %k: {0}[N,7,2]) {{{1}\n return %y\n}}", type, kAssembly),
                            "copy", kSizes),
              0);
  EXPECT_GT(check_tactics(
                fmt::format(
                    "(%x: i64[2,7,8]) {{\n %k = constant i64[2,7,1]!0123456789abcdef0123456789abcdef{}\n return %y\n}}",
                    kAssembly),
                "copy", kSizes),
            0);
}

TEST(CopyTactics, PadInEveryMode) {
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    EXPECT_GT(
        check_copy(
            "f32[N,5,6,7]",
            fmt::format(" %p = constant i64[8]{{0, 0, 1, 2, 0, 0, 3, 1}}\n %y = Pad(%x, %p) {{mode=\"{}\"}}", mode)),
        0)
        << mode;
    EXPECT_GT(
        check_copy(
            "f32[N,5,6,7]",
            fmt::format(" %p = constant i64[8]{{0, 2, 1, 0, 0, 1, 0, 4}}\n %y = Pad(%x, %p) {{mode=\"{}\"}}", mode)),
        0)
        << mode;
  }
  EXPECT_GT(
      check_copy(
          "i32[N,5]",
          " %p = constant i64[4]{1, 0, 0, 2}\n %v = constant i32[]{7}\n %y = Pad(%x, %p, %v) {mode=\"constant\"}"),
      0);
}

TEST(CopyTactics, PadSomeAxesCutAndFillWithAGivenValue) {
  EXPECT_GT(check_copy("f32[N,5,6,7]",
                       " %p = constant i64[4]{1, 2, 0, 3}\n %a = constant i64[2]{-1, 1}\n %y = Pad(%x, %p, _, %a) "
                       "{mode=\"reflect\"}"),
            0);
  EXPECT_GT(check_copy("f32[N,5,6,7]",
                       " %p = constant i64[8]{0, -1, 2, -3, 0, 1, -2, 0}\n %y = Pad(%x, %p) {mode=\"constant\"}"),
            0);
  EXPECT_EQ(check_copy("f32[N,3]", " %p = constant i64[4]{0, 3, 0, 0}\n %y = Pad(%x, %p) {mode=\"reflect\"}"), 0);
  EXPECT_GT(check_tactics("(%x: i64[N,5], %v: i64[]) {\n %p = constant i64[4]{0, 2, 0, 1}\n %y = Pad(%x, %p, %v) "
                          "{mode=\"constant\"}\n return %y\n}",
                          "copy", kSizes),
            0);
}

TEST(CopyTactics, RepeatByExpandTileAndResize) {
  EXPECT_GT(check_copy("f32[1,5,1,7]", " %s = constant i64[4]{3, 5, 4, 7}\n %y = Expand(%x, %s)"), 0);
  EXPECT_GT(check_copy("i64[5,1]", " %s = constant i64[3]{2, 5, 6}\n %y = Expand(%x, %s)"), 0);
  EXPECT_GT(check_copy("f32[N,2,3,5]", " %r = constant i64[4]{1, 2, 3, 2}\n %y = Tile(%x, %r)"), 0);
  for (const char* mode : {"asymmetric", "half_pixel"})
    EXPECT_GT(check_copy("f32[N,5,4,6]",
                         fmt::format(" %r = constant f32[0]{{}}\n %s = constant f32[4]{{1, 1, 2, 2}}\n %y = Resize(%x, "
                                     "%r, %s) {{mode=\"nearest\", "
                                     "coordinate_transformation_mode=\"{}\", nearest_mode=\"round_prefer_floor\"}}",
                                     mode)),
              0);
}

TEST(CopyTactics, MoveBlocksBetweenDepthAndSpace) {
  for (const char* mode : {"DCR", "CRD"})
    for (const int block : {2, 3})
      EXPECT_GT(
          check_copy("f32[N,36,5,4]", fmt::format(" %y = DepthToSpace(%x) {{blocksize={}, mode=\"{}\"}}", block, mode)),
          0);
  for (const char* mode : {"DCR", "CRD"})
    EXPECT_GT(check_copy("f32[N,5,6,12]", fmt::format(" %y = SpaceToDepth(%x) {{blocksize=3, mode=\"{}\"}}", mode)), 0);
}

TEST(CopyTactics, ADamagedPlanIsRefused) {
  CpuDevice device;
  const auto load_copy = [&](std::vector<CopyOperator> operators, const Dims& from, const Dims& to,
                             int64_t source = 0) {
    const CopyCode code{{{source}}, std::move(operators)};
    return load(device.info(), encode_code("copy", write_fields(code)),
                {{{DType::f32, from, Layout::linear}}, {{DType::f32, to, Layout::linear}}, {}});
  };
  CopyOperator slice{.kind = CopyKind::slice, .axes = {"0"}, .starts = {"3"}, .steps = {"1"}};
  EXPECT_NE(load_copy({slice}, {5}, {2}), nullptr);
  EXPECT_THROW(load_copy({slice}, {5}, {3}), Error);
  EXPECT_THROW(load_copy({{.kind = CopyKind::transpose, .perm = {0, 0}}}, {2, 2}, {2, 2}), Error);
  slice.starts = {"1"}, slice.counts = {"2"}, slice.operands = {0};
  const CopyOperator concat{.kind = CopyKind::concat, .operands = {1, 0}};
  const auto damaged = [](CopyOperator op, auto CopyOperator::*member, auto value) {
    op.*member = value;
    return op;
  };
  using Texts = std::vector<std::string>;
  EXPECT_NE(load_copy({slice, concat}, {5}, {7}), nullptr);
  EXPECT_THROW(load_copy({slice, concat}, {5}, {8}), Error);
  EXPECT_THROW(load_copy({slice, damaged(concat, &CopyOperator::operands, Dims{1, 2})}, {5}, {7}), Error);
  EXPECT_THROW(load_copy({damaged(slice, &CopyOperator::operands, Dims{-1}), concat}, {5}, {7}), Error);
  EXPECT_THROW(load_copy({damaged(slice, &CopyOperator::counts, Texts{"6"}), concat}, {5}, {7}), Error);
  EXPECT_THROW(load_copy({damaged(slice, &CopyOperator::steps, Texts{"0"}), concat}, {5}, {7}), Error);
  EXPECT_THROW(load_copy({slice, damaged(concat, &CopyOperator::axis, 1)}, {5}, {7}), Error);
  EXPECT_THROW(load_copy({{.kind = CopyKind::identity}}, {2}, {2}, 1), Error);
}

}  // namespace
}  // namespace hone::cpu
