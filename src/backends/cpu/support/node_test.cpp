// SPDX-License-Identifier: Apache-2.0
//
// The families that compute one operator of any element type, against the reference.
#include <fmt/format.h>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

const CheckOptions kSizes{
    .tolerance = 1e-6, .seed = 11, .tuned = {{"N", 2}}, .run = {{{"N", 2}}, {{"N", 1}}, {{"N", 5}}}};
constexpr const char* kTypes[] = {"f32", "f16", "bf16", "f64", "i8",  "u8",  "i16",
                                  "u16", "i32", "u32",  "i64", "u64", "bool"};

/// Numbers of this type that reach beyond what a smaller type holds; floats also beyond every number.
Tensor awkward(DType dtype, const Dims& dims, uint64_t seed) {
  const double reach = is_float(dtype) ? 70000 : 300;
  Tensor plain = random_tensor(
      dtype, dims, seed,
      is_float(dtype) || dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64
          ? -reach
          : 0,
      reach);
  if (!is_float(dtype)) return plain;
  constexpr double kSpecial[] = {INFINITY, -INFINITY, NAN, 3e9, -3e9, 1e19, -1e19, 0.5, -0.5, 2147483520, 0, 1e-6};
  TensorBuilder builder(dtype, dims);
  visit(dtype, [&]<typename T>() {
    std::span<T> data = builder.data<T>();
    for (size_t i = 0; i < data.size(); ++i) {
      const double value = i % 3 == 0 ? kSpecial[i / 3 % std::size(kSpecial)] : plain.real(static_cast<int64_t>(i));
      if constexpr (std::is_same_v<T, double>) data[i] = value;
      else data[i] = T(static_cast<float>(value));
    }
  });
  return builder.finish();
}

TEST(CastTactic, BetweenAllPairsOfTypes) {
  CheckOptions options = kSizes;
  options.inputs = [](const Graph& graph) {
    return std::vector{awkward(graph.inputs()[0]->type.dtype, graph.inputs()[0]->type.shape.values(), 5)};
  };
  for (const char* from : kTypes)
    for (const char* to : kTypes)
      EXPECT_GT(
          check_tactics(fmt::format("(%x: {}[N,3,37]) {{\n %y = Cast(%x) {{to=\"{}\"}}\n return %y\n}}", from, to),
                        "cast", options),
          0);
}

TEST(CastTactic, OfSeveralPieces) {
  for (const auto& [from, to] : {std::pair{"f32", "f16"}, {"f32", "bf16"}, {"bf16", "f32"}})
    EXPECT_GT(check_tactics(fmt::format("(%x: {}[N,9001]) {{\n %y = Cast(%x) {{to=\"{}\"}}\n return %y\n}}", from, to),
                            "cast", kSizes),
              0);
}

TEST(CastTactic, OfOnePixelThatIsDeclaredInTwoLayouts) {
  CpuDevice device;
  const Graph graph = parse_graph("(%x: f32[2,5,1,1]) {\n %y = Cast(%x) {to=\"bf16\"}\n return %y\n}", find_op);
  const Problem problem = make_problem(graph, {}, device.info());
  const Blob code = source().compile(problem, offers_of(problem, "cast").at(0)).code;
  const auto load_cast = [&](const Dims& dims) {
    return load(device.info(), code,
                {{{DType::f32, dims, Layout::channels_last}}, {{DType::bf16, dims, Layout::linear}}, {}});
  };
  EXPECT_NE(load_cast({2, 5, 1, 1}), nullptr);
  EXPECT_THROW(load_cast({2, 5, 1, 2}), Error);
}

/// Indices from -size to size - 1.
CheckOptions with_indices(int64_t size) {
  CheckOptions options = kSizes;
  options.inputs = [size](const Graph& graph) {
    std::vector<Tensor> tensors = random_inputs(graph, 3);
    const TensorType& type = graph.inputs()[1]->type;
    tensors[1] =
        random_tensor(type.dtype, type.shape.values(), 7, static_cast<double>(-size), static_cast<double>(size));
    return tensors;
  };
  return options;
}

