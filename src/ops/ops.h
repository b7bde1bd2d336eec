// SPDX-License-Identifier: Apache-2.0
//
// Every operator by name, for code that builds or recognises nodes: `node->is(ops::conv)`. One line per operator, in the
// order of the files that define them; a trailing underscore keeps clear of the words C++ reserves.
#pragma once

#include "ir/op.h"

namespace hone::ops {

// arithmetic.cpp
extern const OpDef add;
extern const OpDef sub;
extern const OpDef mul;
extern const OpDef div;
extern const OpDef pow;
extern const OpDef mod;
extern const OpDef fmod;
extern const OpDef max;
extern const OpDef min;
extern const OpDef neg;
extern const OpDef abs;
extern const OpDef exp;
extern const OpDef log;
extern const OpDef sqrt;
extern const OpDef reciprocal;
extern const OpDef floor;
extern const OpDef ceil;
extern const OpDef round;
extern const OpDef sign;
extern const OpDef erf;
extern const OpDef sin;
extern const OpDef cos;
extern const OpDef tan;
extern const OpDef asin;
extern const OpDef acos;
extern const OpDef atan;
extern const OpDef sinh;
extern const OpDef cosh;
extern const OpDef asinh;
extern const OpDef acosh;
extern const OpDef atanh;

// activation.cpp
extern const OpDef relu;
extern const OpDef leaky_relu;
extern const OpDef p_relu;
extern const OpDef elu;
extern const OpDef selu;
extern const OpDef celu;
extern const OpDef sigmoid;
extern const OpDef hard_sigmoid;
extern const OpDef hard_swish;
extern const OpDef tanh;
extern const OpDef softplus;
extern const OpDef softsign;
extern const OpDef mish;
extern const OpDef thresholded_relu;
extern const OpDef shrink;
extern const OpDef clip;
extern const OpDef gelu;

// logic.cpp
extern const OpDef equal;
extern const OpDef less;
extern const OpDef less_or_equal;
extern const OpDef greater;
extern const OpDef greater_or_equal;
extern const OpDef and_;
extern const OpDef or_;
extern const OpDef xor_;
extern const OpDef not_;
extern const OpDef where;
extern const OpDef is_nan;
extern const OpDef is_inf;
extern const OpDef bit_shift;
extern const OpDef bitwise_and;
extern const OpDef bitwise_or;
extern const OpDef bitwise_xor;
extern const OpDef bitwise_not;

// cast.cpp
extern const OpDef cast;

// internal.cpp
extern const OpDef linear;
extern const OpDef clamp;
extern const OpDef silu;
extern const OpDef gelu_tanh;
extern const OpDef scaled_dot_product_attention;
extern const OpDef view;
extern const OpDef symbolic_constant;
extern const OpDef reformat;

// matmul.cpp
extern const OpDef mat_mul;
extern const OpDef gemm;

// onnx_attention.cpp
extern const OpDef attention;

// einsum.cpp
extern const OpDef einsum;

// conv.cpp
extern const OpDef conv;

// conv_transpose.cpp
extern const OpDef conv_transpose;

// pool.cpp
extern const OpDef max_pool;
extern const OpDef average_pool;
extern const OpDef lp_pool;
extern const OpDef global_average_pool;
extern const OpDef global_max_pool;
extern const OpDef global_lp_pool;

// norm.cpp
extern const OpDef batch_normalization;
extern const OpDef instance_normalization;
extern const OpDef group_normalization;
extern const OpDef layer_normalization;
extern const OpDef rms_normalization;
extern const OpDef lp_normalization;
extern const OpDef lrn;

// softmax.cpp
extern const OpDef softmax;
extern const OpDef log_softmax;
extern const OpDef hardmax;

// reduce.cpp
extern const OpDef reduce_sum;
extern const OpDef reduce_mean;
extern const OpDef reduce_max;
extern const OpDef reduce_min;
extern const OpDef reduce_prod;
extern const OpDef reduce_l1;
extern const OpDef reduce_l2;
extern const OpDef reduce_log_sum;
extern const OpDef reduce_log_sum_exp;
extern const OpDef reduce_sum_square;

// arg_reduce.cpp
extern const OpDef arg_max;
extern const OpDef arg_min;
extern const OpDef cum_sum;

// rnn.cpp
extern const OpDef lstm;
extern const OpDef gru;
extern const OpDef rnn;

// resize.cpp
extern const OpDef resize;

// quantize.cpp
extern const OpDef quantize_linear;
extern const OpDef dequantize_linear;

// matrix.cpp
extern const OpDef trilu;
extern const OpDef eye_like;

// reshape.cpp
extern const OpDef identity;
extern const OpDef reshape;
extern const OpDef flatten;
extern const OpDef squeeze;
extern const OpDef unsqueeze;

// shape.cpp
extern const OpDef shape;
extern const OpDef size;
extern const OpDef constant;
extern const OpDef constant_of_shape;
extern const OpDef range;

// transpose.cpp
extern const OpDef transpose;
extern const OpDef depth_to_space;
extern const OpDef space_to_depth;

// concat.cpp
extern const OpDef concat;
extern const OpDef split;

// slice.cpp
extern const OpDef slice;

// gather.cpp
extern const OpDef gather;
extern const OpDef gather_elements;
extern const OpDef gather_nd;
extern const OpDef compress;

// scatter.cpp
extern const OpDef scatter_elements;
extern const OpDef scatter_nd;

// expand.cpp
extern const OpDef expand;
extern const OpDef tile;

// pad.cpp
extern const OpDef pad;

// choose.cpp
extern const OpDef one_hot;
extern const OpDef top_k;
extern const OpDef non_zero;
extern const OpDef unique;

// detection.cpp
extern const OpDef non_max_suppression;
extern const OpDef roi_align;
extern const OpDef reverse_sequence;

// control.cpp
extern const OpDef if_;
extern const OpDef loop;
extern const OpDef scan;

}  // namespace hone::ops
