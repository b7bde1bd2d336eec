// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "backends/cpu/tactic_check.h"

namespace hone::cpu {
namespace {

constexpr const char* kBodies[] = {
    "(%x: T[N,8,9,7]) {\n %w = constant T[24,8,3,3]!1\n %y = Conv(%x, %w) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]}\n return %y\n}",
    "(%x: T[N,13]) {\n %w = constant T[13,19]!2\n %y = Linear(%x, %w)\n return %y\n}",
    "(%x: T[N,5,13], %z: T[N,13,4]) {\n %y = MatMul(%x, %z)\n return %y\n}",
    "(%x: T[N,5,130]) {\n %y = Softmax(%x) {axis=-1}\n return %y\n}",
    "(%x: T[N,5,33]) {\n %s = constant T[33]!3\n %y = LayerNormalization(%x, %s, %s) {axis=-1}\n return %y\n}",
    "(%x: T[N,6,9,9]) {\n %y = MaxPool(%x) {kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], dilations=[1, 1]}\n return %y\n}",
    "(%x: T[N,6,9,9]) {\n %y = GlobalAveragePool(%x)\n return %y\n}",
    "(%x: T[N,3,5,6]) {\n %s = constant i64[2]{9, 21}\n %y = Resize(%x, _, _, %s) {axes=[2, 3], mode=\"linear\"}\n return %y\n}",
    "(%x: T[4,N,6]) {\n %w = constant T[1,32,6]!4\n %r = constant T[1,32,8]!5\n %y, %h, %c = LSTM(%x, %w, %r) {direction=\"forward\"}\n return %y, %c\n}",
    "(%x: T[N,9001], %c: bool[N,1]) {\n %z = Where(%c, %x, %x)\n return %z\n}",
};

TEST(WidenedTactic, RunsEveryFamilyOnSmallFloats) {
  for (const char* type : {"f16", "bf16"})
    for (const std::string body : kBodies) {
      std::string text = body;
      for (size_t at = text.find("T["); at != std::string::npos; at = text.find("T[", at + 1)) text.replace(at, 1, type);
      const CheckOptions options{.tolerance = std::string_view(type) == "f16" ? 2e-3 : 1.6e-2, .seed = 15, .tuned = {{"N", 2}}, .run = {{{"N", 2}}, {{"N", 3}}}};
      EXPECT_GT(check_tactics(text, "widened", options), 0) << text;
    }
}

}  // namespace
}  // namespace hone::cpu
