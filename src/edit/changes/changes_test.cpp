// SPDX-License-Identifier: Apache-2.0
//
// Edits one by one. What they do to whole models is tested through `hone surgeon` (tests/test_surgeon.py).
#include "edit/changes/change.h"
#include "edit/changes/clean.h"
#include "edit/changes/compare.h"
#include "edit/changes/dynamic.h"
#include "edit/changes/fold.h"
#include "edit/changes/pattern.h"
#include "edit/changes/simplify.h"
#include "edit/edit_testing.h"
#include "edit/infer.h"

namespace hone::edit {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// y = relu(x), z = neg(relu(x)).
Model fork() {
  return model_of(
      {.nodes = {W::node("Relu", {"x"}, {"h"}, {}, "r"), W::node("Neg", {"h"}, {"y"}), W::node("Abs", {"h"}, {"z"})},
       .inputs = {vector_of("x")},
       .outputs = {vector_of("y"), vector_of("z")}});
}

template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(EditClean, RemovesWhatNoOutputDependsOn) {
  Model model = fork();
  model.graph.outputs.pop_back();
  EXPECT_EQ(clean(model), 1u);
  EXPECT_THAT(ops(model.graph.nodes), ElementsAre("Relu", "Neg"));
}

TEST(EditClean, ABodyKeepsWhatItReadsAlive) {
  const std::string body =
      W::graph({.nodes = {W::node("Neg", {"h"}, {"a"}), W::node("Exp", {"h"}, {"dead"})}, .outputs = {vector_of("a")}});
  Model model = model_of({.nodes = {W::node("Relu", {"x"}, {"h"}),
                                    W::node("If", {"go"}, {"y"},
                                            {W::graph_attr("then_branch", body), W::graph_attr("else_branch", body)})},
                          .inputs = {vector_of("x"), W::value("go", 9, {})},
                          .outputs = {vector_of("y")}});
  EXPECT_EQ(clean(model), 2u) << "one in each body";
  EXPECT_THAT(ops(model.graph.nodes), ElementsAre("Relu", "If"));
}

TEST(EditClean, SortsAndTellsCycles) {
  Model model = fork();
  std::ranges::reverse(model.graph.nodes);
  sort_nodes(model);
  EXPECT_EQ(model.graph.nodes[0].op_type, "Relu");
  model.graph.nodes[0].inputs = {"y"};
  EXPECT_THAT(refusal([&] { sort_nodes(model); }), HasSubstr("r -> Neg"));
}

TEST(EditChange, UsesAreReplacedInBodiesToo) {
  const std::string body = W::graph({.nodes = {W::node("Neg", {"h"}, {"a"})}, .outputs = {vector_of("a")}}),
                    hides = W::graph({.nodes = {W::node("Abs", {"x"}, {"h"}), W::node("Neg", {"h"}, {"b"})},
                                      .outputs = {vector_of("b")}});
  Model model = model_of({.nodes = {W::node("Relu", {"x"}, {"h"}),
                                    W::node("If", {"go"}, {"y"},
                                            {W::graph_attr("then_branch", body), W::graph_attr("else_branch", hides)})},
                          .inputs = {vector_of("x"), W::value("go", 9, {})},
                          .outputs = {vector_of("y"), vector_of("h")}});
  replace_uses(model.graph, "h", "x");
  const Node& choice = model.graph.nodes[1];
  EXPECT_EQ(choice.attributes[0].bodies[0]->nodes[0].inputs[0], "x");
  EXPECT_EQ(choice.attributes[1].bodies[0]->nodes[1].inputs[0], "h") << "the body's own";
  EXPECT_EQ(model.graph.outputs[1].name, "h");
  EXPECT_EQ(model.graph.nodes[0].outputs[0], "h");
}

TEST(EditFold, ComputesWhatFollowsFromTheModel) {
  Model model = model_of(
      {.nodes = {W::node("Add", {"w", "w"}, {"v"}), W::node("Shape", {"x"}, {"s"}), W::node("Mul", {"x", "v"}, {"y"})},
       .initializers = {W::raw_tensor("w", 1, {2}, floats(2, 3))},
       .inputs = {vector_of("x")},
       .outputs = {vector_of("y"), W::value("s", 7, {W::dim(1)})}});
  EXPECT_EQ(fold_constants(model, {}).folded, 1u) << "outputs keep their nodes";
  EXPECT_THAT(ops(model.graph.nodes), ElementsAre("Shape", "Mul"));
  const auto made = std::ranges::find(model.graph.weights, "v", &Weight::name);
  ASSERT_NE(made, model.graph.weights.end());
  EXPECT_EQ(tensor_of(model, *made).real(1), 6);
}

Model casts(int64_t through, int64_t back) {
  return model_of(
      {.nodes = {W::node("Cast", {"x"}, {"a"}, {W::integer_attr("to", through)}),
                 W::node("Cast", {"a"}, {"b"}, {W::integer_attr("to", back)}), W::node("Neg", {"b"}, {"y"})},
       .inputs = {W::value("x", 7, {W::dim(2)})},
       .outputs = {W::value("y", static_cast<int>(back), {W::dim(2)})}});
}

TEST(EditSimplify, CastsGoWhereNoValueChanges) {
  constexpr int64_t kFloat = 1, kInt32 = 6, kInt64 = 7, kDouble = 11;
  Model same = casts(kInt64, kInt64);
  EXPECT_EQ(drop_casts(same), 2u);
  for (const int64_t narrow : {kFloat, kInt32, kDouble}) {
    Model model = casts(narrow, kInt64);
    EXPECT_EQ(drop_casts(model), 0u) << "not each integer of 64 bits is one of " << narrow;
  }
}

TEST(EditSimplify, IfsWithAKnownConditionBecomeTheirBranch) {
  const auto branch = [](const std::string& op) {
    return W::graph({.nodes = {W::node(op, {"x", "w"}, {"t"})},
                     .initializers = {W::raw_tensor("w", 1, {2}, floats(2))},
                     .outputs = {vector_of("t")}});
  };
  for (const bool condition : {true, false}) {
    Model model = model_of(
        {.nodes = {W::node("If", {"c"}, {"y"},
                           {W::graph_attr("then_branch", branch("Add")), W::graph_attr("else_branch", branch("Sub"))}),
                   W::node("Mul", {"y", "w"}, {"t"})},
         .initializers = {W::raw_tensor("c", 9, {}, std::string(1, condition ? '\x7f' : '\0')),
                          W::raw_tensor("w", 1, {2}, floats(2, 2))},
         .inputs = {vector_of("x")},
         .outputs = {vector_of("t")}});
    EXPECT_EQ(flatten_ifs(model), 1u);
    EXPECT_THAT(ops(model.graph.nodes), ElementsAre(condition ? "Add" : "Sub", "Mul"));
    EXPECT_THAT(model.graph.nodes[0].outputs, ElementsAre("y"));
    EXPECT_EQ(model.graph.weights.size(), 3u);
    EXPECT_NE(model.graph.nodes[0].inputs[1], "w") << "the branch's own weight has another name now";
    EXPECT_TRUE(onnx::survey_onnx(Blob::copy(encode(model).text()), {}).problems.empty());
  }
  Model open = model_of(
      {.nodes = {W::node("If", {"c"}, {"y"},
                         {W::graph_attr("then_branch", branch("Add")), W::graph_attr("else_branch", branch("Sub"))})},
       .inputs = {vector_of("x"), W::value("c", 9, {})},
       .outputs = {vector_of("y")}});
  EXPECT_EQ(flatten_ifs(open), 0u);
}

TEST(EditPattern, SeveralResultsAreFoundTogether) {
  const Model model = fork();
  EXPECT_TRUE(find_matches(model.graph, parse_pattern("Neg(Relu($x))")).empty()) << "Abs reads what is inside";
  const std::vector<Match> found = find_matches(model.graph, parse_pattern("$h = Relu($x); Neg($h); Abs($h)"));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].nodes[0], 1u) << "the node of the first result";
  EXPECT_THAT(found[0].nodes, UnorderedElementsAre(0, 1, 2));
  EXPECT_EQ(found[0].tensors.at("x"), "x");
  EXPECT_EQ(found[0].tensors.at("h"), "h");
  EXPECT_EQ(find_matches(model.graph, parse_pattern("$h = Relu($x); Neg($h); $h")).size(), 1u);
}

