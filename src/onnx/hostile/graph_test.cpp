// SPDX-License-Identifier: Apache-2.0
//
// Graphs in graphs and functions in functions: wrong interfaces, recursion, nesting without end, growth without end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/limits.h"
#include "onnx/hostile/testing.h"

namespace hone {
namespace {

using W = onnx::ModelWriter;
using onnx::refusal;
using onnx::refusal_of_nodes;
using onnx::vector_value;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string nested(int depth) {
  std::string graph = W::graph({.nodes = {W::node("Relu", {"x"}, {"r"})}, .outputs = {vector_value("r")}});
  for (int i = 0; i < depth; ++i)
    graph = W::graph({.nodes = {W::node("If", {"c"}, {"r"},
                                        {W::graph_attr("then_branch", graph),
                                         W::graph_attr("else_branch", W::graph({.nodes = {W::node("Neg", {"x"}, {"r"})},
                                                                                .outputs = {vector_value("r")}}))})},
                      .outputs = {vector_value("r")}});
  return graph;
}
Blob nested_model(int depth) {
  return W::model(W::graph(
      {.nodes = {W::node("If", {"c"}, {"y"},
                         {W::graph_attr("then_branch", nested(depth)), W::graph_attr("else_branch", nested(0))})},
       .inputs = {W::value("c", 9, {}), vector_value("x")},
       .outputs = {vector_value("y")}}));
}
TEST(HostileModel, NestingHasALimitThatIsSaid) {
  EXPECT_EQ(refusal(nested_model(40)), "");
  EXPECT_THAT(refusal(nested_model(2000)), HasSubstr("64"));
}

TEST(HostileModel, RecursiveFunctionsAreRefused) {
  const auto call = [](const std::string& name) { return W::node(name, {"a"}, {"b"}, {}, "", "local"); };
  EXPECT_THAT(
      refusal_of_nodes({W::node("F", {"x"}, {"y"}, {}, "f", "local")}, {W::function("F", {"a"}, {"b"}, {call("F")})}),
      HasSubstr("calls itself"));
  EXPECT_THAT(
      refusal_of_nodes({W::node("F", {"x"}, {"y"}, {}, "f", "local")},
                       {W::function("F", {"a"}, {"b"}, {call("G")}), W::function("G", {"a"}, {"b"}, {call("F")})}),
      HasSubstr("calls itself"));
}
TEST(HostileModel, FunctionsNestedTooDeepAreRefused) {
  std::vector<std::string> functions{W::function("F0", {"a"}, {"b"}, {W::node("Relu", {"a"}, {"b"})})};
  for (int i = 1; i < 100; ++i)
    functions.push_back(W::function(fmt::format("F{}", i), {"a"}, {"b"},
                                    {W::node(fmt::format("F{}", i - 1), {"a"}, {"b"}, {}, "", "local")}));
  EXPECT_THAT(refusal_of_nodes({W::node("F99", {"x"}, {"y"}, {}, "", "local")}, functions), HasSubstr("64"));
}

TEST(HostileModel, ChainsOfFunctionsDoNotUseUpTheStack) {
  std::vector<std::string> functions{W::function("F0", {"a"}, {"b"}, {W::node("Relu", {"a"}, {"b"})})};
  for (int i = 1; i < 100'000; ++i)
    functions.push_back(W::function(fmt::format("F{}", i), {"a"}, {"b"},
                                    {W::node(fmt::format("F{}", i - 1), {"a"}, {"b"}, {}, "", "local")}));
  EXPECT_THAT(refusal_of_nodes({W::node("F99999", {"x"}, {"y"}, {}, "", "local")}, functions), HasSubstr("64"));
}
TEST(HostileModel, RecursionThroughABodyIsRefused) {
  const std::string body =
      W::graph({.nodes = {W::node("F", {"a"}, {"r"}, {}, "", "local")}, .outputs = {vector_value("r")}});
  const std::string condition =
      W::node("Constant", {}, {"c"}, {W::tensor_attr("value", W::raw_tensor("", 9, {}, "\x01"))});
  const std::string choice =
      W::node("If", {"d"}, {"b"}, {W::graph_attr("then_branch", body), W::graph_attr("else_branch", body)});
  const std::string unknown = W::node("Greater", {"s", "s"}, {"d"}),
                    sum = W::node("ReduceSum", {"a"}, {"s"}, {W::integer_attr("keepdims", 0)});
  EXPECT_THAT(refusal_of_nodes({W::node("F", {"x"}, {"y"}, {}, "f", "local")},
                               {W::function("F", {"a"}, {"b"}, {sum, unknown, choice})}),
              AllOf(HasSubstr("calls itself"), HasSubstr("node f")));
}
TEST(HostileModel, CallsAndBodiesInTurnShareTheLimit) {
  std::vector<std::string> functions{W::function("F0", {"a", "c"}, {"b"}, {W::node("Relu", {"a"}, {"b"})})};
  const std::string other = W::graph({.nodes = {W::node("Neg", {"a"}, {"r"})}, .outputs = {vector_value("r")}});
  for (int i = 1; i < 60; ++i) {
    const std::string body =
        W::graph({.nodes = {W::node(fmt::format("F{}", i - 1), {"a", "c"}, {"r"}, {}, "", "local")},
                  .outputs = {vector_value("r")}});
    functions.push_back(W::function(
        fmt::format("F{}", i), {"a", "c"}, {"b"},
        {W::node("If", {"c"}, {"b"}, {W::graph_attr("then_branch", body), W::graph_attr("else_branch", other)})}));
  }
  const std::string message =
      refusal(W::model(W::graph({.nodes = {W::node("F59", {"x", "c"}, {"y"}, {}, "deep", "local")},
                                 .inputs = {W::value("c", 9, {}), vector_value("x")},
                                 .outputs = {vector_value("y")}}),
                       functions));
  EXPECT_THAT(message, AllOf(HasSubstr("64 deep"), HasSubstr("node deep")));
}

// ---- growth ----

TEST(HostileModel, FunctionsThatDoubleAreStoppedInTime) {
  std::vector<std::string> functions{W::function("F0", {"a"}, {"b"}, {W::node("Relu", {"a"}, {"b"})})};
  for (int i = 1; i < 60; ++i) {
    const std::string callee = fmt::format("F{}", i - 1);
    functions.push_back(
        W::function(fmt::format("F{}", i), {"a"}, {"b"},
                    {W::node(callee, {"a"}, {"t"}, {}, "", "local"), W::node(callee, {"t"}, {"b"}, {}, "", "local")}));
  }
  EXPECT_THAT(refusal_of_nodes({W::node("F59", {"x"}, {"y"}, {}, "", "local")}, functions),
              HasSubstr(std::to_string(kMaxNodes)));
}

/// Loops in each other, each of which hands on a value that grows.
std::string growing_loop(int depth) {
  const std::vector<std::string> inputs{W::value("i", 7, {}), W::value("go", 9, {}), W::value("s", 1, {W::dim("K")})};
  std::string inner = W::node("Concat", {"s", "x"}, {"t"}, {W::integer_attr("axis", 0)});
  if (depth > 0) inner = W::node("Loop", {"n", "", "s"}, {"t"}, {W::graph_attr("body", growing_loop(depth - 1))});
  return W::graph({.nodes = {W::node("Identity", {"go"}, {"on"}), inner,
                             W::node("Concat", {"t", "x"}, {"u"}, {W::integer_attr("axis", 0)})},
                   .inputs = inputs,
                   .outputs = {W::value("on", 9, {}), vector_value("u")}});
}
TEST(HostileModel, LoopsInLoopsAreInferredInTime) {
  const Blob model =
      W::model(W::graph({.nodes = {W::node("Loop", {"n", "", "x"}, {"y"}, {W::graph_attr("body", growing_loop(50))})},
                         .inputs = {W::value("n", 7, {}), W::value("x", 1, {W::dim("N")})},
                         .outputs = {vector_value("y")}}));
  const Graph graph = import_onnx_bytes(model, silent_logger()).graph;
  graph.specialize({{"N", 2}});
}
TEST(HostileModel, BranchesInBranchesAreInferredInTime) {
  const Graph graph = import_onnx_bytes(nested_model(60), silent_logger()).graph;
  graph.specialize({{"N", 2}}).specialize({});
}

TEST(HostileModel, ArithmeticThatDoublesExpressionsIsGivenUp) {
  std::vector<std::string> nodes{W::node("Shape", {"x"}, {"v0"})};
  for (int i = 0; i < 80; ++i) {
    nodes.push_back(W::node("Div", {fmt::format("v{}", i), "three"}, {fmt::format("d{}", i)}));
    nodes.push_back(W::node("Add", {fmt::format("v{}", i), fmt::format("d{}", i)}, {fmt::format("v{}", i + 1)}));
  }
  nodes.push_back(W::node("Cast", {"v80"}, {"y"}, {W::integer_attr("to", 1)}));
  const std::string data = W::graph({.nodes = nodes,
                                     .initializers = {W::integers("three", {1}, {3})},
                                     .inputs = {W::value("x", 1, {W::dim("N")})},
                                     .outputs = {vector_value("y")}});
  EXPECT_EQ(refusal(W::model(data)), "") << "what is data, not a size, stays valid";
}
TEST(HostileModel, SizesThatDoubleAreLeftToTheData) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 80; ++i) {  // each is as long as the one before, joined with the size of its halves
    nodes.push_back(W::node("MaxPool", {fmt::format("v{}", i)}, {fmt::format("h{}", i)},
                            {W::integers_attr("kernel_shape", {1}), W::integers_attr("strides", {3})},
                            fmt::format("pool{}", i)));
    nodes.push_back(W::node("Concat", {fmt::format("v{}", i), fmt::format("h{}", i)}, {fmt::format("v{}", i + 1)},
                            {W::integer_attr("axis", 2)}, fmt::format("join{}", i)));
  }
  EXPECT_EQ(refusal(W::model(W::graph({.nodes = nodes,
                                       .inputs = {W::value("v0", 1, {W::dim(1), W::dim(1), W::dim("N")})},
                                       .outputs = {vector_value("v80")}}))),
            "");
}
TEST(HostileModel, ProductsOfManySumsAreRefusedInTime) {
  std::vector<std::string> nodes, inputs, dims;
  for (int i = 0; i < 30; ++i) {
    inputs.push_back(W::value(fmt::format("x{}", i), 1, {W::dim(fmt::format("N{}", i))}));
    nodes.push_back(W::node("Pad", {fmt::format("x{}", i), "one"}, {fmt::format("p{}", i)}));
    nodes.push_back(W::node("Shape", {fmt::format("p{}", i)}, {fmt::format("s{}", i)}));
    dims.push_back(fmt::format("s{}", i));
  }
  nodes.push_back(W::node("Concat", dims, {"shape"}, {W::integer_attr("axis", 0)}));
  nodes.push_back(W::node("ConstantOfShape", {"shape"}, {"huge"}));
  nodes.push_back(W::node("Reshape", {"huge", "flat"}, {"y"}, {}, "flatten"));
  EXPECT_THAT(
      refusal(W::model(W::graph({.nodes = nodes,
                                 .initializers = {W::integers("one", {2}, {0, 1}), W::integers("flat", {1}, {-1})},
                                 .inputs = inputs,
                                 .outputs = {vector_value("y")}}))),
      AllOf(HasSubstr(std::to_string(kMaxSizeText)), HasSubstr("node flatten")));
}

TEST(HostileModel, LongNamesAreRefused) {
  const std::string name(kMaxNameBytes + 1, 'n');
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {"x"}, {"y"}, {}, name)}), HasSubstr(std::to_string(kMaxNameBytes)));
  EXPECT_THAT(refusal_of_nodes({W::node(name, {"x"}, {"y"})}), HasSubstr(std::to_string(kMaxNameBytes)));
  EXPECT_EQ(refusal_of_nodes({W::node("Relu", {"x"}, {"y"}, {}, name.substr(1))}), "");
}
TEST(HostileModel, RanksHaveALimit) {
  const auto model = [](size_t rank) {
    return W::model(W::graph({.nodes = {W::node("Relu", {"x"}, {"y"}, {}, "r")},
                              .inputs = {W::value("x", 1, std::vector<std::string>(rank, W::dim(1)))},
                              .outputs = {vector_value("y")}}));
  };
  EXPECT_EQ(onnx::refusal_when_run(model(kMaxRank)), "");
  EXPECT_THAT(refusal(model(kMaxRank + 1)), AllOf(HasSubstr("33 axes"), HasSubstr("'x'")));
}

