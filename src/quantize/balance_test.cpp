// SPDX-License-Identifier: Apache-2.0
//
// Factors between layers: a network computes what it did, ranges come together, and what others read is left alone.
#include "quantize/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error_testing.h"
#include "onnx/importer.h"
#include "onnx/model_writer.h"
#include "ops/all.h"
#include "ops/ops.h"
#include "quantize/bias_correction.h"

namespace hone {
namespace {

Value* spread_weights(Graph& graph, const std::string& name, const Dims& dims, size_t axis, int step) {
  std::vector<float> values(static_cast<size_t>(elements(dims)));
  const Tensor noise = random_tensor(DType::f32, dims, static_cast<uint64_t>(step + 10));
  size_t inner = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i) inner *= static_cast<size_t>(dims[i]);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t channel = i / inner % static_cast<size_t>(dims[axis]);
    values[i] = noise.data<float>()[i] * std::exp2(static_cast<float>(step) * static_cast<float>(channel));
  }
  return graph.add_constant(Tensor::of<float>(dims, values), name);
}

Attrs padded(int64_t group) { return {{"pads", std::vector<int64_t>{1, 1, 1, 1}}, {"group", group}}; }

/// conv - relu - depthwise conv - relu - max pool - conv, whose channels differ by powers of 8.
struct Chain {
  Chain() {
    Value* x = graph.add_input("x", {DType::f32, Shape{1, 2, 6, 6}});
    Value* w0 = spread_weights(graph, "w0", {4, 2, 3, 3}, 0, 3);
    Value* w1 = spread_weights(graph, "w1", {4, 1, 3, 3}, 0, -3);
    Value* w2 = spread_weights(graph, "w2", {3, 4, 3, 3}, 1, 2);
    Value* b0 = spread_weights(graph, "b0", {4}, 0, 3);
    Value* h = graph.add(ops::relu, {graph.add(ops::conv, {x, w0, b0}, padded(1))->output()})->output();
    Value* d = graph.add(ops::relu, {graph.add(ops::conv, {h, w1}, padded(4))->output()})->output();
    graph.set_outputs({graph.add(ops::conv, {d, w2}, padded(1))->output()});
    name_all();
  }
  void name_all() {
    for (Node* node : graph.nodes()) node->output()->name = graph.unique_name("t");
  }
  Graph graph;
};

std::vector<float> result_of(const Graph& graph) {
  const std::vector<Tensor> results = evaluate(graph, random_inputs(graph, 3));
  const std::span<const float> values = results[0].data<float>();
  return {values.begin(), values.end()};
}

TEST(Equalized, TheNetworkComputesTheSameBits) {
  const Chain chain;
  const Balanced balanced = equalized(chain.graph, {});
  EXPECT_EQ(balanced.tensors, 2u);
  Graph other = chain.graph.clone();
  apply(balanced.edits, other);
  EXPECT_EQ(result_of(chain.graph), result_of(other));
}

TEST(Equalized, RangesOfNeighboursComeWithinAPowerOfTwo) {
  const Chain chain;
  Graph other = chain.graph.clone();
  apply(equalized(chain.graph, {}).edits, other);
  const EditedConstants constants;
  for (const ReadChannels& tensor : read_channels(other, [](const Node&) { return true; })) {
    const Factors made = tensor.source.product->output_ranges(constants), read = tensor.ranges(constants);
    for (size_t i = 0; i < made.size(); ++i) EXPECT_LE(std::fabs(std::log2(made[i] / read[i])), 1.01F) << i;
  }
}

TEST(Equalized, WhatOthersReadOrKeepIsLeft) {
  Chain chain;
  Node* first = chain.graph.nodes().front();
  chain.graph.set_outputs({chain.graph.outputs()[0], first->output()});  // read from outside
  EXPECT_EQ(equalized(chain.graph, {}).tensors, 1u);
  const auto never = [](const Node&) { return false; };
  EXPECT_EQ(equalized(chain.graph, never).tensors, 0u);
}

TEST(Smoothed, LargeChannelsShrinkAndNothingElseChanges) {
  Graph graph;
  Value* x = graph.add_input("x", {DType::f32, Shape{5, 4}});
  Value *gamma = graph.add_constant(Tensor::of<float>({4}, {1, 64, 1, 1}), "gamma"),
        *beta = graph.add_constant(Tensor::of<float>({4}, {0, 1, 2, 3}), "beta"),
        *w = graph.add_constant(Tensor::of<float>({4, 2}, {1, 1, 0.25F, 0.25F, 1, 1, 1, 1}), "w");
  Value* l = graph.add(ops::layer_normalization, {x, gamma, beta}, {{"axis", int64_t{-1}}}, {}, 1)->output();
  l->name = "l";
  graph.set_outputs({graph.add(ops::mat_mul, {l, w})->output()});
  const Balanced balanced = smoothed(graph, {}, {{"l", {2, 128, 2, 2}}}, 0.5);
  ASSERT_EQ(balanced.tensors, 1u);
  const std::span<const float> scale = balanced.edits.constants.find("gamma")->second.data<float>();
  EXPECT_LT(scale[1] / scale[0], 8);
  Graph other = graph.clone();
  apply(balanced.edits, other);
  EXPECT_EQ(result_of(graph), result_of(other));
}

TEST(ModelEdits, GoIntoTheFileWholeOrNotAtAll) {
  using onnx::ModelWriter;
  const Blob bytes = ModelWriter::model_of(
      ModelWriter::graph({.nodes = {ModelWriter::node("Add", {"x", "w"}, {"y"}, {}, "sum")},
                          .initializers = {ModelWriter::raw_tensor("w", 1, {1}, std::string(4, '\0'))},
                          .inputs = {ModelWriter::value("x", 1, {ModelWriter::dim(1)})},
                          .outputs = {ModelWriter::value("y", 1, {ModelWriter::dim(1)})}}),
      {ModelWriter::opset("", 17)});
  onnx::ModelFile file(bytes);
  apply({{{"w", Tensor::of<float>({1}, {5})}}, {}}, file);
  const Graph changed = import_onnx_bytes(Blob::copy(file.encode()), silent_logger()).graph;
  EXPECT_EQ(evaluate(changed, std::vector<Tensor>{Tensor::of<float>({1}, {2})})[0].real(0), 7);
  EXPECT_THAT(error_of([&] {
                apply({{{"elsewhere", Tensor::of<float>({1}, {5})}}, {}}, file);
              }),
              testing::HasSubstr("elsewhere is inside of a function"));
}

TEST(ChannelMeans, AreTakenAlongTheAxis) {
  ChannelMeans means(1, 2);
  means.add({2, 2, 2}, std::vector<float>{1, 3, 10, 10, 5, 7, 20, 20});
  EXPECT_EQ(means.mean(0), 4);
  EXPECT_EQ(means.mean(1), 15);
}

}  // namespace
}  // namespace hone
