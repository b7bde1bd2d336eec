// SPDX-License-Identifier: Apache-2.0
//
// Models that are written again: what nobody changed is still there, and older operator sets mean the same in newer ones.
#include "onnx/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error_testing.h"
#include "base/log.h"
#include "onnx/importer.h"
#include "onnx/model_writer.h"
#include "onnx/raise_opset.h"

namespace hone::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string value(const std::string& name, std::initializer_list<int64_t> dims) {
  std::vector<std::string> sizes;
  for (const int64_t dim : dims) sizes.push_back(ModelWriter::dim(dim));
  return ModelWriter::value(name, 1, sizes);
}

/// One node from x to y.
Blob lone(const std::string& node, std::initializer_list<int64_t> x, std::initializer_list<int64_t> y, int opset,
          const std::vector<std::string>& initializers = {}) {
  return ModelWriter::model_of(
      ModelWriter::graph(
          {.nodes = {node}, .initializers = initializers, .inputs = {value("x", x)}, .outputs = {value("y", y)}}),
      {ModelWriter::opset("", opset)});
}

Graph imported(const Blob& bytes) { return import_onnx_bytes(bytes, silent_logger()).graph; }

/// The graph before and after.
void expect_same_meaning(const Blob& bytes, int64_t opset) {
  const Graph before = imported(bytes);
  ModelFile file(bytes);
  raise_opset(file, opset, before);
  EXPECT_EQ(file.opsets.at(""), opset);
  EXPECT_EQ(structure_key(imported(Blob::copy(file.encode()))), structure_key(before));
}

TEST(ModelFile, KeepsWhatItDoesNotKnow) {
  std::string node = ModelWriter::node("Relu", {"x"}, {"y"}, {ModelWriter::integer_attr("odd", 3)}, "act");
  protozero::pbf_writer(node).add_string(6, "documentation of the node");
  std::string graph = ModelWriter::graph(
      {.nodes = {node}, .initializers = {}, .inputs = {value("x", {2})}, .outputs = {value("y", {2})}});
  protozero::pbf_writer(graph).add_string(10, "documentation of the graph");
  std::string bytes(
      ModelWriter::model_of(graph, {ModelWriter::opset("", 17), ModelWriter::opset("com.example", 2)}).text());
  protozero::pbf_writer(bytes).add_string(2, "the producer");
  protozero::pbf_writer(bytes).add_string(300, "a field of tomorrow");
  const std::string written = ModelFile(Blob::copy(bytes)).encode();
  for (const char* text :
       {"documentation of the node", "documentation of the graph", "the producer", "a field of tomorrow", "odd"})
    EXPECT_THAT(written, HasSubstr(text));
  const ModelFile again(Blob::copy(written));
  EXPECT_EQ(again.opsets.at("com.example"), 2);
  EXPECT_EQ(again.ir_version, 8);
  EXPECT_EQ(again.nodes.at(0).attributes.at(0).name, "odd");
  EXPECT_EQ(again.encode(), written);
}

TEST(ModelFile, NamesAreUnique) {
  ModelFile file(lone(ModelWriter::node("Relu", {"x"}, {"y"}, {}, "act"), {2}, {2}, 17));
  EXPECT_EQ(file.unique_tensor_name("x"), "x_1");
  EXPECT_EQ(file.unique_tensor_name("x"), "x_2");
  EXPECT_EQ(file.unique_tensor_name("z"), "z");
  EXPECT_EQ(file.unique_node_name("act"), "act_1");
}

TEST(ModelFile, WhatIsNoModelIsRefused) {
  EXPECT_NE(error_of([] { ModelFile(Blob::copy(std::string_view("no model"))); }), "no error");
  const std::string whole(lone(ModelWriter::node("Relu", {"x"}, {"y"}), {2}, {2}, 17).text());
  for (size_t size = 0; size < whole.size(); ++size)
    (void)error_of([&] { (void)ModelFile(Blob::copy(std::string_view(whole).substr(0, size))).encode(); });
}

TEST(ModelFile, DamageInWhatNoImportReadsIsRefused) {
  constexpr protozero::pbf_tag_type kValueType = 13;
  std::string graph = ModelWriter::graph({.nodes = {ModelWriter::node("Relu", {"x"}, {"y"})},
                                          .initializers = {},
                                          .inputs = {value("x", {2})},
                                          .outputs = {value("y", {2})}});
  protozero::pbf_writer(graph).add_message(kValueType, std::string("\x0a\x7fy", 3));  // a name of 127 bytes in one
  const Blob bytes = ModelWriter::model_of(graph, {ModelWriter::opset("", 17)});
  EXPECT_THAT(error_of([&] { ModelFile{bytes}; }), HasSubstr("not an ONNX model or is cut short"));
}

