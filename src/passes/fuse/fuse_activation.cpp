// SPDX-License-Identifier: Apache-2.0
//
// Activations that exporters spell out in arithmetic, and Clip with constant bounds, as one operator each.
#include <limits>

#include "ops/ops.h"
#include "passes/edit.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

// Clip ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

bool bounds_are_numbers(const Match& match) {
  return is_float(match.root()->output()->type.dtype) && splat(match["low"]) && splat(match["high"]);
}

void build_clamp(const Match& match) {
  const double low = *splat(match["low"]), high = *splat(match["high"]);
  const bool unbounded = high >= std::numeric_limits<float>::max();
  Value* x = match["x"];
  match.replace(low == 0 && unbounded ? match.add(ops::relu, {x})->output()
                                      : match.add(ops::clamp, {x}, {{"min", low}, {"max", high}})->output());
}

const Rewrite kClamp[] = {
    {.name = "clip",
     .match = "%y = Clip(%x, %low:const, %high:const)",
     .when = bounds_are_numbers,
     .build = build_clamp},
    {.name = "max_with_zero",
     .match = "%y = Max(%x, 0)",
     .replace = "%y = Relu(%x)",
     .when = [](const Match& m) { return m["x"]->type == m.root()->output()->type && is_float(m["x"]->type.dtype); }},
};

// x * gate(x) ───────────────────────────────────────────────────────────────────────────────────────────────────────

const Rewrite kSilu[] = {
    {.name = "silu", .match = "%s = Sigmoid(%x)\n%y = Mul(%x, %s)", .replace = "%y = Silu(%x)"},
};

const Rewrite kHardSwish[] = {
    {.name = "hard_swish_gate",
     .match = "%g = HardSigmoid(%x) {alpha=0.16666667, beta=0.5}\n%y = Mul(%x, %g)",
     .replace = "%y = HardSwish(%x)"},
    {.name = "hard_swish_last",
     .match = R"(
       %a = Add(%x, 3)
       %c = Clamp(%a) {min=0, max=6}
       %m = Mul(%x, %c)
       %y = Mul(%m, 0.16666667))",
     .replace = "%y = HardSwish(%x)"},
    {.name = "hard_swish_last_division",
     .match = R"(
       %a = Add(%x, 3)
       %c = Clamp(%a) {min=0, max=6}
       %m = Mul(%x, %c)
       %y = Div(%m, 6))",
     .replace = "%y = HardSwish(%x)"},
    {.name = "hard_swish_first",
     .match = R"(
       %a = Add(%x, 3)
       %c = Clamp(%a) {min=0, max=6}
       %g = Mul(%c, 0.16666667)
       %y = Mul(%x, %g))",
     .replace = "%y = HardSwish(%x)"},
    {.name = "hard_swish_first_division",
     .match = R"(
       %a = Add(%x, 3)
       %c = Clamp(%a) {min=0, max=6}
       %g = Div(%c, 6)
       %y = Mul(%x, %g))",
     .replace = "%y = HardSwish(%x)"},
    {.name = "hard_sigmoid",
     .match = R"(
       %a = Add(%x, 3)
       %c = Clamp(%a) {min=0, max=6}
       %y = Mul(%c, 0.16666667))",
     .replace = "%y = HardSigmoid(%x) {alpha=0.16666667, beta=0.5}"},
};

const Rewrite kMish[] = {
    {.name = "mish", .match = "%s = Softplus(%x)\n%t = Tanh(%s)\n%y = Mul(%x, %t)", .replace = "%y = Mish(%x)"},
};

// Softmax spelled out ───────────────────────────────────────────────────────────────────────────────────────────────

bool sums_one_kept_axis(const Match& match) {
  const Node* sum = match.node("s");
  return match["axes"]->constant->size() == 1 && sum->attrs.integer("keepdims") == 1;
}

void build_softmax(const Match& match) {
  match.replace(match.add(ops::softmax, {match["x"]}, {{"axis", match["axes"]->constant->integer(0)}})->output());
}

bool both_reduce_one_kept_axis(const Match& match) {
  return sums_one_kept_axis(match) && match["a"]->constant->size() == 1 &&
         match["a"]->constant->integer(0) == match["axes"]->constant->integer(0) &&
         match.node("m")->attrs.integer("keepdims") == 1;
}

const Rewrite kSoftmax[] = {
    {.name = "softmax_shifted",
     .match = R"(
       %m = ReduceMax(%x, %a:const)
       %d = Sub(%x, %m)
       %e = Exp(%d)
       %s = ReduceSum(%e, %axes:const)
       %y = Div(%e, %s))",
     .when = both_reduce_one_kept_axis,
     .build = build_softmax},
    {.name = "softmax_plain",
     .match = R"(
       %e = Exp(%x)
       %s = ReduceSum(%e, %axes:const)
       %y = Div(%e, %s))",
     .when = sums_one_kept_axis,
     .build = build_softmax},
};

}  // namespace

std::span<const Rewrite> fuse_clamp() { return kClamp; }
std::span<const Rewrite> fuse_silu() { return kSilu; }
std::span<const Rewrite> fuse_hard_swish() { return kHardSwish; }
std::span<const Rewrite> fuse_mish() { return kMish; }
std::span<const Rewrite> fuse_softmax() { return kSoftmax; }

}  // namespace hone::passes
