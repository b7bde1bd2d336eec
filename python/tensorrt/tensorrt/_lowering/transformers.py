# SPDX-License-Identifier: Apache-2.0
"""What transformers are made of, in ONNX's words: attention, rotated positions, caches of keys and values, mixtures of experts."""

import numpy as np

from .._base import onnx
from .._base.elements import element_of_type
from .quantised import scales_of_blocks, spread, through


def _low(e, element):
    """What a softmax makes nothing of."""
    return e.scalar(-3.0e38 if element != onnx.FLOAT16 else -6.0e4, element)


def _rotary_embedding(e, r):
    e.node("RotaryEmbedding", [e.input(0), e.input(1), e.input(2)] + ([e.input(3)] if e.has(3) else []), e.out(),
           interleaved=int(bool(e.param("interleaved", False))), rotary_embedding_dim=e.param("rotary_embedding_dim", 0) or None)


def _heads(e, at):
    """Keys or values with as many heads as the query has: several heads of it may share one."""
    wanted, there = (e.sizes(place)[-3] if e.rank(place) > 2 else 1 for place in (0, at))
    if wanted == there or there == 1 or min(wanted, there) < 1:
        return e.input(at)
    if wanted % there:
        e.fail(f"the query has {wanted} heads, which is no multiple of {there}")
    blocks = [1] * e.rank(at)
    blocks[-3] = wanted // there
    return spread(e, e.input(at), blocks)


def _lower_triangle(e, weights, rank, to_last):
    """Which key a query sees: those up to its own place, counted from the first ones or from the last ones."""
    sizes = e.node("Shape", [weights], start=rank - 2)
    queries, keys = (e.node("Gather", [sizes, e.constant(at, np.int64)]) for at in (0, 1))
    rows, columns = (e.node("Range", [e.constant(0, np.int64), count, e.constant(1, np.int64)]) for count in (queries, keys))
    rows = e.node("Add", [rows, e.node("Sub", [keys, queries])]) if to_last else rows
    return e.node("Not", [e.node("Greater", [columns, e.node("Unsqueeze", [rows, e.ints([1])])])])


def _attention(e, r):
    """Products of query and key are not scaled: who wants that scales the query. Masked by a tensor, by the order and by lengths."""
    owner, element, rank = r.owner, e.element(0), e.rank(0)
    order = list(range(rank))
    order[-2:] = order[:-3:-1]
    key, value = _heads(e, 1), _heads(e, 2)
    weights = e.node("MatMul", [e.input(0), e.node("Transpose", [key], perm=order)])
    if owner.causal:
        weights = e.node("Where", [_lower_triangle(e, weights, rank, owner._causal == "LOWER_RIGHT"), weights, _low(e, element)])
    if e.has(6):
        count = e.node("Gather", [e.node("Shape", [weights]), e.constant(rank - 1, np.int64)])
        at = e.node("Range", [e.constant(0, np.int64), count, e.constant(1, np.int64)])
        lengths = e.node("Unsqueeze", [e.cast(e.input(6), onnx.INT64), e.ints(range(1, rank))])
        weights = e.node("Where", [e.node("Less", [at, lengths]), weights, _low(e, element)])
    if e.has(3):
        masked = e.element(3) == onnx.BOOL
        weights = e.node("Where", [e.input(3), weights, _low(e, element)]) if masked else e.node("Add", [weights, e.input(3)])
    if owner.norm_op.name == "SOFTMAX":
        weights = e.node("Softmax", [weights], axis=-1)
    if e.has(4):
        scale = e.input(4) if e.element(4) == onnx.FLOAT else e.cast(e.input(4), onnx.FLOAT)
        weights = through(e, weights, element, scale, element_of_type(owner.normalization_quantize_to_type))
    e.node("MatMul", [weights, value], e.out())


def _kv_cache_update(e, r):
    e.node("TensorScatter", [e.input(0), e.input(1), e.cast(e.input(2), onnx.INT64)], e.out(), axis=-2, mode="linear")


