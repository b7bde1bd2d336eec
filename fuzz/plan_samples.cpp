// SPDX-License-Identifier: Apache-2.0
#include "plan_samples.h"

#include <map>
#include <set>

#include "builder/build.h"
#include "device/regions_testing.h"
#include "ir/custom.h"
#include "ops/all.h"
#include "ops/ops.h"

namespace hone::fuzz {
namespace {

/// N is a size that only a run decides.
constexpr std::string_view kRegions[] = {
    // windows: winograd, conv, depthwise_conv, conv_transpose, tile_conv, onednn's convolution, pool
    "(%x: f32[N,8,6,5], %r: f32[N,16,6,5]) {\n %w = constant f32[16,8,3,3]!01\n %b = constant f32[16]!02\n %c = "
    "Conv(%x, %w, %b) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]}\n %d = Add(%c, %r)\n "
    "%z = Relu(%d)\n return %z\n}",
    "(%x: f32[N,3,7,6]) {\n %w = constant f32[8,3,3,3]!01\n %z = Conv(%x, %w) {kernel_shape=[3, 3], strides=[2, 2], "
    "pads=[0, 0, 0, 0], dilations=[1, 1], auto_pad=\"SAME_UPPER\"}\n return %z\n}",
    "(%x: f32[N,8,9]) {\n %w = constant f32[12,4,3]!01\n %b = constant f32[12]!02\n %z = Conv(%x, %w, %b) "
    "{kernel_shape=[3], pads=[1, 1], strides=[2], dilations=[1], group=2}\n return %z\n}",
    "(%x: f32[N,8,5,5], %r: f32[N,8,3,3]) {\n %w = constant f32[8,1,3,3]!01\n %b = constant f32[8]!02\n %c = Conv(%x, "
    "%w, %b) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, 1], group=8}\n %d = Add(%c, %r)\n "
    "%z = Clip(%d, 0, 6)\n return %z\n}",
    "(%x: bf16[N,8,5,5]) {\n %w = constant bf16[8,1,3,3]!01\n %z = Conv(%x, %w) {kernel_shape=[3, 3], pads=[1, 1, 1, "
    "1], strides=[1, 1], dilations=[1, 1], group=8}\n return %z\n}",
    "(%x: bf16[N,8,5,5]) {\n %w = constant bf16[16,8,1,1]!01\n %z = Conv(%x, %w) {kernel_shape=[1, 1], pads=[0, 0, 0, "
    "0], strides=[1, 1], dilations=[1, 1]}\n return %z\n}",
    "(%x: f32[N,8,4,3]) {\n %w = constant f32[8,8,3,3]!01\n %b = constant f32[8]!02\n %z = ConvTranspose(%x, %w, %b) "
    "{kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, 1], output_padding=[1, 0]}\n return %z\n}",
    "(%x: f32[N,5,6,7]) {\n %z = MaxPool(%x) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, "
    "1]}\n return %z\n}",
    "(%x: f32[N,5,6,7]) {\n %z = AveragePool(%x) {kernel_shape=[3, 2], pads=[1, 0, 1, 0], strides=[2, 1], "
    "dilations=[1, 1], count_include_pad=1}\n return %z\n}",
    "(%x: bf16[N,3,4,4,4]) {\n %z = AveragePool(%x) {kernel_shape=[2, 2, 2], pads=[0, 0, 0, 0, 0, 0], strides=[2, 2, "
    "2], dilations=[1, 1, 1]}\n return %z\n}",
    // matmuls: linear, tile_linear, matmul, einsum and onednn's
    "(%x: f32[N,3,16], %r: f32[N,3,24]) {\n %w = constant f32[16,24]!01\n %b = constant f32[24]!02\n %a = Linear(%x, "
    "%w, %b)\n %g = Gelu(%a)\n %z = Add(%g, %r)\n return %z\n}",
    "(%x: f32[N,12]) {\n %w = constant f32[9,12]!01\n %z = Linear(%x, %w) {trans_w=1}\n return %z\n}",
    "(%a: f32[N,2,5,6], %b: f32[2,6,7], %r: f32[N,2,5,7]) {\n %c = MatMul(%a, %b)\n %d = Mul(%c, 0.5)\n %z = Add(%d, "
    "%r)\n return %z\n}",
    "(%a: f32[N,5,6]) {\n %b = constant f32[6,17]!01\n %z = MatMul(%a, %b)\n return %z\n}",
    "(%a: f32[3,1,2,N,4], %b: f32[1,5,2,4,3]) {\n %z = MatMul(%a, %b)\n return %z\n}",
    "(%a: f32[N,3,4], %b: f32[5,4,3]) {\n %z = Einsum(%a, %b) {equation=\"nij,kji->nk\"}\n return %z\n}",
    "(%a: f32[N,3,4]) {\n %b = constant f32[3,40]!01\n %z = Einsum(%a, %b) {equation=\"nij,ik->njk\"}\n return %z\n}",
    // attention in both layouts, of bf16 where that is allowed
    "(%q: f32[N,2,5,8], %k: f32[N,2,7,8], %v: f32[N,2,7,6], %m: f32[N,1,5,7]) {\n %z = ScaledDotProductAttention(%q, "
    "%k, %v, %m) {scale=0.2}\n return %z\n}",
    "(%q: f32[N,5,4,8], %k: f32[N,7,2,8], %v: f32[N,7,2,8]) {\n %m = constant f32[5,7]!01\n %z = "
    "ScaledDotProductAttention(%q, %k, %v, %m) {scale=0.2, layout=\"bshd\"}\n return %z\n}",
    "(%q: f32[N,4,34,16], %k: f32[N,4,33,16], %v: f32[N,4,33,16], %m: f32[N,1,1,33]) {\n %z = "
    "ScaledDotProductAttention(%q, %k, %v, %m) {scale=0.2}\n return %z\n}",
    "(%x: f32[N,5,2,12], %c: f32[N,5,1,12], %s: f32[N,5,1,12]) {\n %z = Rotate(%x, %c, %s)\n return %z\n}",
    "(%x: bf16[N,2,5,40]) {\n %c = constant bf16[5,40]!01\n %s = constant bf16[5,40]!02\n %z = Rotate(%x, %c, %s)\n "
    "return %z\n}",
    // pointwise and pointwise_blocks
    "(%x: f32[N,3,2,5], %y: f32[3,1,1]) {\n %k = constant f32[1,3,1,5]!01\n %a = Mul(%x, %y)\n %b = Sigmoid(%a)\n %c = "
    "Add(%b, %k)\n %z = Clip(%c, -0.5, 0.75)\n return %z\n}",
    "(%x: bf16[N,7], %y: bf16[N,1]) {\n %a = Sub(%x, %y)\n %z = Erf(%a)\n return %z\n}",
    "(%c: bool[N,1,7], %x: f32[N,4,7], %z: f32[7]) {\n %y = Where(%c, %x, %z)\n return %y\n}",
    "(%x: i64[N,3], %y: i64[3]) {\n %s = SymbolicConstant() {values=[\"N\"], dims=[1]}\n %a = Mul(%x, %y)\n %z = "
    "Add(%a, %s)\n return %z\n}",
    "(%x: i32[N,3], %y: i32[3]) {\n %z = Mod(%x, %y)\n return %z\n}",
    // copies
    "(%x: f32[N,6,5,4]) {\n %z = Transpose(%x) {perm=[0, 2, 3, 1]}\n return %z\n}",
    "(%x: f32[N,3,3,3], %y: f32[N,2,3,3]) {\n %c = constant f32[2,1,3,3]!01\n %z = Concat(%x, %y) {axis=1}\n return "
    "%z\n}",
    "(%x: f32[3,2]) {\n %c = constant f32[3,1]{1, 2, 3}\n %y = Concat(%c, %x, %c) {axis=1}\n return %y\n}",
    "(%x: f32[N,7,5]) {\n %s = constant i64[3]{1, 4, 2}\n %a, %b, %c = Split(%x, %s) {axis=1}\n return %a, %b, %c\n}",
    "(%x: f32[N,12,5]) {\n %s = constant i64[1]{2}\n %e = constant i64[1]{9}\n %a = constant i64[1]{1}\n %t = constant "
    "i64[1]{2}\n %z = Slice(%x, %s, %e, %a, %t)\n return %z\n}",
    "(%x: f32[N,10,7,3]) {\n %0 = constant i64[1]{0}\n %1 = constant i64[1]{1}\n %3 = constant i64[1]{3}\n %e = "
    "constant i64[1]{99}\n %a = Slice(%x, %3, %e, %1)\n %b = Slice(%x, %0, %3, %1)\n %z = Concat(%a, %b) {axis=1}\n "
    "return %z\n}",
    "(%x: f32[N,3,4,4]) {\n %p = constant i64[8]{0, 0, 1, 2, 0, 0, 3, 1}\n %z = Pad(%x, %p)\n return %z\n}",
    "(%x: f32[N,3,4,4]) {\n %p = constant i64[8]{0, 0, 1, 2, 0, 0, 3, 1}\n %z = Pad(%x, %p) {mode=\"reflect\"}\n "
    "return %z\n}",
    "(%x: f32[N,3,4]) {\n %r = constant i64[3]{1, 2, 3}\n %z = Tile(%x, %r)\n return %z\n}",
    "(%x: f32[N,1,4]) {\n %s = SymbolicConstant() {values=[\"N\", \"3\", \"4\"], dims=[3]}\n %z = Expand(%x, %s)\n "
    "return %z\n}",
    "(%x: f32[N,8,3,2]) {\n %z = DepthToSpace(%x) {blocksize=2, mode=\"DCR\"}\n return %z\n}",
    "(%x: f32[N,20,3,2]) {\n %z = Reformat(%x)\n return %z\n}",
    // rows and lines
    "(%x: f32[N,3,9]) {\n %z = Softmax(%x) {axis=2}\n return %z\n}",
    "(%x: bf16[N,5,3,2]) {\n %z = LogSoftmax(%x) {axis=1}\n return %z\n}",
    "(%x: f32[N,3,9], %s: f32[9]) {\n %b = constant f32[9]!01\n %z = LayerNormalization(%x, %s, %b) {axis=2}\n return "
    "%z\n}",
    "(%x: bf16[N,3,9]) {\n %s = constant bf16[9]!01\n %z = RMSNormalization(%x, %s) {axis=2}\n return %z\n}",
    "(%x: f32[N,6,4,2], %s: f32[6]) {\n %b = constant f32[6]!01\n %z = InstanceNormalization(%x, %s, %b)\n return "
    "%z\n}",
    "(%x: f32[N,66,2,2]) {\n %s = constant f32[66]!01\n %b = constant f32[66]!02\n %z = GroupNormalization(%x, %s, %b) "
    "{num_groups=3}\n return %z\n}",
    "(%x: f32[N,7,5,2]) {\n %z = LRN(%x) {size=3, alpha=0.5, beta=0.75, bias=1.5}\n return %z\n}",
    "(%x: f32[N,7,3]) {\n %z = LpNormalization(%x) {axis=1, p=2}\n return %z\n}",
    "(%x: f32[N,6,3,5]) {\n %a = constant i64[2]{1, 3}\n %z = ReduceMean(%x, %a) {keepdims=0}\n return %z\n}",
    "(%x: bf16[N,6,3,5]) {\n %z = GlobalAveragePool(%x)\n return %z\n}",
    "(%x: i64[N,6,5]) {\n %a = constant i64[1]{1}\n %z = ReduceMax(%x, %a)\n return %z\n}",
    "(%x: f32[N,6,5]) {\n %a = constant i64[2]{0, 2}\n %z = ReduceLogSumExp(%x, %a)\n return %z\n}",
    "(%x: f32[N,6,5]) {\n %z = ArgMax(%x) {axis=1}\n return %z\n}",
    "(%x: i32[N,6,5]) {\n %a = constant i64[]{1}\n %z = CumSum(%x, %a)\n return %z\n}",
    "(%x: f32[N,9]) {\n %k = constant i64[1]{5}\n %v, %i = TopK(%x, %k)\n return %v, %i\n}",
    "(%x: f32[N,9]) {\n %z = Hardmax(%x) {axis=1}\n return %z\n}",
    // indices
    "(%i: i64[N,5]) {\n %t = constant f32[11,8]!01\n %z = Gather(%t, %i) {axis=0}\n return %z\n}",
    "(%x: f32[N,7,3], %i: i32[3]) {\n %z = Gather(%x, %i) {axis=1}\n return %z\n}",
    "(%x: f32[N,6,7], %i: i64[N,4,5]) {\n %z = GatherElements(%x, %i) {axis=1}\n return %z\n}",
    "(%x: f32[N,4,6], %i: i64[N,3,1]) {\n %z = GatherND(%x, %i) {batch_dims=1}\n return %z\n}",
    "(%x: f32[N,6,7], %i: i64[N,4,5], %u: f32[N,4,5]) {\n %z = ScatterElements(%x, %i, %u) {axis=1, "
    "reduction=\"add\"}\n return %z\n}",
    "(%x: f32[5,6,7], %u: f32[20,7]) {\n %i = constant i64[20,2]!01\n %z = ScatterND(%x, %i, %u)\n return %z\n}",
    "(%i: i64[N,3]) {\n %d = constant i64[]{6}\n %v = constant f32[2]{0, 1}\n %z = OneHot(%i, %d, %v) {axis=1}\n "
    "return %z\n}",
    "(%x: f32[N,5,6]) {\n %z = Trilu(%x) {upper=1}\n return %z\n}",
    "(%a: i64[N]) {\n %s = SymbolicConstant() {values=[\"N\", \"2*N - 1\", \"floordiv(N + 1, 2)\"], "
    "dims=[3]}\n %z = ConstantOfShape(%s)\n return %z\n}",
    // single operators of any element type
    "(%x: f32[N,9]) {\n %z = Cast(%x) {to=\"i64\"}\n return %z\n}",
    "(%x: i32[N,9], %y: i32[9]) {\n %z = BitwiseXor(%x, %y)\n return %z\n}",
    "(%x: u8[N,9], %y: u8[1]) {\n %z = BitShift(%x, %y) {direction=\"LEFT\"}\n return %z\n}",
    "(%x: f32[N,6,5]) {\n %s = constant f32[6]!01\n %z = constant u8[6]!02\n %y = QuantizeLinear(%x, %s, %z) "
    "{axis=1}\n return %y\n}",
    "(%x: i8[N,70]) {\n %s = constant f32[70]!01\n %y = DequantizeLinear(%x, %s) {axis=1}\n return %y\n}",
    "(%x: u8[N,5,6]) {\n %s = constant f32[]{0.1}\n %d = DequantizeLinear(%x, %s)\n %a = Tanh(%d)\n %y = "
    "QuantizeLinear(%a, %s)\n return %y\n}",
    "(%x: u8[N,5,3,2], %w: i8[5,1,1]) {\n %s = constant f32[]{0.1}\n %d = DequantizeLinear(%x, %s)\n %e = "
    "DequantizeLinear(%w, %s)\n %a = Mul(%d, %e)\n %y = QuantizeLinear(%a, %s)\n return %y\n}",
    "(%x: i8[N,5,6,7]) {\n %z = MaxPool(%x) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], dilations=[1, "
    "1]}\n return %z\n}",
    "(%x: f32[N,9]) {\n %y, %s, %z = DynamicQuantizeLinear(%x)\n return %y, %s, %z\n}",
    "(%a: i8[N,3,9], %o: i8[]) {\n %b = constant u8[9,20]!01\n %z = constant u8[20]!02\n %c = MatMulInteger(%a, %b, "
    "%o, "
    "%z)\n return %c\n}",
    "(%x: u8[N,6,5,4], %r: i8[N,19,5,4], %o: u8[]) {\n %w = constant i8[19,6,3,3]!01\n %c = ConvInteger(%x, %w, %o) "
    "{kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], dilations=[1, 1]}\n %f = Cast(%c) {to=\"f32\"}\n %s = "
    "constant f32[19,1,1]!02\n %m = Mul(%f, %s)\n %t = constant f32[]{300}\n %q = QuantizeLinear(%m, %t)\n %d = "
    "DequantizeLinear(%q, %t)\n %e = DequantizeLinear(%r, %t)\n %a = Add(%d, %e)\n %y = QuantizeLinear(%a, %t)\n "
    "return %y\n}",
    "(%x: i8[N,35,7,6], %o: i8[]) {\n %w = constant i8[35,1,3,2]!01\n %c = ConvInteger(%x, %w, %o) {kernel_shape=[3, "
    "2], "
    "pads=[1, 0, 1, 0], strides=[2, 1], dilations=[1, 2], group=35}\n %f = Cast(%c) {to=\"f32\"}\n %s = constant "
    "f32[35,1,1]!02\n %m = Mul(%f, %s)\n %b = constant f32[35,1,1]!03\n %t = Add(%m, %b)\n %u = constant "
    "f32[]{300}\n %y = QuantizeLinear(%t, %u)\n return %y\n}",
    "(%x: f32[N,3,37], %r: f32[N,3,20]) {\n %w = constant u4[37,20]!01\n %s = constant f32[3,20]!02\n %z = constant "
    "u4[3,20]!03\n %b = constant f32[20]!04\n %a = QuantizedLinear(%x, %w, %s, %z) {block_size=16}\n %c = Add(%a, "
    "%b)\n %d = Add(%c, %r)\n %y = Relu(%d)\n return %y\n}",
    "(%x: f32[N,8,24]) {\n %w = constant i8[24,40]!01\n %s = constant f32[1,40]!02\n %y = QuantizedLinear(%x, %w, %s) "
    "{block_size=24}\n return %y\n}",
    "(%x: f32[N,3,6,8]) {\n %r = constant f32[0]{}\n %s = constant f32[2]{1.7, 0.6}\n %y = Resize(%x, %r, %s) "
    "{axes=[2, 3], mode=\"linear\"}\n return %y\n}",
    "(%x: f32[N,3,4,5]) {\n %s = constant i64[2]{9, 7}\n %y = Resize(%x, _, _, %s) {axes=[2, 3], mode=\"cubic\"}\n "
    "return %y\n}",
    // windows and boxes, sequences, diagonals
    "(%x: f32[N,3,6,5]) {\n %z = LpPool(%x) {kernel_shape=[3, 2], pads=[1, 0, 1, 0], strides=[2, 1], dilations=[1, "
    "1], p=3}\n return %z\n}",
    "(%x: f32[N,3,6,5]) {\n %z, %i = MaxPool(%x) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2], "
    "dilations=[1, 1], storage_order=1}\n return %z, %i\n}",
    "(%x: f32[2,3,6,5], %r: f32[N,4], %i: i64[N]) {\n %z = RoiAlign(%x, %r, %i) {output_height=3, output_width=2, "
    "sampling_ratio=2, spatial_scale=0.5}\n return %z\n}",
    "(%x: f32[4,N,3], %l: i64[N]) {\n %z = ReverseSequence(%x, %l) {time_axis=0, batch_axis=1}\n return %z\n}",
    "(%x: f32[N,6]) {\n %z = EyeLike(%x) {k=1}\n return %z\n}",
    // a result of as many rows as there are
    "(%x: bool[N,9]) {\n %z = NonZero(%x)\n return %z\n}",
    // an operator of the program
    "(%x: f32[N,6]) {\n %w = constant f32[6]!01\n %z = fuzz::Scale(%x, %w) {factor=2.5}\n return %z\n}",
    // what ranks do together
    "(%x: f32[N,6]) {\n %z = Collective(%x) {operation=\"all_gather\", reduce=\"sum\", root=0, group_size=2, "
    "groups=[1, 0]}\n return %z\n}",
    // recurrent layers
    "(%x: f32[4,N,5], %l: i32[N], %h0: f32[2,N,9], %c0: f32[2,N,9]) {\n %w = constant f32[2,36,5]!01\n %r = constant "
    "f32[2,36,9]!02\n %b = constant f32[2,72]!03\n %p = constant f32[2,27]!04\n %y, %h, %c = LSTM(%x, %w, %r, %b, %l, "
    "%h0, %c0, %p) {direction=\"bidirectional\"}\n return %y, %h, %c\n}",
    "(%x: f32[4,N,5], %h0: f32[1,N,8]) {\n %w = constant f32[1,32,5]!01\n %r = constant f32[1,32,8]!02\n %b = constant "
    "f32[1,64]!03\n %y, %h, %c = LSTM(%x, %w, %r, %b, _, %h0)\n return %y, %h, %c\n}",
    "(%x: f32[3,N,5], %h0: f32[1,N,8]) {\n %w = constant f32[1,24,5]!01\n %r = constant f32[1,24,8]!02\n %b = constant "
    "f32[1,48]!03\n %y, %h = GRU(%x, %w, %r, %b, _, %h0) {direction=\"reverse\", linear_before_reset=1}\n return %y, "
    "%h\n}",
    "(%x: f32[3,N,5]) {\n %w = constant f32[1,8,5]!01\n %r = constant f32[1,8,8]!02\n %y, %h = RNN(%x, %w, %r)\n "
    "return %y\n}",
    // contents decide: host
    "(%x: f32[N,3,4,5], %i: i64[N,3,4,5]) {\n %y = MaxUnpool(%x, %i) "
    "{kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 0, 0]}\n return %y\n}",
    "(%x: f32[N,3]) {\n %y = Size(%x)\n return %y\n}",
};

/// Whole networks: memory that buffers share, views, several steps, sizes that the data decide.
constexpr std::string_view kNetworks[] = {
    "(%x: f32[N,4,6,6]) {\n %w = constant f32[8,4,3,3]!01\n %a = Conv(%x, %w) {kernel_shape=[3, 3], pads=[1, 1, 1, 1], "
    "strides=[1, 1], dilations=[1, 1]} \"a\"\n %b = Relu(%a) \"b\"\n %p = GlobalAveragePool(%b) \"p\"\n %v = View(%p) "
    "{shape=[\"N\", \"8\"]} \"v\"\n %l = constant f32[8,5]!02\n %y = Linear(%v, %l) \"l\"\n return %y\n}",
    "(%x: f32[N,6], %t: f32[4]) {\n %r = Softmax(%x) {axis=1} \"r\"\n %v = View(%r) {shape=[\"2\", \"3*N\"]} \"v\"\n "
    "%u = Transpose(%v) {perm=[1, 0]} \"u\"\n %i = Identity(%t) \"i\"\n %e = Exp(%u) \"e\"\n return %r, %e, %i\n}",
    "(%x: f32[N,9]) {\n %r = Relu(%x) \"r\"\n %p = NonZero(%r) \"p\"\n %t = Transpose(%p) {perm=[1, 0]} \"t\"\n %y = "
    "GatherND(%r, %t) \"y\"\n return %y\n}",
    "(%x: f32[3,4]) {\n %n = NonZero(%x) \"n\"\n %c = Cast(%n) {to=\"f32\"} \"c\"\n %y = Exp(%c) \"y\"\n return %n, "
    "%y\n}",
};

/// One step that runs the whole region.
Plan plan_of_tactic(const Graph& symbolic, const Tactic& tactic, const Compiled& compiled) {
  Plan plan;
  plan.meta = {
      .hone_version = "0.1.0", .backend = "cpu", .device = "d", .architecture = "a", .model = "m", .options = ""};
  Profile profile;
  Step step{.name = "step", .origin = {}, .kind = "Layer", .source = tactic.source, .tactic = tactic.name};
  const auto add = [&](const Value* value, Layout layout, bool input) {
    TensorType type = value->type;
    type.layout = layout;
    plan.io.push_back({value->name, type, input});
    (input ? step.inputs : step.outputs).push_back(static_cast<BufferId>(profile.buffers.size()));
    profile.buffers.push_back({value->name, type, input ? BufferKind::input : BufferKind::output});
    if (!input || type.shape.is_static()) return;
    const auto at = [&](int64_t n) { return type.shape.evaluate({{"N", n}}); };
    profile.ranges.push_back({value->name, at(1), at(2), at(3)});
  };
  for (size_t i = 0; i < tactic.in.size(); ++i) add(symbolic.inputs()[i], tactic.in[i], true);
  for (size_t i = 0; i < tactic.out.size(); ++i) add(symbolic.outputs()[i], tactic.out[i], false);
  if (decides_sizes(symbolic)) {
    const std::vector<TensorType> results = result_types(symbolic);
    profile.buffers.back().most = results[0].shape;
    profile.buffers.back().sizes = static_cast<BufferId>(profile.buffers.size());
    step.outputs.push_back(profile.buffers.back().sizes);
    profile.buffers.push_back({.name = "sizes", .type = results[1]});
  }
  for (size_t i = 0; i < compiled.constants.size(); ++i) step.constants.push_back(static_cast<int32_t>(i));
  step.code = 0;
  profile.steps = {std::move(step)};
  plan.profiles = {std::move(profile)};
  plan.constants = compiled.constants;
  plan.blobs = {compiled.code};
  return plan;
}

std::shared_ptr<const OpDef> scale_operator() {
  auto op = std::make_shared<CustomOperator>();
  op->domain = "fuzz";
  op->name = "Scale";
  op->def.min_inputs = op->def.max_inputs = 2;
  op->results = {{.dtype = {}, .as_input = 0, .sizes = "x0"}};
  op->workspace_text = "count(x0) * 4";
  op->on_host = [](CustomCall& call) {
    const CustomTensor &x = call.inputs.at(0), &w = call.inputs.at(1), &y = call.outputs.at(0);
    const int64_t count = elements(x.dims), weights = elements(w.dims);
    if (x.dtype != DType::f32 || w.dtype != DType::f32 || y.dtype != DType::f32 || elements(y.dims) != count ||
        weights == 0)
      throw Error("Scale wants floats", "");
    for (int64_t i = 0; i < count; ++i)
      static_cast<float*>(const_cast<void*>(y.data))[i] =
          static_cast<const float*>(x.data)[i] * static_cast<const float*>(w.data)[i % weights];
  };
  op->complete();
  return op->as_op();
}

Graph parsed(std::string_view text) {
  Graph graph = parse_graph(text, find_among(sample_operators()));
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    if (graph.outputs()[i]->name.empty()) graph.outputs()[i]->name = fmt::format("result {}", i);
  return graph;
}

/// A few of each tactic's variants: the first, and those in other layouts. The reference stands behind every region: now and
/// then is enough. It hands sizes on as tensors of the host, which plan_of_tactic() does not write.
void add_tactics(std::string_view text, const Backend& backend, Device& device, std::vector<PlanSample>& samples) {
  const Graph symbolic = parsed(text);
  Problem problem = sample_problem(symbolic, 2, device.info());
  problem.allowed.bf16 = true;
  for (const TacticSource* source : backend.sources) {
    Candidates candidates;
    source->propose(problem, candidates);
    if (source->name() == "reference" && (samples.size() % 4 != 0 || decides_sizes(symbolic))) continue;
    std::set<std::string> known;
    for (const Tactic& tactic : candidates.offers()) {
      std::string form = tactic.name;
      for (const Layout layout : tactic.in) form += name_of(layout);
      for (const Layout layout : tactic.out) form += name_of(layout);
      if (!known.insert(form).second || known.size() > 6) continue;
      samples.push_back(
          {tactic.source + "." + tactic.name, plan_of_tactic(symbolic, tactic, source->compile(problem, tactic))});
    }
  }
}

/// Of families that the regions above leave out, the first region of the kernels' own tests that they take.
void add_families(const Backend& backend, Device& device, std::vector<PlanSample>& samples) {
  std::set<std::string> known;
  for (const PlanSample& sample : samples) known.insert(sample.label);
  for (const RegionSample& region : region_samples()) {
    const Graph symbolic = parsed(region.with(DType::f32));
    Problem problem = sample_problem(symbolic, 2, device.info());
    problem.allowed.bf16 = true;
    for (const TacticSource* source : backend.sources) {
      if (source->name() == "reference") continue;
      Candidates candidates;
      source->propose(problem, candidates);
      for (const Tactic& tactic : candidates.offers())
        if (std::string label = tactic.source + "." + tactic.name; known.insert(label).second)
          samples.push_back({std::move(label), plan_of_tactic(symbolic, tactic, source->compile(problem, tactic))});
    }
  }
}

Plan network(std::string_view text, const Backend& backend, Device& device) {
  BuildOptions options;
  options.optimization_level = 0;
  Graph graph = parsed(text);
  for (const Value* input : graph.inputs()) {
    const auto at = [&](int64_t n) { return input->type.shape.evaluate({{"N", n}}); };
    if (options.profiles.empty()) options.profiles.emplace_back();
    options.profiles[0][input->name] = {at(1), at(2), at(4)};
  }
  TimingCache cache;
  return build(std::move(graph), options, backend, device, cache);
}

}  // namespace

const OperatorList& sample_operators() {
  static const OperatorList operators{scale_operator()};
  return operators;
}

std::vector<PlanSample> plan_samples(const Backend& backend, Device& device) {
  std::vector<PlanSample> samples;
  for (const std::string_view text : kRegions)
    with_note([&] { return fmt::format("offering tactics for {}", text); },
              [&] { add_tactics(text, backend, device, samples); });
  add_families(backend, device, samples);
  for (size_t i = 0; i < std::size(kNetworks); ++i)
    samples.push_back({fmt::format("network {}", i), network(kNetworks[i], backend, device)});
  return samples;
}

}  // namespace hone::fuzz
