// SPDX-License-Identifier: Apache-2.0
//
// Det and Inverse against the reference: matrices of all widths beside a vector's, whose rows have to change places, and without an
// inverse.
#include <fmt/format.h>

#include "backends/cpu/support/tactic_testing.h"

namespace hone::cpu {
namespace {

constexpr const char* kText = "(%x: {}[N,{},{}]) {{\n %y = {}(%x)\n return %y\n}}";

/// Zeros on the diagonals: no row can stay where it is.
std::vector<Tensor> without_diagonals(const Graph& graph) {
  const Tensor random = random_inputs(graph, 4)[0];
  const auto n = static_cast<size_t>(random.dims().back());
  std::vector<double> numbers = read_doubles(random);
  for (size_t i = 0; i < numbers.size(); i += i % (n * n) == n * n - 1 ? 1 : n + 1) numbers[i] = 0;
  return {write_doubles(random.dtype(), random.dims(), numbers)};
}

TEST(EliminationTactic, OfManyWidths) {
  for (const char* dtype : {"f32", "f64"})
    for (const char* name : {"Det", "Inverse"})
      for (const int n : {1, 2, 3, 7, 8, 9, 16, 33}) {
        CheckOptions options{.tolerance = 1e-6, .tuned = {{"N", 2}}, .run = {{{"N", 2}}, {{"N", 1}}, {{"N", 30}}}};
        if (n > 1) options.inputs = without_diagonals;
        EXPECT_GT(check_tactics(fmt::format(kText, dtype, n, n, name), "elimination", options), 0) << name << n;
      }
}

TEST(EliminationTactic, TheDeterminantOfEqualRowsIsZero) {
  CheckOptions options{.tolerance = 0, .tuned = {{"N", 3}}};
  options.inputs = [](const Graph& graph) {
    std::vector<double> numbers;
    for (int i = 0; i < 3 * 25; ++i) numbers.push_back(i % 5 + 1);
    return std::vector{write_doubles(DType::f32, graph.inputs()[0]->type.shape.values(), numbers)};
  };
  EXPECT_GT(check_tactics(fmt::format(kText, "f32", 5, 5, "Det"), "elimination", options), 0);
}

}  // namespace
}  // namespace hone::cpu
