// SPDX-License-Identifier: Apache-2.0
//
// Recognises the erf form of GELU, x * 0.5 * (1 + erf(x / sqrt 2)), and its tanh approximation as exporters write them.
// One GELU is one formula, so every backend can fuse it into its neighbour.
#include "ops/ops.h"
#include "passes/passes.h"

namespace hone::passes {
namespace {

/// The places where the factor 0.5 may stand: behind everything, at x, at the bracket.
const Rewrite kGelu[] = {
    {.name = "gelu_half_last",
     .match = R"(
       %a = Div(%x, 1.4142135)
       %b = Erf(%a)
       %c = Add(%b, 1)
       %d = Mul(%x, %c)
       %y = Mul(%d, 0.5))",
     .replace = "%y = Gelu(%x)"},
    {.name = "gelu_half_last_product",
     .match = R"(
       %a = Mul(%x, 0.70710678)
       %b = Erf(%a)
       %c = Add(%b, 1)
       %d = Mul(%x, %c)
       %y = Mul(%d, 0.5))",
     .replace = "%y = Gelu(%x)"},
    {.name = "gelu_half_first",
     .match = R"(
       %a = Div(%x, 1.4142135)
       %b = Erf(%a)
       %c = Add(%b, 1)
       %d = Mul(%x, 0.5)
       %y = Mul(%d, %c))",
     .replace = "%y = Gelu(%x)"},
    {.name = "gelu_half_first_product",
     .match = R"(
       %a = Mul(%x, 0.70710678)
       %b = Erf(%a)
       %c = Add(%b, 1)
       %d = Mul(%x, 0.5)
       %y = Mul(%d, %c))",
     .replace = "%y = Gelu(%x)"},
    {.name = "gelu_half_at_bracket",
     .match = R"(
       %a = Div(%x, 1.4142135)
       %b = Erf(%a)
       %c = Add(%b, 1)
       %d = Mul(%c, 0.5)
       %y = Mul(%x, %d))",
     .replace = "%y = Gelu(%x)"},
    {.name = "gelu_half_at_bracket_product",
     .match = R"(
       %a = Mul(%x, 0.70710678)
       %b = Erf(%a)
       %c = Add(%b, 1)
       %d = Mul(%c, 0.5)
       %y = Mul(%x, %d))",
     .replace = "%y = Gelu(%x)"},
};

const Rewrite kGeluTanh[] = {
    {.name = "gelu_attribute", .match = "%y = Gelu(%x) {approximate=\"tanh\"}", .replace = "%y = GeluTanh(%x)"},
    {.name = "gelu_tanh_power",
     .match = R"(
       %p = Pow(%x, 3)
       %q = Mul(%p, 0.044715)
       %s = Add(%x, %q)
       %u = Mul(%s, 0.7978845)
       %t = Tanh(%u)
       %c = Add(%t, 1)
       %h = Mul(%x, 0.5)
       %y = Mul(%h, %c))",
     .replace = "%y = GeluTanh(%x)"},
    {.name = "gelu_tanh_power_half_last",
     .match = R"(
       %p = Pow(%x, 3)
       %q = Mul(%p, 0.044715)
       %s = Add(%x, %q)
       %u = Mul(%s, 0.7978845)
       %t = Tanh(%u)
       %c = Add(%t, 1)
       %h = Mul(%x, %c)
       %y = Mul(%h, 0.5))",
     .replace = "%y = GeluTanh(%x)"},
    {.name = "gelu_tanh_product",
     .match = R"(
       %r = Mul(%x, %x)
       %p = Mul(%x, %r)
       %q = Mul(%p, 0.044715)
       %s = Add(%x, %q)
       %u = Mul(%s, 0.7978845)
       %t = Tanh(%u)
       %c = Add(%t, 1)
       %h = Mul(%x, 0.5)
       %y = Mul(%h, %c))",
     .replace = "%y = GeluTanh(%x)"},
};

}  // namespace

std::span<const Rewrite> fuse_gelu() { return kGelu; }
std::span<const Rewrite> fuse_gelu_tanh() { return kGeluTanh; }

}  // namespace hone::passes
