# SPDX-License-Identifier: Apache-2.0
"""Hone from Python: a binding over the C interface (include/hone/hone.h) alone, with numpy arrays for tensors.

    plan = hone.build("model.onnx", ["--minShapes=x:1x4", "--optShapes=x:8x4", "--maxShapes=x:16x4"])
    plan.save("model.plan")
    context = plan.engine().context()
    y = context.run({"x": values})["y"]
"""

import os

import numpy as np

from . import _hone

Error = _hone.Error
version = _hone.version

WARNING, INFO, VERBOSE = 2, 3, 4


def _dtypes():
    """numpy's types in the order of hone_dtype; None where numpy (with ml_dtypes, if installed) has none."""
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        bfloat16 = None
    names = ("float32", "float16", bfloat16, "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
             "uint64", "bool", None)
    return [np.dtype(name) if name is not None else None for name in names]


DTYPES = _dtypes()


def empty(shape, dtype):
    """An array that begins at a multiple of 64 bytes, as kernels like it."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + size].view(dtype).reshape(shape)


def _sides(tensors):
    """{name: (dtype, sizes)} of the inputs and of the outputs; sizes that are not fixed are -1."""
    sides = {True: {}, False: {}}
    for name, dtype, is_input, sizes in tensors:
        sides[is_input][name] = (DTYPES[dtype], tuple(sizes))
    return sides[True], sides[False]


class Device:
    def __init__(self, name="cpu"):
        self.name, self.handle = name, _hone.Device(name)


class Model:
    """An ONNX model, read and checked. `log(severity, text)` receives what the reader has to say."""

    def __init__(self, handle):
        self.handle = handle
        self.inputs, self.outputs = _sides(handle.tensors())

    @classmethod
    def load(cls, path, log=None, threshold=WARNING):
        return cls(_hone.Model.load(os.fspath(path), log, threshold))

    @classmethod
    def parse(cls, data, folder=None, log=None, threshold=WARNING):
        """The same from the bytes of a file; external data lie in `folder`."""
        return cls(_hone.Model.parse(data, None if folder is None else os.fspath(folder), log, threshold))

    def build(self, arguments=(), device="cpu", log=None, threshold=INFO):
        """The plan. `arguments` are trtexec's build flags."""
        device = device if isinstance(device, Device) else Device(device)
        return Plan(_hone.build(self.handle, device.handle, [str(argument) for argument in arguments], log, threshold))


class Plan:
    def __init__(self, handle):
        self.handle = handle

    def save(self, path):
        self.handle.save(os.fspath(path))

    def bytes(self):
        """What save() writes."""
        return self.handle.bytes()

    def json(self):
        """The plan without its weights, as text."""
        return self.handle.json()

    def engine(self, device="cpu", log=None, threshold=WARNING):
        """`log(severity, text)` hears when the plan did not fit the machine and its tactics were chosen anew."""
        return Engine(self, device if isinstance(device, Device) else Device(device), log, threshold)


class Engine:
    """A plan on a device; may be shared by threads."""

    def __init__(self, plan, device, log=None, threshold=WARNING):
        self.handle = _hone.Engine(plan.handle, device.handle, log, threshold)
        self.inputs, self.outputs = _sides(self.handle.tensors())

    def context(self, profile=0):
        return Context(self, profile)


class Context:
    """One inference at a time."""

    def __init__(self, engine, profile=0):
        self.engine, self.handle, self.bound = engine, _hone.Context(engine.handle, profile), {}

    def set_input(self, name, values):
        """Binds the array itself, without a copy where its type and order already fit."""
        if name not in self.engine.inputs:
            raise Error(f"there is no input {name}; the inputs are {', '.join(self.engine.inputs)}")
        dtype, sizes = self.engine.inputs[name]
        values = np.ascontiguousarray(values, dtype).reshape(np.shape(values))
        if -1 in sizes:
            self.handle.set_shape(name, list(values.shape))
        elif values.shape != sizes:
            raise Error(f"input {name} has shape {values.shape}, the engine wants {sizes}")
        self.bind(name, values)

    def shape(self, name):
        """Sizes of a tensor at the present shapes of the inputs."""
        return tuple(self.handle.shape(name))

    def bind(self, name, array):
        """The array's memory is used from now on; contiguous, of the tensor's type."""
        self.handle.bind(name, array.ctypes.data)
        self.bound[name] = array  # the library keeps only the address

    def allocate_outputs(self):
        for name, (dtype, _) in self.engine.outputs.items():
            self.bind(name, empty(self.shape(name), dtype))

    def run_bound(self):
        """Runs on what is bound: nothing else happens, so this is what to time."""
        self.handle.run()

    def run(self, feeds):
        """The outputs by name, in arrays of their own."""
        for name, values in feeds.items():
            self.set_input(name, values)
        self.allocate_outputs()
        self.run_bound()
        return {name: self.bound[name] for name in self.engine.outputs}

    def profile(self):
        """[(layer, ms)] of one inference on what is bound."""
        return self.handle.profile()


def build(path, arguments=(), log=None, device="cpu", threshold=INFO):
    """The plan of an ONNX file. `arguments` are trtexec's build flags; `log(severity, text)` receives the log."""
    return Model.load(path, log, threshold).build(arguments, device, log, threshold)


def load(path):
    return Plan(_hone.Plan.load(os.fspath(path)))
