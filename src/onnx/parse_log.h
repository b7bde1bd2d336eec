// SPDX-License-Identifier: Apache-2.0
//
// The parser's verbose lines, worded as trtexec words them. Each does nothing unless verbose lines are wanted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "ir/graph.h"

namespace hone::onnx {

class ParseLog {
 public:
  explicit ParseLog(const Logger& log) : log_(log), enabled_(log.enabled(Severity::verbose)) {}

  const Logger& logger() const { return log_; }
  void network_input(const Value& value) const;
  void initializer(std::string_view name) const;
  void node_begins(std::string_view node, std::string_view op) const;
  void searching(std::string_view input) const;
  void node_inputs(std::string_view node, std::string_view op, const std::vector<std::string_view>& names,
                   const std::vector<Value*>& values) const;
  void layer(std::string_view node) const;
  void node_outputs(std::string_view node, std::string_view op, const std::vector<std::string_view>& names,
                    const std::vector<Value*>& values) const;
  void network_output(std::string_view name) const;

 private:
  const Logger& log_;
  bool enabled_;
};

}  // namespace hone::onnx