// ---- interfaces of bodies ----

std::string refusal_of_loop(const W::GraphParts& body, const std::vector<std::string>& outputs = {"y"}) {
  return refusal(W::model(
      W::graph({.nodes = {W::node("Loop", {"n", "", "x"}, outputs, {W::graph_attr("body", W::graph(body))}, "turn")},
                .inputs = {W::value("n", 7, {}), vector_value("x")},
                .outputs = {vector_value("y")}})));
}
TEST(HostileBodies, MustTakeWhatTheirNodeGives) {
  const std::string step = W::node("Identity", {"go"}, {"on"}), pass = W::node("Relu", {"s"}, {"t"});
  const std::string i = W::value("i", 7, {}), go = W::value("go", 9, {}), s = vector_value("s"),
                    on = W::value("on", 9, {}), t = vector_value("t");
  EXPECT_EQ(refusal_of_loop({.nodes = {step, pass}, .inputs = {i, go, s}, .outputs = {on, t}}), "");
  EXPECT_THAT(refusal_of_loop({.nodes = {step}, .inputs = {i, go}, .outputs = {on}}),
              AllOf(HasSubstr("2 inputs"), HasSubstr("turn")));
  EXPECT_THAT(refusal_of_loop({.nodes = {step, pass}, .inputs = {i, go, s, vector_value("q")}, .outputs = {on, t}}),
              HasSubstr("4 inputs"));
  EXPECT_THAT(refusal_of_loop({.nodes = {step, pass}, .inputs = {i, go, s}, .outputs = {on}}), HasSubstr("turn"));
  EXPECT_THAT(refusal_of_loop({.nodes = {step, pass}, .inputs = {i, go, s}, .outputs = {}}), HasSubstr("turn"));
  EXPECT_THAT(refusal_of_loop({.nodes = {step, pass}, .inputs = {i, go, s}, .outputs = {on, t}}, {"y", "z", "u"}),
              HasSubstr("turn"));
  EXPECT_THAT(refusal_of_loop({.nodes = {step}, .inputs = {i, go, s}, .outputs = {on, t}}),
              AllOf(HasSubstr("'t'"), HasSubstr("turn")));
  EXPECT_THAT(
      refusal_of_loop({.nodes = {pass, W::node("Relu", {"later"}, {"on"})}, .inputs = {i, go, s}, .outputs = {on, t}}),
      HasSubstr("'later'"));
}
TEST(HostileBodies, BranchesMustGiveWhatTheirNodeNames) {
  const auto refusal_of_if = [](const std::vector<std::string>& no,
                                const std::vector<std::string>& attributes = {"then_branch", "else_branch"}) {
    std::vector<std::string> results, graphs;
    for (const std::string& name : no) results.push_back(vector_value(name));
    const std::string yes = W::graph({.nodes = {W::node("Neg", {"x"}, {"p"})}, .outputs = {vector_value("p")}}),
                      other = W::graph(
                          {.nodes = {W::node("Relu", {"x"}, {"q"}), W::node("Abs", {"x"}, {"r"})}, .outputs = results});
    for (const std::string& name : attributes)
      graphs.push_back(W::graph_attr(name, name == "then_branch" ? yes : other));
    return refusal(W::model(W::graph({.nodes = {W::node("If", {"c"}, {"y"}, graphs, "choice")},
                                      .inputs = {W::value("c", 9, {}), vector_value("x")},
                                      .outputs = {vector_value("y")}})));
  };
  EXPECT_EQ(refusal_of_if({"q"}), "");
  EXPECT_THAT(refusal_of_if({"q", "r"}), HasSubstr("choice"));
  EXPECT_THAT(refusal_of_if({}), HasSubstr("choice"));
  EXPECT_THAT(refusal_of_if({"q"}, {"then_branch"}), HasSubstr("choice"));
  EXPECT_THAT(refusal_of_if({"q"}, {}), HasSubstr("choice"));
}
TEST(HostileBodies, ConditionsAndCountsAreOneElement) {
  const std::string body = W::graph({.nodes = {W::node("Neg", {"x"}, {"p"})}, .outputs = {vector_value("p")}});
  const auto refusal_of_condition = [&](const std::vector<std::string>& dims) {
    return onnx::refusal_when_run(W::model(W::graph(
        {.nodes = {W::node("If", {"c"}, {"y"}, {W::graph_attr("then_branch", body), W::graph_attr("else_branch", body)},
                           "choice")},
         .inputs = {W::value("c", 9, dims), vector_value("x")},
         .outputs = {vector_value("y")}})));
  };
  EXPECT_EQ(refusal_of_condition({W::dim(1)}), "");
  EXPECT_THAT(refusal_of_condition({W::dim(0)}), HasSubstr("choice"));
  EXPECT_THAT(refusal_of_condition({W::dim(3)}), HasSubstr("choice"));
}

// ---- names ----

TEST(HostileNames, UseBeforeDefinitionAndBlankNamesAreRefused) {
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {"y"}, {"y"}, {}, "self")}), HasSubstr("self"));
  EXPECT_THAT(refusal_of_nodes({W::node("Split", {"x"}, {"y", "y"}, {}, "both")}),
              AllOf(HasSubstr("both"), HasSubstr("'y'")));
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {""}, {"y"}, {}, "blank")}), HasSubstr("blank"));
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {"x"}, {""}, {}, "mute"), W::node("Relu", {"x"}, {"y"})}),
              HasSubstr("mute"));
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {"x", "x"}, {"y"}, {}, "two")}), HasSubstr("two"));
  EXPECT_THAT(refusal_of_nodes({W::node("Relu", {"x"}, {"y", "z"}, {}, "two")}), HasSubstr("two"));
}

}  // namespace
}  // namespace hone
