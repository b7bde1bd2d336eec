// SPDX-License-Identifier: Apache-2.0
//
// What a kernel of a single node keeps of it: the operator's name, its attributes, and where each operand and result is.
// An operand is an input of the region, a constant that is bound at launch, or contents that are known when the kernel is
// loaded: small constants, and numbers that follow from the input shapes. Families that compute one operator stand on this.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/kernel.h"
#include "device/tactic.h"

namespace hone::cpu {

/// The region's node, with its symbols, when there is one besides shape data; else null.
const Node* single_node(const Problem& problem);
/// Why no kernel of numbers can run a node: texts among its operands or results; empty when there is none.
std::string reason_not_numeric(const Node& node);
/// Everything in linear layout.
void offer_linear(const Problem& problem, std::string_view family, Candidates& out);
/// The node as attributes of a kernel's code; constants that are bound at launch go to `constants`. Operands in `without` are
/// left out: the family brings them into a form of its own.
Attrs describe_node(const Problem& problem, std::vector<Tensor>& constants, std::initializer_list<size_t> without = {});
/// compile() of a family that keeps its node as it is.
Compiled compile_node(const Problem& problem, std::string_view family);

struct NodeOperand {
  ConcreteType type;
  int64_t place = 0;            // region input, or -1 - k for constant k of the kernel; unused when known
  std::optional<Tensor> known;  // the contents

  const void* data(const Bindings& bindings) const {
    if (known) return known->bytes().data();
    return place >= 0 ? bindings.inputs[static_cast<size_t>(place)]
                      : bindings.constants[static_cast<size_t>(-1 - place)];
  }
  template <typename T>
  const T* as(const Bindings& bindings) const {
    return static_cast<const T*>(data(bindings));
  }
};

struct NodeResult {
  ConcreteType type;
  int64_t place = 0;
  template <typename T>
  T* as(const Bindings& bindings) const {
    return static_cast<T*>(bindings.outputs[static_cast<size_t>(place)]);
  }
};

/// The code of compile_node() at concrete shapes, which outlive it. Throws Error on what compile_node() does not write.
class NodeCode {
 public:
  NodeCode(const Attrs& attrs, const KernelShapes& shapes);

  const Attrs& attrs() const { return attrs_; }
  const std::string& op() const { return attrs_.text("op"); }
  bool has(size_t i) const { return i < operands_.size() && operands_[i].has_value(); }
  const NodeOperand& operand(size_t i) const;
  bool wants(size_t i) const { return i < results_.size() && results_[i].has_value(); }
  const NodeResult& result(size_t i = 0) const;
  /// An operand whose contents must be known: integers, or any numbers.
  Dims integers(size_t i) const;
  std::vector<double> reals(size_t i) const;
  /// Throws Error where the plan brings no constants of so many f32 from `place` on: what a family packs itself.
  void require_constants(int64_t place, const std::vector<Dims>& sizes) const;
  /// Throws Error naming the operator: the plan contradicts itself.
  void require(bool condition) const {
    HONE_CHECK(condition, "a kernel of {} in the plan contradicts its tensors", op());
  }

 private:
  Attrs attrs_;
  const KernelShapes& shapes_;
  std::vector<std::optional<NodeOperand>> operands_;
  std::vector<std::optional<NodeResult>> results_;
};

/// A kernel whose work falls into items that do not depend on each other.
class ItemKernel : public CpuKernel {
 public:
  bool serial() const final { return items_ < 2 || work_ < kSmallWork; }
  void run(int, int worker, int workers, const Bindings& bindings) const final {
    const Share share = share_of(items_, worker, workers);
    if (share.begin < share.end) run_items(share.begin, share.end, bindings);
  }

 protected:
  /// `work`: about how many elements are touched, which decides whether to wake the others.
  ItemKernel(int64_t items, int64_t work) : items_(items), work_(work) {}
  virtual void run_items(int64_t begin, int64_t end, const Bindings& bindings) const = 0;

 private:
  static constexpr int64_t kSmallWork = 4096;
  int64_t items_, work_;
};

}  // namespace hone::cpu
