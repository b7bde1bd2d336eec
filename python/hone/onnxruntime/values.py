# SPDX-License-Identifier: Apache-2.0
"""OrtValue and OrtDevice: tensors on the processor or on a GPU, sequences and maps, with the methods of ONNX Runtime's classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..arrays import DTYPES, KINDS, NAMES, Memory, Tensor, memory_of, type_of
from ..base import Error
from ..devices import Device
from .errors import InvalidArgument
from .model_info import ELEMENTS

_ORT_NAMES = {"float32": "float", "float64": "double", "float8_e4m3fn": "float8e4m3fn", "float8_e4m3fnuz": "float8e4m3fnuz",
              "float8_e5m2": "float8e5m2", "float8_e5m2fnuz": "float8e5m2fnuz", "float8_e8m0fnu": "float8e8m0", "float4_e2m1fn": "float4e2m1"}
_NUMBERS = {name: number for number, name in ELEMENTS.items()}
_CPU_NAMES, _GPU_NAMES = ("cpu",), ("cuda", "gpu")


def ort_name(kind: int) -> str:
    """ONNX Runtime's word for a hone_dtype: "float"."""
    return _ORT_NAMES.get(NAMES[kind], NAMES[kind])


HONE_TYPES = {ort_name(kind): kind for kind in range(NAMES.index("sequence"))}  # "float": hone_dtype


def type_text(content: Any) -> str:
    """What a session calls the type of a value."""
    if isinstance(content, (np.ndarray, Tensor)):
        kind = content.type if isinstance(content, Tensor) else None
        if kind is None:
            kind = NAMES.index("string") if content.dtype.kind in "OUS" else type_of(content.dtype)
        return f"tensor({ort_name(kind)})"
    if isinstance(content, dict):
        key, value = next(iter(content.items()), ("", 0.0))
        words = {str: "string", int: "int64", float: "float"}
        return f"map({words.get(type(key), 'int64')},tensor({words.get(type(value), 'float')}))"
    if isinstance(content, list):
        return f"seq({type_text(content[0]) if content else 'tensor(float)'})"
    return "tensor(float)"


def kind_of(element: Any) -> int:
    """hone_dtype of numpy's type, of ONNX's number or of a name."""
    if isinstance(element, (int, np.integer)) and not isinstance(element, bool):
        name = ELEMENTS.get(int(element))
        if name not in HONE_TYPES:
            raise InvalidArgument.of(f"there is no element type {element}")
        return HONE_TYPES[name]
    if isinstance(element, str) and element in HONE_TYPES:
        return HONE_TYPES[element]
    return type_of(element)


@lru_cache(maxsize=None)
def device_named(name: str) -> Device:
    """A device; one object for each name."""
    return Device(name)


def check_device(device_type: str, device_id: int) -> str:
    """The device's name for Hone: "cpu", "cuda:1"."""
    if device_type in _CPU_NAMES:
        return "cpu"
    if device_type in _GPU_NAMES:
        return f"cuda:{device_id}"
    raise InvalidArgument.of(f"there are no devices of the type {device_type}; cpu and cuda are")


class OrtDevice:
    """A device by its type and number."""

    def __init__(self, device_type: str = "cpu", device_id: int = 0):
        check_device(device_type, device_id)
        self._type, self._id = device_type, device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """The device."""
        return OrtDevice(ort_device_name, device_id)

    def device_type(self) -> str:
        """Of the device."""
        return self._type

    def device_id(self) -> int:
        """Its number."""
        return self._id


