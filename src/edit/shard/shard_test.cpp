// SPDX-License-Identifier: Apache-2.0
//
// What of small models is divided, and what a rank's weights hold. That the ranks together compute the same is tested by running them
// (tests/test_ranks.py).
#include <filesystem>

#include "base/folder_testing.h"
#include "edit/edit_testing.h"
#include "edit/file.h"
#include "edit/shard/estimate.h"
#include "edit/shard/rank_model.h"

namespace hone::edit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string counted_bytes(int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(i);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}
std::string weight_of(const std::string& name, const std::vector<int64_t>& dims) {
  return W::raw_tensor(name, 1, dims, counted_bytes(elements(dims)));
}
std::string rows_of(const std::string& name, int64_t width) { return W::value(name, 1, {W::dim("n"), W::dim(width)}); }

/// y = relu(x A + b) C + d
Model perceptron(int64_t hidden = 6) {
  return model_of({.nodes = {W::node("MatMul", {"x", "a"}, {"h"}, {}, "up"), W::node("Add", {"h", "b"}, {"g"}),
                             W::node("Relu", {"g"}, {"r"}), W::node("MatMul", {"r", "c"}, {"p"}, {}, "down"),
                             W::node("Add", {"p", "d"}, {"y"})},
                   .initializers = {weight_of("a", {2, hidden}), weight_of("b", {hidden}), weight_of("c", {hidden, 2}),
                                    weight_of("d", {2})},
                   .inputs = {rows_of("x", 2)},
                   .outputs = {rows_of("y", 2)}});
}

const Weight& weight(const Model& model, const std::string& name) {
  const auto found = std::ranges::find(model.graph.weights, name, &Weight::name);
  if (found == model.graph.weights.end()) throw Error("there is no weight " + name);
  return *found;
}
std::vector<double> values(const Model& model, const std::string& name) {
  const Tensor tensor = tensor_of(model, weight(model, name));
  std::vector<double> all;
  for (int64_t i = 0; i < tensor.size(); ++i) all.push_back(tensor.real(i));
  return all;
}

