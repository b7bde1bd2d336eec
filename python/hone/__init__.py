# SPDX-License-Identifier: Apache-2.0
"""Hone from Python: a binding over the C interface (include/hone/hone.h) alone, with numpy arrays for tensors.

    plan = hone.build("model.onnx", ["--minShapes=x:1x4", "--optShapes=x:8x4", "--maxShapes=x:16x4"])
    plan.save("model.plan")
    with plan.engine().context() as context:
        y = context.run({"x": values})["y"]

Objects hold memory of the library until they are closed, by hand (close()), at the end of a with block, or by Python.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

# GNU's OpenMP reads it when it is loaded: idle threads that spin for long starve beside other processes (see src/tools/main.cpp).
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

from . import _hone  # noqa: E402
from .operators import Operator, open_operators, operator  # noqa: E402

__all__ = ["DTYPES", "INFO", "VERBOSE", "WARNING", "Context", "Device", "Engine", "Error", "Model", "Operator", "Plan", "build", "empty", "load",
           "open_operators", "operator", "version"]

Error = _hone.Error
Error.__doc__ = "What is wrong, where, and what to do about it: a model, a file, an argument or the machine."

WARNING, INFO, VERBOSE = 2, 3, 4  # severities of log lines; a threshold lets through those up to it

Log = Callable[[int, str], Any]  # severity, text
Sides = dict[str, tuple[np.dtype, tuple[int, ...]]]


def version() -> str:
    """The library's version."""
    return _hone.version()


def _dtypes():
    """numpy's types in the order of hone_dtype; None where numpy (with ml_dtypes, if installed) has none."""
    try:
        import ml_dtypes
    except ImportError:
        ml_dtypes = None
    names = ("float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
             "uint64", "bool", None, "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
             "float8_e8m0fnu", "float4_e2m1fn", "int4", "uint4", "int2", "uint2", None, None, None)
    own = {"bfloat16", "int4", "uint4", "int2", "uint2"}.union(name for name in names if name and name.startswith(("float8", "float4")))
    types = [getattr(ml_dtypes, name, None) if name in own else name for name in names]
    return [np.dtype(kind) if kind is not None else None for kind in types]


DTYPES = _dtypes()
STRING, SEQUENCE, OPTIONAL, MAP = 13, 24, 25, 26  # kinds whose elements numpy does not hold


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array that begins at a multiple of 64 bytes, as kernels like it."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + size].view(dtype).reshape(shape)


def _sides(tensors):
    """{name: (dtype, sizes)} of the inputs and of the outputs; sizes that are not fixed are -1."""
    sides = {True: {}, False: {}}
    for name, dtype, is_input, sizes, *_ in tensors:
        sides[is_input][name] = (DTYPES[dtype], tuple(sizes))
    return sides[True], sides[False]


def _list_value(items, dtype):
    return _to_value(np.array(list(items), object if dtype == STRING else DTYPES[dtype]).reshape(-1))


def _to_value(content, kind=None, element=None, key=None):
    """A value of the library: arrays (of text as well), lists for sequences, dictionaries for maps; None and others for
    optionals (`kind`). `element` and `key`: the types in a map."""
    if kind == OPTIONAL:
        return _hone.Value.optional(None if content is None else _to_value(content, None, element, key))
    if isinstance(content, (list, tuple)):
        return _hone.Value.sequence([_to_value(item, None, element, key) for item in content])
    if isinstance(content, dict):
        return _hone.Value.map(_list_value(content.keys(), key), _list_value(content.values(), element))
    array = np.asarray(content)
    if array.dtype.kind in "OUS":
        return _hone.Value.strings(list(array.shape), [text if isinstance(text, bytes) else str(text).encode() for text in array.flat])
    array = np.require(array, requirements="C")
    return _hone.Value.tensor(DTYPES.index(array.dtype), list(array.shape), array.ctypes.data)


