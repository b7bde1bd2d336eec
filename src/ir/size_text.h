// SPDX-License-Identifier: Apache-2.0
//
// Sizes as a program writes them for an operator of its own: "x0[0], x0[1] * scale", "x0[:-1], units". The result is symbolic
// where the operands are, so that one text holds for every shape.
//
//   sizes  = [entry {"," entry}]
//   entry  = tensor | tensor "[" [number] ":" [number] "]" | sum     all axes, some of them (from the end where negative), a number
//   sum    = term {("+" | "-") term}
//   term   = factor {("*" | "/" | "%") factor}                       divisions round down
//   factor = number | "-" factor | "(" sum ")" | tensor "[" number "]" | attribute | attribute "[" number "]"
//          | ("min" | "max") "(" sum {"," sum} ")" | "count" "(" tensor ")" | "rank" "(" tensor ")"
//   tensor = "x0", "x1", ... (operands), "y0", ... (results, where they are known)
#pragma once

#include <string_view>
#include <vector>

#include "tensor/attrs.h"
#include "tensor/shape.h"

namespace hone {

/// What names stand for; null: an operand that is left out.
struct SizeScope {
  std::vector<const Shape*> inputs, outputs;
  const Attrs& attrs;
};

/// Throws Error with the place of what cannot be read, or of a name, an axis or an attribute that is not there.
Shape sizes_from_text(std::string_view text, const SizeScope& scope);

}  // namespace hone
