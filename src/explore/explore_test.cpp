// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "base/error_testing.h"
#include "explore/align.h"
#include "explore/drawing.h"
#include "explore/hazards.h"
#include "explore/layout.h"
#include "explore/page.h"
#include "explore/summary.h"

namespace hone {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// As NVIDIA's trtexec writes it: sentences for formats, separators in names, constants and marks among the layers.
constexpr std::string_view kGraph = R"({"Layers": [
 {"Name": "weights", "LayerType": "Constant", "Inputs": [], "Outputs": [], "ParameterType": "Constant"},
 {"Name": "Reformatting CopyNode for Input Tensor 0 to conv", "LayerType": "Reformat", "ParameterType": "Reformat", "Origin": "QDQ",
  "Inputs": [{"Name": "x", "Dimensions": [1, 3, 8, 8], "Format/Datatype": "Row major linear FP32"}],
  "Outputs": [{"Name": "x8", "Dimensions": [1, 3, 8, 8], "Format/Datatype": "Four wide channel vectorized row major Int8 format"}],
  "TacticName": "", "Metadata": ""},
 {"Name": "conv\u001frelu", "LayerType": "CaskConvolution", "ParameterType": "Convolution",
  "Inputs": [{"Name": "x8", "Dimensions": [1, 3, 8, 8], "Format/Datatype": "Four wide channel vectorized row major Int8 format"}],
  "Outputs": [{"Name": "y", "Dimensions": [1, 16, 6, 6], "Format/Datatype": "Row major linear FP32"}],
  "Kernel": [3, 3], "Groups": 1, "OutMaps": 16, "Weights": {"Type": "Int8", "Count": 432}, "Bias": {"Type": "Float", "Count": 16},
  "TacticName": "sm80_xmma_fprop", "Metadata": "[ONNX Layer: conv]\u001e[ONNX Layer: relu[0]]"},
 {"Name": "flat", "LayerType": "NoOp", "Inputs": [{"Name": "y", "Dimensions": [1, 16, 6, 6], "Format/Datatype": "Row major linear FP32"}],
  "Outputs": [{"Name": "z", "Dimensions": [1, 576], "Format/Datatype": "Row major linear FP32"}]},
 {"Name": "fc", "LayerType": "gemm", "Inputs": [{"Name": "z", "Dimensions": [1, 576], "Format/Datatype": "Row major linear FP32"}],
  "Outputs": [{"Name": "out", "Dimensions": [1, 10], "Format/Datatype": "Row major linear FP32"}], "TacticName": "sgemm"}],
 "Bindings": ["x", "out"]})";

constexpr std::string_view kProfile =
    R"([{"count": 5}, {"name": "reformat", "timeMs": 5, "averageMs": 1, "medianMs": 0.5, "percentage": 50},
 {"name": "conv", "timeMs": 5, "averageMs": 0.75, "medianMs": 0.7, "percentage": 37.5},
 {"name": "fc", "timeMs": 5, "averageMs": 0.25, "percentage": 12.5}])";

EngineRows nvidia() { return read_engine("e", kGraph, kProfile, R"([{"latencyMs": 2}, {"latencyMs": 4}])"); }

LayerRow layer(std::string name, std::string type, std::vector<std::string> nodes, std::vector<int64_t> dims = {1, 8}) {
  LayerRow row;
  row.name = std::move(name), row.type = std::move(type), row.nodes = std::move(nodes);
  row.inputs = row.outputs = {{"t", "Float", element_word("Float"), std::move(dims)}};
  return row;
}

