# SPDX-License-Identifier: Apache-2.0
"""Values that programs hand over and read back: sizes, permutations, weights, memory of the library, types as numpy knows them."""

import ctypes
import math
import operator

import numpy as np

from . import enums

DataType = enums.ALL["DataType"]


class Dims:
    """Sizes, at most eight. It equals tuples and lists of the same numbers."""

    MAX_DIMS = 8
    __slots__ = ("_sizes",)
    _rank = None  # of the classes that have one

    def __init__(self, shape=None):
        if shape is None:
            self._sizes = [0] * (self._rank or 0)
            return
        if isinstance(shape, (int, np.integer)):
            shape = (shape,)
        sizes = [operator.index(size) for size in shape]
        if self._rank is not None and len(sizes) != self._rank:
            raise ValueError(f"{type(self).__name__} has {self._rank} sizes, not {len(sizes)}")
        if len(sizes) > self.MAX_DIMS:
            raise ValueError(f"{len(sizes)} sizes are more than {self.MAX_DIMS}")
        self._sizes = sizes

    def __len__(self):
        return len(self._sizes)

    def __bool__(self):
        return True

    def __getitem__(self, at):
        return tuple(self._sizes[at]) if isinstance(at, slice) else self._sizes[at]

    def __setitem__(self, at, value):
        if isinstance(at, slice):
            new = [operator.index(size) for size in value]
            if len(new) != len(self._sizes[at]):
                raise ValueError(f"{len(new)} sizes do not fit into {len(self._sizes[at])}")
            self._sizes[at] = new
        else:
            self._sizes[at] = operator.index(value)

    def __iter__(self):
        return iter(tuple(self._sizes))

    def __eq__(self, other):
        try:
            return tuple(self._sizes) == tuple(other)
        except TypeError:
            return NotImplemented

    def __hash__(self):
        return hash(tuple(self._sizes))

    def __repr__(self):
        return str(tuple(self._sizes))

    __str__ = __repr__

    def __reduce__(self):
        return type(self), (tuple(self._sizes),)


class _Ranked(Dims):
    """Sizes of one number, given one by one or together."""

    __slots__ = ()

    def __init__(self, *sizes):
        super().__init__(*sizes) if len(sizes) < 2 else super().__init__(sizes)


class Dims2(_Ranked):
    __slots__ = ()
    _rank = 2


class DimsHW(Dims2):
    """A height and a width."""

    __slots__ = ()

    @property
    def h(self):
        return self._sizes[0]

    @h.setter
    def h(self, size):
        self[0] = size

    @property
    def w(self):
        return self._sizes[1]

    @w.setter
    def w(self, size):
        self[1] = size


class Dims3(_Ranked):
    __slots__ = ()
    _rank = 3


class Dims4(_Ranked):
    __slots__ = ()
    _rank = 4


class Permutation:
    """Which axis comes where; eight entries, of which as many count as there are axes."""

    __slots__ = ("_order",)

    def __init__(self, order=()):
        order = [operator.index(axis) for axis in order]
        if len(order) > Dims.MAX_DIMS:
            raise ValueError(f"{len(order)} axes are more than {Dims.MAX_DIMS}")
        self._order = order + list(range(len(order), Dims.MAX_DIMS))

    def __len__(self):
        return Dims.MAX_DIMS

    def __getitem__(self, at):
        return tuple(self._order[at]) if isinstance(at, slice) else self._order[at]

    def __setitem__(self, at, axis):
        self._order[at] = operator.index(axis)

    def __iter__(self):
        return iter(tuple(self._order))

    def __eq__(self, other):
        try:
            other = tuple(other)
        except TypeError:
            return NotImplemented
        return tuple(self._order) == other + tuple(range(len(other), Dims.MAX_DIMS))

    def __hash__(self):
        return hash(tuple(self._order))

    def __repr__(self):
        return str(tuple(self._order))

    __str__ = __repr__


# numpy's type by the name of TensorRT's.
_NUMPY = {"FLOAT": np.float32, "HALF": np.float16, "INT8": np.int8, "INT32": np.int32, "BOOL": np.bool_, "UINT8": np.uint8, "INT64": np.int64}
_ML_DTYPES = {"BF16": "bfloat16", "FP8": "float8_e4m3fn", "INT4": "int4", "FP4": "float4_e2m1fn", "E8M0": "float8_e8m0fnu"}


def nptype(trt_type):
    """numpy's type of elements; TypeError where numpy has none."""
    if not isinstance(trt_type, DataType):
        raise TypeError(f"nptype(dtype): {trt_type!r} is no tensorrt.DataType")
    if trt_type.name not in _NUMPY:
        raise TypeError(f"numpy has no type for {trt_type}")
    return _NUMPY[trt_type.name]


