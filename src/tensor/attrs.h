// SPDX-License-Identifier: Apache-2.0
//
// Attrs: named values of nodes, tactics and steps. An ordered map, so that text and hashes are stable.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tensor/tensor.h"

namespace hone {

using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                               std::vector<std::string>, Tensor>;

class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const std::string, AttrValue>> values) : values_(values) {}

  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  void set(std::string name, AttrValue value) { values_.insert_or_assign(std::move(name), std::move(value)); }
  void erase(std::string_view name);
  const AttrValue* find(std::string_view name) const;

  /// Typed readers: throw InternalError when missing (schemas fill defaults in before), Error when of another kind.
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  const std::vector<int64_t>& integers(std::string_view name) const;
  const std::vector<double>& reals(std::string_view name) const;
  const std::vector<std::string>& texts(std::string_view name) const;
  const Tensor& tensor(std::string_view name) const;
  int64_t integer_or(std::string_view name, int64_t fallback) const { return has(name) ? integer(name) : fallback; }

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  bool empty() const { return values_.empty(); }
  size_t size() const { return values_.size(); }
  /// "axis=1, pads=[0, 0], mode=\"same\"": the IR's text; inverse in ir/text.
  std::string print() const;

 private:
  std::map<std::string, AttrValue, std::less<>> values_;
};

std::string print_value(const AttrValue& value);

}  // namespace hone