def _from_value(value):
    dtype, sizes = value.describe()
    if dtype == MAP:
        keys, values = (_from_value(value.item(index)).tolist() for index in range(2))
        return dict(zip(keys, values))
    if dtype in (SEQUENCE, OPTIONAL):
        items = [_from_value(value.item(index)) for index in range(sizes[0])]
        return items if dtype == SEQUENCE else items[0] if items else None
    count = int(np.prod(sizes, dtype=np.int64))
    if dtype == STRING:
        return np.array([value.string(index).decode(errors="replace") for index in range(count)], object).reshape(sizes)
    array = np.empty(sizes, DTYPES[dtype])
    if count:
        ctypes.memmove(array.ctypes.data, value.address(), array.nbytes)
    return array


class _Object:
    """What is common to all that hold memory of the library."""

    _handle: Any = None

    @property
    def handle(self):
        """The library's object."""
        if self._handle is None:
            raise Error(f"this {type(self).__name__} is closed")
        return self._handle

    def close(self) -> None:
        """Frees the library's memory, where nothing else uses it; what is left of the object is an Error to use."""
        self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()


class Device(_Object):
    """A processor or a GPU: "cpu", "cuda:1"."""

    def __init__(self, name: str = "cpu"):
        self.name, self._handle = name, _hone.Device(name)


def _device(device: str | Device) -> Device:
    return device if isinstance(device, Device) else Device(device)


class Model(_Object):
    """An ONNX model, read and checked. `log(severity, text)` receives what the reader has to say; `inputs` and `outputs` are
    {name: (dtype, sizes)}, where sizes that are not fixed are -1."""

    inputs: Sides
    outputs: Sides

    def __init__(self, handle: Any):
        self._handle = handle
        self.inputs, self.outputs = _sides(handle.tensors())

    @classmethod
    def load(cls, path: str | os.PathLike, log: Log | None = None, threshold: int = WARNING) -> Model:
        """Reads a file."""
        return cls(_hone.Model.load(os.fspath(path), log, threshold))

    @classmethod
    def parse(cls, data: bytes, folder: str | os.PathLike | None = None, log: Log | None = None, threshold: int = WARNING) -> Model:
        """The same from the bytes of a file; external data lie in `folder`."""
        return cls(_hone.Model.parse(data, None if folder is None else os.fspath(folder), log, threshold))

    def build(self, arguments: Iterable[str] = (), device: str | Device = "cpu", log: Log | None = None, threshold: int = INFO) -> Plan:
        """The plan. `arguments` are trtexec's build flags."""
        return Plan(_hone.build(self.handle, _device(device).handle, [str(argument) for argument in arguments], log, threshold))


class Plan(_Object):
    """A tuned engine as data: what build() makes and load() reads."""

    def __init__(self, handle: Any):
        self._handle = handle

    def save(self, path: str | os.PathLike) -> None:
        """Writes a file that is whole or not there."""
        self.handle.save(os.fspath(path))

    def bytes(self) -> bytes:
        """What save() writes."""
        return self.handle.bytes()

    def json(self) -> str:
        """The plan without its weights, as text."""
        return self.handle.json()

    def refit(self, model: Model | str | os.PathLike, device: str | Device = "cpu", log: Log | None = None,
              threshold: int = WARNING) -> Plan:
        """A new plan: the same engine with the weights of `model`, a Model or a path. Nothing is timed; the plan must have been
        built with --refit."""
        model = model if isinstance(model, Model) else Model.load(model)
        return Plan(self.handle.refit(model.handle, _device(device).handle, log, threshold))

    def engine(self, device: str | Device = "cpu", log: Log | None = None, threshold: int = WARNING) -> Engine:
        """The plan, ready to run on the device. `log(severity, text)` hears when the plan did not fit the machine and its tactics
        were chosen anew."""
        return Engine(self, device, log, threshold)