TEST(ModelFile, InitialisersOfEveryTypeComeBack) {
  TensorBuilder nibbles(DType::i4, {3});
  nibbles.codes()[0] = 7, nibbles.codes()[1] = 0xf8, nibbles.codes()[2] = 0xff;
  const Tensor packed = nibbles.finish();
  for (const Tensor& tensor :
       {Tensor::of<float>({2}, {1, -2}), Tensor::of<int64_t>({1, 1}, {-5}), Tensor::scalar(int8_t{-3}), packed}) {
    ModelFile file(lone(ModelWriter::node("Relu", {"x"}, {"r"}), {2}, {2}, 21));
    file.nodes.push_back(make_node(file, "same", "Identity", {"w"}, {"y"}, {}));
    file.add_initializer("w", tensor);
    const Graph graph = imported(Blob::copy(file.encode()));
    const std::vector<Tensor> inputs{Tensor::of<float>({2}, {0, 0})};
    const Tensor found = evaluate(graph, inputs)[0];
    EXPECT_EQ(found.type(), tensor.type());
    EXPECT_THAT(found.bytes(), testing::ElementsAreArray(tensor.bytes()));
  }
}

TEST(RaiseOpset, AttributesBecomeOperands) {
  expect_same_meaning(
      lone(ModelWriter::node("Squeeze", {"x"}, {"y"}, {ModelWriter::integers_attr("axes", {1})}), {2, 1}, {2}, 11), 13);
  expect_same_meaning(
      lone(ModelWriter::node("Unsqueeze", {"x"}, {"y"}, {ModelWriter::integers_attr("axes", {0})}), {2}, {1, 2}, 9),
      13);
  expect_same_meaning(lone(ModelWriter::node("ReduceMean", {"x"}, {"y"}, {ModelWriter::integers_attr("axes", {1})}),
                           {2, 3}, {2, 1}, 13),
                      21);
  expect_same_meaning(lone(ModelWriter::node("Clip", {"x"}, {"y"},
                                             {ModelWriter::real_attr("min", 0), ModelWriter::real_attr("max", 6)}),
                           {2}, {2}, 10),
                      13);
  expect_same_meaning(
      lone(ModelWriter::node("Pad", {"x"}, {"y"},
                             {ModelWriter::integers_attr("pads", {1, 1}), ModelWriter::real_attr("value", 2)}),
           {2}, {4}, 10),
      13);
  expect_same_meaning(
      lone(ModelWriter::node("Slice", {"x"}, {"y"},
                             {ModelWriter::integers_attr("starts", {1}), ModelWriter::integers_attr("ends", {2})}),
           {3}, {1}, 9),
      13);
}

TEST(RaiseOpset, SplitSaysHowManyPieces) {
  const Blob bytes = ModelWriter::model_of(
      ModelWriter::graph(
          {.nodes = {ModelWriter::node("Split", {"x"}, {"y", "z"}, {ModelWriter::integer_attr("axis", 0)})},
           .initializers = {},
           .inputs = {value("x", {4})},
           .outputs = {value("y", {2}), value("z", {2})}}),
      {ModelWriter::opset("", 13)});
  expect_same_meaning(bytes, 21);
}

TEST(RaiseOpset, SoftmaxOverTheLastAxisKeepsIt) {
  expect_same_meaning(lone(ModelWriter::node("Softmax", {"x"}, {"y"}), {2, 3}, {2, 3}, 11), 13);
  const Blob bytes = lone(ModelWriter::node("Softmax", {"x"}, {"y"}, {}, "top"), {2, 3, 4}, {2, 3, 4}, 11);
  ModelFile file(bytes);
  EXPECT_THAT(error_of([&] { raise_opset(file, 13, imported(bytes)); }),
              testing::AllOf(HasSubstr("axes 1 to 2 together"), HasSubstr("node top (Softmax)")));
}

/// An If that gives what its branches make of x.
Blob with_branches(const std::string& branch_node) {
  const auto branch = [&](const std::string& node) {
    return ModelWriter::graph({.nodes = {node}, .initializers = {}, .inputs = {}, .outputs = {value("b", {2})}});
  };
  const std::string condition = ModelWriter::node("If", {"c"}, {"y"},
                                                  {ModelWriter::graph_attr("then_branch", branch(branch_node)),
                                                   ModelWriter::graph_attr("else_branch", branch(branch_node))},
                                                  "choice");
  return ModelWriter::model_of(ModelWriter::graph({.nodes = {condition},
                                                   .initializers = {},
                                                   .inputs = {value("x", {2}), ModelWriter::value("c", 9, {})},
                                                   .outputs = {value("y", {2})}}),
                               {ModelWriter::opset("", 12)});
}

TEST(RaiseOpset, BodiesStayWhereTheyMeanTheSame) {
  expect_same_meaning(with_branches(ModelWriter::node("Relu", {"x"}, {"b"})), 19);
  const Blob bytes =
      with_branches(ModelWriter::node("Softmax", {"x"}, {"b"}, {ModelWriter::integer_attr("axis", 0)}, "inner"));
  ModelFile file(bytes);
  EXPECT_THAT(
      error_of([&] { raise_opset(file, 19, imported(bytes)); }),
      testing::AllOf(HasSubstr("in its body inner (Softmax) means something else"), HasSubstr("node choice (If)")));
}

TEST(RaiseOpset, NewerModelsStayAsTheyAre) {
  const Blob bytes = lone(ModelWriter::node("Relu", {"x"}, {"y"}), {2}, {2}, 17);
  ModelFile file(bytes);
  const std::string before = file.encode();
  raise_opset(file, 13, imported(bytes));
  EXPECT_EQ(file.encode(), before);
}

}  // namespace
}  // namespace hone::onnx