def volume(iterable):
    """The product of all, 1 where there are none."""
    return math.prod(int(size) for size in iterable)


def type_of_array(dtype):
    """TensorRT's type of a numpy array; None where it has none. ml_dtypes' types count."""
    dtype = np.dtype(dtype)
    for name, kind in _NUMPY.items():
        if dtype == np.dtype(kind):
            return getattr(DataType, name, None)
    return next((getattr(DataType, name, None) for name, kind in _ML_DTYPES.items() if dtype.name == kind), None)


def array_type(dtype):
    """numpy's type of TensorRT's, ml_dtypes' where numpy has none; bytes where neither has one."""
    if dtype.name in _NUMPY:
        return np.dtype(_NUMPY[dtype.name])
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(np.uint8)
    return np.dtype(getattr(ml_dtypes, _ML_DTYPES[dtype.name]))


class Weights:
    """Numbers of a layer, where they lie: nothing is copied, the program keeps them until the engine is built."""

    __slots__ = ("_dtype", "_address", "_count", "_array", "_on_device")

    def __init__(self, *arguments, **named):
        a = named.pop("a", None)
        if a is not None:
            arguments = (a,)
        type_, ptr, count = named.pop("type", None), named.pop("ptr", None), named.pop("count", None)
        if named:
            raise TypeError(f"Weights() has no argument {next(iter(named))}")
        if type_ is not None:
            arguments = (type_,) if ptr is None else (type_, ptr, count)
        self._array, self._address, self._count, self._on_device = None, 0, 0, False
        if not arguments:
            self._dtype = DataType.FLOAT
        elif len(arguments) == 1 and isinstance(arguments[0], DataType):
            self._dtype = arguments[0]
        elif len(arguments) == 1:
            self._of_array(arguments[0])
        elif len(arguments) == 3 and isinstance(arguments[0], DataType):
            self._dtype, self._address, self._count = arguments[0], int(arguments[1]), operator.index(arguments[2])
        else:
            raise TypeError("Weights() takes nothing, a type, an array, or a type, an address and a count")

    def _of_array(self, array):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"Weights(array): {type(array).__name__} is no numpy array")
        self._dtype = type_of_array(array.dtype)
        if self._dtype is None:
            raise TypeError(f"Weights(array): there are no weights of the type {array.dtype}; convert the array")
        if not array.flags.c_contiguous:
            raise ValueError("Weights(array): the array is not C-contiguous; use numpy.ascontiguousarray")
        self._array, self._address, self._count = array, array.ctypes.data, array.size

    @property
    def dtype(self):
        return self._dtype

    @property
    def size(self):
        return self._count

    @property
    def nbytes(self):
        return int(self._count * enums.itemsize(self._dtype))

    def __len__(self):
        return self._count

    def __bool__(self):
        return True

    def numpy(self):
        """The numbers as a flat array over the same memory; of a type that numpy lacks, this object."""
        if self._dtype.name not in _NUMPY:
            return self
        return self._flat()

    def _flat(self):
        """A flat array of numpy's or ml_dtypes' type."""
        kind = array_type(self._dtype)
        if self._array is not None:
            return self._array.reshape(-1)
        if not self._count:
            return np.empty(0, kind)
        memory = (ctypes.c_char * self.nbytes).from_address(self._address)
        if self._dtype.name in ("INT4", "FP4"):  # two numbers a byte, the first in the low half
            packed = np.frombuffer(memory, np.uint8)
            both = np.stack([packed & 15, packed >> 4], 1).reshape(-1)[:self._count].astype(np.int8)
            return (both - 16 * (both > 7)).astype(kind) if self._dtype.name == "INT4" else both.astype(np.uint8).view(kind)
        return np.frombuffer(memory, kind)


def weights_of(value):
    """Weights of whatever stands for them: Weights, an array, None for none."""
    if value is None:
        return Weights()
    if isinstance(value, Weights):
        return value
    if isinstance(value, np.ndarray):
        return Weights(value)
    raise TypeError(f"{type(value).__name__} is neither tensorrt.Weights nor a numpy array")


def sizes_of(value, what="sizes"):
    """A list of sizes of whatever stands for them."""
    try:
        return list(Dims(value)) if not isinstance(value, Dims) else list(value)
    except TypeError:
        raise TypeError(f"{what}: {value!r} is no list of sizes") from None


class IHostMemory(bytes):
    """Bytes that the library made: a plan, a cache. It is memory of one dimension for all that reads buffers."""

    @property
    def nbytes(self):
        return len(self)

    @property
    def dtype(self):
        return DataType.INT8

    def __bool__(self):
        return True

    def __repr__(self):
        return f"<tensorrt.IHostMemory of {len(self)} bytes>"

    __str__ = __repr__

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None
