// SPDX-License-Identifier: Apache-2.0
//
// What a diagnosis says of models that are wrong in several places at once.
#include "onnx/diagnosis/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/model_writer.h"

namespace hone {
namespace {

using W = onnx::ModelWriter;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string vector_value(const std::string& name, int64_t size = 2) { return W::value(name, 1, {W::dim(size)}); }

Blob chain(std::vector<std::string> nodes, const std::string& output) {
  return W::model(
      W::graph({.nodes = std::move(nodes), .inputs = {vector_value("x")}, .outputs = {vector_value(output)}}));
}

/// "1 unknown: a", an entry a word for node, kind and name.
std::vector<std::string> entries_of(const Diagnosis& diagnosis) {
  constexpr const char* kKinds[] = {"file",      "graph", "operator", "version",  "operand",
                                    "attribute", "type",  "weight",   "unjudged", "name"};
  std::vector<std::string> texts;
  for (const Diagnostic& entry : diagnosis.entries)
    texts.push_back(fmt::format("{} {} {}", entry.node, kKinds[static_cast<size_t>(entry.problem)], entry.name));
  return texts;
}

TEST(Diagnosis, OfARightModelIsOneRunAndNoEntry) {
  const Diagnosis diagnosis =
      diagnose_onnx_bytes(chain({W::node("Relu", {"x"}, {"a"}), W::node("Relu", {"a"}, {"y"})}, "y"));
  EXPECT_THAT(diagnosis.entries, IsEmpty());
  ASSERT_EQ(diagnosis.nodes.size(), 2u);
  EXPECT_EQ(diagnosis.nodes[1].name, "Relu_1");
  EXPECT_THAT(diagnosis.runs, ElementsAre(ElementsAre(0, 1)));
}

TEST(Diagnosis, ListsEveryRefusedNodeWithItsKind) {
  const Diagnosis diagnosis = diagnose_onnx_bytes(
      chain({W::node("Relu", {"x"}, {"a"}, {}, "fine"), W::node("Mystery", {"a"}, {"b"}, {}, "odd"),
             W::node("Relu", {"x"}, {"c"}, {W::integer_attr("nonsense", 1)}, "attribute"),
             W::node("Add", {"x"}, {"d"}, {}, "operand"), W::node("Add", {"x", "nowhere"}, {"e"}, {}, "undefined"),
             W::node("Sum", {"b", "c", "d", "e"}, {"f"}, {}, "behind"), W::node("Relu", {"x"}, {"y"}, {}, "last")},
            "y"));
  EXPECT_THAT(entries_of(diagnosis), ElementsAre("1 operator odd", "2 attribute attribute", "3 operand operand",
                                                 "4 graph undefined", "5 unjudged behind"));
  EXPECT_THAT(diagnosis.runs, ElementsAre(ElementsAre(0), ElementsAre(5, 6)));
  EXPECT_THAT(diagnosis.entries[0].text, HasSubstr("Mystery"));
  EXPECT_THAT(diagnosis.entries[0].hint, HasSubstr("operators of your own"));
  EXPECT_EQ(diagnosis.entries[4].severity, Severity::info);
  EXPECT_EQ(diagnosis.entries[0].operator_type, "Mystery");
}

TEST(Diagnosis, TakesTheTypeThatTheFileGivesForWhatARefusedNodeMakes) {
  std::string graph = W::graph({.nodes = {W::node("Mystery", {"x"}, {"a"}, {}, "odd"),
                                          W::node("Concat", {"a", "x"}, {"b"}, {W::integer_attr("axis", 5)}, "axis"),
                                          W::node("Relu", {"a"}, {"y"}, {}, "fine")},
                                .inputs = {vector_value("x")},
                                .outputs = {vector_value("y")}});
  protozero::pbf_writer(graph).add_message(13, vector_value("a"));
  const Diagnosis diagnosis = diagnose_onnx_bytes(W::model(graph));
  ASSERT_EQ(diagnosis.entries.size(), 2u);
  EXPECT_EQ(diagnosis.entries[1].name, "axis");
  EXPECT_EQ(diagnosis.entries[1].severity, Severity::error);
  EXPECT_THAT(diagnosis.runs, ElementsAre(ElementsAre(2)));
}

TEST(Diagnosis, LooksIntoBodiesBehindWhatIsRefused) {
  const std::string body =
      W::graph({.nodes = {W::node("Puzzle", {"a"}, {"r"}, {}, "inner")}, .outputs = {vector_value("r")}});
  const Diagnosis diagnosis = diagnose_onnx_bytes(W::model(
      W::graph({.nodes = {W::node("Mystery", {"x"}, {"a"}, {}, "odd"),
                          W::node("If", {"c"}, {"y"},
                                  {W::graph_attr("then_branch", body), W::graph_attr("else_branch", body)}, "choose")},
                .inputs = {vector_value("x"), W::value("c", 9, {})},
                .outputs = {vector_value("y")}})));
  EXPECT_THAT(entries_of(diagnosis), ElementsAre("0 operator odd", "1 operator inner", "1 operator inner_2"));
  EXPECT_THAT(diagnosis.runs, IsEmpty());
}

TEST(Diagnosis, ADamagedConstantIsKnownByItsTypeAndAnUnsupportedInputIsNot) {
  const Diagnosis diagnosis =
      diagnose_onnx_bytes(W::model(W::graph({.nodes = {W::node("Add", {"x", "w"}, {"a"}, {}, "reads"),
                                                       W::node("Relu", {"odd"}, {"b"}), W::node("Relu", {"x"}, {"y"})},
                                             .initializers = {W::raw_tensor("w", 1, {2}, "abc")},
                                             .inputs = {vector_value("x"), W::value("odd", 14, {W::dim(2)})},
                                             .outputs = {vector_value("y")}})));
  EXPECT_THAT(entries_of(diagnosis), ElementsAre("-1 type ", "-1 weight ", "1 unjudged Relu_1"));
  EXPECT_THAT(diagnosis.entries[1].text, HasSubstr("initialiser 'w': "));
  EXPECT_EQ(diagnosis.entries[2].severity, Severity::error);
  EXPECT_THAT(diagnosis.runs, ElementsAre(ElementsAre(0), ElementsAre(2)));
}

TEST(Diagnosis, OfWhatIsNoModelOrHasACycle) {
  const Diagnosis text = diagnose_onnx_bytes(Blob::copy(std::string_view("PK\x03\x04 and more")));
  EXPECT_THAT(entries_of(text), ElementsAre("-1 file "));
  const Diagnosis cycle =
      diagnose_onnx_bytes(chain({W::node("Relu", {"b"}, {"a"}), W::node("Relu", {"a"}, {"b"})}, "b"));
  ASSERT_FALSE(cycle.entries.empty());
  EXPECT_THAT(cycle.entries[0].text, HasSubstr("cycle"));
  EXPECT_THAT(cycle.runs, IsEmpty());
}

TEST(Diagnosis, WarnsOfANewerOpsetAndOfNamesThatAreTakenTwice) {
  const Diagnosis diagnosis = diagnose_onnx_bytes(W::model(
      W::graph({.nodes = {W::node("Relu", {"x"}, {"a"}, {}, "twin"), W::node("Relu", {"a"}, {"y"}, {}, "twin")},
                .inputs = {vector_value("x")},
                .outputs = {vector_value("y")}}),
      {}, 99));
  EXPECT_THAT(entries_of(diagnosis), ElementsAre("-1 version ", "1 name "));
  EXPECT_EQ(diagnosis.entries[0].severity, Severity::warning);
  EXPECT_THAT(diagnosis.runs, ElementsAre(ElementsAre(0, 1)));
}

}  // namespace
}  // namespace hone
