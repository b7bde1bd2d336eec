// SPDX-License-Identifier: Apache-2.0

#include "backends/cuda/support/rounding.h"

#include <cmath>

#include "backends/cuda/support/embedded.h"
#include "base/text.h"
#include "ops/ops.h"

namespace hone::cuda {

RoundedNode read_rounded(const Problem& problem) {
  const std::vector<Node*> nodes = problem.region.nodes();
  if (nodes.size() == 1) return {nodes[0]};
  const bool fits = nodes.size() == 2 && nodes[1]->is(ops::fake_quantize) && nodes[0]->outputs.size() == 1 &&
                    nodes[1]->input(0) == nodes[0]->output() && problem.region.outputs().size() == 1 &&
                    problem.region.outputs()[0] == nodes[1]->output();
  return fits ? RoundedNode{nodes[0], nodes[1]} : RoundedNode{};
}

std::string real_text(float value) {
  if (std::isinf(value)) return value > 0 ? "INFINITY_F" : "(-INFINITY_F)";
  return fmt::format("{:.9e}f", value);
}

std::string rounding_call(std::string_view sum, float scale, float low, float high, float of_nan) {
  return fmt::format("rounded({}, {}, {}, {}, {})", sum, real_text(scale), real_text(low), real_text(high),
                     real_text(of_nan));
}

std::string rounding_text(const RoundedNode& rounded) {
  if (rounded.rounding == nullptr) return "#define ROUND(x) (x)\n";
  const auto number = [&](const char* name) { return static_cast<float>(rounded.rounding->attrs.real(name)); };
  return kernels::rounding + fmt::format("#define ROUND(x) {}\n", rounding_call("x", number("scale"), number("low"),
                                                                                number("high"), number("of_nan")));
}

}  // namespace hone::cuda