class Engine(_Object):
    """A plan on a device; may be shared by threads. `inputs` and `outputs` are {name: (dtype, sizes)}, where sizes that are not
    fixed are -1."""

    inputs: Sides
    outputs: Sides

    def __init__(self, plan: Plan, device: str | Device = "cpu", log: Log | None = None, threshold: int = WARNING):
        self._handle = _hone.Engine(plan.handle, _device(device).handle, log, threshold)
        self.inputs, self.outputs = _sides(self.handle.tensors())
        self.by_value = {name: (dtype, *inside) for name, dtype, _, _, by_value, *inside in self.handle.tensors() if by_value}

    def context(self, profile: int = 0) -> Context:
        """Memory for one inference at a time, with the tactics of a profile."""
        return Context(self, profile)


class Context(_Object):
    """One inference at a time."""

    def __init__(self, engine: Engine, profile: int = 0):
        self.engine, self._handle = engine, _hone.Context(engine.handle, profile)
        self.bound: dict[str, np.ndarray] = {}

    def close(self) -> None:
        """Frees the context's memory; the arrays that were bound are their owners'."""
        super().close()
        self.bound = {}

    def set_input(self, name: str, values: Any) -> None:
        """Binds the array itself, without a copy where its type and order already fit."""
        if name not in self.engine.inputs:
            raise Error(f"there is no input {name}; the inputs are {', '.join(self.engine.inputs)}")
        if name in self.engine.by_value:
            return self.handle.set_value(name, _to_value(values, *self.engine.by_value[name]))
        dtype, sizes = self.engine.inputs[name]
        values = np.ascontiguousarray(values, dtype).reshape(np.shape(values))
        if -1 in sizes:
            self.handle.set_shape(name, list(values.shape))
        elif values.shape != sizes:
            raise Error(f"input {name} has shape {values.shape}, the engine wants {sizes}")
        self.bind(name, values)

    def shape(self, name: str) -> tuple[int, ...]:
        """Sizes of a tensor at the present shapes of the inputs."""
        return tuple(self.handle.shape(name))

    def bind(self, name: str, array: np.ndarray) -> None:
        """The array's memory is used from now on; contiguous, of the tensor's type."""
        self.handle.bind(name, array.ctypes.data)
        self.bound[name] = array  # the library keeps only the address

    def allocate_outputs(self) -> None:
        """For what can be bound; other outputs are in the library's memory, sized by each run."""
        for name, (dtype, _) in self.engine.outputs.items():
            if name not in self.engine.by_value:
                self.bind(name, empty(self.shape(name), dtype))

    def run_bound(self) -> None:
        """Runs on what is bound: nothing else happens, so this is what to time."""
        self.handle.run()

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name, in arrays of their own."""
        for name, values in feeds.items():
            self.set_input(name, values)
        self.allocate_outputs()
        self.run_bound()
        return {name: self.value(name) if name in self.engine.by_value else self.bound[name] for name in self.engine.outputs}

    def value(self, name: str) -> Any:
        """An output of the last run that could not be bound: an array, a list, a dictionary or None, as a copy."""
        return _from_value(self.handle.value(name))

    def debug_values(self) -> dict[str, Any]:
        """{name: array} of the tensors marked with --markDebug and the like, as the last run left them."""
        return {name: _from_value(self.handle.debug_value(name)) for name in self.handle.debug_tensors()}

    def profile(self) -> list[tuple[str, float]]:
        """[(layer, ms)] of one inference on what is bound."""
        return self.handle.profile()


def build(path: str | os.PathLike, arguments: Iterable[str] = (), device: str | Device = "cpu", log: Log | None = None,
          threshold: int = INFO) -> Plan:
    """The plan of an ONNX file. `arguments` are trtexec's build flags; `log(severity, text)` receives the log."""
    with Model.load(path, log, threshold) as model:
        return model.build(arguments, device, log, threshold)


def load(path: str | os.PathLike) -> Plan:
    """Reads a plan that save() or trtexec --saveEngine wrote."""
    return Plan(_hone.Plan.load(os.fspath(path)))
