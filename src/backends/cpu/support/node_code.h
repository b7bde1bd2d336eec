// SPDX-License-Identifier: Apache-2.0
//
// What a kernel of a single node keeps of its operands and results. An operand is an input of the region, a constant that is
// bound at launch, or contents that are known when the kernel is loaded: small constants, and numbers that follow from the
// input shapes. Families that compute one operator stand on this: their code is a NodeCode and the operator's attributes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/family.h"
#include "backends/cpu/kernel.h"
#include "device/tactic.h"

namespace hone::cpu {

enum class OperandKind { none, input, constant, contents, sizes };
constexpr std::array<std::string_view, 5> field_names(OperandKind) {
  return {"none", "input", "constant", "contents", "sizes"};
}

struct OperandCode {
  static constexpr int kMost = 64;  // operands of a node, inputs of its region, constants of its kernel
  OperandKind kind = OperandKind::none;
  int64_t index = 0;                    // of the region's input, or of the kernel's constant
  DType dtype = DType::f32;             // of a constant
  Dims dims = {};                       // of a constant, or of the sizes
  std::vector<std::string> sizes = {};  // as expressions
  std::optional<Tensor> contents = {};

  static void fields(auto& self, auto& visit) {
    visit("kind", self.kind);
    visit("index", self.index, 0, kMost - 1);
    visit("dtype", self.dtype);
    visit("dims", self.dims, 0, kMostSize, kMaxRank);
    visit("sizes", self.sizes);
    visit("contents", self.contents);
  }
};

struct NodeCode {
  std::vector<OperandCode> operands;  // constants are numbered in order
  Dims results;                       // of each result of the node: the region's output that it is, or -1

  static void fields(auto& self, auto& visit) {
    visit("operands", self.operands, OperandCode::kMost);
    visit("results", self.results, -1, OperandCode::kMost - 1, OperandCode::kMost);
  }
};

/// The region's node, with its symbols, when there is one besides shape data; else null.
const Node* single_node(const Problem& problem);
/// Why no kernel of numbers can run a node: texts among its operands or results; empty when there is none.
std::string reason_not_numeric(const Node& node);
/// Everything in linear layout.
void offer_linear(const Problem& problem, std::string_view family, Candidates& out);
/// The node's operands and results; constants that are bound at launch go to `constants`. Operands in `without` are left out: the
/// family brings them into a form of its own.
NodeCode describe_node(const Problem& problem, std::vector<Tensor>& constants,
                       std::initializer_list<size_t> without = {});
/// The constants that describe_node() gave. Throws Error on a code that it does not write.
std::vector<ConstantSpec> node_constants(const NodeCode& code);

/// What families have in common whose code is a struct with a NodeCode `node` and whose kernel reads no other constants.
template <typename NodeFamilyCode>
struct NodeFamily {
  static constexpr int kVersion = 1;
  static constexpr Cost kCost = {};  // the default: few have a rival
  using Params = NoParams;
  using Code = NodeFamilyCode;
  static std::vector<ConstantSpec> constants(const Code& code, const KernelShapes&, const CpuInfo&) {
    return node_constants(code.node);
  }
};

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

/// A NodeCode at concrete shapes. Throws Error on what describe_node() does not write.
class BoundNode {
 public:
  /// `family` is what errors name.
  BoundNode(const NodeCode& code, const KernelShapes& shapes, std::string_view family);

  bool has(size_t i) const { return i < operands_.size() && operands_[i].has_value(); }
  const NodeOperand& operand(size_t i) const;
  bool wants(size_t i) const { return i < results_.size() && results_[i].has_value(); }
  const NodeResult& result(size_t i = 0) const;
  /// An operand whose contents must be known: integers, or any numbers.
  Dims integers(size_t i) const;
  std::vector<double> reals(size_t i) const;
  /// Strides of operand `i`, in elements, along the axes of a result that it is broadcast to.
  Dims strides_along(const Dims& result, size_t i) const;
  /// Throws Error naming the family: the plan contradicts itself.
  void require(bool condition) const {
    HONE_CHECK(condition, "a kernel of {} in the plan contradicts its tensors", family_);
  }

 private:
  std::string_view family_;
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
