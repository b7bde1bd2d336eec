// SPDX-License-Identifier: Apache-2.0
//
// The importer on small models: names, sizes, constants, functions, bodies, and what it says while it works.
#include "onnx/importer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/model_writer.h"

namespace hone {
namespace {

using onnx::ModelWriter;
using W = ModelWriter;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ImportedModel import(const Blob& bytes) { return import_onnx_bytes(bytes, silent_logger()); }

std::string vector_value(const std::string& name, int64_t size = 2) { return W::value(name, 1, {W::dim(size)}); }

std::vector<float> floats(const Tensor& tensor) { return {tensor.data<float>().begin(), tensor.data<float>().end()}; }

TEST(Importer, KeepsNamesAndNumbersUnnamedNodes) {
  const ImportedModel model =
      import(W::model(W::graph({.nodes = {W::node("Relu", {"x"}, {"a"}, {}, "first"), W::node("Relu", {"a"}, {"y"})},
                                .inputs = {vector_value("x")},
                                .outputs = {vector_value("y")}})));
  ASSERT_EQ(model.graph.node_count(), 2u);
  EXPECT_EQ(model.graph.nodes()[0]->name, "first");
  EXPECT_EQ(model.graph.nodes()[1]->name, "Relu_1");
  EXPECT_THAT(model.graph.nodes()[1]->origin, ElementsAre("Relu_1"));
  EXPECT_EQ(model.graph.outputs()[0]->name, "y");
  EXPECT_EQ(model.summary.opset, 17);
  EXPECT_EQ(model.summary.ir_version, 8);
  EXPECT_EQ(model.summary.producer_name, "test");
}

TEST(Importer, MakesSymbolsOfOpenSizes) {
  const ImportedModel model = import(W::model(W::graph({.nodes = {W::node("Add", {"x", "z"}, {"y"})},
                                                        .inputs = {W::value("x", 1, {W::dim("batch size"), W::dim("")}),
                                                                   W::value("z", 1, {W::dim("batch size"), W::dim(3)})},
                                                        .outputs = {W::value("y", 1, {})}})));
  EXPECT_EQ(model.graph.inputs()[0]->type.text(), "f32[batch_size,x_1]");
  EXPECT_EQ(model.graph.inputs()[1]->type.text(), "f32[batch_size,3]");
  EXPECT_EQ(model.graph.outputs()[0]->type.text(), "f32[batch_size,3]");
}

TEST(Importer, FindsSizesThatANodeFixes) {
  const std::string axis = W::integer_attr("axis", 1);
  const ImportedModel model = import(
      W::model(W::graph({.nodes = {W::node("Concat", {"x", "w"}, {"c"}, {axis}), W::node("MatMul", {"a", "c"}, {"y"})},
                         .initializers = {W::raw_tensor("w", 1, {3, 2}, std::string(24, '\0'))},
                         .inputs = {W::value("x", 1, {W::dim("rows"), W::dim("open")}),
                                    W::value("a", 1, {W::dim("batch"), W::dim("inner")})},
                         .outputs = {W::value("y", 1, {})}})));
  EXPECT_EQ(model.graph.inputs()[0]->type.text(), "f32[3,open]");
  EXPECT_EQ(model.graph.inputs()[1]->type.text(), "f32[batch,3]");
  EXPECT_EQ(model.graph.outputs()[0]->type.text(), "f32[batch,open + 2]");
}

TEST(Importer, LeavesAlignedWeightsWhereTheyAre) {
  for (int shift = 0; shift < 4; ++shift) {  // one of four paddings aligns the raw data
    const Blob bytes =
        W::model(W::graph({.nodes = {W::node("Add", {"x", "w"}, {"y"})},
                           .initializers = {W::raw_tensor("w" + std::string(static_cast<size_t>(shift), '_'), 1, {2},
                                                          std::string(8, '\0')),
                                            W::raw_tensor("w", 1, {2}, std::string("\0\0\x80?\0\0\0@", 8))},
                           .inputs = {vector_value("x")},
                           .outputs = {vector_value("y")}}));
    if (shift == 0) continue;  // "w" twice: see hostile_test
    const ImportedModel model = import(bytes);
    const Tensor& w = *model.graph.nodes()[0]->input(1)->constant;
    EXPECT_THAT(floats(w), ElementsAre(1.0f, 2.0f));
    const std::byte* data = w.bytes().data();
    const bool inside = data >= bytes.data() && data < bytes.data() + bytes.size();
    const auto raw = bytes.text().find(std::string("\0\0\x80?\0\0\0@", 8));
    EXPECT_EQ(inside, reinterpret_cast<uintptr_t>(bytes.data() + raw) % 4 == 0);
  }
}

TEST(Importer, SortsNodesThatAreOutOfOrder) {
  const ImportedModel model =
      import(W::model(W::graph({.nodes = {W::node("Neg", {"a"}, {"y"}), W::node("Relu", {"x"}, {"a"})},
                                .inputs = {vector_value("x")},
                                .outputs = {vector_value("y")}})));
  EXPECT_EQ(model.graph.nodes()[0]->op_name(), "Relu");
}

TEST(Importer, GivesAnOutputThatIsAnInputANodeOfItsOwn) {
  const ImportedModel model = import(W::model(W::graph({.nodes = {W::node("Relu", {"x"}, {"y"})},
                                                        .inputs = {vector_value("x")},
                                                        .outputs = {vector_value("y"), vector_value("x")}})));
  EXPECT_EQ(model.graph.outputs()[1]->producer->op_name(), "Identity");
  EXPECT_EQ(model.graph.outputs()[1]->name, "x");
}

TEST(Importer, InlinesFunctionsWithTheirAttributes) {
  const std::string function = W::function(
      "Join", {"a", "b"}, {"c"},
      {W::node("Concat", {"a", "b"}, {"t"}, {W::reference_attr("axis", "where", 2)}), W::node("Relu", {"t"}, {"c"})});
  const std::string call = W::node("Join", {"x", "x"}, {"y"}, {W::integer_attr("where", 0)}, "call", "local");
  const ImportedModel model = import(
      W::model(W::graph({.nodes = {call}, .inputs = {vector_value("x")}, .outputs = {vector_value("y")}}), {function}));
  ASSERT_EQ(model.graph.node_count(), 2u);
  EXPECT_EQ(model.graph.nodes()[0]->name, "call/Concat_0");
  EXPECT_EQ(model.graph.outputs()[0]->type.text(), "f32[4]");
  const std::vector<Tensor> results = evaluate(model.graph, std::vector<Tensor>{Tensor::of<float>({2}, {-1.0f, 3.0f})});
  EXPECT_THAT(floats(results[0]), ElementsAre(0.0f, 3.0f, 0.0f, 3.0f));
}

/// If(c) with branches that take `x` from outside.
Blob conditional(const std::vector<std::string>& initializers, const std::vector<std::string>& inputs) {
  const std::string yes = W::graph({.nodes = {W::node("Neg", {"x"}, {"p"})}, .outputs = {vector_value("p")}});
  const std::string no = W::graph({.nodes = {W::node("Add", {"x", "x"}, {"q"})}, .outputs = {vector_value("q")}});
  return W::model(W::graph(
      {.nodes = {W::node("If", {"c"}, {"y"}, {W::graph_attr("then_branch", yes), W::graph_attr("else_branch", no)})},
       .initializers = initializers,
       .inputs = inputs,
       .outputs = {vector_value("y")}}));
}

TEST(Importer, MakesCapturedValuesExplicit) {
  const ImportedModel model = import(conditional({}, {W::value("c", 9, {}), vector_value("x")}));
  const Node* node = model.graph.nodes()[0];
  ASSERT_EQ(node->inputs.size(), 2u);
  EXPECT_EQ(node->input(1)->name, "x");
  EXPECT_EQ(node->attrs.integer("captures"), 1);
  for (const auto& body : node->bodies) ASSERT_EQ(body->inputs().size(), 1u);
  const Tensor x = Tensor::of<float>({2}, {1.0f, 2.0f});
  EXPECT_THAT(floats(evaluate(model.graph, std::vector<Tensor>{Tensor::scalar(true), x})[0]),
              ElementsAre(-1.0f, -2.0f));
  EXPECT_THAT(floats(evaluate(model.graph, std::vector<Tensor>{Tensor::scalar(false), x})[0]), ElementsAre(2.0f, 4.0f));
}

TEST(Importer, TakesOnlyTheBranchThatAConstantChooses) {
  const ImportedModel model = import(conditional({W::raw_tensor("c", 9, {}, "\x01")}, {vector_value("x")}));
  ASSERT_EQ(model.graph.node_count(), 1u);
  EXPECT_EQ(model.graph.nodes()[0]->op_name(), "Neg");
  EXPECT_EQ(model.graph.outputs()[0]->name, "y");
}

TEST(Importer, FindsTheLengthOfALoopThatRunsToItsEnd) {
  const std::string body = W::graph({.nodes = {W::node("Identity", {"go"}, {"on"}), W::node("Add", {"s", "x"}, {"t"}),
                                               W::node("Identity", {"t"}, {"each"})},
                                     .inputs = {W::value("i", 7, {}), W::value("go", 9, {}), vector_value("s")},
                                     .outputs = {W::value("on", 9, {}), vector_value("t"), vector_value("each")}});
  const ImportedModel model = import(
      W::model(W::graph({.nodes = {W::node("Loop", {"n", "", "x"}, {"last", "all"}, {W::graph_attr("body", body)})},
                         .initializers = {W::integers("n", {}, {3})},
                         .inputs = {vector_value("x")},
                         .outputs = {vector_value("last"), vector_value("all")}})));
  EXPECT_EQ(model.graph.outputs()[1]->type.text(), "f32[3,2]");
  const std::vector<Tensor> results = evaluate(model.graph, std::vector<Tensor>{Tensor::of<float>({2}, {1.0f, 10.0f})});
  EXPECT_THAT(floats(results[0]), ElementsAre(4.0f, 40.0f));
  EXPECT_THAT(floats(results[1]), ElementsAre(2.0f, 20.0f, 3.0f, 30.0f, 4.0f, 40.0f));
}

TEST(Importer, GivesALoopsBodyItsIterationAsTheListThatItDeclares) {
  const std::string body = W::graph(
      {.nodes = {W::node("Identity", {"go"}, {"on"}), W::node("Cast", {"i"}, {"f"}, {W::integer_attr("to", 1)}),
                 W::node("Concat", {"f", "f"}, {"ff"}, {W::integer_attr("axis", 0)}),
                 W::node("Add", {"s", "ff"}, {"t"})},
       .inputs = {W::value("i", 7, {W::dim(1)}), W::value("go", 9, {}), vector_value("s")},
       .outputs = {W::value("on", 9, {}), vector_value("t")}});
  const ImportedModel model =
      import(W::model(W::graph({.nodes = {W::node("Loop", {"n", "", "x"}, {"last"}, {W::graph_attr("body", body)})},
                                .initializers = {W::integers("n", {}, {4})},
                                .inputs = {vector_value("x")},
                                .outputs = {vector_value("last")}})));
  const std::vector<Tensor> results = evaluate(model.graph, std::vector<Tensor>{Tensor::of<float>({2}, {1.0f, 10.0f})});
  EXPECT_THAT(floats(results[0]), ElementsAre(7.0f, 16.0f));
}

TEST(Importer, SaysWhatItDoesInTrtexecsWords) {
  std::vector<std::string> lines;
  Logger log([&](Severity, std::string_view text) { lines.emplace_back(text); });
  log.set_threshold(Severity::verbose);
  import_onnx_bytes(W::model(W::graph({.nodes = {W::node("Add", {"x", "w"}, {"y"}, {}, "sum")},
                                       .initializers = {W::raw_tensor("w", 1, {2}, std::string(8, '\0'))},
                                       .inputs = {W::value("x", 1, {W::dim("N"), W::dim(2)})},
                                       .outputs = {vector_value("y")}})),
                    log);
  EXPECT_THAT(lines, Contains("Adding network input: x with dtype: float32, dimensions: (-1, 2)"));
  EXPECT_THAT(lines, Contains("Importing initializer: w"));
  EXPECT_THAT(lines, Contains("Parsing node: sum [Add]"));
  EXPECT_THAT(lines, Contains("Searching for input: x"));
  EXPECT_THAT(lines, Contains("sum [Add] inputs: [x -> (-1, 2)[FLOAT]], [w -> (2)[FLOAT]], "));
  EXPECT_THAT(lines, Contains("sum [Add] outputs: [y -> (-1, 2)[FLOAT]], "));
}

/// Twenty milliseconds are usual; quadratic work outlasts the test's limit.
TEST(Importer, ReadsTenThousandNodes) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 10000; ++i)
    nodes.push_back(W::node(i % 2 == 0 ? "Relu" : "Neg", {fmt::format("v{}", i)}, {fmt::format("v{}", i + 1)}));
  const Blob bytes = W::model(
      W::graph({.nodes = nodes, .inputs = {W::value("v0", 1, {W::dim("N")})}, .outputs = {vector_value("v10000")}}));
  EXPECT_EQ(import(bytes).graph.node_count(), 10000u);
}

}  // namespace
}  // namespace hone
