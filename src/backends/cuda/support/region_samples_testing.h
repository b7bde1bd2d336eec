// SPDX-License-Identifier: Apache-2.0
//
// Regions that the tests of this backend compile and, where there is a card, run: one at least for every family and form. T
// stands for the element type, N for a size that is symbolic. For tests only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/tactic.h"
#include "ops/all.h"

namespace hone::cuda {

inline constexpr std::string_view kRegionSamples[] = {
    // pointwise: chains, broadcasts, comparisons, integers
    "(%x: T[N,16,5,7], %y: T[16,1,1]) {\n %a = Mul(%x, %y)\n %b = Sigmoid(%a)\n %c = Add(%b, %x)\n %z = Clip(%c, -0.5, "
    "0.75)\n return %z\n}",
    "(%x: T[N,33], %y: T[N,1]) {\n %a = Sub(%x, %y)\n %b = Erf(%a)\n %z = Div(%b, 3)\n return %z\n}",
    "(%x: T[N,8], %y: T[8]) {\n %z = Less(%x, %y)\n return %z\n}",
    "(%c: bool[N,8], %x: T[N,8], %y: T[1,8]) {\n %z = Where(%c, %x, %y)\n return %z\n}",
    "(%x: i64[N,3], %y: i64[3]) {\n %a = Mul(%x, %y)\n %z = Mod(%a, 5)\n return %z\n}",
    "(%x: T[N,4]) {\n %z = Cast(%x) {to=\"f32\"}\n return %z\n}",
    "(%x: i64[N,4]) {\n %z = Cast(%x) {to=\"T\"}\n return %z\n}",
    // copies
    "(%x: T[N,6,5,4]) {\n %z = Transpose(%x) {perm=[0, 2, 3, 1]}\n return %z\n}",
    "(%x: T[N,40,36]) {\n %z = Transpose(%x) {perm=[0, 2, 1]}\n return %z\n}",
    "(%x: T[N,8,3,3], %y: T[N,4,3,3]) {\n %z = Concat(%x, %y) {axis=1}\n return %z\n}",
    "(%x: T[N,12,5]) {\n %s = constant i64[1]{2}\n %e = constant i64[1]{9}\n %a = constant i64[1]{1}\n %z = Slice(%x, "
    "%s, %e, %a)\n return %z\n}",
    "(%x: T[N,3,4,4]) {\n %p = constant i64[8]{0, 0, 1, 2, 0, 0, 3, 1}\n %z = Pad(%x, %p)\n return %z\n}",
    // rolled along two axes
    "(%x: T[N,10,7,16]) {\n %0 = constant i64[1]{0}\n %1 = constant i64[1]{1}\n %2 = constant i64[1]{2}\n %3 = "
    "constant "
    "i64[1]{3}\n %e = constant i64[1]{99}\n %a = Slice(%x, %3, %e, %1)\n %b = Slice(%x, %0, %3, %1)\n %c = Concat(%a, "
    "%b) {axis=1}\n %f = Slice(%c, %2, %e, %2)\n %g = Slice(%c, %0, %2, %2)\n %z = Concat(%f, %g) {axis=2}\n return "
    "%z\n}",
    // more parts than a launch has
    "(%x: T[N,4,3], %y: T[N,3,3]) {\n %z = Concat(%x, %y, %x, %y, %x, %y, %y, %x, %x, %y, %x) {axis=1}\n return %z\n}",
    "(%x: T[N,20,6,5]) {\n %z = Reformat(%x)\n return %z\n}",
    // rows
    "(%x: T[N,7,65]) {\n %z = Softmax(%x) {axis=2}\n return %z\n}",
    "(%x: T[N,9,6,5]) {\n %z = LogSoftmax(%x) {axis=1}\n return %z\n}",
    "(%x: T[N,5,96], %s: T[96], %b: T[96]) {\n %z = LayerNormalization(%x, %s, %b) {axis=2}\n return %z\n}",
    "(%x: T[N,3,48], %s: T[48]) {\n %z = RMSNormalization(%x, %s) {axis=2}\n return %z\n}",
    "(%x: T[N,6,4,5], %s: T[6], %b: T[6]) {\n %z = InstanceNormalization(%x, %s, %b)\n return %z\n}",
    "(%x: T[N,6,4,5], %s: T[6], %b: T[6]) {\n %z = GroupNormalization(%x, %s, %b) {num_groups=3}\n return %z\n}",
    "(%x: T[N,6,7,5]) {\n %a = constant i64[2]{2, 3}\n %z = ReduceMean(%x, %a) {keepdims=0}\n return %z\n}",
    "(%x: T[N,6,7]) {\n %a = constant i64[1]{1}\n %z = ReduceMax(%x, %a)\n return %z\n}",
    "(%x: T[N,6,7,5]) {\n %z = GlobalAveragePool(%x)\n return %z\n}",
    "(%x: T[N,5,768], %s: T[768], %b: T[768]) {\n %z = LayerNormalization(%x, %s, %b) {axis=2}\n return %z\n}",
    "(%x: T[N,3,200]) {\n %s = constant T[200]!0123456789abcdef0123456789abcdef\n %z = RMSNormalization(%x, %s) "
    "{axis=2}\n return %z\n}",
    "(%x: T[N,64,50,50]) {\n %z = GlobalAveragePool(%x)\n return %z\n}",
    "(%x: T[N,300,40]) {\n %a = constant i64[1]{1}\n %z = ReduceSum(%x, %a) {keepdims=0}\n return %z\n}",
    // squeeze and excitation
    "(%x: T[N,96,9,7]) {\n %p = GlobalAveragePool(%x)\n %w = constant T[24,96,1,1]!0123456789abcdef0123456789abcdef\n "
    "%b = "
    "constant T[24]!1123456789abcdef0123456789abcdef\n %c = Conv(%p, %w, %b) {kernel_shape=[1, 1], pads=[0, 0, 0, 0], "
    "strides=[1, 1], dilations=[1, 1]}\n %d = Silu(%c)\n %v = constant T[96,24,1,1]!2123456789abcdef0123456789abcdef\n "
    "%e = Conv(%d, %v) {kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1], dilations=[1, 1]}\n %z = Sigmoid(%e)\n "
    "return %z\n}",
    "(%x: T[N,2504,3,3]) {\n %a = constant i64[2]{2, 3}\n %p = ReduceMean(%x, %a)\n %w = constant "
    "T[5,2504,1,1]!0123456789abcdef0123456789abcdef\n %c = Conv(%p, %w) {kernel_shape=[1, 1], pads=[0, 0, 0, 0], "
    "strides=[1, "
    "1], dilations=[1, 1]}\n %v = constant T[37,5,1,1]!2123456789abcdef0123456789abcdef\n %z = Conv(%c, %v) "
    "{kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1], dilations=[1, 1]}\n return %z\n}",
    // windows
    "(%x: T[N,16,9,8]) {\n %z = MaxPool(%x) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, "
    "1]}\n return %z\n}",
    "(%x: T[N,3,16,24]) {\n %w = constant T[32,3,8,8]!0123456789abcdef0123456789abcdef\n"
    " %z = Conv(%x, %w) {kernel_shape=[8, 8], pads=[0, 0, 0, 0], strides=[8, 8], dilations=[1, 1]}\n return %z\n}",
    "(%x: T[N,24,15,13], %r: T[N,24,8,7]) {\n %w = constant T[24,1,5,5]!0123456789abcdef0123456789abcdef\n %b = "
    "constant T[24]!1123456789abcdef0123456789abcdef\n"
    " %c = Conv(%x, %w, %b) {kernel_shape=[5, 5], pads=[2, 2, 2, 2], strides=[2, 2], dilations=[1, 1], group=24}\n %d "
    "= "
    "Add(%c, %r)\n %z = Sigmoid(%d)\n return %z\n}",
    "(%x: T[N,6,12,11]) {\n %w = constant T[6,1,7,3]!0123456789abcdef0123456789abcdef\n"
    " %z = Conv(%x, %w) {kernel_shape=[7, 3], pads=[6, 1, 6, 3], strides=[1, 1], dilations=[2, 2], group=6}\n return "
    "%z\n}",
    "(%x: T[N,64,6,5], %r: T[N,48,6,5]) {\n %w = constant T[48,64,1,1]!0123456789abcdef0123456789abcdef\n %b = "
    "constant T[48]!1123456789abcdef0123456789abcdef\n"
    " %c = Conv(%x, %w, %b) {kernel_shape=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1], dilations=[1, 1]}\n %d = Add(%c, "
    "%r)\n %z = Relu(%d)\n return %z\n}",
    "(%x: T[N,5,9,8]) {\n %z = MaxPool(%x) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, "
    "1]}\n return %z\n}",
    "(%x: T[N,5,9,8]) {\n %z = AveragePool(%x) {kernel_shape=[3, 2], pads=[1, 0, 1, 0], strides=[2, 1], dilations=[1, "
    "1], count_include_pad=1}\n return %z\n}",
    "(%x: T[N,6,5,4]) {\n %s = constant f32[4]{1, 1, 1.5, 2.25}\n %z = Resize(%x, _, %s) {mode=\"linear\"}\n return "
    "%z\n}",
    "(%x: T[N,8,9,7]) {\n %w = constant T[8,1,3,3]!0123456789abcdef0123456789abcdef\n %b = constant "
    "T[8]!1123456789abcdef0123456789abcdef\n"
    " %c = Conv(%x, %w, %b) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1], group=8}\n %z = "
    "Relu(%c)\n return %z\n}",
    "(%x: T[N,16,9,7], %r: T[N,24,9,7]) {\n %w = constant T[24,16,3,3]!0123456789abcdef0123456789abcdef\n %b = "
    "constant T[24]!1123456789abcdef0123456789abcdef\n"
    " %c = Conv(%x, %w, %b) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]}\n %d = Add(%c, "
    "%r)\n %z = Relu(%d)\n return %z\n}",
    "(%x: T[N,6,5,4]) {\n %w = constant T[6,5,3,3]!0123456789abcdef0123456789abcdef\n"
    " %z = ConvTranspose(%x, %w) {kernel_shape=[3, 3], pads=[1, 0, 1, 0], strides=[2, 2], dilations=[1, 1], "
    "output_padding=[1, 0]}\n return %z\n}",
    "(%x: T[N,8,21]) {\n %w = constant T[16,8,3]!0123456789abcdef0123456789abcdef\n %z = Conv(%x, %w) "
    "{kernel_shape=[3], pads=[1, 1], strides=[2], dilations=[1]}\n return %z\n}",
    // recurrent layers
    "(%x: T[9,N,40]) {\n %w = constant T[2,256,40]!0123456789abcdef0123456789abcdef\n %r = constant "
    "T[2,256,64]!1123456789abcdef0123456789abcdef\n %b = constant T[2,512]!2123456789abcdef0123456789abcdef\n"
    " %y, %h, %c = LSTM(%x, %w, %r, %b) {direction=\"bidirectional\", hidden_size=64}\n return %y, %h, %c\n}",
    "(%x: T[7,N,130], %s: T[1,N,256]) {\n %w = constant T[1,768,130]!0123456789abcdef0123456789abcdef\n %r = constant "
    "T[1,768,256]!1123456789abcdef0123456789abcdef\n %b = constant T[1,1536]!2123456789abcdef0123456789abcdef\n"
    " %y, %h = GRU(%x, %w, %r, %b, _, %s) {direction=\"reverse\", hidden_size=256, linear_before_reset=1}\n return %y, "
    "%h\n}",
    // tables and attention
    "(%i: i64[N,5]) {\n %t = constant T[11,24]!0123456789abcdef0123456789abcdef\n %z = Gather(%t, %i) {axis=0}\n "
    "return %z\n}",
    "(%x: T[N,7,6], %i: i64[3]) {\n %z = Gather(%x, %i) {axis=1}\n return %z\n}",
    "(%x: T[N,7,6,4], %i: i64[N,3,2]) {\n %z = GatherND(%x, %i) {batch_dims=1}\n return %z\n}",
    "(%x: T[N,7,5], %i: i32[4,3]) {\n %z = GatherND(%x, %i)\n return %z\n}",
    // the best of a line: sorted at once, part by part, of lines beside each other, one
    "(%x: T[N,7,300]) {\n %k = constant i64[1]{5}\n %v, %i = TopK(%x, %k)\n return %v, %i\n}",
    "(%x: T[N,9001]) {\n %k = constant i64[1]{70}\n %v, %i = TopK(%x, %k) {largest=0}\n return %i\n}",
    "(%x: T[N,33,40]) {\n %k = constant i64[1]{33}\n %v, %i = TopK(%x, %k) {axis=1}\n return %v\n}",
    "(%x: T[N,21,40]) {\n %z = ArgMax(%x) {axis=1}\n return %z\n}",
    "(%x: T[N,5000]) {\n %z = ArgMin(%x) {axis=1, keepdims=0, select_last_index=1}\n return %z\n}",
    "(%q: T[N,2,37,32], %k: T[N,2,70,32], %v: T[N,2,70,48], %m: T[N,1,1,70]) {\n %z = ScaledDotProductAttention(%q, "
    "%k, %v, %m) {scale=0.2}\n return %z\n}",
    "(%q: T[N,70,4,64], %k: T[N,70,2,64], %v: T[N,70,2,64]) {\n %z = ScaledDotProductAttention(%q, %k, %v) "
    "{scale=0.125, layout=\"bshd\"}\n return %z\n}",
    // depths that suit no tensor core, that leave room for few keys, and for few queries; constant queries
    "(%q: T[N,2,37,36], %k: T[N,2,70,36], %v: T[N,2,70,61], %m: T[N,1,37,70]) {\n %z = ScaledDotProductAttention(%q, "
    "%k, %v, %m) {scale=0.2}\n return %z\n}",
    "(%q: T[N,2,37,128], %k: T[N,2,70,128], %v: T[N,2,70,128]) {\n %z = ScaledDotProductAttention(%q, %k, %v) "
    "{scale=0.1}\n return %z\n}",
    "(%q: T[N,2,19,256], %k: T[N,1,35,256], %v: T[N,1,35,200]) {\n %z = ScaledDotProductAttention(%q, %k, %v) "
    "{scale=0.1}\n return %z\n}",
    "(%k: T[2,N,2,24], %v: T[2,N,2,24]) {\n %q = constant T[2,5,2,24]!0123456789abcdef0123456789abcdef\n %z = "
    "ScaledDotProductAttention(%q, %k, %v) {scale=0.2, layout=\"bshd\"}\n return %z\n}",
    // products
    "(%x: T[N,64,768], %r: T[N,64,768]) {\n %w = constant T[768,768]!0123456789abcdef0123456789abcdef\n %b = constant "
    "T[768]!1123456789abcdef0123456789abcdef\n"
    " %a = Linear(%x, %w, %b)\n %z = Add(%a, %r)\n return %z\n}",
    "(%x: T[N,7,32], %r: T[N,7,48]) {\n %w = constant T[32,48]!0123456789abcdef0123456789abcdef\n %b = constant "
    "T[48]!1123456789abcdef0123456789abcdef\n"
    " %a = Linear(%x, %w, %b)\n %z = Add(%a, %r)\n return %z\n}",
    "(%x: T[N,7,64]) {\n %w = constant T[33,64]!0123456789abcdef0123456789abcdef\n %z = Linear(%x, %w) "
    "{trans_w=1}\n return %z\n}",
    "(%x: T[N,21,64]) {\n %w = constant T[64,96]!0123456789abcdef0123456789abcdef\n %b = constant "
    "T[96]!1123456789abcdef0123456789abcdef\n %u = constant T[64,96]!2123456789abcdef0123456789abcdef\n %c = constant "
    "T[96]!3123456789abcdef0123456789abcdef\n %v = constant T[64,96]!4123456789abcdef0123456789abcdef\n %d = constant "
    "T[96]!5123456789abcdef0123456789abcdef\n"
    " %p = Linear(%x, %w, %b)\n %q = Linear(%x, %u, %c)\n %z = Linear(%x, %v, %d)\n return %p, %q, %z\n}",
    "(%x: T[N,64]) {\n %w = constant T[96,64]!0123456789abcdef0123456789abcdef\n %b = constant "
    "T[96]!1123456789abcdef0123456789abcdef\n"
    " %a = Linear(%x, %w, %b) {trans_w=1}\n %z = Relu(%a)\n return %z\n}",
    "(%a: T[N,3,16,32], %b: T[N,3,32,24]) {\n %c = MatMul(%a, %b)\n %z = Mul(%c, 0.125)\n return %z\n}",
};

/// A sample with an element type put in.
inline Graph region_sample(std::string_view text, DType dtype) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool alone = text[i] == 'T' && (i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1]))) &&
                       i + 1 < text.size() && (text[i + 1] == '[' || text[i + 1] == '"');
    if (alone) result += name_of(dtype);
    else result += text[i];
  }
  return parse_graph(result, find_op);
}

inline Problem sample_problem(const Graph& symbolic, int64_t n, const DeviceInfo& device) {
  Problem problem;
  problem.symbolic = symbolic.clone();
  problem.symbols = {{"N", n}};
  problem.region = symbolic.specialize(problem.symbols);
  problem.device = device;
  return problem;
}

}  // namespace hone::cuda