TEST(ElementWord, ReadsTheWordsOfBothPrograms) {
  for (const auto& [words, name, bits] :
       {std::tuple("Float", "FP32", 32), std::tuple("Half", "FP16", 16), std::tuple("BFloat16", "BF16", 16),
        std::tuple("Row major linear BFloat16 format", "BF16", 16), std::tuple("FP8", "FP8", 8),
        std::tuple("Bool", "BOOL", 8),
        std::tuple("Thirty-two wide channel vectorized row major Int8 format", "INT8", 8),
        std::tuple("UInt8", "UINT8", 8), std::tuple("Row major linear INT64", "INT64", 64),
        std::tuple("Int4", "INT4", 4), std::tuple("TF32", "FP32", 32)}) {
    EXPECT_EQ(element_word(words).name, name) << words;
    EXPECT_EQ(element_word(words).bits, bits) << words;
  }
  EXPECT_EQ(element_word("of tomorrow").bits, 0);
}

TEST(EngineFile, ReadsWhatNvidiasProgramWrites) {
  const EngineRows engine = nvidia();
  ASSERT_EQ(engine.layers.size(), 3u);
  const LayerRow& conv = engine.layers[1];
  EXPECT_EQ(conv.name, "conv+relu");
  EXPECT_THAT(conv.nodes, ElementsAre("conv", "relu[0]"));
  EXPECT_EQ(conv.precision, "INT8");
  EXPECT_EQ(conv.flops, 2 * 16 * 36 * 3 * 9);
  EXPECT_EQ(conv.weight_bytes, 432 + 64);
  EXPECT_EQ(conv.activation_bytes, 192 + 4 * 576);
  EXPECT_EQ(engine.layers[2].flops, 2 * 10 * 576);
  EXPECT_EQ(engine.layers[0].tactic, "TensorRT");
  EXPECT_THAT(engine.latencies, ElementsAre(2, 4));
  EXPECT_EQ(engine.bindings.at(1).dims.at(1), 10);
}

TEST(EngineFile, TimesOfOtherNamesGoByPlaceWhereTheCountsAgree) {
  const EngineRows engine = nvidia();
  EXPECT_DOUBLE_EQ(engine.layers[1].average_ms, 0.75);
  EXPECT_DOUBLE_EQ(engine.layers[2].median_ms, 0.25);  // an average where no median is given
  EXPECT_DOUBLE_EQ(engine.total_ms(), 2);
  EXPECT_THAT(error_of([] { read_engine("e", kGraph, R"([{"name": "a"}])", ""); }),
              HasSubstr("none of the 3 names of the layer information"));
}

TEST(EngineFile, WhatIsNoneIsRefused) {
  EXPECT_THAT(error_of([] { read_engine("e", "{\"Layers\": [", "", ""); }), HasSubstr("is no JSON"));
  EXPECT_THAT(error_of([] { read_engine("e", "[]", "", ""); }), HasSubstr("no list \"Layers\""));
  EXPECT_THAT(error_of([] { read_engine("e", R"({"Layers": ["conv"]})", "", ""); }), HasSubstr("names alone"));
  EXPECT_THAT(error_of([] { read_engine("e", R"({"Layers": [3]})", "", ""); }), HasSubstr("layer 0"));
  EXPECT_THAT(error_of([] { read_engine("e", kGraph, "{}", ""); }), HasSubstr("profile is no list"));
  const EngineRows odd = read_engine(
      "e", R"({"Layers": [{"Name": 3, "Inputs": [{"Dimensions": [1e300, "a", -1]}], "Flops": 1e300}]})", "", "");
  EXPECT_EQ(odd.layers.at(0).flops, 0);
  EXPECT_EQ(odd.layers.at(0).bytes(), 0);
}

TEST(Hazards, NameNarrowConvolutionsAndConversions) {
  const std::vector<Hazard> hazards = find_hazards(nvidia());
  std::string text;
  for (const Hazard& each : hazards) text += each.layer + ": " + each.hazard + "\n";
  EXPECT_THAT(text, HasSubstr("conv+relu: 3 input channels in INT8"));
  EXPECT_THAT(text, HasSubstr("conv+relu: reads INT8 and writes FP32"));
  EXPECT_THAT(text, HasSubstr("a Reformat that converts FP32 to INT8 (origin QDQ)"));
  EXPECT_EQ(hazards.front().layer, "conv+relu");  // the slowest first
}

