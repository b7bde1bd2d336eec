// SPDX-License-Identifier: Apache-2.0
//
// Models as they are read and written: byte by byte what nobody edits, and copies that share nothing.
#include "base/file.h"
#include "base/folder_testing.h"
#include "edit/edit_testing.h"
#include "edit/file.h"
#include "edit/parts.h"
#include "edit/sparse.h"

namespace hone::edit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The message with a field of 2047 behind the others, which nobody knows.
std::string with_unknown_field(const std::string& message) { return message + "\xfa\x7f\x05later"; }

std::string with_field(std::string message, uint32_t number, const std::string& text) {
  protozero::pbf_writer(message).add_string(number, text);
  return message;
}

Blob with_body() {
  const std::string then = W::graph({.nodes = {W::node("Neg", {"x"}, {"a"})}, .outputs = {vector_of("a")}}),
                    otherwise = W::graph({.nodes = {W::node("Abs", {"x"}, {"b"})}, .outputs = {vector_of("b")}});
  return W::model(
      W::graph({.nodes = {W::node("If", {"go"}, {"y"},
                                  {W::graph_attr("then_branch", then), W::graph_attr("else_branch", otherwise)})},
                .inputs = {vector_of("x"), W::value("go", 9, {})},
                .outputs = {vector_of("y")}}));
}

TEST(EditModel, WhatNobodyEditsIsWrittenByteByByte) {
  const std::string node =
      with_unknown_field(W::node("Odd", {"x", "", "w"}, {"y"}, {W::integer_attr("k", 3)}, "n", "far"));
  const std::string weight = with_unknown_field(W::raw_tensor("w", 1, {2}, floats(2)));
  const std::string bytes = with_unknown_field(std::string(
      W::model(
          with_unknown_field(W::graph(
              {.nodes = {node}, .initializers = {weight}, .inputs = {vector_of("x")}, .outputs = {vector_of("y")}})))
          .text()));
  const Model model = read_model(Blob::copy(bytes), "");
  EXPECT_EQ(encode(model).text(), bytes);
  ASSERT_EQ(model.graph.nodes.size(), 1u);
  EXPECT_THAT(model.graph.nodes[0].inputs, ElementsAre("x", "", "w"));
  EXPECT_EQ(model.graph.nodes[0].domain, "far");
  EXPECT_EQ(encode(read_model(with_body(), "")).text(), with_body().text());
}

TEST(EditModel, AnEditLeavesOtherFieldsWhereTheyAre) {
  Model model = read_model(Blob::copy(with_unknown_field(std::string(with_body().text()))), "");
  model.graph.nodes[0].name = "choice";
  const std::string written = encode(model).text();
  EXPECT_THAT(written, HasSubstr("choice"));
  EXPECT_THAT(written, HasSubstr("later"));
  EXPECT_EQ(again(model).graph.nodes[0].name, "choice");
}

TEST(EditModel, CopiesHaveBodiesOfTheirOwn) {
  const Model model = read_model(with_body(), "");
  Graph copy = deep_copy(model.graph);
  copy.nodes[0].attributes[0].bodies[0]->nodes[0].op_type = "Exp";
  EXPECT_EQ(model.graph.nodes[0].attributes[0].bodies[0]->nodes[0].op_type, "Neg");
}

TEST(EditModel, SavingChangesNothingInTheModel) {
  const TestFolder folder;
  const std::string then = W::graph({.nodes = {W::node("Add", {"x", "w"}, {"a"})},
                                     .initializers = {W::raw_tensor("w", 1, {2}, floats(2))},
                                     .outputs = {vector_of("a")}});
  const Model model =
      model_of({.nodes = {W::node("If", {"go"}, {"y"},
                                  {W::graph_attr("then_branch", then), W::graph_attr("else_branch", then)})},
                .inputs = {vector_of("x"), W::value("go", 9, {})},
                .outputs = {vector_of("y")}});
  const std::string before = encode(model).text();
  save(model, folder.file("m.onnx"), {.external = "", .threshold = 1});
  EXPECT_EQ(encode(model).text(), before);
  EXPECT_EQ(read_file(folder.file("m.onnx.data")).size(), 64u + 8u);
  const Model read = open_model(folder.file("m.onnx"));
  const Weight& weight = read.graph.nodes[0].attributes[0].bodies[0]->weights[0];
  ASSERT_TRUE(weight.file);
  EXPECT_EQ(tensor_of(read, weight).real(1), 1);
}

