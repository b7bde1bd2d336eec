# SPDX-License-Identifier: Apache-2.0
"""A trial: an inference on zeros with the shape tensors' real contents, for what a program asks before it has given memory.

Where shape tensors alone decide the sizes of an output, and where the condition of an assertion follows from sizes, this says what the real
inference will. It takes as long as one, and is made once for the same shapes and contents.
"""

import ctypes
import math

import hone
import numpy as np
from hone.arrays import Tensor

from .._base import native
from .._base.enums import DataType
from .._lowering.to_onnx import PREFIX



class AssertionFailed(hone.Error):
    """An assertion of the network does not hold."""


def _bytes(engine, name, shape):
    return max(64, native.bytes_of(native.dtype_of(engine._numbers[name]) or DataType.INT64, shape))


def run(engine, profile, shapes, addresses):
    """({output: sizes}, {assertion: whether it holds}). `shapes`: of all inputs; `addresses`: of shape tensors, on the host."""
    try:
        return _run(engine, profile, shapes, addresses)
    except MemoryError as error:
        raise hone.Error(f"an inference that says sizes has not enough memory: {error}") from None


def _run(engine, profile, shapes, addresses):
    sizes, kept = {}, []
    with hone.Context(engine._engine, profile) as context:
        handle = context.handle
        for name in engine._dynamic:
            handle.set_shape(name, list(shapes[name]))
        for name in shapes:
            if name in addresses:
                handle.set_value(name, native.tensor_value(engine._numbers[name], shapes[name], addresses[name]))
                continue
            kept.append(np.zeros(_bytes(engine, name, shapes[name]), np.uint8))
            handle.bind(name, kept[-1].ctypes.data, native.HOST)
        held = {}
        for name in engine._numbers:
            if name in shapes:
                continue
            if name in engine._unbound:
                handle.set_output_function(name, _taking(name, sizes, kept))
                continue
            sizes[name] = tuple(handle.shape(name))
            held[name] = np.zeros(_bytes(engine, name, sizes[name]), np.uint8)
            handle.bind(name, held[name].ctypes.data, native.HOST)
        handle.run()
        holds = {name: bool(held[name][:math.prod(sizes[name])].all()) for name in engine._assertions if name in held}
    return sizes, holds


def _taking(name, sizes, kept):
    """A function that gives an output memory and keeps its sizes."""
    def place(shape, size):
        sizes[name] = tuple(shape)
        kept.append(Tensor(native.device(), (max(64, size),), "uint8"))
        return kept[-1].address

    return place


def check(engine, holds):
    """AssertionFailed says which one does not hold."""
    for name, held in holds.items():
        if not held:
            raise AssertionFailed(f"the assertion {name[len(PREFIX):]} does not hold: {engine._assertions[name]}")


class Trials:
    """The last trial of a context, as long as nothing that decides it has changed."""

    def __init__(self):
        self._key, self._result = None, None

    def result(self, context):
        """What run() gives at the context's present shapes and contents; None where something is missing."""
        engine = context._engine
        shapes = {name: tuple(context._input_shape(name)) for name in context._inputs()}
        if any(-1 in shape for shape in shapes.values()):
            return None
        values = {name: context._addresses.get(name, 0) for name in shapes if engine.is_shape_inference_io(name)}
        if not all(values.values()):
            return None
        contents = tuple(ctypes.string_at(address, _count(engine, name, shapes[name]))
                         for name, address in values.items())
        key = engine._generation, context._profile, tuple(shapes.items()), contents
        if key != self._key:
            self._result = run(engine, context._profile, shapes, values)
            self._key = key
        return self._result


def _count(engine, name, shape):
    dtype = native.dtype_of(engine._numbers[name]) or DataType.FLOAT
    return native.bytes_of(dtype, shape)
