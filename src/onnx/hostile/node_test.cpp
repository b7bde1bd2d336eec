// SPDX-License-Identifier: Apache-2.0
//
// Nodes with attributes and operands that contradict each other: each is refused with its name, at import or by the
// reference when it runs; what is only odd keeps its meaning.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "onnx/hostile/testing.h"

namespace hone {
namespace {

using W = onnx::ModelWriter;
using Ints = std::vector<int64_t>;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string ints(const char* name, const Ints& values) { return W::integers_attr(name, values); }
std::string number(const char* name, int64_t value) { return W::integer_attr(name, value); }
std::string list(const char* name, const Ints& values) {
  return W::integers(name, {static_cast<int64_t>(values.size())}, values);
}

/// One node called "bad" over x: f32[2,4,8,8], n: f32[N], w: f32[4,4,3,3], b: f32[4], s: f32[] and integer constants.
struct Case {
  const char* op;
  std::vector<std::string> inputs, attributes = {};
  Ints a = {}, c = {};  // the constants "a" and "c"
  int64_t opset = 17;
  const char* domain = "";
};

/// A float constant of ones.
std::string ones(const std::string& name, const Ints& dims) {
  std::string raw;
  for (int64_t i = 0; i < elements(dims); ++i) raw.append("\0\0\x80?", 4);
  return W::raw_tensor(name, 1, dims, raw);
}
std::string value(const std::string& name, const Ints& dims) {
  std::vector<std::string> sizes;
  for (const int64_t size : dims) sizes.push_back(W::dim(size));
  return W::value(name, 1, sizes);
}

Blob model_of(const Case& test) {
  return W::model_of(
      W::graph({.nodes = {W::node(test.op, test.inputs, {"y"}, test.attributes, "bad", test.domain)},
                .initializers = {ones("w", {4, 4, 3, 3}), ones("b", {4}), ones("s", {}), ones("t", {1, 2, 3}),
                                 list("a", test.a), list("c", test.c), W::integers("d", {}, {1})},
                .inputs = {value("x", {2, 4, 8, 8}), W::value("n", 1, {W::dim("N")})},
                .outputs = {onnx::vector_value("y")}}),
      {W::opset("", test.opset), W::opset("ai.onnx.ml", 3), W::opset("com.microsoft", 1)});
}

void expect_refused(const std::vector<Case>& cases) {
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string message = onnx::refusal_when_run(model_of(cases[i]));
    EXPECT_THAT(message, AllOf(HasSubstr("node bad"), Not(HasSubstr("INTERNAL"))))
        << "case " << i << ": " << cases[i].op;
  }
}

TEST(HostileNodes, ListsOfAnotherLengthThanTheRank) {
  expect_refused({{"Conv", {"x", "w"}, {ints("strides", {1})}},
                  {"Conv", {"x", "w"}, {ints("dilations", {1, 1, 1})}},
                  {"Conv", {"x", "w"}, {ints("pads", {1, 1})}},
                  {"Conv", {"x", "w"}, {ints("kernel_shape", {3})}},
                  {"ConvTranspose", {"x", "w"}, {ints("output_padding", {0})}},
                  {"ConvTranspose", {"x", "w"}, {ints("output_shape", {16})}},
                  {"MaxPool", {"x"}, {ints("kernel_shape", {2, 2, 2})}},
                  {"MaxPool", {"x"}, {ints("kernel_shape", {2, 2}), ints("pads", {0, 0, 0})}},
                  {"AveragePool", {"x"}, {ints("kernel_shape", {2, 2}), ints("strides", {2})}},
                  {"LpPool", {"x"}, {ints("kernel_shape", {2})}},
                  {"Transpose", {"x"}, {ints("perm", {0, 1})}},
                  {"Transpose", {"x"}, {ints("perm", {0, 0, 1, 2})}},
                  {"Transpose", {"x"}, {ints("perm", {0, 1, 2, 4})}},
                  {"Pad", {"x", "a"}, {}, {1, 1}},
                  {"Tile", {"x", "a"}, {}, {2, 2}},
                  {"Slice", {"x", "a", "c"}, {}, {0, 0}, {1}},
                  {"Slice", {"x", "a", "a", "c"}, {}, {0, 0}, {1}},
                  {"Resize", {"x", "", "", "a"}, {}, {8, 8}},
                  {"Split", {"x", "a"}, {}, {1, 2}},
                  {"GridSample", {"x", "b"}},
                  {"DFT", {"s"}},
                  {"GroupNormalization", {"b", "b", "b"}, {number("num_groups", 1)}, {}, {}, 18},
                  {"DFT", {"b"}, {}, {}, {}, 20},
                  {"RotaryEmbedding", {"b", "a", "b", "b"}, {}, {0}, {}, 17, "com.microsoft"},
                  {"RotaryEmbedding", {"x", "a", "b", "b"}, {}, {0}, {}, 17, "com.microsoft"},
                  {"MaxUnpool", {"x", "x"}, {ints("kernel_shape", {2})}}});
}

TEST(HostileNodes, AxesAtOrBeyondTheRank) {
  expect_refused({{"Concat", {"x", "x"}, {number("axis", 4)}},
                  {"Concat", {"x", "x"}, {number("axis", INT64_MIN)}},
                  {"Softmax", {"x"}, {number("axis", 4)}},
                  {"Gather", {"x", "a"}, {number("axis", 4)}, {0}},
                  {"Gather", {"x", "a"}, {number("axis", -5)}, {0}},
                  {"Flatten", {"x"}, {number("axis", 5)}},
                  {"Split", {"x"}, {number("axis", 4)}},
                  {"Squeeze", {"x", "a"}, {}, {4}},
                  {"Unsqueeze", {"x", "a"}, {}, {5}},
                  {"Unsqueeze", {"x", "a"}, {}, {1, 1}},
                  {"ReduceMean", {"x"}, {ints("axes", {4})}},
                  {"ReduceSum", {"x", "a"}, {}, {-5}},
                  {"ArgMax", {"x"}, {number("axis", 4)}},
                  {"TopK", {"x", "a"}, {number("axis", 4)}, {1}},
                  {"CumSum", {"x", "a"}, {}, {4}},
                  {"LayerNormalization", {"x", "b"}, {number("axis", 4)}},
                  {"OneHot", {"n", "a", "b"}, {number("axis", 3)}, {2}},
                  {"GatherElements", {"x", "x"}, {number("axis", 4)}},
                  {"GatherND", {"x", "a"}, {number("batch_dims", 1)}, {0}},
                  {"Compress", {"x", "a"}, {number("axis", 4)}, {1}},
                  {"Scan", {"x"}, {number("num_scan_inputs", 2)}},
                  {"QuantizeLinear", {"x", "b"}, {number("axis", 4)}}});
}

TEST(HostileNodes, SizesThatAreZeroOrHuge) {
  expect_refused({{"Conv", {"x", "w"}, {ints("strides", {0, 1})}},
                  {"Conv", {"x", "w"}, {ints("dilations", {1, 0})}},
                  {"Conv", {"x", "w"}, {number("group", 0)}},
                  {"Conv", {"x", "w"}, {number("group", 3)}},
                  {"Conv", {"x", "w"}, {number("group", -1)}},
                  {"Conv", {"x", "w"}, {ints("pads", {INT64_MAX, 0, INT64_MAX, 0})}},
                  {"Conv", {"x", "w"}, {ints("dilations", {INT64_MAX, INT64_MAX})}},
                  {"ConvTranspose", {"x", "w"}, {ints("strides", {INT64_MAX, 1})}},
                  {"ConvTranspose", {"x", "w"}, {number("group", 0)}},
                  {"MaxPool", {"x"}, {ints("kernel_shape", {0, 2})}},
                  {"MaxPool", {"x"}, {ints("kernel_shape", {2, 2}), ints("strides", {0, 0})}},
                  {"AveragePool", {"x"}, {ints("kernel_shape", {INT64_MAX, 2})}},
                  {"DepthToSpace", {"x"}, {number("blocksize", 0)}},
                  {"SpaceToDepth", {"x"}, {number("blocksize", 3)}},
                  {"ConstantOfShape", {"a"}, {}, {-1}},
                  {"ConstantOfShape", {"a"}, {}, {INT64_MAX, 2}},
                  {"Expand", {"x", "a"}, {}, {int64_t{1} << 40, 2, 4, 8, 8}},
                  {"Tile", {"x", "a"}, {}, {1, 1, 1, INT64_MAX}},
                  {"Tile", {"x", "a"}, {}, {1, 1, 1, -1}},
                  {"Pad", {"x", "a"}, {}, {0, 0, 0, 0, 0, 0, 0, INT64_MAX}},
                  {"Reshape", {"x", "a"}, {}, {-1, -1}},
                  {"Reshape", {"x", "a"}, {}, {-2, 4}},
                  {"Reshape", {"x", "a"}, {}, {3, -1}},
                  {"Reshape", {"x", "a"}, {}, {int64_t{1} << 32, int64_t{1} << 32}},
                  {"Slice", {"x", "a", "a", "a", "c"}, {}, {0}, {0}},
                  {"Split", {"x", "a"}, {number("axis", 1)}, {5}},
                  {"TopK", {"x", "a"}, {}, {9}},
                  {"TopK", {"x", "a"}, {}, {-1}},
                  {"OneHot", {"n", "a", "b"}, {}, {-1}},
                  {"GroupNormalization", {"x", "b", "b"}, {number("num_groups", 0)}, {}, {}, 21},
                  {"LRN", {"x"}, {number("size", 0)}},
                  {"BlackmanWindow", {"a"}, {}, {-3}},
                  {"EyeLike", {"n"}},
                  {"Resize", {"x", "", "", "a"}, {}, {1, 1, 1, -4}}});
}

/// No product of them overflows; no machine holds what they ask for, and operators would work on tables of them first.
TEST(HostileNodes, SizesBeyondAllMemory) {
  constexpr int64_t kHuge = int64_t{1} << 44;
  const std::vector<Case> cases = {
      {"ConstantOfShape", {"a"}, {}, {kHuge, 2}},
      {"Expand", {"s", "a"}, {}, {2, kHuge}},
      {"Tile", {"b", "a"}, {}, {kHuge}},
      {"Pad", {"b", "a"}, {}, {0, kHuge}},
      {"OneHot", {"n", "a", "c"}, {}, {kHuge}, {0, 1}},
      {"BlackmanWindow", {"a"}, {}, {kHuge}},
      {"MelWeightMatrix", {"a", "c", "d", "s", "s"}, {}, {kHuge}, {16}},
      {"Resize", {"x", "", "", "a"}, {}, {2, 4, 8, kHuge}},
      {"RandomNormal", {}, {ints("shape", {kHuge})}},
      {"RandomUniform", {}, {ints("shape", {kHuge, 2})}},
      {"AffineGrid", {"t", "a"}, {}, {1, 1, 1 << 22, 1 << 22}, {}, 20},
      {"CenterCropPad", {"b", "a"}, {}, {kHuge}, {}, 18},
      {"MaxPool", {"x"}, {ints("kernel_shape", {1, 1}), ints("pads", {0, 0, 1 << 23, 1 << 23})}},
      {"Range", {"d", "a", "d"}, {}, {kHuge}},
  };
  for (const Case& test : cases)
    EXPECT_THAT(onnx::refusal_when_run(model_of(test)),
                AllOf(HasSubstr("node bad"), HasSubstr("memory"), Not(HasSubstr("INTERNAL"))))
        << test.op;
}

/// How many sizes there are is a size too: of a tensor whose elements come at run time.
TEST(HostileNodes, ListsOfSizesBeyondTheRankOfTensors) {
  for (const char* op : {"Reshape", "Expand", "ConstantOfShape", "Unsqueeze"}) {
    const std::vector<std::string> inputs =
        std::string_view(op) == "ConstantOfShape" ? std::vector<std::string>{"l"} : std::vector<std::string>{"x", "l"};
    EXPECT_THAT(onnx::refusal(W::model(
                    W::graph({.nodes = {W::node(op, inputs, {"y"}, {}, "bad")},
                              .inputs = {value("x", {2, 4, 8, 8}), W::value("l", 7, {W::dim(int64_t{1} << 40)})},
                              .outputs = {onnx::vector_value("y")}}))),
                AllOf(HasSubstr("node bad"), HasSubstr(std::to_string(kMaxRank))))
        << op;
  }
}

TEST(HostileNodes, NumbersThatDoNotDivide) {
  // In the meaning of integers a division by zero has no answer; it must only not end the process.
  for (const int64_t divisor : {int64_t{0}, int64_t{-1}})
    for (const char* op : {"Div", "Mod"})
      EXPECT_THAT(onnx::refusal_when_run(model_of({op, {"a", "c"}, {}, {INT64_MIN, 7, INT64_MAX}, {divisor}})),
                  Not(HasSubstr("INTERNAL")));
  const auto refusal_with = [](const std::vector<std::string>& nodes, int64_t c) {
    return onnx::refusal_when_run(W::model(W::graph({.nodes = nodes,
                                                     .initializers = {list("c", {c})},
                                                     .inputs = {W::value("x", 1, {W::dim("N")})},
                                                     .outputs = {onnx::vector_value("y")}})));
  };
  for (const char* op : {"Div", "Mod"})
    for (const int64_t divisor : {int64_t{0}, int64_t{-1}, INT64_MIN})
      EXPECT_THAT(refusal_with({W::node("Shape", {"x"}, {"n"}), W::node(op, {"n", "c"}, {"q"}, {}, "bad"),
                                W::node("ConstantOfShape", {"q"}, {"y"}, {}, "filled")},
                               divisor),
                  Not(HasSubstr("INTERNAL")))
          << op << " " << divisor;
}

TEST(HostileNodes, OperandsThatAreMissing) {
  expect_refused({{"MatMulInteger", {"", "b"}},
                  {"MatMulInteger", {"x"}},
                  {"QLinearMatMul", {"x", "s", "s", "w"}},
                  {"LSTM", {"x", "", "w"}},
                  {"Clip", {""}},
                  {"BatchNormalization", {"x", "b", "b"}},
                  {"OneHot", {"n", "", "b"}},
                  {"Pad", {"x"}},
                  {"QLinearConv", {"x", "s", "s"}},
                  {"If", {}},
                  {"RoiAlign", {"x", "", "a"}},
                  {"Where", {"x", "", "x"}},
                  {"QLinearAdd", {"x", "s", "", "", "s", "", "s"}, {}, {}, {}, 17, "com.microsoft"},
                  {"EmbedLayerNormalization", {"n", "", "", "w", "", "b", "b"}, {}, {}, {}, 17, "com.microsoft"}});
}

TEST(HostileNodes, OperandsThatContradictEachOther) {
  expect_refused({{"Conv", {"n", "w"}},
                  {"Conv", {"x", "b"}},
                  {"Conv", {"x", "w", "w"}},
                  {"Gemm", {"x", "w"}},
                  {"MatMul", {"x", "w"}},
                  {"MatMul", {"s", "b"}},
                  {"Add", {"x", "w"}},
                  {"BatchNormalization", {"x", "b", "b", "b", "s"}},
                  {"BatchNormalization", {"x", "b", "b", "w", "b"}},
                  {"InstanceNormalization", {"x", "b", "w"}},
                  {"LSTM", {"x", "w", "w"}},
                  {"GRU", {"x", "w", "w"}, {number("hidden_size", 0)}},
                  {"RNN", {"x", "w", "w"}, {number("hidden_size", 4)}},
                  {"Einsum", {"x", "w"}, {W::text_attr("equation", "ij,jk->ik")}},
                  {"Einsum", {"x"}, {W::text_attr("equation", "->->")}},
                  {"Einsum", {"x"}, {W::text_attr("equation", "")}},
                  {"Cast", {"x"}, {number("to", 999)}},
                  {"Cast", {"x"}, {number("to", -1)}},
                  {"Cast", {"x"}},
                  {"Constant", {}},
                  {"ScatterND", {"x", "a", "b"}, {}, {0}},
                  {"ScatterElements", {"x", "a", "b"}, {}, {0}},
                  {"NonMaxSuppression", {"x", "x"}},
                  {"RoiAlign", {"x", "b", "a"}, {}, {0}},
                  {"STFT", {"x", "a"}, {}, {0}},
                  {"DFT", {"b"}, {number("axis", 7)}},
                  {"QuantizeLinear", {"x", "w"}},
                  {"DequantizeLinear", {"a", "s", "x"}, {}, {1}},
                  {"SequenceAt", {"x", "a"}, {}, {0}},
                  {"SplitToSequence", {"x", "a"}, {}, {0}},
                  {"StringConcat", {"x", "x"}, {}, {}, {}, 20},
                  {"Col2Im", {"x", "a", "c"}, {}, {0, 0}, {1, 1}, 18}});
}

TEST(HostileNodes, IndicesOutsideTheirAxis) {
  for (const int64_t index : {int64_t{4}, int64_t{-5}, INT64_MAX, INT64_MIN})
    expect_refused({{"Gather", {"b", "a"}, {}, {index}},
                    {"GatherND", {"b", "a"}, {}, {index}},
                    {"GatherElements", {"b", "a"}, {}, {index, 0, 0, 0}},
                    {"ScatterElements", {"b", "a", "b"}, {}, {index, 0, 0, 0}},
                    {"ArrayFeatureExtractor", {"b", "a"}, {}, {index}, {}, 17, "ai.onnx.ml"}});
}

/// Operands behind the first are constants of ones; an empty list of sizes leaves one out.
std::string refusal_of_sizes(const char* op, const std::vector<Ints>& operands,
                             const std::vector<std::string>& attributes = {}, int64_t opset = 24) {
  std::vector<std::string> names, constants;
  for (size_t i = 0; i < operands.size(); ++i) {
    names.push_back(operands[i].empty() ? "" : fmt::format("v{}", i));
    if (i > 0 && !operands[i].empty()) constants.push_back(ones(names[i], operands[i]));
  }
  return onnx::refusal_when_run(W::model_of(W::graph({.nodes = {W::node(op, names, {"y"}, attributes, "bad")},
                                                      .initializers = constants,
                                                      .inputs = {value(names[0], operands[0])},
                                                      .outputs = {onnx::vector_value("y")}}),
                                            {W::opset("", opset)}));
}

TEST(HostileNodes, WeightsOfAnotherSizeAreNotReadBeyondTheirEnd) {
  const auto refused = AllOf(HasSubstr("node bad"), Not(HasSubstr("INTERNAL")));
  EXPECT_EQ(refusal_of_sizes("LSTM", {{3, 2, 4}, {1, 20, 4}, {1, 20, 5}, {1, 40}}), "");
  for (const std::vector<Ints>& operands : {std::vector<Ints>{{3, 2, 4}, {1, 20, 3}, {1, 20, 5}},
                                            {{3, 2, 4}, {1, 4, 4}, {1, 20, 5}},
                                            {{3, 2, 4}, {1, 20, 4}, {1, 4, 5}},
                                            {{3, 2, 4}, {1, 20, 4}, {1, 20, 5}, {1, 8}},
                                            {{3, 2, 4}, {1, 20, 4}, {1, 20, 5}, {}, {}, {1, 1, 5}},
                                            {{3, 2, 4}, {1, 20, 4}, {1, 20, 5}, {}, {}, {}, {}, {1, 5}}})
    EXPECT_THAT(refusal_of_sizes("LSTM", operands), refused);
  EXPECT_EQ(refusal_of_sizes("Attention", {{2, 4, 3, 8}, {2, 2, 5, 8}, {2, 2, 5, 6}, {3, 5}}), "");
  for (const std::vector<Ints>& operands : {std::vector<Ints>{{2, 4, 3, 8}, {1, 2, 5, 8}, {1, 2, 5, 6}},
                                            {{2, 4, 3, 8}, {2, 2, 5, 8}, {2, 1, 5, 6}},
                                            {{2, 4, 3, 8}, {2, 2, 5, 8}, {2, 2, 5, 6}, {2, 5}},
                                            {{2, 4, 3, 8}, {2, 2, 5, 8}, {2, 2, 5, 6}, {3, 1, 3, 5}}})
    EXPECT_THAT(refusal_of_sizes("Attention", operands), refused);
  EXPECT_THAT(refusal_of_sizes("GridSample", {{2, 1, 4, 4}, {1, 3, 3, 2}}), refused);
  EXPECT_THAT(refusal_of_sizes("MaxRoiPool", {{1, 1, 8, 8}, {2, 4}}, {ints("pooled_shape", {2, 2})}), refused);
  EXPECT_THAT(refusal_of_sizes("DeformConv", {{1, 1, 5, 5}, {1, 1, 3, 3}, {1, 18, 3, 3}, {4}}), refused);
  EXPECT_THAT(refusal_of_sizes("DeformConv", {{1, 1, 5, 5}, {1, 1, 3, 3}, {1, 18, 3, 3}, {}, {1, 2, 3, 3}}), refused);
  EXPECT_THAT(refusal_of_sizes("Conv", {{1, 1, 5, 5}, {1, 1, 3, 3}}, {ints("kernel_shape", {5, 5})}), refused);
  EXPECT_THAT(refusal_of_sizes("ConvInteger", {{1, 1, 5, 5}, {1, 1, 3, 3}}, {number("group", 0)}), refused);
  EXPECT_THAT(refusal_of_sizes("QuantizeLinear", {{2, 4}, {4}, {1}}, {number("axis", 1)}), refused);
  EXPECT_THAT(refusal_of_sizes("STFT", {{1, 8, 0}, {1}}), refused);
}

/// Tables of ai.onnx.ml come as parallel lists, whose lengths and entries an exporter may get wrong.
TEST(HostileNodes, TablesThatContradictTheirCounts) {
  const auto reals = [](const char* name, size_t count) {
    return W::reals_attr(name, std::vector<float>(count, 0.5f));
  };
  const auto texts = [](const char* name, size_t count, const char* text = "LEAF") {
    return W::texts_attr(name, std::vector<std::string>(count, text));
  };
  const auto tree = [&](const Ints& nodes, const Ints& features, const Ints& children, const Ints& targets,
                        size_t values, size_t modes, const char* mode) {
    const Ints zeros(nodes.size(), 0);
    return Case{"TreeEnsembleRegressor",
                {"n"},
                {ints("nodes_treeids", zeros), ints("nodes_nodeids", nodes), ints("nodes_featureids", features),
                 reals("nodes_values", values), texts("nodes_modes", modes, mode), ints("nodes_truenodeids", children),
                 ints("nodes_falsenodeids", children), ints("target_treeids", {0}), ints("target_nodeids", targets),
                 ints("target_ids", {0}), reals("target_weights", 1), number("n_targets", 1)},
                {},
                {},
                17,
                "ai.onnx.ml"};
  };
  const auto ml = [](const char* op, std::vector<std::string> attributes, const char* input = "x") {
    return Case{op, {input}, std::move(attributes), {}, {}, 17, "ai.onnx.ml"};
  };
  expect_refused(
      {tree({0}, {0}, {0}, {0}, 2, 1, "LEAF"),
       tree({0}, {0}, {0}, {0}, 1, 2, "LEAF"),
       tree({0, 1}, {0}, {0}, {0}, 2, 2, "LEAF"),
       tree({0}, {0}, {7}, {0}, 1, 1, "BRANCH_LEQ"),
       tree({0}, {0}, {0}, {0}, 1, 1, "BRANCH_LEQ"),
       tree({0, 0}, {0, 0}, {0, 0}, {0}, 2, 2, "LEAF"),
       tree({0}, {0}, {0}, {9}, 1, 1, "LEAF"),
       tree({0}, {0}, {0}, {0}, 1, 1, "NO_SUCH_MODE"),
       ml("LinearClassifier", {reals("coefficients", 5), reals("intercepts", 2), ints("classlabels_ints", {0, 1})}),
       ml("LinearRegressor", {reals("coefficients", 3), number("targets", 2)}),
       ml("LinearRegressor", {reals("coefficients", 3), number("targets", 0)}),
       ml("SVMRegressor", {reals("coefficients", 2), reals("support_vectors", 3), number("n_supports", 2),
                           reals("rho", 1), reals("kernel_params", 3)}),
       ml("SVMRegressor", {reals("coefficients", 1), reals("support_vectors", 8), number("n_supports", -1),
                           reals("rho", 1), reals("kernel_params", 3)}),
       ml("SVMClassifier", {reals("coefficients", 2), reals("support_vectors", 8), ints("vectors_per_class", {5, 5}),
                            reals("rho", 1), ints("classlabels_ints", {0, 1}), reals("kernel_params", 3)}),
       ml("Scaler", {reals("offset", 3), reals("scale", 5)}),
       ml("Imputer", {reals("imputed_value_floats", 3)}),
       ml("LabelEncoder", {reals("keys_floats", 3), ints("values_int64s", {1, 2})}, "n"),
       ml("OneHotEncoder", {}, "n"),
       ml("OneHotEncoder", {texts("cats_strings", 2, "a")}, "n"),
       ml("FeatureVectorizer", {ints("inputdimensions", {-1})}, "n"),
       ml("Normalizer", {W::text_attr("norm", "L9")})});
}

}  // namespace
}  // namespace hone