TEST(EditPattern, ResultsKeepTheirNames) {
  Model model = fork();
  EXPECT_EQ(replace_matches(model, parse_pattern("$h = Relu($x); Neg($h); Abs($h)"),
                            parse_pattern("$t = Exp($x); Sin($t); Cos($t)")),
            1u);
  ASSERT_THAT(ops(model.graph.nodes), ElementsAre("Exp", "Sin", "Cos"));
  EXPECT_THAT(model.graph.nodes[1].outputs, ElementsAre("y"));
  EXPECT_THAT(model.graph.nodes[2].outputs, ElementsAre("z"));
}

TEST(EditPattern, WhatCannotBeReadIsTold) {
  for (const char* text : {"", "$x", "Relu", "Relu($x", "Relu($x))", "Relu($x);", "$a = $b; Relu($a)", "= Relu($x)",
                           "Relu[k($x)", "$a, = Relu($x)"})
    EXPECT_NE(refusal([&] { (void)parse_pattern(text); }), "") << text;
}

TEST(EditDynamic, ConstantSizesFollowTheInput) {
  Model model =
      model_of({.nodes = {W::node("Expand", {"token", "shape"}, {"tokens"}),
                          W::node("Concat", {"tokens", "x"}, {"y"}, {W::integer_attr("axis", 1)})},
                .initializers = {W::raw_tensor("token", 1, {1, 1}, floats(1)), W::integers("shape", {2}, {2, 1})},
                .inputs = {W::value("x", 1, {W::dim(2), W::dim(3)})},
                .outputs = {W::value("y", 1, {W::dim(2), W::dim(4)})}});
  const OpenedSizes opened = open_sizes(model, {{"x", 0, "N"}});
  EXPECT_THAT(opened.others, ElementsAre("Expand_0"));
  EXPECT_TRUE(opened.fixed.empty());
  EXPECT_THAT(ops(model.graph.nodes), Contains("Shape"));
  EXPECT_EQ(sizes_text(type_of(model.graph.outputs[0])), "('N', 4)");
}

TEST(EditCompare, FunctionsAreComparedByTheirNodes) {
  const auto model = [](const std::string& op) {
    return model_of({.nodes = {W::node("F", {"x"}, {"y"}, {}, "f", "local")},
                     .inputs = {vector_of("x")},
                     .outputs = {vector_of("y")}},
                    {W::function("F", {"a"}, {"b"}, {W::node(op, {"a"}, {"b"})})});
  };
  EXPECT_TRUE(compare(model("Relu"), model("Relu")).empty());
  const ModelDifference difference = compare(model("Relu"), model("Abs"));
  ASSERT_EQ(difference.changed.size(), 1u);
  EXPECT_THAT(difference.changed[0].first, HasSubstr("in function local::F"));
  EXPECT_THAT(difference.changed[0].second, HasSubstr("op Relu -> Abs"));
  Model without = model("Relu");
  without.functions.clear();
  EXPECT_THAT(compare(model("Relu"), without).others, ElementsAre("function local::F removed"));
}

}  // namespace
}  // namespace hone::edit
