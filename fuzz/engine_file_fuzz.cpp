// SPDX-License-Identifier: Apache-2.0
//
// Exported files of engines, of any shape, are read or refused; of what was read a page, a summary and a picture can be made, the page's
// data is JSON that nothing in it ends early, and every layer stands in the alignment with another engine exactly once.
// An input is layer information, a profile and times, with a line "---" between.
#include <set>

#include "base/text.h"
#include "explore/align.h"
#include "explore/drawing.h"
#include "explore/page.h"
#include "explore/summary.h"
#include "harness.h"

namespace hone::fuzz {
namespace {

constexpr std::string_view kBetween = "\n---\n";

constexpr std::string_view kGraph = R"json({"Layers": [
{"Name": "copy", "LayerType": "Reformat", "ParameterType": "Reformat", "Origin": "QDQ", "Inputs": [{"Name": "x", "Dimensions": [1, 3, 8, 8],
 "Format/Datatype": "Row major linear FP32"}], "Outputs": [{"Name": "x8", "Dimensions": [1, 3, 8, 8], "Format/Datatype": "Int8"}]},
{"Name": "conv\u001frelu", "LayerType": "CpuConvolution", "ParameterType": "Convolution", "Inputs": [{"Name": "x8", "Location": "Host",
 "Dimensions": [1, 3, 8, 8], "Format/Datatype": "Int8"}], "Outputs": [{"Name": "y", "Dimensions": [-1, 16, 6, 6], "Format/Datatype": "Half"}],
 "Kernel": [3, 3], "Groups": 1, "Flops": 31104, "Weights": {"Type": "Int8", "Count": 432}, "Bias": {"Type": "Float", "Count": 16},
 "Activation": "RELU", "Operations": ["relu(arg0)"], "TacticName": "cpu.conv(block=8)", "Metadata": "[ONNX Layer: conv][ONNX Layer: relu[0]]"},
{"Name": "flat", "LayerType": "NoOp", "Inputs": [{"Name": "y", "Dimensions": [1, 16, 6, 6]}], "Outputs": [{"Name": "z", "Dimensions": [1, 576]}]},
{"Name": "fc", "LayerType": "gemm", "Inputs": [{"Name": "z", "Dimensions": [1, 576], "Format/Datatype": "Float"}],
 "Outputs": [{"Name": "out", "Dimensions": [1, 10], "Format/Datatype": "Float"}], "TacticName": "sgemm"}],
"Bindings": ["x", "out"], "Memory": [{"Tensor": "y", "Offset": 0, "Bytes": 1152, "First": 1, "Last": 3}], "Folded": []})json";

constexpr std::string_view kProfile =
    R"([{"count": 5}, {"name": "copy", "timeMs": 5, "averageMs": 1, "medianMs": 0.5, "percentage": 50},
{"name": "conv+relu", "averageMs": 0.75, "percentage": 37.5}, {"name": "fc", "averageMs": 0.25, "percentage": 12.5}])";

constexpr std::string_view kTimes = R"([{"latencyMs": 2, "h2dMs": 0}, {"latencyMs": 4}])";

}  // namespace

std::vector<std::string> seed_inputs() {
  const std::string graph(kGraph), between(kBetween);
  return {graph, graph + between + std::string(kProfile),
          graph + between + std::string(kProfile) + between + std::string(kTimes)};
}

void check_alignment(const EngineRows& engine, const EngineRows& other) {
  std::multiset<size_t> first, second;
  for (const LayerPair& pair : align_layers(engine.layers, other.layers)) {
    first.insert(pair.first.begin(), pair.first.end());
    second.insert(pair.second.begin(), pair.second.end());
  }
  const auto once = [](const std::multiset<size_t>& rows, size_t count) {
    return rows.size() == count && std::set<size_t>(rows.begin(), rows.end()).size() == count;
  };
  HONE_ASSERT(once(first, engine.layers.size()) && once(second, other.layers.size()),
              "a layer is lost in an alignment");
}

void check_page(const std::string& page) {
  constexpr std::string_view kData = R"(<script type="application/json" id="data">)";
  const size_t begin = page.find(kData) + kData.size(), end = page.find("</script>", begin);
  const std::string_view data = std::string_view(page).substr(begin, end - begin);
  HONE_ASSERT(data.find('<') == std::string_view::npos, "the data of a page holds markup");
  HONE_ASSERT(nlohmann::json::accept(data), "the data of a page is no JSON");
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  static const EngineRows kOther = read_engine("other", fuzz::seed_inputs()[0], "", "");
  const std::string_view text = fuzz::text_of(data, size);
  std::string_view parts[3];
  size_t at = 0;
  for (std::string_view& part : parts) {
    const size_t end = at > text.size() ? std::string_view::npos : text.find("\n---\n", at);
    part = at > text.size() ? "" : text.substr(at, end - at);
    at = end == std::string_view::npos ? text.size() + 1 : end + 5;
  }
  fuzz::accepted([&] {
    const EngineRows engine = read_engine("engine", parts[0], parts[1], parts[2]);
    const std::vector<EngineRows> both{engine, kOther};
    fuzz::check_page(report_page(both));
    HONE_ASSERT(!summary_lines(engine, {.by_tactic = true}).empty(), "an engine has no summary");
    HONE_ASSERT(!drawing_svg(draw_engine(engine, {.regions = true}), "engine").empty(), "an engine has no picture");
    fuzz::check_alignment(engine, kOther);
  });
  return 0;
}
