// SPDX-License-Identifier: Apache-2.0
//
// For tests: one operator applied to tensors, through inference and reference meaning as in any graph.
#pragma once

#include <gmock/gmock.h>

#include "ops/all.h"

namespace hone {

inline std::vector<Tensor> run_all(std::string_view op, const std::vector<Tensor>& operands, Attrs attrs = {},
                                   size_t outputs = 0) {
  Graph graph;
  std::vector<Value*> inputs;
  std::vector<Tensor> given;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor& operand = operands[i];
    if (operand.dims() == Dims{0}) {
      inputs.push_back(nullptr);  // a default-made tensor: operand not given
    } else if (i == 0) {
      inputs.push_back(graph.add_input("x", operand.type()));
      given.push_back(operand);
    } else {
      inputs.push_back(graph.add_constant(operand));
    }
  }
  const Node* node = graph.add(*find_op(op), inputs, std::move(attrs), "node", outputs);
  graph.set_outputs({node->outputs.begin(), node->outputs.end()});
  std::vector<Tensor> results = evaluate(graph, given);
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(node->outputs[i]->type, results[i].type()) << "inference and meaning differ";
  return results;
}

inline Tensor run_op(std::string_view op, const std::vector<Tensor>& operands, Attrs attrs = {}) {
  return run_all(op, operands, std::move(attrs)).front();
}

inline Tensor floats(Dims dims, std::vector<float> values) {
  return Tensor::of<float>(std::move(dims), std::span<const float>(values));
}
inline Tensor counted(Dims dims, float first = 0) {
  std::vector<float> values(static_cast<size_t>(elements(dims)));
  for (float& value : values) value = first++;
  return floats(std::move(dims), values);
}
inline Tensor integers(std::vector<int64_t> values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, std::span<const int64_t>(values));
}

inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.size(); ++i) values.push_back(tensor.real(i));
  return values;
}

inline void expect_near(const Tensor& tensor, const Dims& dims, const std::vector<double>& expected,
                        double tolerance = 1e-6) {
  EXPECT_EQ(tensor.dims(), dims);
  EXPECT_THAT(values_of(tensor), testing::Pointwise(testing::DoubleNear(tolerance), expected));
}

}  // namespace hone
