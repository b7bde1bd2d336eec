// SPDX-License-Identifier: Apache-2.0
//
// Symbols: the names of sizes that a model leaves open. The same dim_param is the same symbol everywhere; a size without
// a name is called after its input and axis.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "onnx/proto.h"
#include "tensor/shape.h"

namespace hone::onnx {

class Symbols {
 public:
  Shape shape(const ValueProto& input);
  /// Of each symbol, what the model calls it; "": nothing.
  std::map<std::string, std::string> parameters() const;

 private:
  Dim named(std::string_view parameter);
  std::string fresh(std::string_view wish);

  std::map<std::string, Dim, std::less<>> by_parameter_;
  std::set<std::string> taken_;
};

}  // namespace hone::onnx
