// SPDX-License-Identifier: Apache-2.0
//
// ReverseSequence against the reference, with the axes of time and of the sequences in every place.
#include <fmt/format.h>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

/// Lengths from nothing to all of the steps.
CheckOptions with_lengths(int64_t steps) {
  CheckOptions options{.tolerance = 0, .seed = 17, .tuned = {{"N", 2}}, .run = {{{"N", 2}}, {{"N", 1}}, {{"N", 5}}}};
  options.inputs = [steps](const Graph& graph) {
    std::vector<Tensor> tensors = random_inputs(graph, 3);
    const TensorType& type = graph.inputs()[1]->type;
    tensors[1] = random_tensor(type.dtype, type.shape.values(), 7, 0, static_cast<double>(steps) + 1);
    return tensors;
  };
  return options;
}

void check(const char* type, std::vector<const char*> sizes, int time, int batch, int64_t steps) {
  std::string shape;
  for (const char* size : sizes) shape += (shape.empty() ? "" : ",") + std::string(size);
  EXPECT_GT(check_tactics(fmt::format("(%x: {}[{}], %l: i64[{}]) {{\n %y = ReverseSequence(%x, %l) {{time_axis={}, "
                                      "batch_axis={}}}\n return %y\n}}",
                                      type, shape, sizes[static_cast<size_t>(batch)], time, batch),
                          "reverse", with_lengths(steps)),
            0);
}

TEST(ReverseTactic, AlongEveryAxis) {
  for (const char* type : {"f32", "f16", "bf16", "f64", "i8", "i64", "bool"}) {
    const std::vector<const char*> sizes = {"6", "N", "4", "9"};
    for (const int time : {0, 2, 3})
      for (const int batch : {0, 1, 2, 3})
        if (time != batch) check(type, sizes, time, batch, std::atoi(sizes[static_cast<size_t>(time)]));
  }
}

TEST(ReverseTactic, OfManyStepsAndLongRuns) {
  check("f32", {"N", "700"}, 1, 0, 700);
  check("f32", {"50", "N", "130"}, 0, 1, 50);
  check("f32", {"N", "50", "130"}, 1, 0, 50);
  check("u8", {"300", "N"}, 0, 1, 300);
}

}  // namespace
}  // namespace hone::cpu
