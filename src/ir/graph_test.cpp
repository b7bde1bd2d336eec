// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include <gtest/gtest.h>

#include "ir/key.h"
#include "ir/op.h"

namespace hone {
namespace {

const OpDef kAdd{.name = "Add",
                 .min_inputs = 2,
                 .max_inputs = 2,
                 .pointwise = Expr::parse("x + y"),
                 .traits = {.commutative = true}};
const OpDef kRelu{.name = "Relu", .pointwise = Expr::parse("max(x, 0)")};
const OpDef kScale{.name = "Scale", .attrs = {{"factor", AttrKind::real, 2.0}}, .pointwise = Expr::parse("x * factor")};

const OpDef kFill{.name = "Fill", .attrs = {{"value", AttrKind::tensor}}, .pointwise = Expr::parse("x")};

const OpDef* lookup(std::string_view name) {
  for (const OpDef* op : {&kAdd, &kRelu, &kScale, &kFill})
    if (op->name == name) return op;
  return nullptr;
}

constexpr std::string_view kText = R"((%x: f32[N,2], %"odd name": f32[2]) {
  %c = constant f32[2]{0.5, -1}
  %a = Add(%x, %c) "first" ["node_a"]
  %b = Scale(%a) {factor=3.0}
  %y = Add(%b, %"odd name")
  return %y
}
)";

TEST(GraphText, PrintIsTheInverseOfParse) { EXPECT_EQ(print(parse_graph(kText, lookup)), kText); }

TEST(GraphText, KeepsTypesOfContainers) {
  constexpr std::string_view text = "(%x: sequence<map<string,f32[]>>, %y: optional<i64[*]>) {\n  return %x\n}\n";
  EXPECT_EQ(print(parse_graph(text, lookup)), text);
  EXPECT_THROW(parse_graph("(%x: map<f32,f32[]>) {\n  return %x\n}\n", lookup), Error);
}

TEST(GraphText, KeepsTensorAttributes) {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, {2}});
  Node* node = graph.add(kFill, {x}, {{"value", Tensor::of<int64_t>({2}, {3, -4})}});
  graph.set_outputs({node->output()});
  const std::string text = print(graph);
  EXPECT_EQ(print(parse_graph(text, lookup)), text);
  EXPECT_EQ(deserialize(serialize(graph), lookup).nodes()[0]->attrs.tensor("value").integers(),
            (std::vector<int64_t>{3, -4}));
}

TEST(GraphText, SaysTheLineOfAMistake) {
  try {
    parse_graph("(%x: f32[2]) {\n  %y = Nothing(%x)\n}", lookup);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos) << error.what();
  }
}

TEST(GraphText, SerializesWithData) {
  const Graph graph = parse_graph("(%x: f32[2,20]) {\n %c = constant f32[20]!0123\n %y = Add(%x, %c)\n}", lookup);
  const Graph copy = deserialize(serialize(graph), lookup);
  const std::vector<Tensor> inputs = random_inputs(graph, 3);
  const std::vector<Tensor> a = evaluate(graph, inputs), b = evaluate(copy, inputs);
  EXPECT_TRUE(std::ranges::equal(a[0].bytes(), b[0].bytes()));
  const Blob bytes = serialize(graph);
  for (size_t cut = 0; cut < bytes.size(); cut += 7)
    EXPECT_THROW(deserialize(Blob::copy(bytes.bytes().first(cut)), lookup), Error) << cut;
}

TEST(Graph, EvaluatesWithBroadcasting) {
  const Graph graph = parse_graph(kText, lookup);
  const Tensor x = Tensor::of<float>({2, 2}, {1, 2, 3, 4}), z = Tensor::of<float>({2}, {10, 20});
  const Tensor inputs[] = {x, z};
  const std::vector<Tensor> outputs = evaluate(graph, inputs);
  const float expected[] = {14.5, 23, 20.5, 29};
  EXPECT_TRUE(std::ranges::equal(outputs[0].data<float>(), expected));
}

TEST(Graph, ReplaceMovesUsesAndOutputNames) {
  Graph graph = parse_graph(kText, lookup);
  Node* last = graph.nodes().back();
  Node* relu = graph.insert(last, kRelu, {last->inputs[0]});
  graph.replace(last->output(), relu->output());
  EXPECT_EQ(graph.erase_dead(), 1u);
  graph.verify();
  EXPECT_EQ(graph.outputs()[0]->name, "y");
  EXPECT_EQ(graph.outputs()[0]->producer, relu);
}

TEST(Graph, KeysIgnoreNamesAndWeights) {
  const auto key = [](std::string_view text) { return structure_key(parse_graph(text, lookup)); };
  EXPECT_EQ(key("(%x: f32[2]) {\n %c = constant f32[2]{1, 2}\n %y = Add(%x, %c)\n}"),
            key("(%u: f32[2]) {\n %w = constant f32[2]{3, 4}\n %v = Add(%u, %w) \"n\"\n}"));
  EXPECT_NE(key("(%x: f32[2]) {\n %y = Scale(%x) {factor=1.0}\n}"),
            key("(%x: f32[2]) {\n %y = Scale(%x) {factor=2.0}\n}"));
}

TEST(Graph, KeysCanBeReadBack) {
  for (const std::string_view text : {"(%x: f32[2,3]) {\n %c = constant f32[3]{1, 2, 3}\n %n = constant f32[]{0.5}\n "
                                      "%a = Add(%x, %c)\n %y = Add(%a, %n)\n}",
                                      "(%x: f32[40], %z: f32[40]) {\n %c = constant f32[40] !a\n %s = Scale(%x) "
                                      "{factor=1e-05}\n %a = Add(%s, %c)\n %b = "
                                      "Add(%z, %s)\n return %b, %a\n}",
                                      "(%x: f32[2]) {\n %y = Scale(%x)\n}"}) {
    const std::string key = structure_key(parse_graph(text, lookup));
    EXPECT_EQ(structure_key(parse_key(key, lookup)), key);
    for (size_t length = 0; length < key.size(); ++length) {
      const std::string part = key.substr(0, length);
      try {
        EXPECT_EQ(structure_key(parse_key(part, lookup)), part);  // with one result less it is a key, too
      } catch (const Error& error) {
        EXPECT_NE(error.message(), "") << part;
      }
    }
  }
}

TEST(Graph, SpecializeReplacesSymbols) {
  const Graph graph = parse_graph(kText, lookup).specialize({{"N", 5}});
  EXPECT_EQ(graph.outputs()[0]->type.shape, Shape({5, 2}));
}

TEST(Graph, RefusesUnknownAttributesAndMissingOperands) {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, {2}});
  EXPECT_THROW(graph.add(kRelu, {x}, {{"alpha", 1.0}}), Error);
  EXPECT_THROW(graph.add(kAdd, {x}), Error);
  EXPECT_THROW(graph.add(kAdd, {x, graph.add_constant(Tensor::of<float>({3}, {1, 2, 3}))}), Error);
  EXPECT_TRUE(x->uses.empty());
}

TEST(Graph, SortFindsCycles) {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, {2}});
  Node* a = graph.add(kRelu, {x});
  Node* b = graph.add(kRelu, {a->output()});
  graph.set_input(a, 0, b->output());
  EXPECT_THROW(graph.sort(), Error);
}

}  // namespace
}  // namespace hone