def _biased(e, name, at):
    return e.node("Add", [name, e.node("Unsqueeze", [e.input(at), e.ints([1])])]) if e.has(at) else name


def _gated(e, gate, up, element):
    """What goes into the last product: SiLU of the gate times the other, or both multiplied."""
    limit, alpha, beta = (e.param(name) for name in ("limit", "swiglu_alpha", "swiglu_beta"))
    if e.param("activation_type") is None or e.param("activation_type").name != "SILU":
        return e.node("Mul", [gate, up])
    if limit:
        gate = e.node("Min", [gate, e.scalar(limit, element)])
        up = e.node("Clip", [up, e.scalar(-limit, element), e.scalar(limit, element)])
    steep = gate if alpha in (None, 1.0) else e.node("Mul", [gate, e.scalar(alpha, element)])
    made = e.node("Mul", [gate, e.node("Sigmoid", [steep])])
    return e.node("Mul", [made, up if not beta else e.node("Add", [up, e.scalar(beta, element)])])


def _moe(e, r):
    """All experts compute all tokens, and each token takes those that it was given to, times their scores."""
    if not all(e.has(at) for at in (3, 4, 5)):
        e.fail("it has no weights (IMoELayer.set_gated_weights())")
    element, experts = e.element(0), e.sizes(3)[0]
    if experts < 1:
        e.fail("the number of its experts is not known")
    hidden = e.sizes(3)[1]
    tokens = e.node("Reshape", [e.input(0), e.ints([1, -1, hidden])])
    gate, up = (_biased(e, e.node("MatMul", [tokens, e.input(at)]), bias) for at, bias in ((3, 6), (4, 7)))
    inner = _rounded(e, _gated(e, gate, up, element), element)
    down = _biased(e, e.node("MatMul", [inner, e.input(5)]), 8)
    count = e.ints([-1, e.sizes(1)[-1]])
    chosen, scores = e.node("Reshape", [e.input(1), count]), e.node("Reshape", [e.input(2), count])
    hot = e.node("OneHot", [chosen, e.constant(experts, np.int64), e.constant([0, 1], np.float32)], axis=-1)
    hot = hot if element == onnx.FLOAT else e.cast(hot, element)
    share = e.node("ReduceSum", [e.node("Mul", [hot, e.node("Unsqueeze", [scores, e.ints([2])])]), e.ints([1])], keepdims=0)
    share = e.node("Unsqueeze", [e.node("Transpose", [share], perm=[1, 0]), e.ints([2])])
    total = e.node("ReduceSum", [e.node("Mul", [down, share]), e.ints([0])], keepdims=0)
    e.node("Reshape", [total, e.node("Shape", [e.input(0)])], e.out())


def _rounded(e, inner, element):
    """What the last product reads, where it is quantised: with one scale, or with those of blocks."""
    kind = e.param("quantization_to_type")
    if not e.has(9) or kind is None:
        return inner
    scale = e.node("Reshape", [e.input(9) if e.element(9) == onnx.FLOAT else e.cast(e.input(9), onnx.FLOAT), e.ints([])])
    block = list(e.param("quantization_block_shape") or ())
    if not block:
        return through(e, inner, element, scale, element_of_type(kind))
    wide = e.sizes(3)[2]
    size = min(block[-1] if block[-1] > 0 else wide, wide)
    x = inner if element == onnx.FLOAT else e.cast(inner, onnx.FLOAT)
    blocks, sizes = [1, 1, size], [e.sizes(3)[0], -1, wide]
    largest = 6.0 if kind.name == "FP4" else 448.0
    _, factor = scales_of_blocks(e, x, sizes, blocks, largest, element_of_type(e.param("dyn_q_output_scale_type")), scale)
    return through(e, inner, element, spread(e, e.node("Reciprocal", [factor]), blocks), element_of_type(kind))


LOWER = {"ROTARY_EMBEDDING": _rotary_embedding, "ATTENTION_OUTPUT": _attention, "KV_CACHE_UPDATE": _kv_cache_update, "MOE": _moe}
