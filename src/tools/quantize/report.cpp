// SPDX-License-Identifier: Apache-2.0
#include "tools/quantize/report.h"

#include <algorithm>

#include "tools/common/terminal.h"

namespace hone {
namespace {

/// The largest magnitude that the codes stand for.
double largest(const TensorScale& scale, Codes codes) {
  return static_cast<double>(scale.scale) *
         (codes == Codes::asymmetric ? std::max(scale.zero, 255 - scale.zero) : largest_code(codes));
}

Json tensors_json(const QuantizedModel& given, Codes codes) {
  Json tensors = Json::array();
  for (const PlacedTensor& tensor : given.placement.tensors) {
    const std::string& name = tensor.value->name;
    const TensorScale& scale = given.scales.at(name);
    Json row{{"tensor", name}, {"scale", scale.scale}, {"zero_point", scale.zero}};
    if (const auto found = given.seen.find(name); found != given.seen.end()) {
      const Histogram& histogram = found->second;
      row["min"] = histogram.min();
      row["max"] = histogram.max();
      row["clipped_to"] = largest(scale, codes);
      row["clipped"] = share_beyond(histogram, largest(scale, codes));
    }
    tensors.push_back(std::move(row));
  }
  return tensors;
}

void print_tensors(const Json& tensors, const Page& page) {
  page.line(fmt::format("  {:>12} {:>12} {:>12} {:>12} {:>9}  {}", "min", "max", "amax", "scale", "clipped", "tensor"));
  for (const Json& row : tensors) {
    const bool seen = row.contains("min");
    const auto real = [&](const char* key) { return seen ? fmt::format("{:.5g}", row[key].get<double>()) : ""; };
    page.line(fmt::format("  {:>12} {:>12} {:>12} {:>12.6g} {:>9}  {}", real("min"), real("max"), real("clipped_to"),
                          row["scale"].get<double>(),
                          seen ? fmt::format("{:.3f} %", 100 * row["clipped"].get<double>()) : "",
                          row["tensor"].get<std::string>()));
  }
}

Json sensitivity_json(const QuantizedModel& given) {
  Json rows = Json::array();
  for (const NodeError& node : given.ranked)
    rows.push_back({{"node", node.node}, {"error", node.error}, {"kept", given.kept.contains(node.node)}});
  return rows;
}

void print_sensitivity(const Json& summary, const Page& page) {
  page.line(fmt::format("  {:>12} {:>9}  {}", "error alone", "", "layer"));
  for (const Json& row : summary["sensitivity"])
    page.line(fmt::format("  {:>12.4g} {:>9}  {}", row["error"].get<double>(), row["kept"].get<bool>() ? "kept" : "",
                          row["node"].get<std::string>()));
  page.pair("error", fmt::format("{:.4g} of the outputs, relatively", summary["error"].get<double>()));
}

void print_errors(const Json& rows, const Page& page) {
  page.line(fmt::format("  {:>12} {:>12} {:>12}  {}", "cosine", "relative", "largest", "tensor"));
  for (const Json& row : rows)
    page.line(fmt::format("  {:>12.6f} {:>12.4g} {:>12.4g}  {}", row["cosine_similarity"].get<double>(),
                          row["relative_error"].get<double>(), row["max_error"].get<double>(),
                          row["tensor"].get<std::string>()));
}

void print_converted(const Json& summary, const Page& page) {
  const auto nodes = summary["nodes"].get<size_t>();
  const std::string type = summary["mode"] == "fp16" ? "FP16" : "BF16";
  page.pair("converted", fmt::format("{} of {} nodes on floats to {}, {} casts", nodes, nodes + summary["left"].size(),
                                     type, summary["casts"].get<size_t>()));
  for (const Json& left : summary["left"])
    page.line(fmt::format("  {} ({}) stays in FP32: {}", left["node"].get<std::string>(),
                          left["operator"].get<std::string>(), left["reason"].get<std::string>()));
}

void print_quantized(const Json& summary, const Page& page) {
  const auto nodes = summary["nodes"].get<size_t>();
  if (!summary["tensors"].empty()) print_tensors(summary["tensors"], page);
  page.pair("quantised", fmt::format("{} of {} convolutions and matmuls, {} tensors", nodes,
                                     nodes + summary["left"].size(), summary["pairs"].get<size_t>()));
  for (const Json& left : summary["left"])
    page.line(fmt::format("  {} stays in floating point: {}", left["node"].get<std::string>(),
                          left["reason"].get<std::string>()));
  for (const Json& done : summary["prepared"]) page.line("  " + done.get<std::string>());
}

}  // namespace

Json summary_of(const QuantizedModel& model, const FileQuantization& written, const QuantizeRequest& request) {
  Json left = Json::array();
  for (const UnquantizedNode& node : model.placement.left)
    left.push_back({{"node", node.node->name}, {"reason", node.reason}});
  Json summary{{"file", request.out},
               {"mode", request.mode_text()},
               {"ranges", model.source},
               {"nodes", model.placement.nodes},
               {"pairs", written.pairs},
               {"weights", written.weights},
               {"tensors", tensors_json(model, request.codes)},
               {"left", left},
               {"prepared", model.done}};
  if (!model.ranked.empty()) summary["sensitivity"] = sensitivity_json(model);
  if (model.error) summary["error"] = *model.error;
  return summary;
}

Json summary_of(const FewBitsModel& model, const QuantizeRequest& request) {
  Json left = Json::array();
  for (const KeptNode& node : model.left)
    left.push_back({{"node", node.node}, {"operator", node.op_type}, {"reason", node.reason}});
  const std::string ranges = request.mode == QuantizeMode::bf16 ? "BF16 has those of FP32"
                             : request.data.empty()
                                 ? "those of constants alone; --data shows what computed tensors reach"
                                 : fmt::format("constants, and tensors on {}", request.data);
  return {{"file", request.out},  {"mode", request.mode_text()}, {"ranges", ranges},
          {"nodes", model.nodes}, {"casts", model.casts},        {"left", left}};
}

Json errors_json(const std::vector<TensorError>& errors) {
  Json rows = Json::array();
  for (const TensorError& error : errors)
    rows.push_back({{"tensor", error.tensor},
                    {"cosine_similarity", error.cosine},
                    {"relative_error", error.relative},
                    {"max_error", error.largest}});
  return rows;
}

void print_summary(const Json& summary, const std::string& model) {
  const Page page;
  const auto out = summary["file"].get<std::string>();
  page.title(fmt::format("{} -> {}", model, out));
  if (summary.contains("casts")) print_converted(summary, page);
  else print_quantized(summary, page);
  if (summary.contains("sensitivity")) print_sensitivity(summary, page);
  if (summary.contains("verified")) print_errors(summary["verified"], page);
  page.pair("ranges", summary["ranges"].get<std::string>());
  page.pair("took", fmt::format("{:.1f} s", summary["seconds"].get<double>()));
  page.pair("next", fmt::format("hone bench {}", out));
}

}  // namespace hone
