# SPDX-License-Identifier: Apache-2.0
"""Memory of tensors, Hone's and other packages': numpy's arrays, and what speaks DLPack or __cuda_array_interface__, without a copy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .base import Error, _hone

if TYPE_CHECKING:
    from .devices import Device, Stream

NAMES = ("float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool",
         "string", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn", "int4",
         "uint4", "int2", "uint2", "sequence", "optional", "map")  # in the order of hone_dtype
STRING, SEQUENCE, OPTIONAL, MAP = (NAMES.index(name) for name in ("string", "sequence", "optional", "map"))


def _dtypes():
    """numpy's types in the order of hone_dtype; None where numpy (with ml_dtypes, if installed) has none."""
    try:
        import ml_dtypes
    except ImportError:
        ml_dtypes = None
    foreign = {"bfloat16", "int4", "uint4", "int2", "uint2", *(name for name in NAMES if name.startswith(("float8", "float4")))}
    types = [getattr(ml_dtypes, name, None) if name in foreign else name for name in NAMES]
    return [None if kind is None or at in (STRING, SEQUENCE, OPTIONAL, MAP) else np.dtype(kind) for at, kind in enumerate(types)]


DTYPES = _dtypes()
TYPES = {dtype: at for at, dtype in enumerate(DTYPES) if dtype is not None}  # no list's index(): a dtype of float64 equals None

KINDS = {"host": 0, "pinned": 1, "device": 2}  # of memory, as hone_memory
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # devices of DLPack


def type_of(dtype: Any) -> int:
    """A numpy type, or the name of a type that numpy lacks, as hone_dtype."""
    if isinstance(dtype, str) and dtype in NAMES:
        return NAMES.index(dtype)
    dtype = np.dtype(dtype)
    if dtype not in TYPES:
        raise Error(f"Hone has no elements of the type {dtype}\n  hint: convert the array")
    return TYPES[dtype]


def empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array that begins at a multiple of 64 bytes, as kernels like it."""
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + size].view(dtype).reshape(shape)


class Memory(NamedTuple):
    """Where a tensor's elements lie, one behind the other."""

    address: int
    kind: int  # hone_memory
    type: int  # hone_dtype
    shape: tuple[int, ...]
    owner: Any  # keeps the memory
    writable: bool = True
    stream: int | None = None  # that the memory is made in, where its owner says so


def memory_of(content: Any, stream: int = -1) -> Memory | None:
    """The memory of an array or a tensor; None for what has none that can be shared. `stream`: a tensor on a GPU that speaks DLPack is
    ready there, by its number; -1: its own work is not waited for."""
    if isinstance(content, np.ndarray):
        if not content.flags.c_contiguous or content.dtype not in TYPES:
            return None
        return Memory(content.ctypes.data, KINDS["host"], TYPES[content.dtype], content.shape, content, content.flags.writeable)
    if isinstance(content, Tensor):
        return Memory(content.address, KINDS["host" if content.on_host else "device"], content.type, content.shape, content)
    if hasattr(content, "__dlpack__"):
        return _memory_by_dlpack(content, stream)
    interface = getattr(content, "__cuda_array_interface__", None)
    return None if interface is None else _memory_by_interface(interface, content)


def _memory_by_dlpack(content, stream):
    device_type = content.__dlpack_device__()[0]
    on_gpu = device_type in (CUDA, CUDA_MANAGED)
    options = {"stream": stream} if on_gpu else {}
    try:
        capsule = content.__dlpack__(max_version=(1, 0), **options)
    except TypeError:  # from before DLPack 1.0
        capsule = content.__dlpack__(**options)
    shared = _hone.share(capsule)
    if not on_gpu and device_type not in (CPU, CUDA_HOST):
        raise Error(f"the tensor is on a device of DLPack's type {device_type}\n  hint: bring it to the host or to the engine's GPU")
    if not shared.contiguous:
        return None
    kind = KINDS["device" if on_gpu else "pinned" if device_type == CUDA_HOST else "host"]
    # Of an empty tensor nothing is read, but it must lie somewhere.
    return Memory(shared.address or 64, kind, shared.dtype, tuple(shared.shape), (shared, content))


