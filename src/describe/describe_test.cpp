// SPDX-License-Identifier: Apache-2.0
//
// What a plan says of itself against what the documented output of the original says; every JSON text is parsed by a strict parser, with
// names that need escaping.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "describe/explain.h"
#include "describe/layer_info.h"
#include "describe/precision.h"

namespace hone {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

Plan small_plan(std::string verbosity) {
  Plan plan;
  plan.meta.backend = "cpu";
  plan.meta.profiling_verbosity = std::move(verbosity);
  const TensorType image{DType::f32, Shape{Dim::symbol("n"), 3, 8, 8}};
  plan.io = {{"x\"1", image, true}, {"y", image, false}};
  Profile profile;
  profile.buffers = {{"x\"1", image, BufferKind::input}, {"y", image, BufferKind::output}};
  Step conv;
  conv.name = "conv + \"relu\"";
  conv.origin = {"conv", "relu"};
  conv.kind = "Convolution";
  conv.source = "cpu";
  conv.tactic = "conv_nhwc";
  conv.tactic_params = {{"mr", int64_t{14}}};
  conv.details = {{"Stride", std::vector<int64_t>{1, 1}},
                  {"Kernel", std::vector<int64_t>{3, 3}},
                  {"WeightsCount", int64_t{81}},
                  {"HasReLU", int64_t{1}}};
  conv.inputs = {0};
  conv.outputs = {1};
  conv.code = 0;
  Step view = conv;
  view.name = "view";
  view.code = -1;
  profile.steps = {conv, view};
  plan.profiles = {profile};
  plan.log = {{"conv + \"relu\"",
               {{"reference.region()", 2, 0.1, ""},
                {"cpu.conv_nhwc(mr=14)", 0.5, 0.01, ""},
                {"onednn.conv", -1, 0, "refused: no such thing"}},
               "cpu.conv_nhwc(mr=14)"}};
  return plan;
}

TEST(Precision, CountsLayersAndTheirShareOfTheTunedTime) {
  Plan plan = small_plan("none");
  Profile& profile = plan.profiles[0];
  EXPECT_EQ(precision_text(profile), "FP32 in 1 of 1 layers");
  profile.steps[0].tuned_ms = 0.75;
  profile.buffers.push_back({"ids", {DType::i64, Shape{4}}, BufferKind::arena});
  Step indices = profile.steps[0];
  indices.inputs = indices.outputs = {2};
  indices.tuned_ms = 0.25;
  profile.steps.push_back(indices);
  EXPECT_EQ(precision_text(profile), "FP32 in 1 of 2 layers (75.0 % of the tuned time), INT64 in 1 (25.0 %)");
}

TEST(LayerInfo, NamesOnlyIsAListOfNames) {
  const Plan plan = small_plan("layer_names_only");
  EXPECT_EQ(layer_info_json(plan, 0, {}),
            "{\"Layers\": [\"conv + \\\"relu\\\"\"\n,\"view\"\n],\n\"Bindings\": [\"x\\\"1\"\n,\"y\"\n]}\n");
  EXPECT_THAT(layer_info_lines(plan, 0, {}), ElementsAre("conv + \"relu\"", "view", "Bindings:", "x\"1", "y"));
}

TEST(LayerInfo, NoneIsStillValid) {
  const Json json = Json::parse(layer_info_json(small_plan("none"), 0, {}));
  EXPECT_TRUE(json["Layers"].empty());
  EXPECT_EQ(json["Bindings"].size(), 2u);
}

TEST(LayerInfo, DetailedHasTheMembersOfTheOriginalInOrder) {
  const Plan plan = small_plan("detailed");
  const auto json = nlohmann::ordered_json::parse(layer_info_json(plan, 0, {}));
  const auto& layer = json["Layers"][0];
  std::vector<std::string> members;
  for (const auto& [name, value] : layer.items()) members.push_back(name);
  EXPECT_THAT(members, ElementsAre("Name", "LayerType", "Inputs", "Outputs", "ParameterType", "Kernel", "Stride",
                                   "Weights", "HasReLU", "HasSparseWeights", "HasDynamicFilter", "HasDynamicBias",
                                   "ConvXAsActInputIdx", "BiasAsActInputIdx", "ResAsActInputIdx", "TacticName",
                                   "TacticValue", "StreamId", "Metadata"));
  EXPECT_EQ(layer["Inputs"][0]["Dimensions"], nlohmann::ordered_json({-1, 3, 8, 8}));
  EXPECT_EQ(layer["Weights"]["Count"], 81);
  EXPECT_EQ(layer["Metadata"], "[ONNX Layer: conv][ONNX Layer: relu]");
  EXPECT_THAT(layer["TacticValue"].get<std::string>(), testing::MatchesRegex("0x[0-9a-f]{16}"));
  EXPECT_EQ(json["Layers"][1]["LayerType"], "NoOp");
  EXPECT_FALSE(json["Layers"][1].contains("TacticValue"));
}

TEST(LayerInfo, OneLineFormHasConcreteSizesInARun) {
  const Plan plan = small_plan("detailed");
  const SymbolValues symbols = symbols_at(plan, {{"x\"1", {4, 3, 8, 8}}});
  EXPECT_THAT(
      layer_info_lines(plan, 0, symbols)[0],
      AllOf(StartsWith("Name: conv + \"relu\", LayerType: CpuConvolution, Inputs: [ { Name: x\"1, Location: Host, "
                       "Dimensions: [4,3,8,8], Format/Datatype: Float }], "
                       "Outputs: [ { Name: y"),
            HasSubstr("ParameterType: Convolution, Kernel: [3,3], Stride: [1,1], Weights: {\"Type\": \"Float\", "
                      "\"Count\": 81}, HasReLU: 1, HasSparseWeights: 0, HasDynamicFilter: 0, HasDynamicBias: 0, "
                      "ConvXAsActInputIdx: -1, BiasAsActInputIdx: -1, ResAsActInputIdx: -1, TacticName: "
                      "cpu.conv_nhwc(mr=14), TacticValue: 0x"),
            HasSubstr("StreamId: 0, Metadata: [ONNX Layer: conv][ONNX Layer: relu]")));
}

TEST(Explain, ListsCandidatesFastestFirstAndRefusalsLast) {
  const std::vector<std::string> lines = explain_lines(small_plan("detailed"), "conv");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_THAT(lines[0],
              AllOf(StartsWith("conv + \"relu\""), HasSubstr("chosen: cpu.conv_nhwc(mr=14)"), HasSubstr("0.5000 ms")));
  EXPECT_THAT(lines[1], StartsWith(" * cpu.conv_nhwc(mr=14)"));
  EXPECT_THAT(lines[2], StartsWith("   reference.region()"));
  EXPECT_THAT(lines[3], HasSubstr("refused: no such thing"));
  EXPECT_THROW(explain_lines(small_plan("detailed"), "nothing"), Error);
}

}  // namespace
}  // namespace hone
