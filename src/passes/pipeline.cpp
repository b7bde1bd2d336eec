// SPDX-License-Identifier: Apache-2.0
//
// The passes in order. Milestones carry the names of trtexec's build log; the number of layers does not grow from the
// first of them to the last.
#include "passes/pipeline.h"

#include "passes/passes.h"

namespace hone {
namespace {

using namespace passes;

// What makes other patterns visible: constants, sizes, and nodes that do nothing. Folding one feeds the next.
const Pass kCleanUp[] = {
    {.name = "fold_constants", .run = fold_constants},
    {.name = "fold_shapes", .run = fold_shapes},
    {.name = "fold_if", .run = fold_if},
    {.name = "eliminate_identity", .run = eliminate_identity},
    {.name = "eliminate_expand", .run = eliminate_expand},
    {.name = "merge_common", .run = merge_common},
};

// Formulas before structure: an activation spelled out reads its operand several times and would hold up every move.
// Clip is a Clamp before hard-swish is looked for; norms come last because they rely on simplify_arithmetic.
const Pass kFormulas[] = {
    {.name = "fuse_gelu", .rewrites = fuse_gelu},
    {.name = "fuse_gelu_tanh", .rewrites = fuse_gelu_tanh},
    {.name = "fuse_clamp", .rewrites = fuse_clamp},
    {.name = "fuse_hard_swish", .rewrites = fuse_hard_swish},
    {.name = "fuse_silu", .rewrites = fuse_silu},
    {.name = "fuse_mish", .rewrites = fuse_mish},
    {.name = "fuse_softmax", .rewrites = fuse_softmax},
    {.name = "simplify_arithmetic", .rewrites = simplify_arithmetic},
    {.name = "fuse_layer_norm", .rewrites = fuse_layer_norm},
    {.name = "fuse_rms_norm", .rewrites = fuse_rms_norm},
    {.name = "fold_constants", .run = fold_constants},
};

// Weights take in what stands around them. Repeats because a folded bias may stand before a scale.
const Pass kWeights[] = {
    {.name = "fold_batch_norm", .run = fold_batch_norm},
    {.name = "fold_scale", .run = fold_scale},
    {.name = "fold_pad", .run = fold_pad},
    {.name = "merge_convs", .run = merge_convs},
};

// Moves: whatever only renames or reorders bytes travels until it meets its inverse, joins an attention, or stops.
// Slices move first, since transposes and views sink below them; what meets is merged before the next round.
const Pass kMoves[] = {
    {.name = "lower_gather", .run = lower_gather},
    {.name = "absorb_heads", .run = absorb_heads},
    {.name = "move_transpose", .run = move_transpose},
    {.name = "move_slice", .run = move_slice},
    {.name = "move_view", .run = move_view},
    {.name = "merge_views", .run = merge_views},
    {.name = "eliminate_identity", .run = eliminate_identity},
    {.name = "fold_constants", .run = fold_constants},
    {.name = "merge_common", .run = merge_common},
    {.name = "absorb_transpose", .run = absorb_transpose},
    {.name = "fold_scale", .run = fold_scale},
    {.name = "split_linear", .run = split_linear},
};

const Pass kPipeline[] = {
    {.name = "widen_half", .run = widen_half},
    {.name = "lower_attention", .run = lower_attention},
    {.name = "clean_up", .group = kCleanUp},
    // Before anything else may come between a convolution and its normalisation.
    {.name = "fold_batch_norm", .run = fold_batch_norm},
    {.name = "lower_batch_norm", .run = lower_batch_norm},
    {.name = "lower_reduce", .run = lower_reduce},
    {.name = "eliminate_dead", .run = eliminate_dead, .milestone = "dead-layer removal"},

    // One form for each meaning.
    {.name = "lower_view", .run = lower_view},
    {.name = "merge_views", .run = merge_views},
    {.name = "fuse_formulas", .group = kFormulas},
    // Before lower_gemm, so that products of two activations are still recognisable as such.
    {.name = "fuse_attention", .run = fuse_attention},
    {.name = "lower_gemm", .run = lower_gemm},
    {.name = "fold_weights", .milestone = "scale fusion", .group = kWeights},
    {.name = "merge_common", .run = merge_common, .milestone = "dupe layer removal"},
    {.name = "eliminate_dead", .run = eliminate_dead, .milestone = "final dead-layer removal"},
    {.name = "merge_views", .run = merge_views, .milestone = "tensor merging"},

    {.name = "move", .milestone = "vertical fusions", .group = kMoves},
    // Moving brings formulas together that views and transposes kept apart.
    {.name = "fuse_formulas", .group = kFormulas},
    {.name = "fold_weights", .group = kWeights},
    {.name = "merge_common", .run = merge_common, .milestone = "dupe layer removal"},
    {.name = "eliminate_dead", .run = eliminate_dead, .milestone = "final dead-layer removal"},
    {.name = "merge_views", .run = merge_views, .milestone = "tensor merging"},
    {.name = "split_linear", .run = split_linear, .milestone = "slice removal"},
    {.name = "rejoin_slices", .run = rejoin_slices},
    {.name = "eliminate_identity", .run = eliminate_identity, .milestone = "concat removal"},
    // Last: every pattern is written for one type. What is cast and constant is folded again.
    {.name = "select_precision", .run = select_precision},
    {.name = "fold_constants", .run = fold_constants},
    {.name = "eliminate_identity", .run = eliminate_identity},
    {.name = "merge_common", .run = merge_common},
};

const Pass* find_in(std::span<const Pass> passes, std::string_view name) {
  for (const Pass& pass : passes) {
    if (pass.name == name) return &pass;
    if (const Pass* inner = find_in(pass.group, name)) return inner;
  }
  return nullptr;
}

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }
const Pass* find_pass(std::string_view name) { return find_in(kPipeline, name); }

}  // namespace hone
