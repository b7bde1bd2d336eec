# SPDX-License-Identifier: Apache-2.0
"""Shape tensors that are inputs, and the values that profiles give them.

Where the only profile leaves no choice, the value is a constant of the engine: sizes follow from it when it is built. The input stays, and
what lies there when it runs is held against the profile.
"""

import ctypes
import math

import numpy as np

from .._base import onnx
from .._base.values import array_type


def fixed(values):
    """{input: values} of those that a single profile fixes. `values`: {input: [(smallest, likeliest, largest)] by profile}."""
    found = {}
    for name, profiles in values.items():
        if len(profiles) == 1 and profiles[0][0] == profiles[0][2] and len(profiles[0][0]):
            found[name] = profiles[0][0]
    return found


def with_constants(data, inputs, values):
    """The model's bytes with constants where these inputs are read."""
    model, names = onnx.Model.read(bytes(data)), {}
    for tensor in inputs:
        if tensor.name not in values:
            continue
        shape = () if len(tuple(tensor.shape)) == 0 else (len(values[tensor.name]),)
        names[tensor.name] = f"{tensor.name}/profile"
        array = np.asarray(values[tensor.name], array_type(tensor.dtype)).reshape(shape)
        model.graph.tensors[names[tensor.name]] = onnx.tensor(names[tensor.name], array)
    outputs = {info.name for info in model.graph.outputs}
    model.graph.nodes = [node.renamed(names) if not outputs & set(names) else node for node in model.graph.nodes]
    return model.bytes()


def complaint(name, dtype, shape, address, ranges):
    """What is wrong with the values that lie at an address of the host, by the ranges of a profile; None."""
    least, _, most = ranges
    count = math.prod(shape)
    if not least or count != len(least):
        return None
    kind = array_type(dtype)
    found = np.frombuffer((ctypes.c_byte * (count * kind.itemsize)).from_address(address), kind).tolist()
    if all(low <= value <= high for low, value, high in zip(least, found, most)):
        return None
    return f"the shape tensor {name} goes from {tuple(least)} to {tuple(most)} in this profile, {tuple(found)} is outside"