class OrtValue:
    """A tensor, where it lies, or what else an inference takes and gives."""

    def __init__(self, content: Any, device: str = "cpu"):
        self._content, self._device = content, device

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj: np.ndarray, /, device_type: str = "cpu", device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        """Of an array: its own memory on the processor, a copy on a GPU."""
        if not isinstance(numpy_obj, np.ndarray) or numpy_obj.dtype.kind in "OUS":
            raise RuntimeError("Creation of OrtValues is currently only supported from non-string numpy arrays")
        name = check_device(device_type, device_id)
        if name == "cpu":
            return cls(np.require(numpy_obj, requirements="C"))
        tensor = cls._on_device(name, numpy_obj.shape, type_of(numpy_obj.dtype))
        tensor.write(numpy_obj)
        return cls(tensor, name)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data: np.ndarray, /, onnx_element_type: int) -> OrtValue:
        """Of an array whose bits are of another type: uint16 for bfloat16."""
        dtype = DTYPES[kind_of(onnx_element_type)]
        if dtype is None or dtype.itemsize != data.dtype.itemsize:
            raise RuntimeError(f"elements of {data.dtype} are no {ELEMENTS.get(onnx_element_type, onnx_element_type)}")
        return cls(np.require(data, requirements="C").view(dtype))

    @staticmethod
    def _on_device(name, shape, kind):
        try:
            return Tensor(device_named(name), tuple(shape), NAMES[kind])
        except Error as error:
            raise RuntimeError(f"Can't allocate memory on the device {name}: {error}") from None

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0,
                                     vendor_id: int = -1, memory_info: Any = None) -> OrtValue:
        """With memory of its own; what it holds is not said."""
        kind, name = kind_of(element_type), check_device(device_type, device_id)
        if name != "cpu":
            return cls(cls._on_device(name, shape, kind), name)
        if DTYPES[kind] is None:
            raise RuntimeError(f"numpy has no {NAMES[kind]}; install ml_dtypes")
        return cls(np.empty(tuple(shape), DTYPES[kind]))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """The memory of another package's tensor."""
        memory = memory_of(data, -1)
        if memory is None:
            raise RuntimeError("the tensor has gaps, or is none; make it contiguous")
        return cls(data, "cpu" if memory.kind != KINDS["device"] else f"cuda:{data.__dlpack_device__()[1]}")

    def _memory(self) -> Memory | None:
        return memory_of(self._content, -1)

    def data_ptr(self) -> int:
        """Where the first element lies."""
        return self._memory().address

    def device_name(self) -> str:
        """ "cpu" or "cuda"."""
        return self._device.partition(":")[0]

    def shape(self) -> list[int]:
        """Sizes of a tensor, or the number of a sequence's elements."""
        return [len(self._content)] if isinstance(self._content, (list, dict)) else list(self._content.shape)

    def data_type(self) -> str:
        """As NodeArg.type says it."""
        content = self._content
        if isinstance(content, (np.ndarray, Tensor, list, dict)) or content is None:
            return type_text(content)
        return f"tensor({ort_name(self._memory().type)})"

    def element_type(self) -> int:
        """ONNX's number of the element's type."""
        return _NUMBERS.get(self.data_type().removeprefix("tensor(").removesuffix(")"), 0)

    def tensor_size_in_bytes(self) -> int:
        """Of all elements."""
        memory = self._memory()
        dtype = DTYPES[memory.type]
        return math.prod(memory.shape) * (dtype.itemsize if dtype else 2)

    def has_value(self) -> bool:
        """False of an optional that is empty."""
        return self._content is not None

    def is_tensor(self) -> bool:
        """Neither a sequence nor a map."""
        return self._content is not None and not isinstance(self._content, (list, dict))

    def is_tensor_sequence(self) -> bool:
        """A list."""
        return isinstance(self._content, list)

    def is_sparse_tensor(self) -> bool:
        """Never: Hone's tensors are dense."""
        return False

    def numpy(self) -> Any:
        """The tensor as an array: its own memory where the host reads it."""
        content = self._content
        if isinstance(content, Tensor):
            return content.numpy()
        if isinstance(content, (np.ndarray, list, dict)) or content is None:
            return content
        memory = self._memory()
        if memory.kind == KINDS["device"]:
            tensor = self._on_device(self._device, memory.shape, memory.type)
            with tensor.device.stream() as stream:
                stream.copy(tensor, content)
                stream.synchronize()
            return tensor.numpy()
        return np.from_dlpack(content)

    def update_inplace(self, data: np.ndarray) -> None:
        """Other elements, of the same type and sizes."""
        if tuple(self.shape()) != data.shape:
            raise RuntimeError("The input size of numpy arrays does not match the size of the OrtValue.")
        if isinstance(self._content, Tensor):
            self._content.write(data)
        else:
            np.copyto(self.numpy(), data)

    def __dlpack__(self, **options: Any) -> Any:
        return self._content.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._content.__dlpack_device__()


def content_of(value: Any) -> Any:
    """What a feed holds."""
    return value._content if isinstance(value, OrtValue) else value
