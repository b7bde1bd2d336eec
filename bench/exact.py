# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime's own form of a language model gives in exact arithmetic: its nodes in double precision, one after the other.

Beside it one sees whose error a difference between two engines is.
"""

import numpy as np
import onnx
from onnx import numpy_helper

HALF = 8  # of 4 bits: the zero point where none is given


def outputs(path, feeds):
    """{output: array in f64} of the model file on {input: array}. Raises KeyError for an operator that language models do not have."""
    graph = onnx.load(path).graph
    values = {"": None, **{name: widened(array) for name, array in feeds.items()}, **{tensor.name: widened(numpy_helper.to_array(tensor)) for tensor in graph.initializer}}
    for node in graph.node:
        attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
        made = OPERATORS[node.op_type](attributes, *(values[name] for name in node.input))
        values.update(zip(node.output, made if isinstance(made, tuple) else (made,)))
    return {output.name: values[output.name] for output in graph.output}


def widened(array):
    return array.astype(np.float64) if array.dtype == np.float32 else array


def sigmoid(attributes, x):
    return 1 / (1 + np.exp(-x))


def normalized(attributes, x, scale):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + attributes["epsilon"]) * scale


def normalized_sum(attributes, x, skip, scale):
    return normalized(attributes, x + skip, scale), None, None, x + skip


def product_of_codes(attributes, x, codes, scales):
    k, n, block = attributes["K"], attributes["N"], attributes["block_size"]
    digits = np.stack([codes & 15, codes >> 4], -1).reshape(n, -1, block) - float(HALF)
    return x @ (digits * scales.reshape(n, -1, 1)).reshape(n, -1)[:, :k].T


def rotated(x, cosines, sines):
    """`x` is [batch, heads, length, size]; a half of the size turns with the other."""
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * cosines - b * sines, b * cosines + a * sines], -1)


def attention(attributes, packed, _k, _v, past_key, past_value, last, _total, cosines, sines, *_none):
    heads, shared = attributes["num_heads"], attributes["kv_num_heads"]
    batch, length, width = packed.shape
    size = width // (heads + 2 * shared)
    by_head = packed.reshape(batch, length, -1, size).transpose(0, 2, 1, 3)
    query, key, value = np.split(by_head, [heads, heads + shared], 1)
    places = int(last.max()) + 1 - length + np.arange(length)
    query, key = (rotated(x, cosines[places], sines[places]) for x in (query, key))
    past = places[0]
    key, value = (np.concatenate([before[:, :, :past], new], 2) for before, new in ((past_key, key), (past_value, value)))
    every_key, every_value = (np.repeat(x, heads // shared, 1) for x in (key, value))
    scores = query @ every_key.swapaxes(-1, -2) * attributes["scale"]
    scores = np.where(np.arange(key.shape[2]) <= places[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result = weights / weights.sum(-1, keepdims=True) @ every_value
    return result.transpose(0, 2, 1, 3).reshape(batch, length, -1), key, value


OPERATORS = {
    "Add": lambda attributes, a, b: a + b,
    "Cast": lambda attributes, x: x.astype(onnx.helper.tensor_dtype_to_np_dtype(attributes["to"])),
    "Constant": lambda attributes: numpy_helper.to_array(attributes["value"]),
    "Gather": lambda attributes, table, places: np.take(table, places, attributes.get("axis", 0)),
    "GroupQueryAttention": attention,
    "MatMul": lambda attributes, a, b: a @ b,
    "MatMulNBits": product_of_codes,
    "Mul": lambda attributes, a, b: a * b,
    "ReduceSum": lambda attributes, x, axes: x.sum(tuple(axes), keepdims=bool(attributes.get("keepdims", 1))),
    "Shape": lambda attributes, x: np.array(x.shape, np.int64),
    "Sigmoid": sigmoid,
    "SimplifiedLayerNormalization": normalized,
    "SkipSimplifiedLayerNormalization": normalized_sum,
    "Sub": lambda attributes, a, b: a - b,
}
