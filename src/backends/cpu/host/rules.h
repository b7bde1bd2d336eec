// SPDX-License-Identifier: Apache-2.0
//
// How each operator of the source "host" is run: operands as tensors, results into memory that is asked for once their sizes are known.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "ir/graph.h"

namespace hone::cpu {

/// Where the results of a node go.
class HostResults {
 public:
  /// By result of the node its type and address; the type of one that nobody asks for is null.
  struct Place {
    const ConcreteType* type = nullptr;
    void* memory = nullptr;
  };
  explicit HostResults(std::vector<Place> places) : places_(std::move(places)) {}

  bool wants(size_t i) const { return i < places_.size() && places_[i].type != nullptr; }
  /// Throws Error where sizes are not those that were planned.
  std::span<std::byte> room(size_t i, DType dtype, const Dims& dims) const;
  template <typename T>
  std::span<T> write(size_t i, const Dims& dims) const {
    const std::span<std::byte> bytes = room(i, dtype_of<T>(), dims);
    return {reinterpret_cast<T*>(bytes.data()), static_cast<size_t>(elements(dims))};
  }

 private:
  std::vector<Place> places_;
};

using HostOperands = std::span<const Tensor* const>;

struct HostRule {
  const OpDef* op;
  /// Why it is left to the reference; empty where it is not.
  std::string (*reason_against)(const Node&);
  void (*run)(const Node&, HostOperands, const HostResults&);
};

/// Null where there is none.
const HostRule* host_rule(const Node& node);

void run_unique(const Node& node, HostOperands operands, const HostResults& results);

}  // namespace hone::cpu