TEST(Shard, APairIsCutByColumnsAndThenByRowsWithOneSumBehindIt) {
  const Model model = perceptron();
  const Facts facts(model);
  const Division division = divide(facts, 2);
  EXPECT_EQ(division.pairs, 1u);
  EXPECT_TRUE(division.whole.empty());
  const Model second = again(rank_model(model, facts, division, 1, CollectiveForm::tensorrt));
  EXPECT_THAT(ops(second.graph.nodes), ElementsAre("MatMul", "Add", "Relu", "MatMul", "DistCollective", "Add"));
  EXPECT_THAT(values(second, "a.share"), ElementsAre(3, 4, 5, 9, 10, 11));
  EXPECT_THAT(values(second, "b.share"), ElementsAre(3, 4, 5));
  EXPECT_THAT(values(second, "c.share"), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_THAT(values(second, "d"), ElementsAre(0, 1)) << "a bias behind the sum is whole";
}

TEST(Shard, TheOtherFormIsOnnxRuntimes) {
  const Model model = perceptron();
  const Facts facts(model);
  const Model first = again(rank_model(model, facts, divide(facts, 2), 0, CollectiveForm::microsoft));
  EXPECT_THAT(ops(first.graph.nodes), ElementsAre("MatMul", "Add", "Relu", "MatMul", "AllReduce", "Add"));
  EXPECT_EQ(first.opsets.back().domain, "com.microsoft");
}

TEST(Shard, WhatDoesNotComeOutEvenStaysWholeAndSaysWhy) {
  const Model model = perceptron(5);
  try {
    divide(Facts(model), 2);
    FAIL() << "5 columns were divided by 2";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot be divided by 2"));
  }
}

/// One product makes queries, keys and values of two heads of two.
Model attention() {
  const auto reshape = [](const std::string& from, const std::string& sizes, const std::string& to) {
    return W::node("Reshape", {from, sizes}, {to});
  };
  const auto turn = [](const std::string& from, const std::string& to, const std::vector<int64_t>& perm) {
    return W::node("Transpose", {from}, {to}, {W::integers_attr("perm", perm)});
  };
  const auto sizes = [](const std::string& name, const std::vector<int64_t>& numbers) {
    return W::integers(name, {static_cast<int64_t>(numbers.size())}, numbers);
  };
  const std::string x = W::value("x", 1, {W::dim("b"), W::dim("s"), W::dim(4)});
  return model_of(
      {.nodes = {W::node("MatMul", {"x", "qkv"}, {"t"}),
                 W::node("Split", {"t"}, {"q", "k", "v"},
                         {W::integer_attr("axis", 2), W::integer_attr("num_outputs", 3)}),
                 reshape("q", "heads", "q4"), turn("q4", "q5", {0, 2, 1, 3}), reshape("k", "heads", "k4"),
                 turn("k4", "k5", {0, 2, 3, 1}), reshape("v", "heads", "v4"), turn("v4", "v5", {0, 2, 1, 3}),
                 W::node("MatMul", {"q5", "k5"}, {"s"}), W::node("Softmax", {"s"}, {"w"}),
                 W::node("MatMul", {"w", "v5"}, {"m"}), turn("m", "m4", {0, 2, 1, 3}), reshape("m4", "flat", "m3"),
                 W::node("MatMul", {"m3", "out"}, {"y"}, {}, "out")},
       .initializers = {weight_of("qkv", {4, 12}), weight_of("out", {4, 4}), sizes("heads", {0, 0, 2, 2}),
                        sizes("flat", {0, 0, 4})},
       .inputs = {x},
       .outputs = {W::value("y", 1, {W::dim("b"), W::dim("s"), W::dim(4)})}});
}

TEST(Shard, HeadsThatOneMatrixMakesAreCutOutOfEachOfItsParts) {
  const Model model = attention();
  const Facts facts(model);
  const Division division = divide(facts, 2);
  EXPECT_EQ(division.pairs, 1u);
  const Model second = again(rank_model(model, facts, division, 1, CollectiveForm::tensorrt));
  EXPECT_THAT(values(second, "qkv.share"),
              ElementsAre(2, 3, 6, 7, 10, 11, 14, 15, 18, 19, 22, 23, 26, 27, 30, 31, 34, 35, 38, 39, 42, 43, 46, 47));
  EXPECT_THAT(values(second, "out.share"), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
}

TEST(Shard, ItIsSlowerWhereCollectivesTakeMoreThanTheWeightsThatARankIsSpared) {
  const Model model = perceptron();
  const Facts facts(model);
  const Model first = rank_model(model, facts, divide(facts, 2), 0, CollectiveForm::tensorrt);
  const ShardEstimate estimate = estimate_shard(model, first, {.bytes_per_ms = 8, .collective_ms = 5});
  EXPECT_EQ(estimate.collectives, 1);
  EXPECT_DOUBLE_EQ(estimate.whole_ms, 16);  // 2x6 + 6 + 6x2 + 2 floats
  EXPECT_GE(estimate.rank_ms, 13.5);        // 2x3 + 3 + 3x2 + 2 of them, and the sum
  EXPECT_FALSE(estimate_shard(model, first, {8, 5}).slower());
  EXPECT_TRUE(estimate_shard(model, first, {8, 9}).slower());
}

TEST(Shard, OfWeightsInAnotherFileOnlyTheShareIsWritten) {
  const TestFolder folder;
  save(perceptron(), folder.file("whole.onnx"), {.external = "", .threshold = 0});
  const Model model = open_model(folder.file("whole.onnx"));
  ASSERT_TRUE(weight(model, "a").file);
  const Facts facts(model);
  const Division division = divide(facts, 2);
  std::filesystem::create_directory(folder.file("ranks"));
  save(rank_model(model, facts, division, 1, CollectiveForm::tensorrt), folder.file("ranks/model.onnx.rank1"));
  const Model second = open_model(folder.file("ranks/model.onnx.rank1"));
  ASSERT_TRUE(weight(second, "a.share").file);
  EXPECT_THAT(values(second, "a.share"), ElementsAre(3, 4, 5, 9, 10, 11));
  EXPECT_THAT(values(second, "c.share"), ElementsAre(6, 7, 8, 9, 10, 11));
}

}  // namespace
}  // namespace hone::edit