def _memory_by_interface(interface, content):
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    steps, step = [], dtype.itemsize
    for size in reversed(shape):
        steps.insert(0, step)
        step *= size
    strides = interface.get("strides")
    if strides is not None and math.prod(shape) and any(size != 1 and given != wanted for size, given, wanted in zip(shape, strides, steps)):
        return None
    address, read_only = interface["data"]
    return Memory(address or 64, KINDS["device"], type_of(dtype), shape, content, not read_only, interface.get("stream"))


class _Elements:
    """What numpy makes an array of that keeps a tensor."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.__array_interface__ = {"version": 3, "shape": tensor.shape, "typestr": f"|V{tensor.dtype.itemsize}",
                                    "data": (tensor.address, False)}


class Tensor:
    """Memory of a device, of a shape and type. Others use it without a copy: numpy.asarray() where the host reads it,
    torch.from_dlpack() and all else that speaks DLPack, on a GPU also what reads __cuda_array_interface__."""

    def __init__(self, device: Device, shape: tuple[int, ...], dtype: Any = "float32", kind: str = "device"):
        """`kind`: "device", "host" or "pinned" memory."""
        self.device, self.shape, self.type, self.kind = device, tuple(shape), type_of(dtype), kind
        self.dtype = DTYPES[self.type]
        self.nbytes = math.prod(self.shape) * (2 if NAMES[self.type] == "bfloat16" else self.dtype.itemsize if self.dtype else 1)
        if kind not in KINDS:
            raise Error(f"there is no kind of memory {kind}\n  hint: {', '.join(KINDS)}")
        self._buffer = _hone.Buffer(device.handle, KINDS[kind], self.nbytes)
        self.stream: Stream | None = None  # that an inference which writes it was last enqueued in

    @property
    def address(self) -> int:
        """Where the first element lies."""
        return self._buffer.address()

    @property
    def on_host(self) -> bool:
        """Whether the host reads it."""
        return self.kind != "device" or self.device.info.host_accessible

    def numpy(self) -> np.ndarray:
        """Its elements: the memory itself where the host reads it, else a copy."""
        if self.dtype is None:
            raise Error(f"numpy has no type {NAMES[self.type]}\n  hint: install ml_dtypes")
        if self.on_host:
            return np.asarray(_Elements(self)).view(self.dtype)
        array = empty(self.shape, self.dtype)
        stream = self.stream or self.device.stream()
        stream.copy(array, self)
        stream.synchronize()
        return array

    def write(self, values: Any) -> None:
        """Takes the elements of an array."""
        array = np.ascontiguousarray(values, self.dtype).reshape(np.shape(values))
        if array.shape != self.shape:
            raise Error(f"the tensor has the shape {self.shape}, the values have {array.shape}")
        with self.device.stream() as stream:
            stream.copy(self, array)
            stream.synchronize()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False and not self.on_host:
            raise ValueError("a tensor in device memory is copied to become an array")
        array = self.numpy()
        return array.copy() if copy and self.on_host else array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        """(type, number) of the device, as DLPack counts them."""
        return (CPU, 0) if self.on_host else (CUDA, self.device.ordinal)

    def __dlpack__(self, *, stream: int | None = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """The memory as DLPack's capsule; `stream`, where the reader's work is, waits for the inference that writes it."""
        if self.stream is not None and not self.on_host and stream != -1:
            self.device.stream(1 if stream is None else stream).wait(self.stream.record())
        shared = _hone.as_dlpack(self.address, self.type, list(self.shape), *self.__dlpack_device__(), self)
        options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        return shared.__dlpack__(**{name: value for name, value in options.items() if value is not None})

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory as CUDA programs in Python describe it; on a GPU alone."""
        if self.on_host or self.dtype is None:
            raise AttributeError("__cuda_array_interface__")
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False), "strides": None,
                "stream": None}

    def __repr__(self) -> str:
        return f"hone.Tensor({NAMES[self.type]}{list(self.shape)}, {self.device.name}, {self.kind})"
