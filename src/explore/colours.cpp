// SPDX-License-Identifier: Apache-2.0
#include "explore/colours.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace hone {
namespace {

constexpr std::string_view kOther = "#808080";

struct Colour {
  std::string_view name, value;
};

constexpr Colour kTypes[] = {{"Convolution", "#4682B4"},   {"Deconvolution", "#7B68EE"},  {"ConvActPool", "#6495ED"},
                             {"gemm", "#1E90FF"},          {"MatrixMultiply", "#1E90FF"}, {"Attention", "#CE8B2C"},
                             {"Reformat", "#00FFFF"},      {"Shuffle", "#BC8F8F"},        {"Slice", "#FFA500"},
                             {"Scale", "#8FBC8B"},         {"Quantize", "#6B8E23"},       {"Dequantize", "#6B8E23"},
                             {"Pooling", "#3CB371"},       {"PluginV2", "#C71585"},       {"PointWise", "#9ACD32"},
                             {"ElementWise", "#9ACD32"},   {"Reduce", "#90EE90"},         {"SoftMax", "#DA70D6"},
                             {"Normalization", "#E6A8D7"}, {"Myelin", "#B39C4D"},         {"kgen", "#B39C4D"},
                             {"NonZero", "#98FB98"},       {"TrainStation", "#FFA07A"}};

struct Alike {
  std::string_view op, type;
};
constexpr Alike kOperators[] = {{"Conv", "Convolution"},
                                {"ConvInteger", "Convolution"},
                                {"QLinearConv", "Convolution"},
                                {"ConvTranspose", "Deconvolution"},
                                {"Gemm", "gemm"},
                                {"MatMul", "gemm"},
                                {"MatMulInteger", "gemm"},
                                {"QLinearMatMul", "gemm"},
                                {"MaxPool", "Pooling"},
                                {"AveragePool", "Pooling"},
                                {"GlobalAveragePool", "Pooling"},
                                {"GlobalMaxPool", "Pooling"},
                                {"Reshape", "Shuffle"},
                                {"Transpose", "Shuffle"},
                                {"Flatten", "Shuffle"},
                                {"Squeeze", "Shuffle"},
                                {"Unsqueeze", "Shuffle"},
                                {"Gather", "Slice"},
                                {"Split", "Slice"},
                                {"Concat", "Slice"},
                                {"BatchNormalization", "Scale"},
                                {"LayerNormalization", "Normalization"},
                                {"InstanceNormalization", "Normalization"},
                                {"GroupNormalization", "Normalization"},
                                {"QuantizeLinear", "Quantize"},
                                {"DynamicQuantizeLinear", "Quantize"},
                                {"DequantizeLinear", "Dequantize"},
                                {"Softmax", "SoftMax"},
                                {"LogSoftmax", "SoftMax"},
                                {"ReduceMean", "Reduce"},
                                {"ReduceSum", "Reduce"},
                                {"ReduceMax", "Reduce"},
                                {"ArgMax", "Reduce"},
                                {"Add", "ElementWise"},
                                {"Sub", "ElementWise"},
                                {"Mul", "ElementWise"},
                                {"Div", "ElementWise"},
                                {"Pow", "ElementWise"},
                                {"Relu", "PointWise"},
                                {"Sigmoid", "PointWise"},
                                {"Tanh", "PointWise"},
                                {"Clip", "PointWise"},
                                {"Gelu", "PointWise"},
                                {"Erf", "PointWise"},
                                {"HardSwish", "PointWise"},
                                {"LeakyRelu", "PointWise"}};

constexpr Colour kPrecisions[] = {{"INT8", "#76b900"}, {"UINT8", "#76b900"}, {"FP32", "#FF0000"},  {"FP16", "#FFA500"},
                                  {"BF16", "#FFC04D"}, {"INT32", "#D3D3D3"}, {"INT64", "#D3D3D3"}, {"FP8", "#00BFFF"},
                                  {"INT4", "#CC66FF"}, {"UINT4", "#CC66FF"}, {"FP4", "#F4D03F"}};

std::string_view find(std::span<const Colour> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Colour::name);
  return found == table.end() ? kOther : found->value;
}

}  // namespace

std::string_view colour_of_type(std::string_view type, std::string_view origin) {
  if (type == "Reformat" && origin == "QDQ") type = "Quantize";
  const auto alike = std::ranges::find(kOperators, type, &Alike::op);
  return find(kTypes, alike == std::end(kOperators) ? type : alike->type);
}

std::string_view colour_of_precision(std::string_view precision) { return find(kPrecisions, precision); }

nlohmann::ordered_json colours_json() {
  nlohmann::ordered_json types, precisions;
  for (const Colour& each : kTypes) types[each.name] = each.value;
  for (const Alike& each : kOperators) types[each.op] = find(kTypes, each.type);
  for (const Colour& each : kPrecisions) precisions[each.name] = each.value;
  return {{"type", std::move(types)}, {"precision", std::move(precisions)}, {"other", kOther}};
}

}  // namespace hone