TEST(GatherTactic, TakesElementsByIndex) {
  for (const char* type : {"f32", "bool", "i64", "f16"})
    for (const char* index : {"i64", "i32"}) {
      EXPECT_GT(
          check_tactics(
              fmt::format("(%x: {}[N,6,7], %i: {}[N,4,5]) {{\n %y = GatherElements(%x, %i) {{axis=1}}\n return %y\n}}",
                          type, index),
              "gather", with_indices(6)),
          0);
      EXPECT_GT(check_tactics(
                    fmt::format(
                        "(%x: {}[N,6,7], %i: {}[N,6,50]) {{\n %y = GatherElements(%x, %i) {{axis=-1}}\n return %y\n}}",
                        type, index),
                    "gather", with_indices(7)),
                0);
      EXPECT_GT(
          check_tactics(
              fmt::format("(%x: {}[6,7], %i: {}[N,7]) {{\n %y = GatherElements(%x, %i) {{axis=0}}\n return %y\n}}",
                          type, index),
              "gather", with_indices(6)),
          0);
    }
}

TEST(GatherTactic, TakesWholePositions) {
  for (const char* type : {"f32", "u8"}) {
    EXPECT_GT(
        check_tactics(fmt::format("(%x: {}[5,5,3], %i: i64[N,4,2]) {{\n %y = GatherND(%x, %i)\n return %y\n}}", type),
                      "gather", with_indices(5)),
        0);
    EXPECT_GT(
        check_tactics(fmt::format("(%x: {}[5,5,5], %i: i32[N,3]) {{\n %y = GatherND(%x, %i)\n return %y\n}}", type),
                      "gather", with_indices(5)),
        0);
    EXPECT_GT(
        check_tactics(
            fmt::format("(%x: {}[N,4,6], %i: i64[N,3,1]) {{\n %y = GatherND(%x, %i) {{batch_dims=1}}\n return %y\n}}",
                        type),
            "gather", with_indices(4)),
        0);
  }
}

TEST(GatherTactic, TakesRowsAnywhere) {
  for (const int axis : {0, 1, 2})
    EXPECT_GT(
        check_tactics(
            fmt::format("(%x: f32[5,5,5], %i: i32[N,3]) {{\n %y = Gather(%x, %i) {{axis={}}}\n return %y\n}}", axis),
            "gather", with_indices(5)),
        0);
  EXPECT_GT(check_tactics("(%x: f32[10,N]) {\n %i = SymbolicConstant() {values=[\"N\", \"0\", \"2*N - 1\"], "
                          "dims=[3]}\n %y = Gather(%x, %i) {axis=0}\n return %y\n}",
                          "gather", kSizes),
            0);
}

TEST(ScatterTactic, PutsElementsWithEveryReduction) {
  for (const char* reduction : {"none", "add", "mul", "max", "min"})
    for (const char* type : {"f32", "f16", "i64", "u8"}) {
      const auto scatter = [&](const char* dims, int axis, const char* updates) {
        return fmt::format(
            "(%x: {0}[{1}], %i: i64[{3}], %u: {0}[{3}]) {{\n %y = ScatterElements(%x, %i, %u) {{axis={2}, "
            "reduction=\"{4}\"}}\n return %y\n}}",
            type, dims, axis, updates, reduction);
      };
      EXPECT_GT(check_tactics(scatter("N,6,9", 1, "N,4,8"), "scatter", with_indices(6)), 0);
      EXPECT_GT(check_tactics(scatter("N,60,90", 2, "N,40,80"), "scatter", with_indices(90)), 0);
      EXPECT_GT(check_tactics(scatter("6", 0, "N"), "scatter", with_indices(6)), 0);
      const std::string whole = fmt::format(
          "(%x: {0}[5,5,300], %i: i64[N,4,2], %u: {0}[N,4,300]) {{\n %y = ScatterND(%x, %i, %u) "
          "{{reduction=\"{1}\"}}\n return %y\n}}",
          type, reduction);
      EXPECT_GT(check_tactics(whole, "scatter", with_indices(5)), 0);
    }
  EXPECT_GT(
      check_tactics(
          "(%x: bool[N,3], %i: i32[N,2], %u: bool[N,2]) {\n %y = ScatterElements(%x, %i, %u) {axis=1}\n return %y\n}",
          "scatter", with_indices(3)),
      0);
}

TEST(GenerateTactic, FillsFromShapes) {
  EXPECT_GT(check_tactics("(%x: f32[N]) {\n %s = SymbolicConstant() {values=[\"N\", \"3\"], dims=[2]}\n %y = "
                          "ConstantOfShape(%s)\n return %y\n}",
                          "generate", kSizes),
            0);
  EXPECT_GT(check_tactics("() {\n %y = SymbolicConstant() {values=[\"N\", \"2*N\"], dims=[2]}\n return %y\n}",
                          "generate", kSizes),
            0);
  EXPECT_GT(check_tactics("() {\n %a = SymbolicConstant() {values=[\"0\"], dims=[]}\n %b = SymbolicConstant() "
                          "{values=[\"3000*N\"], dims=[]}\n %c = SymbolicConstant() {values=[\"2\"], dims=[]}\n"
                          " %y = Range(%a, %b, %c)\n return %y\n}",
                          "generate", kSizes),
            0);
}

