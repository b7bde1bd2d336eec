// SPDX-License-Identifier: Apache-2.0
//
// A region read as "one anchor, then what can be done to its result while it is in registers": + bias, + residual, activation.
// The typed regions (conv_region.h, matmul_region.h) hold it; sources read regions through them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/tactic.h"
#include "ir/graph.h"
#include "regions/epilogue.h"

namespace hone {

struct RegionMatch {
  const Node* anchor = nullptr;
  std::vector<const Value*> biases;  // constants added to every channel after the anchor, besides its own bias
  float scale = 1;                   // product with a constant scalar directly behind the anchor
  const Value* addend = nullptr;     // of sums of integers: an integer of each channel, added to them
  const Value* factor = nullptr;     // and what they are multiplied by as floats, one or one per channel
  Quantization rounding;             // through which they pass before a residual is added
  Quantization residual_type, result_type;
  int residual = -1;  // which region input is added, or -1
  bool residual_after_activation = false;
  Activation activation;
  std::vector<EpilogueStep> steps;         // behind biases and scale
  bool rounds = false;                     // whether any of them rounds: only steps say all then
  bool late_bias = false;                  // whether the biases are one of them
  Decoding operand_codes, residual_codes;  // what the anchor's operand 0 and the residual are read as codes by
  bool encodes = false;                    // whether the last step makes codes
  DType codes = DType::i8;                 // which, then
  std::string refusal;                     // why the region does not have this form; empty when it does

  explicit operator bool() const { return refusal.empty(); }
  bool has_codes() const { return encodes || operand_codes || residual_codes; }
  bool plain() const {
    return !rounds && biases.empty() && scale == 1 && addend == nullptr && factor == nullptr && residual < 0 &&
           !result_type && !has_codes() && activation.kind == ActivationKind::none;
  }
};

/// Whether the reader of a region knows the steps that round, and tensors of codes.
enum class Roundings : uint8_t { refused, read, codes };

/// The node that a region begins with, but for those that turn bytes into floats for a later one, when it is an `op` (whatever
/// follows), else null: whether a family should speak at all.
const Node* anchor_of(const Graph& region, const OpDef& op);

/// The sizes in the order in which the bytes lie (linear and channels_last), and where a logical axis went.
Dims physical_dims(const ConcreteType& type);
size_t physical_axis(size_t axis, const ConcreteType& type);

/// Of a QuantizeLinear or DequantizeLinear between bytes and f32 by one scale that is known; none for other nodes.
Quantization quantization_of(const Node& node);
/// The activation that a node computes of operand 0, when it is one of the epilogue's.
std::optional<Activation> activation_of(const Node& node);
/// The fewest pointwise nodes that read a value, scalar constants and each other, and make one value of it; none where there are no
/// such.
std::vector<const Node*> formula_behind(const Graph& region, const Value* from);
/// The numbers of a FakeQuantize.
Rounding rounding_of(const Node& node);
/// The codes that a value is decoded from in the region, else the value.
const Value* undecoded(const Value* value);
/// Position of a value among the region's inputs, or -1.
int input_index(const Graph& region, const Value* value);

/// Throws Error where the residual is no input of the kernel, or has another type than its result.
void require_residual(const EpilogueCode& epilogue, const KernelShapes& shapes);

/// Why an anchor's first operand, perhaps decoded, and its constants (weights, bias) are not such; empty when they are.
std::string reason_against_operands(const Graph& region, const Node& anchor);

}  // namespace hone
