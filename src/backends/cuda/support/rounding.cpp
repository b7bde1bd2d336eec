// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/support/rounding.h"

#include <cmath>

#include "backends/cuda/support/embedded.h"
#include "backends/cuda/support/source_text.h"
#include "base/text.h"
#include "ops/ops.h"
#include "ops/weight_codes.h"
#include "regions/region_match.h"

namespace hone::cuda {

RoundedNode read_rounded(const Problem& problem) {
  const std::vector<Node*> nodes = problem.region.nodes();
  if (nodes.size() == 1) return {nodes[0]};
  const bool fits = nodes.size() == 2 && (nodes[1]->is(ops::fake_quantize) || makes_codes(*nodes[1])) &&
                    nodes[0]->outputs.size() == 1 && nodes[1]->input(0) == nodes[0]->output() &&
                    problem.region.outputs().size() == 1 && problem.region.outputs()[0] == nodes[1]->output();
  return fits ? RoundedNode{nodes[0], nodes[1]} : RoundedNode{};
}

std::string real_text(float value) {
  if (std::isinf(value)) return value > 0 ? "INFINITY_F" : "(-INFINITY_F)";
  return fmt::format("{:.9e}f", value);
}

namespace {

std::string steps_text(std::string_view sum, const Rounding& to, const NumberText& number) {
  const std::string per_one = number(1 / to.scale), low = number(to.low), high = number(to.high);
  const std::string of_nan = to.of_nan == to.low ? std::string() : ", " + number(to.of_nan);
  return fmt::format("steps({}, {}, {}, {}{})", sum, per_one, low, high, of_nan);
}

}  // namespace

std::string rounding_call(std::string_view sum, const Rounding& to, const NumberText& number) {
  const std::string steps = steps_text(sum, to, number);
  return fmt::format("({} * {})", steps, number(to.scale));
}

std::string encoding_call(std::string_view sum, const Rounding& to, float zero, const NumberText& number) {
  const std::string steps = steps_text(sum, to, number);
  return fmt::format("({} + {})", steps, number(zero));
}

std::string rounding_text(const RoundedNode& rounded) {
  const Node* last = rounded.last();
  const std::string result = fmt::format("typedef {} Result;\n", type_name(last->output()->type.dtype));
  if (rounded.rounding == nullptr) return result + "#define ROUND(x) (x)\n";
  if (last->is(ops::encode_float8))  // rounds as it is stored
    return result +
           fmt::format("#define ROUND(x) ((x) * {})\n", real_text(static_cast<float>(1 / last->attrs.real("scale"))));
  const Rounding to = rounding_of(*last);
  const std::string call = last->is(ops::encode) ? encoding_call("x", to, static_cast<float>(last->attrs.real("zero")))
                                                 : rounding_call("x", to);
  return result + kernels::rounding + fmt::format("#define ROUND(x) {}\n", call);
}

}  // namespace hone::cuda
