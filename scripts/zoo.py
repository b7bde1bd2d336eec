# SPDX-License-Identifier: Apache-2.0
"""What the tests and the benchmark know of the zoo's models: their inputs, and sensible values for them.

Everything is read from the packed skeletons, which are small; nothing here unpacks a weight.
"""

import dataclasses
import functools
import lzma
import math
import os
import zlib

import numpy as np
import onnx

import materialise

SEQUENCE = 128  # tokens, where a model leaves the length open
# Of a language model with a cache: tokens that are in it, that are new, and the width of a head.
PAST, NEW = int(os.environ.get("ZOO_PAST", 96)), int(os.environ.get("ZOO_NEW", 32))
CACHE = {"past": PAST, "past_sequence_length": PAST, "seq": NEW, "sequence_length": NEW, "total_sequence_length": PAST + NEW, "kv_cache_dim": 64}
BATCH = ("batch", "batch_size")


@dataclasses.dataclass(frozen=True)
class Input:
    name: str
    dtype: np.dtype
    dims: tuple  # sizes, or names where the model leaves them open
    vocabulary: int  # token ids stay below; 0 where the input is no token id
    cached: bool = False  # of a model with a cache

    def dynamic(self):
        return any(isinstance(size, str) for size in self.dims)

    def shape(self, batch=1):
        return tuple(self.size(dim, batch) for dim in self.dims)

    def size(self, dim, batch):
        if not isinstance(dim, str):
            return dim
        return batch if dim in BATCH else CACHE.get(dim, SEQUENCE) if self.cached else SEQUENCE

    def values(self, batch=1, draw=0):
        """Deterministic: seeded with the input's name, its shape and the number of the draw. Masks are ones."""
        shape = self.shape(batch)
        if "mask" in self.name:
            return np.ones(shape, self.dtype)
        if self.name == "position_ids":
            return np.broadcast_to(np.arange(CACHE["past"], CACHE["past"] + shape[1], dtype=self.dtype), shape).copy()
        random = np.random.Generator(np.random.PCG64(zlib.crc32(f"{self.name}{shape}".encode()) + draw))
        if self.vocabulary:
            return random.integers(0, self.vocabulary, shape, self.dtype)
        return random.standard_normal(shape, np.float32).astype(self.dtype)


def vocabulary_of(graph, name):
    """The rows of the table that the input's values index, directly or behind a cast or reshape."""
    tables = {tensor.name: tensor.dims[0] for tensor in graph.initializer if tensor.dims}
    names = {name}
    for node in graph.node:
        if node.op_type == "Gather" and node.input[1] in names and node.input[0] in tables:
            return tables[node.input[0]]
        if node.op_type in ("Cast", "Identity", "Reshape") and node.input[0] in names:
            names.update(node.output)
    raise ValueError(f"nothing gathers by {name!r}")


def is_integer(value):
    return value.type.tensor_type.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)


def describe(value, graph):
    tensor = value.type.tensor_type
    dims = tuple(dim.dim_param or dim.dim_value for dim in tensor.shape.dim)
    indexes = is_integer(value) and "mask" not in value.name and value.name != "position_ids"
    cached = any(other.name.startswith("past") for other in graph.input)
    return Input(value.name, onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type), dims,
                 vocabulary_of(graph, value.name) if indexes else 0, cached)


@functools.lru_cache(None)
def skeleton(model):
    """The graph of the zoo model called `model`, without its weights."""
    return onnx.load_from_string(lzma.decompress((materialise.ZOO / f"{model}.onnx.xz").read_bytes())).graph


@functools.lru_cache(None)
def inputs(model):
    """The inputs of the zoo model called `model`."""
    graph = skeleton(model)
    weights = {tensor.name for tensor in graph.initializer}
    return [describe(value, graph) for value in graph.input if value.name not in weights]


def weight_bytes(model):
    """Of the constants that an inference reads whole: not of tables of which Gather and rotations take rows."""
    graph = skeleton(model)
    whole = {name for node in graph.node if node.op_type not in ("Gather", "GatherBlockQuantized") for name in node.input[:3]}
    return sum(math.prod(tensor.dims) * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
               for tensor in graph.initializer if tensor.name in whole)


def has_dynamic_batch(model):
    """GroupQueryAttention adds several tokens to the cache of one sequence alone."""
    if any(node.op_type == "GroupQueryAttention" for node in skeleton(model).node):
        return False
    return any(dim in BATCH for value in inputs(model) for dim in value.dims)


def shape_text(model, batch=1):
    """As trtexec's --shapes wants it, for the inputs that leave something open; empty where none does."""
    return ",".join(f"{value.name}:{'x'.join(map(str, value.shape(batch)))}"
                    for value in inputs(model) if value.dynamic())