TEST(Align, LayersOfTheSameNodesBelongTogether) {
  const std::vector<LayerRow> fused{layer("a+b", "Convolution", {"a", "b"}), layer("c", "Pooling", {"c"})},
      apart{layer("a", "Convolution", {"a"}), layer("copy", "Reformat", {}), layer("b", "PointWise", {"b"}),
            layer("c", "Pooling", {"c"})};
  const std::vector<LayerPair> pairs = align_layers(fused, apart);
  ASSERT_EQ(pairs.size(), 3u);
  EXPECT_THAT(pairs[0].first, ElementsAre(0));
  EXPECT_THAT(pairs[0].second, ElementsAre(0, 2));
  EXPECT_THAT(pairs[1].second, ElementsAre(3));
  EXPECT_THAT(pairs[2].first, testing::IsEmpty());
  EXPECT_THAT(pairs[2].second, ElementsAre(1));
}

TEST(Align, AConversionThatSeveralLayersReadDoesNotJoinThem) {
  const std::vector<LayerRow> floats{layer("a", "Convolution", {"a"}), layer("b", "Convolution", {"b"})},
      integers{layer("a", "Convolution", {"dq", "a"}), layer("b", "Convolution", {"dq", "b"})};
  for (const std::vector<LayerRow>& first : {floats, integers}) {
    const std::vector<LayerPair> pairs = align_layers(first, integers);
    ASSERT_EQ(pairs.size(), 2u);
    EXPECT_THAT(pairs[1].first, ElementsAre(1));
    EXPECT_THAT(pairs[1].second, ElementsAre(1));
  }
}

TEST(Align, WithoutNodesTypesAndShapesDecide) {
  const std::vector<LayerRow> one{layer("p", "Convolution", {}, {1, 8}), layer("q", "Reduce", {}, {1, 8})},
      two{layer("r", "Shuffle", {}), layer("s", "Convolution", {}, {4, 8}), layer("t", "Reduce", {}, {4, 9})};
  const std::vector<LayerPair> pairs = align_layers(one, two);
  ASSERT_EQ(pairs.size(), 4u);  // the batch does not count, other sizes do
  EXPECT_THAT(pairs[0].first, ElementsAre(0));
  EXPECT_THAT(pairs[0].second, ElementsAre(1));
  EXPECT_THAT(pairs[1].second, testing::IsEmpty());
}

TEST(Layout, BoxesDoNotOverlapAndEdgesGoDown) {
  constexpr BoxSizes kSizes{.width = 100, .height = 20, .gap_x = 10, .gap_y = 10};
  std::vector<std::pair<size_t, size_t>> edges;
  constexpr size_t kNodes = 3000;
  for (size_t i = 1; i < kNodes; ++i) edges.emplace_back(i % 7 == 0 ? i - 1 : i / 2, i);
  const GraphLayout layout = place_graph(kNodes, edges, kSizes);
  ASSERT_EQ(layout.nodes.size(), kNodes);
  for (const auto& [from, to] : edges) ASSERT_LT(layout.nodes[from].y, layout.nodes[to].y);
  std::map<double, std::vector<double>> rows;
  for (const PlacedNode& node : layout.nodes) rows[node.y].push_back(node.x);
  for (auto& [y, places] : rows) {
    std::ranges::sort(places);
    for (size_t i = 1; i < places.size(); ++i)
      ASSERT_GE(places[i] - places[i - 1], kSizes.width) << "in the row at " << y;
    ASSERT_GE(places.front(), kSizes.width / 2);
    ASSERT_LE(places.back(), layout.width - kSizes.width / 2);
  }
}

TEST(Page, NamesThatLookLikeMarkupStayText) {
  std::string graph(kGraph);
  graph.replace(graph.find("\"fc\""), 4, R"("</script><img src=x onerror=alert(1)>")");
  const std::vector<EngineRows> engines{read_engine("<b>", graph, "", "")};
  const std::string page = report_page(engines);
  EXPECT_THAT(page, Not(HasSubstr("<img src=x")));
  EXPECT_THAT(page, HasSubstr(R"(\u003c/script>\u003cimg)"));
}

