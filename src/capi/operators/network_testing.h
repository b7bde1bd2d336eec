// SPDX-License-Identifier: Apache-2.0
//
// A network with an operator of com.acme between neighbours that fuse.
#pragma once

#include "base/bytes.h"
#include "onnx/model_writer.h"

namespace hone::capi {

/// y = |−Op(relu(x w))| of x[n,4].
inline Blob network_around(const std::string& op, const std::string& node, const std::vector<std::string>& attributes) {
  using W = onnx::ModelWriter;
  std::string weights;
  for (int i = 0; i < 12; ++i) {
    const auto value = static_cast<float>(i + 1);
    weights.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return W::model(W::graph(
      {.nodes = {W::node("MatMul", {"x", "w"}, {"h"}, {}, "multiply"), W::node("Relu", {"h"}, {"r"}, {}, "clip"),
                 W::node(op, {"r"}, {"s"}, attributes, node, "com.acme"), W::node("Neg", {"s"}, {"m"}, {}, "minus"),
                 W::node("Abs", {"m"}, {"y"}, {}, "abs")},
       .initializers = {W::raw_tensor("w", 1, {4, 3}, weights)},
       .inputs = {W::value("x", 1, {W::dim("n"), W::dim(4)})},
       .outputs = {W::value("y", 1, {W::dim("n"), W::dim(3)})}}));
}

}  // namespace hone::capi
