// SPDX-License-Identifier: Apache-2.0
//
// Making identifiers of exporters' names ("unk__123", "batch size", "2*s0 + 1").
#include "onnx/symbols.h"

#include <cctype>

#include "base/error.h"

namespace hone::onnx {

std::string Symbols::fresh(std::string_view wish) {
  std::string base;
  for (const char c : wish) base += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base.front())) != 0) base.insert(0, "d_");
  std::string name = base;
  for (int i = 2; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

Dim Symbols::named(std::string_view parameter) {
  const auto at = by_parameter_.find(parameter);
  if (at != by_parameter_.end()) return at->second;
  return by_parameter_.emplace(std::string(parameter), Dim::symbol(fresh(parameter))).first->second;
}

Shape Symbols::shape(const ValueProto& input) {
  std::vector<Dim> dims;
  for (const DimProto& dim : *input.shape) {
    // Some exporters write -1 for an open size.
    if (dim.value && *dim.value >= 0) dims.emplace_back(*dim.value);
    else if (!dim.parameter.empty()) dims.push_back(named(dim.parameter));
    else dims.push_back(Dim::symbol(fresh(fmt::format("{}_{}", input.name, dims.size()))));
  }
  return Shape(std::move(dims));
}

std::map<std::string, std::string> Symbols::parameters() const {
  std::map<std::string, std::string> all;
  for (const std::string& symbol : taken_) all[symbol];
  for (const auto& [parameter, dim] : by_parameter_) all[dim.text()] = parameter;
  return all;
}

}  // namespace hone::onnx
