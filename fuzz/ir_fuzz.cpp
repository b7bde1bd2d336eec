// SPDX-License-Identifier: Apache-2.0
//
// IR text parses or is refused with an Error; what parses prints to text that parses to the same print.
#include "harness.h"
#include "ir/graph.h"
#include "ops/all.h"

namespace hone::fuzz {

std::vector<std::string> seed_inputs() {
  return {R"((%x: f32[N,3,"2*H + 1"], %"odd \"name\"": f32[3]) {
  %c = constant f32[3]{0.5, -1, inf}
  %a = Add(%x, %"odd \"name\"") "first" ["node_a", "b"]
  %y = Gather(%a, 1) {axis=1}
  return %y, %c
}
)",
          R"ir((%x: i64[4], %s: seq<f32[*]>) {
  %w = constant f32[2,20]!0123
  %v = View(%x) {shape=["2", "floordiv(4, 2)"]}
  %p = Pow(%v, 2.5)
})ir"};
}

}  // namespace hone::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hone::fuzz::accepted([&] {
    const std::string once = print(hone::parse_graph(hone::fuzz::text_of(data, size), hone::find_op));
    const std::string twice = print(hone::parse_graph(once, hone::find_op));
    HONE_ASSERT(once == twice, "printing does not settle:\n{}\n{}", once, twice);
  });
  return 0;
}
