// SPDX-License-Identifier: Apache-2.0
//
// What a kernel was made for: element type, layout and sizes of its operands, results and constants, as part of its code.
// Machine code cannot be asked what it reads; so a plan's step has to bring exactly these.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/code.h"
#include "device/tactic.h"

namespace hone::cuda {

/// A text for each: "f32 channels_last N;16;5;7".
struct Signature {
  std::vector<std::string> inputs, outputs, constants;
  static void fields(auto& self, auto& visit) {
    visit("made_for", self.inputs);
    visit("made_to", self.outputs);
    visit("made_with", self.constants);
  }
};

Signature signature_of(const Problem& problem, const Tactic& tactic, const std::vector<Tensor>& constants);
/// Throws Error where a step has other operands, results or constants.
void require_signature(const Signature& made, const KernelShapes& shapes);
/// What each constant was made as.
std::vector<ConstantSpec> constants_of(const Signature& made);

/// A family's code with what its kernel was made for.
template <typename Code>
struct Signed {
  Code code;
  Signature made;
  static void fields(auto& self, auto& visit) {
    Code::fields(self.code, visit);
    Signature::fields(self.made, visit);
  }
};

}  // namespace hone::cuda
