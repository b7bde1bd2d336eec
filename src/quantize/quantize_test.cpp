// SPDX-License-Identifier: Apache-2.0
//
// Scales, weights as integers, and the two ways to write quantisation down, which must mean the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error_testing.h"
#include "base/file.h"
#include "onnx/importer.h"
#include "onnx/model_writer.h"
#include "ops/all.h"
#include "quantize/block_weights.h"
#include "quantize/input_moments.h"
#include "quantize/quantize_file.h"
#include "quantize/quantize_graph.h"
#include "quantize/read_scales.h"

namespace hone {
namespace {

using onnx::ModelWriter;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Scale, SymmetricOnesReach127) {
  const TensorScale scale = scale_of({-2, 1}, Codes::symmetric);
  EXPECT_FLOAT_EQ(scale.scale, 2.0F / 127);
  EXPECT_EQ(scale.zero, 0);
}

TEST(Scale, AsymmetricOnesHoldZeroExactly) {
  const TensorScale scale = scale_of({-1, 3}, Codes::asymmetric);
  EXPECT_FLOAT_EQ(scale.scale, 4.0F / 255);
  EXPECT_EQ(scale.zero, 64);
  EXPECT_EQ(scale_of({2, 3}, Codes::asymmetric).zero, 0);
  EXPECT_EQ(scale_of({-3, -2}, Codes::asymmetric).zero, 255);
}

TEST(Scale, ExtremesStayFinite) {
  constexpr float kMost = std::numeric_limits<float>::max(), kLeast = std::numeric_limits<float>::denorm_min();
  for (const Codes codes : {Codes::symmetric, Codes::asymmetric}) {
    for (const ClippedRange& range : {ClippedRange{-kMost, kMost}, {0, kLeast}, {-kLeast, 0}, {0, kMost}}) {
      const TensorScale scale = scale_of(range, codes);
      EXPECT_TRUE(std::isfinite(scale.scale) && std::isfinite(1 / scale.scale)) << range.high;
      EXPECT_TRUE(scale.zero >= 0 && scale.zero <= 255);
    }
    EXPECT_EQ(scale_of({0, 0}, codes).scale, 1);
  }
}

TEST(QuantizeWeights, EachChannelHasItsScale) {
  const Tensor weights = Tensor::of<float>({2, 3}, {-127, 63.5F, 1, 0.5F, 0.25F, 0});
  const ChannelWeights rows = quantize_weights(weights, 0, Codes::symmetric);
  EXPECT_THAT(rows.scales.data<float>(), ElementsAre(1, 0.5F / 127));
  EXPECT_THAT(rows.codes.data<int8_t>(), ElementsAre(-127, 64, 1, 127, 64, 0));  // 63.5: half to even
  const ChannelWeights columns = quantize_weights(weights, 1, Codes::symmetric);
  EXPECT_THAT(columns.codes.data<int8_t>(), ElementsAre(-127, 127, 127, 0, 0, 0));
}

TEST(QuantizeWeights, FloatsOfEightBitsReach448) {
  const Tensor weights = Tensor::of<float>({2, 2}, {448, -17, 0.5F, 0.25F});
  const ChannelWeights rows = quantize_weights(weights, 0, Codes::f8e4m3);
  EXPECT_THAT(rows.scales.data<float>(), ElementsAre(1, 0.5F / 448));
  EXPECT_THAT(dequantized(rows, 0).data<float>(), ElementsAre(448, -16, 0.5F, 0.25F));  // -17: half to even
}

TEST(QuantizeWeights, ZerosAndWhatIsNotFinite) {
  EXPECT_THAT(quantize_weights(Tensor::of<float>({1, 2}, {0, 0}), 0, Codes::symmetric).codes.data<int8_t>(),
              ElementsAre(0, 0));
  const Tensor wrong = Tensor::of<float>({1, 2}, {0, std::numeric_limits<float>::infinity()});
  EXPECT_THAT(error_of([&] { quantize_weights(wrong, 0, Codes::symmetric); }), HasSubstr("weight 1 is not finite"));
}

std::string floats(const std::string& name, const Dims& dims, float value) {
  const std::vector<float> values(static_cast<size_t>(elements(dims)), value);
  return ModelWriter::raw_tensor(
      name, 1, dims, std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

TEST(QuantizeBlocks, TheLargestOfABlockIs7) {
  const Tensor weights = Tensor::of<float>({3, 2}, {7, -1, -3.5F, 0.6F, 2, 0});
  const BlockWeights columns = quantize_blocks(weights, 0, {.block = 2});
  EXPECT_EQ(columns.scales.dims(), (Dims{2, 2}));
  EXPECT_THAT(columns.scales.data<float>(), ElementsAre(1, 1.0F / 7, 2.0F / 7, 1));
  const auto code = [](const Tensor& codes, int64_t at) { return static_cast<int>(codes.real(at)); };
  EXPECT_EQ(code(columns.codes, 0), 7);
  EXPECT_EQ(code(columns.codes, 1), -7);
  EXPECT_EQ(code(columns.codes, 2), -4);  // -3.5: half to even
  EXPECT_EQ(code(columns.codes, 3), 4);
  EXPECT_EQ(code(columns.codes, 4), 7);
  const BlockWeights rows = quantize_blocks(weights, 1, {});
  EXPECT_EQ(rows.scales.dims(), (Dims{3, 1}));
  EXPECT_THAT(rows.scales.data<float>(), ElementsAre(1, 0.5F, 2.0F / 7));
}

TEST(QuantizeBlocks, WhatMattersDecidesWhatIsClipped) {
  std::vector<float> column(32, 0.1F);
  column[0] = 1;
  const Tensor weights = Tensor::of<float>({32, 1}, column);
  const std::vector<float> even(32, 1.0F);
  std::vector<float> first(32, 1e-6F);
  first[0] = 1;
  const float whole = quantize_blocks(weights, 0, {.block = 32}).scales.data<float>()[0],
              clipped = quantize_blocks(weights, 0, {.block = 32, .importance = even}).scales.data<float>()[0],
              kept = quantize_blocks(weights, 0, {.block = 32, .importance = first}).scales.data<float>()[0];
  EXPECT_FLOAT_EQ(whole, 1.0F / 7);
  EXPECT_LE(clipped, whole);
  EXPECT_FLOAT_EQ(kept, whole);
  EXPECT_THAT(error_of([&] {
                quantize_blocks(Tensor::of<float>({1, 1}, {NAN}), 0, {});
              }),
              HasSubstr("weight 0 is not finite"));
}

TEST(QuantizeBlocks, AsymmetricCodesReachBothEnds) {
  const BlockWeights result =
      quantize_blocks(Tensor::of<float>({4, 1}, {-1, 0, 1, 2}), 0, {.block = 4, .codes = Codes::asymmetric});
  ASSERT_TRUE(result.zeros);
  EXPECT_FLOAT_EQ(result.scales.data<float>()[0], 0.2F);
  EXPECT_EQ(result.zeros->real(0), 5);
  const std::vector<double> wanted{0, 5, 10, 15};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(result.codes.real(i), wanted[static_cast<size_t>(i)]);
}

/// The error of X W, all of it squared.
double product_error(const std::vector<float>& x, const Tensor& weights, const BlockWeights& rounded, int64_t block) {
  const int64_t k = weights.dims()[0], n = weights.dims()[1], m = static_cast<int64_t>(x.size()) / k;
  double error = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double off = 0;
      for (int64_t p = 0; p < k; ++p)
        off += x[static_cast<size_t>(i * k + p)] *
               (weights.real(p * n + j) - rounded.codes.real(p * n + j) * rounded.scales.real(p / block * n + j));
      error += off * off;
    }
  return error;
}

TEST(QuantizeBlocks, FeedbackLessensTheErrorOfProducts) {
  constexpr int64_t kRows = 400, kDepth = 48, kColumns = 35, kBlock = 16;
  const Tensor base = random_tensor(DType::f32, {kRows, kDepth}, 1),
               weights = random_tensor(DType::f32, {kDepth, kColumns}, 2);
  std::vector<float> x(base.data<float>().begin(), base.data<float>().end());
  for (size_t i = 1; i < x.size(); ++i)
    if (i % kDepth != 0) x[i] += x[i - 1];  // channels that move together
  InputMoments moments(kDepth, true);
  moments.add(x);
  const std::vector<float> squares = moments.mean_squares(), shares = moments.feedback();
  const auto error = [&](const BlockRules& rules) {
    return product_error(x, weights, quantize_blocks(weights, 0, rules), kBlock);
  };
  const double plain = error({.block = kBlock}), clipped = error({.block = kBlock, .importance = squares}),
               fed_back = error({.block = kBlock, .importance = squares, .feedback = shares});
  EXPECT_LT(clipped, plain);
  EXPECT_LT(fed_back, 0.3 * clipped);
}

TEST(InputMoments, ChannelsThatAreNeverUsedDoNoHarm) {
  InputMoments moments(3, true);
  moments.add(std::vector<float>{1, 0, 2, -1, 0, -2});
  for (const float share : moments.feedback()) EXPECT_TRUE(std::isfinite(share));
  EXPECT_THAT(moments.mean_squares(), ElementsAre(1, 0, 4));
  InputMoments none(2, true);
  for (const float share : none.feedback()) EXPECT_EQ(share, 0);
  EXPECT_THAT(error_of([&] { none.add(std::vector<float>{1, NAN}); }), HasSubstr("not finite"));
}

/// y = Relu(x W) V, with names as exporters give them.
Blob model(int opset) {
  const auto value = [](const std::string& name, int64_t columns) {
    return ModelWriter::value(name, 1, {ModelWriter::dim("n"), ModelWriter::dim(columns)});
  };
  return ModelWriter::model_of(
      ModelWriter::graph({.nodes = {ModelWriter::node("MatMul", {"x", "w"}, {"h"}, {}, "first"),
                                    ModelWriter::node("Relu", {"h"}, {"r"}, {}, "act"),
                                    ModelWriter::node("MatMul", {"r", "v"}, {"y"}, {}, "second")},
                          .initializers = {floats("w", {4, 8}, 0.5F), floats("v", {8, 2}, -0.25F)},
                          .inputs = {value("x", 4)},
                          .outputs = {value("y", 2)}}),
      {ModelWriter::opset("", opset)});
}

Graph imported(const Blob& bytes) { return import_onnx_bytes(bytes, silent_logger()).graph; }
Graph imported(const std::string& bytes) { return imported(Blob::copy(bytes)); }

TEST(QuantizeFile, SaysTheSameAsQuantizeGraph) {
  for (const Codes codes : {Codes::symmetric, Codes::asymmetric, Codes::f8e4m3}) {
    const Blob bytes = model(17);
    Graph graph = imported(bytes);
    const TensorScales scales{{"x", {0.5F, codes == Codes::asymmetric ? 3 : 0}}, {"r", {0.25F, 0}}};
    const Placement placement = place_quantization(graph, {});
    onnx::ModelFile file(bytes);
    const FileQuantization done = quantize_file(file, graph, placement, scales, codes);
    EXPECT_EQ(done.pairs, 2u);
    EXPECT_EQ(done.weights, 2u);
    quantize_graph(graph, placement, scales, codes);
    EXPECT_EQ(structure_key(imported(file.encode())), structure_key(graph));
    const std::vector<Tensor> inputs{Tensor::of<float>({1, 4}, {1, -2, 3, 0.3F})};
    EXPECT_THAT(evaluate(imported(file.encode()), inputs)[0].data<float>(),
                testing::ElementsAreArray(evaluate(graph, inputs)[0].data<float>()));
  }
}

TEST(QuantizeFile, LeavesNoFloatWeightsBehind) {
  const Blob bytes = model(17);
  const Graph graph = imported(bytes);
  onnx::ModelFile file(bytes);
  quantize_file(file, graph, place_quantization(graph, {}), {{"x", {}}, {"r", {}}}, Codes::symmetric);
  for (const onnx::NamedMessage& initializer : file.initializers) {
    EXPECT_NE(initializer.name, "w");
    EXPECT_NE(initializer.name, "v");
  }
}

TEST(QuantizeFile, OldModelsAreBroughtToScalesForEachChannel) {
  const Blob bytes = model(9);
  const Graph graph = imported(bytes);
  onnx::ModelFile file(bytes);
  quantize_file(file, graph, place_quantization(graph, {}), {{"x", {}}, {"r", {}}}, Codes::symmetric);
  EXPECT_EQ(file.opsets[""], 13);
}

TEST(QuantizeFile, WeightsOfFourBitsAreStandard) {
  const Blob bytes = model(17);
  const Graph graph = imported(bytes);
  onnx::ModelFile file(bytes);
  const FileQuantization done = quantize_weights_in_file(file, graph, place_weights(graph, {}), {.block = 3}, {});
  EXPECT_EQ(done.weights, 2u);
  EXPECT_EQ(file.opsets[""], 21);
  const std::vector<Tensor> inputs{Tensor::of<float>({1, 4}, {1, -2, 3, 0.3F})};
  const Tensor found = evaluate(imported(file.encode()), inputs)[0], exact = evaluate(graph, inputs)[0];
  EXPECT_NEAR(found.real(0), exact.real(0), 1e-5);
}

TEST(ReadScales, ThoseOfAnotherModelAndZerosAreRefused) {
  const Graph graph = imported(model(17));
  const auto scales = [&](const std::map<std::string, float>& given) {
    return scales_in({"TRT-8601-EntropyCalibration2", given}, graph, silent_logger());
  };
  std::string said;
  const Logger log([&](Severity, std::string_view text) { said += text; });
  EXPECT_EQ(scales_in({"TRT-8601-EntropyCalibration2", {{"x", 0.5F}, {"nobody", 1}}}, graph, log).size(), 1u);
  EXPECT_THAT(
      said, HasSubstr("Read 2 scales of TRT-8601-EntropyCalibration2; 1 of them are of tensors that the network does"));
  EXPECT_THAT(error_of([&] { scales({{"nobody", 1}}); }), HasSubstr("none of its 1 tensors"));
  EXPECT_THAT(error_of([&] { scales({{"x", 0}}); }), HasSubstr("the scale of tensor x is 0"));
}

TEST(CalibrationCache, ReadsScalesAndNamesTheLinesThatItCannotRead) {
  const CalibrationCache cache =
      parse_calibration_cache("TRT-8601-EntropyCalibration2\nx: 3c010a14\nnet:0: 3f800000\n\n");
  EXPECT_EQ(cache.calibrator, "TRT-8601-EntropyCalibration2");
  ASSERT_EQ(cache.scales.size(), 2u);
  EXPECT_EQ(cache.scales.at("net:0"), 1.0f);
  EXPECT_NEAR(cache.scales.at("x"), 0.00787593, 1e-8);
  const auto refused = [](std::string_view text) { return error_of([&] { parse_calibration_cache(text); }); };
  EXPECT_THAT(refused("TRT-8601-EntropyCalibration2\nx 3c010a14\ny: 3c01\nz: 3f800000\nw: 7f800000\n: 3f800000\n"),
              HasSubstr("4 of its lines cannot be read: line 2, 3 (tensor y), 5 (tensor w), 6"));
  EXPECT_THAT(refused("x: 3c010a14\n"), HasSubstr("line 1 does not name a calibrator"));
  EXPECT_THAT(refused(""), HasSubstr("line 1 does not name a calibrator"));
}

TEST(CalibrationCache, ReadsWhatItWrites) {
  const CalibrationCache cache{"TRT-101600-EntropyCalibration2", {{"net:0", 0.00787593F}, {"x", 3}}};
  const std::string text = format_calibration_cache(cache);
  EXPECT_THAT(text, HasSubstr("net:0: 3c010a"));
  EXPECT_EQ(parse_calibration_cache(text).scales, cache.scales);
}

}  // namespace
}  // namespace hone