TEST(GenerateTactic, RangesOfNumbers) {
  EXPECT_GT(check_tactics("() {\n %a = constant f32[]{-1.5}\n %b = constant f32[]{4}\n %c = constant f32[]{0.25}\n %y "
                          "= Range(%a, %b, %c)\n return %y\n}",
                          "generate"),
            0);
  EXPECT_GT(check_tactics("() {\n %a = constant i32[]{9}\n %b = constant i32[]{-6}\n %c = constant i32[]{-4}\n %y = "
                          "Range(%a, %b, %c)\n return %y\n}",
                          "generate"),
            0);
}

TEST(GenerateTactic, DiagonalsAndTriangles) {
  for (const char* type : {"f32", "f16", "i64", "bool"})
    for (const int k : {-9, -2, 0, 1, 4, 20}) {
      EXPECT_GT(check_tactics(fmt::format("(%x: {}[N,6]) {{\n %y = EyeLike(%x) {{k={}}}\n return %y\n}}", type, k),
                              "generate", kSizes),
                0);
      for (const int upper : {0, 1})
        EXPECT_GT(
            check_tactics(
                fmt::format(
                    "(%x: {}[N,7,6]) {{\n %k = constant i64[]{{{}}}\n %y = Trilu(%x, %k) {{upper={}}}\n return %y\n}}",
                    type, k, upper),
                "generate", kSizes),
            0);
    }
}

TEST(GenerateTactic, OneElementOn) {
  CheckOptions options = kSizes;
  options.inputs = [](const Graph& graph) {
    return std::vector{random_tensor(graph.inputs()[0]->type.dtype, graph.inputs()[0]->type.shape.values(), 9, -9, 9)};
  };
  for (const char* index : {"i64", "i32", "f32"})
    for (const int axis : {-1, 0, 1, 2})
      EXPECT_GT(check_tactics(fmt::format("(%i: {}[N,5]) {{\n %d = constant i64[]{{7}}\n %v = constant f32[2]{{-1, "
                                          "2.5}}\n %y = OneHot(%i, %d, %v) {{axis={}}}\n return %y\n}}",
                                          index, axis),
                              "generate", options),
                0);
}

TEST(EinsumTactic, ProductsInEveryOrderOfAxes) {
  CheckOptions options = kSizes;
  options.tolerance = 1e-5;
  const auto check = [&](const char* a, const char* b, const char* equation) {
    return check_tactics(
        fmt::format("(%a: f32[{}], %b: f32[{}]) {{\n %y = Einsum(%a, %b) {{equation=\"{}\"}}\n return %y\n}}", a, b,
                    equation),
        "einsum", options);
  };
  EXPECT_GT(check("N,3,5,8", "N,3,70,8", "bhid,bhjd->bhij"), 0);
  EXPECT_GT(check("N,5,3,8", "N,7,3,8", "bihd,bjhd->bhij"), 0);
  EXPECT_GT(check("N,40,9", "9,4,6", "bij,jhd->bhid"), 0);
  EXPECT_GT(check("N,33", "17", "ni,j->jin"), 0);
  EXPECT_GT(check("N,4,5", "N,4,5", "nij,nij->n"), 0);
  EXPECT_GT(check("4,N,6", "4,4", "iaj,ii->aj"), 0);
  EXPECT_GT(check("N,4,5", "6,3,5", "nij,abj->nib"), 0);
  EXPECT_GT(check("N,2,4,5", "1,2,5,6", "...ij,...jk->...ik"), 0);
}

TEST(PointwiseTactics, ReadNumbersThatFollowFromShapes) {
  EXPECT_GT(check_tactics("(%x: i64[N,3]) {\n %s = SymbolicConstant() {values=[\"N\", \"7\", \"N*N\"], dims=[3]}\n %y "
                          "= Mul(%x, %s)\n return %y\n}",
                          "pointwise_blocks", kSizes),
            0);
  EXPECT_GT(check_tactics(
                "(%x: i64[3]) {\n %s = SymbolicConstant() {values=[\"N\"], dims=[]}\n %y = Less(%x, %s)\n return %y\n}",
                "pointwise_blocks", kSizes),
            0);
}

}  // namespace
}  // namespace hone::cpu