TEST(Page, ViewsDoNotCutTheGraph) {
  const std::vector<EngineRows> engines{nvidia(), nvidia()};
  const nlohmann::ordered_json report = report_json(engines);
  const nlohmann::ordered_json& edges = report["engines"][0]["graph"]["edges"];
  std::vector<std::pair<int, int>> ends;
  for (const auto& edge : edges) ends.emplace_back(edge[0].get<int>(), edge[1].get<int>());
  // Of the network's input, the three layers and its output.
  EXPECT_THAT(ends, testing::ElementsAre(std::pair(0, 1), std::pair(1, 2), std::pair(2, 3), std::pair(3, 4)));
  EXPECT_EQ(report["comparisons"][0]["pairs"].size(), 3u);
}

TEST(Summary, SharesAddUp) {
  const std::vector<std::string> lines = summary_lines(nvidia(), {.by_tactic = true});
  double share = 0;
  for (const std::string& line : lines)
    if (line.ends_with("TensorRT") || line.ends_with("fprop") || line.ends_with("sgemm")) share += std::stod(line);
  EXPECT_DOUBLE_EQ(share, 100);
}

EngineRows rewritten() {
  EngineRows engine;
  for (const auto& [name, reads, writes] :
       {std::tuple("first", "x", "buffer"), std::tuple("second", "buffer", "other"),
        std::tuple("third", "other", "buffer"), std::tuple("last", "buffer", "y")}) {
    LayerRow row = layer(name, "Convolution", {});
    row.inputs[0].name = reads, row.outputs[0].name = writes;
    engine.layers.push_back(row);
  }
  engine.bindings = {engine.layers[0].inputs[0], engine.layers[3].outputs[0]};
  return engine;
}

TEST(Drawing, UnrollsMemoryThatIsWrittenSeveralTimes) {
  const Drawing drawing = draw_engine(rewritten(), {.region_names = true});
  std::vector<std::string> tells;
  for (const DrawnBox& box : drawing.boxes) tells.push_back(box.tells.substr(0, box.tells.find('\n')));
  EXPECT_THAT(tells, ElementsAre("x", "first", "buffer (gen=0)", "second", "third", "buffer (gen=1)", "last", "y"));
  for (const DrawnArrow& arrow : drawing.arrows) EXPECT_LT(arrow.from, arrow.to);
  EXPECT_EQ(drawing.arrows.size(), 7u);
}

TEST(Drawing, KeepsWhatABeamOrAQueryAsksFor) {
  const Drawing beam = draw_engine(rewritten(), {.beam = "second", .radius = 1});
  EXPECT_EQ(beam.boxes.size(), 3u);
  EXPECT_TRUE(beam.boxes[1].marked);
  EXPECT_EQ(draw_engine(rewritten(), {.query = "^first"}).boxes.size(), 3u);
  EXPECT_THROW(draw_engine(rewritten(), {.query = "("}), Error);
  EXPECT_THROW(draw_engine(rewritten(), {.query = "nowhere"}), Error);
  EXPECT_THROW(draw_engine(rewritten(), {.beam = "nowhere"}), Error);
}

TEST(Drawing, FollowsViewsOfNvidiasEngines) {
  const Drawing drawing = draw_engine(nvidia(), {});
  EXPECT_EQ(drawing.boxes.size(), 5u);  // three layers, an input, an output
  EXPECT_EQ(drawing.arrows.size(), 4u);
  EXPECT_THAT(drawing_svg(drawing, "<t>"), AllOf(HasSubstr("#6B8E23"), HasSubstr("&lt;t&gt;"), Not(HasSubstr("<t>"))));
  EXPECT_THAT(drawing_dot(drawing, "t"), HasSubstr("n0 -> n1"));
}

}  // namespace
}  // namespace hone
