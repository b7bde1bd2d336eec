// SPDX-License-Identifier: Apache-2.0
#include "quantize/few_bits_operators.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace hone {
namespace {

struct Group {
  int bf16_since;  // 0: never
  std::string_view operators;
};
constexpr Group kGroups[] = {{13,
                              "Abs Add Ceil Clip Concat DepthToSpace Div Erf Exp Expand Flatten Floor Gather "
                              "GatherElements GatherND Gemm Hardmax Identity LRN Log "
                              "LogSoftmax MatMul Max Mean MeanVarianceNormalization Min Mod Mul Neg Pad Reciprocal "
                              "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp "
                              "ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape "
                              "ScatterElements ScatterND Sigmoid Sign Slice Softmax "
                              "SpaceToDepth Split Sqrt Squeeze Sub Sum Tanh Tile Transpose Unsqueeze"},
                             {14, "BatchNormalization Trilu"},
                             {15, "Pow"},
                             {16, "LeakyRelu PRelu Where"},
                             {17, "LayerNormalization"},
                             {20, "Gelu"},
                             {21, "GroupNormalization"},
                             {22,
                              "Acos Acosh Asin Asinh Atan Atanh AveragePool Conv ConvTranspose Cos Cosh DeformConv "
                              "Dropout Elu GRU GlobalAveragePool GlobalLpPool "
                              "GlobalMaxPool HardSigmoid HardSwish InstanceNormalization LSTM LpNormalization LpPool "
                              "MaxPool Mish RNN Round Selu Sin Sinh Softplus "
                              "Softsign Tan ThresholdedRelu"},
                             {23, "Attention RMSNormalization"},
                             {24, "Swish"},
                             {0, "Einsum Resize"}};
/// The same of those whose results are no floats.
constexpr Group kAnswers[] = {
    {13, "ArgMax ArgMin Equal Greater IsNaN Less Shape Size"}, {16, "GreaterOrEqual LessOrEqual"}, {20, "IsInf"}};

std::optional<int> bf16_since(std::span<const Group> groups, std::string_view op_type, bool& found) {
  for (const Group& group : groups)
    for (const std::string_view name : split(group.operators, ' '))
      if (name == op_type) {
        found = true;
        return group.bf16_since == 0 ? std::nullopt : std::optional(group.bf16_since);
      }
  return std::nullopt;
}

}  // namespace

std::optional<FewBitsOperator> few_bits_operator(std::string_view op_type) {
  bool computes = false, answers = false;
  FewBitsOperator found{bf16_since(kGroups, op_type, computes)};
  if (!computes) found.bf16_since = bf16_since(kAnswers, op_type, answers);
  if (!computes && !answers) return std::nullopt;
  found.answers = answers;
  if (op_type == "Resize") found.operands = 1;  // the others are its sizes
  return found;
}

}  // namespace hone
