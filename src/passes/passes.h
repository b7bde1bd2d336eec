// SPDX-License-Identifier: Apache-2.0
//
// Every pass that is a function and every set of rewrites, by name, for the list in pipeline.cpp. One line each, in the
// order of the files that define them.
#pragma once

#include "passes/pass.h"
#include "passes/rewrite.h"

namespace hone::passes {

// widen_half.cpp
void widen_half(Graph& graph, const PassContext& context);
// fold_constants.cpp
void fold_constants(Graph& graph, const PassContext& context);
void fold_shapes(Graph& graph, const PassContext& context);
// fold_if.cpp
void fold_if(Graph& graph, const PassContext& context);
// eliminate_identity.cpp
void eliminate_identity(Graph& graph, const PassContext& context);
void eliminate_dead(Graph& graph, const PassContext& context);
void eliminate_expand(Graph& graph, const PassContext& context);
// merge_common.cpp
void merge_constants(Graph& graph, const PassContext& context);
void merge_common(Graph& graph, const PassContext& context);
// fold_batch_norm.cpp
void fold_batch_norm(Graph& graph, const PassContext& context);
void lower_batch_norm(Graph& graph, const PassContext& context);
// fold_scale.cpp
void fold_scale(Graph& graph, const PassContext& context);
// fold_pad.cpp
void fold_pad(Graph& graph, const PassContext& context);
// merge_convs.cpp
void merge_convs(Graph& graph, const PassContext& context);
// lower_gemm.cpp
void lower_gemm(Graph& graph, const PassContext& context);
// lower_reduce.cpp
void lower_reduce(Graph& graph, const PassContext& context);
// lower_view.cpp
void lower_view(Graph& graph, const PassContext& context);
void merge_views(Graph& graph, const PassContext& context);
// move_view.cpp
void move_view(Graph& graph, const PassContext& context);
// move_transpose.cpp
void move_transpose(Graph& graph, const PassContext& context);
// move_slice.cpp
void lower_gather(Graph& graph, const PassContext& context);
void move_slice(Graph& graph, const PassContext& context);
void split_linear(Graph& graph, const PassContext& context);
// rejoin_slices.cpp
void rejoin_slices(Graph& graph, const PassContext& context);
// lower_attention.cpp
void lower_attention(Graph& graph, const PassContext& context);
// fuse_attention.cpp
void fuse_attention(Graph& graph, const PassContext& context);
void absorb_heads(Graph& graph, const PassContext& context);
void absorb_transpose(Graph& graph, const PassContext& context);
// select_precision.cpp
void select_precision(Graph& graph, const PassContext& context);

// simplify_arithmetic.cpp
std::span<const Rewrite> simplify_arithmetic();
// fuse_gelu.cpp
std::span<const Rewrite> fuse_gelu();
std::span<const Rewrite> fuse_gelu_tanh();
// fuse_activation.cpp
std::span<const Rewrite> fuse_clamp();
std::span<const Rewrite> fuse_silu();
std::span<const Rewrite> fuse_hard_swish();
std::span<const Rewrite> fuse_mish();
std::span<const Rewrite> fuse_softmax();
// fuse_norm.cpp
std::span<const Rewrite> fuse_layer_norm();
std::span<const Rewrite> fuse_rms_norm();

}  // namespace hone::passes