TEST(EditParts, AFunctionTakenApartIsPutTogetherByteByByte) {
  std::string function =
      W::function("F", {"a"}, {"b"}, {W::node("Softmax", {"a"}, {"b"}, {W::reference_attr("axis", "k", 2)})});
  function = with_field(function, 6, "required");
  protozero::pbf_writer(function).add_message(11, W::integer_attr("k", -1));
  Model model = model_of({.nodes = {W::node("F", {"x"}, {"y"}, {}, "f", "local")},
                          .inputs = {vector_of("x")},
                          .outputs = {vector_of("y")}},
                         {function});
  ASSERT_EQ(model.functions.size(), 1u);
  const FunctionParts parts = parts_of(model.functions[0]);
  EXPECT_EQ(parts.model.graph.name, "F");
  ASSERT_EQ(parts.parameters.size(), 2u);
  EXPECT_EQ(parts.parameters[0].name, "required");
  EXPECT_EQ(parts.parameters[0].type, 0);
  EXPECT_EQ(parts.parameters[1].name, "k");
  const std::string before = encode(model).text();
  model.functions[0] = function_of(model, parts);
  EXPECT_EQ(encode(model).text(), before);
}

TEST(EditParts, WeightsOfAFunctionBecomeConstantNodes) {
  Model model = model_of({.nodes = {W::node("F", {"x"}, {"y"}, {}, "f", "local")},
                          .inputs = {vector_of("x")},
                          .outputs = {vector_of("y")}});
  FunctionParts parts;
  parts.model = model_of({.nodes = {W::node("Add", {"a", "w"}, {"b"})},
                          .initializers = {W::raw_tensor("w", 1, {2}, floats(2))},
                          .inputs = {W::value("a", 0, {})},
                          .outputs = {W::value("b", 0, {})}});
  parts.model.rest.clear();
  parts.model.graph.name = "F";
  parts.domain = "local";
  model.functions.push_back(function_of(model, parts));
  const Model read = again(model);
  EXPECT_THAT(ops(read.functions[0].nodes), ElementsAre("Constant", "Add"));
  EXPECT_THAT(read.functions[0].nodes[0].outputs, ElementsAre("w"));
}

TEST(EditParts, WordsAreSetAndTakenAway) {
  Model model = read_model(with_body(), "");
  EXPECT_EQ(text_in(model.rest, 2), "test");
  set_text(model, model.rest, 2, "somebody");
  set_text(model, model.graph.rest, 10, "what it is for");
  const Model read = again(model);
  EXPECT_EQ(text_in(read.rest, 2), "somebody");
  EXPECT_EQ(text_in(read.graph.rest, 10), "what it is for");
  set_text(model, model.graph.rest, 10, "");
  EXPECT_EQ(text_in(again(model).graph.rest, 10), "");
}

/// Values 5 and 7 of a tensor of 2 x 3.
std::string sparse_message(const std::vector<int64_t>& places, const std::vector<int64_t>& shape_of_places) {
  std::string message;
  protozero::pbf_writer writer(message);
  writer.add_message(1, W::raw_tensor("s", 1, {2}, floats(1, 5) + floats(1, 7)));
  writer.add_message(2, W::integers("", shape_of_places, places));
  const std::vector<int64_t> dims = {2, 3};
  writer.add_packed_int64(3, dims.begin(), dims.end());
  return message;
}

TEST(EditSparse, ListedElementsComeToTheirPlaces) {
  for (const std::string& message : {sparse_message({1, 5}, {2}), sparse_message({0, 1, 1, 2}, {2, 2})}) {
    const Model model;
    const Tensor dense = dense_of(model, read_sparse(message));
    EXPECT_THAT(dense.dims(), ElementsAre(2, 3));
    std::vector<double> values;
    for (int64_t i = 0; i < dense.size(); ++i) values.push_back(dense.real(i));
    EXPECT_THAT(values, ElementsAre(0, 5, 0, 0, 0, 7));
    EXPECT_EQ(read_sparse(renamed_sparse(message, "other")).name, "other");
  }
}

TEST(EditSparse, PlacesOutsideOfTheTensorAreRefused) {
  const Model model;
  for (const std::string& message :
       {sparse_message({1, 6}, {2}), sparse_message({0, 1, 2, 2}, {2, 2}), sparse_message({1}, {1})})
    EXPECT_THROW((void)dense_of(model, read_sparse(message)), Error);
}

TEST(EditRead, DamagedModelsAreRefused) {
  const std::string bytes(with_body().text());
  for (size_t length = 1; length < bytes.size(); length += 7) {
    try {
      (void)read_model(Blob::copy(bytes.substr(0, length)), "");
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()), "");
    }
  }
}

}  // namespace
}  // namespace hone::edit
