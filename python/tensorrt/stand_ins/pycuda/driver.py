# SPDX-License-Identifier: Apache-2.0
"""Memory, copies, streams and events as PyCUDA has them, over the stand-in for libcudart.so."""

import math

import numpy as np
from cuda._library import address_of
from cuda.bindings import runtime


class Error(Exception):
    """What went wrong."""


class LogicError(Error):
    """A wrong argument."""


class MemoryError(Error):  # noqa: A001: the package's name
    """Too little memory."""


RuntimeError = Error  # noqa: A001: the package's name


def _checked(answer):
    error, *values = answer
    if error != runtime.cudaError_t.cudaSuccess:
        raise (MemoryError if error == runtime.cudaError_t.cudaErrorMemoryAllocation else LogicError)(error.name)
    return values[0] if values else None


def init(flags=0):
    """Nothing is to be done."""


def get_version():
    """Of CUDA."""
    return 12, 8, 0


def get_driver_version():
    """Of CUDA, as a number."""
    return 12080


class Context:
    """The one context."""

    def push(self):
        """Nothing is to be done."""

    detach = push

    @staticmethod
    def pop():
        """Nothing is to be done."""

    @staticmethod
    def synchronize():
        """Nothing is ever under way."""

    @staticmethod
    def get_device():
        """The processor."""
        return Device(0)

    get_current = staticmethod(lambda: Context())


class Device:
    """The processor."""

    def __init__(self, number):
        if number != 0:
            raise LogicError(f"there is no device {number}")

    @staticmethod
    def count():
        """One."""
        return 1

    def name(self):
        """The processor's."""
        return _checked(runtime.cudaGetDeviceProperties(0)).name.decode(errors="replace")

    def compute_capability(self):
        """Of no GPU."""
        return 0, 0

    def total_memory(self):
        """Bytes of the machine."""
        return _checked(runtime.cudaGetDeviceProperties(0)).totalGlobalMem

    def make_context(self, flags=0):
        """The one context."""
        return Context()

    retain_primary_context = make_context


class DeviceAllocation:
    """Memory until it is freed or nobody holds it."""

    def __init__(self, size):
        self._address = _checked(runtime.cudaMalloc(size))

    def free(self):
        """Gives it back."""
        if self._address:
            runtime.cudaFree(self._address)
        self._address = 0

    def __int__(self):
        return self._address

    __index__ = __int__

    def __del__(self):
        self.free()


PooledDeviceAllocation = DeviceAllocation


def mem_alloc(bytes):  # noqa: A002: the package's name
    """Memory of so many bytes."""
    return DeviceAllocation(int(bytes))


def mem_get_info():
    """(free, total) bytes."""
    return runtime.cudaMemGetInfo()[1:]


def pagelocked_empty(shape, dtype, order="C", mem_flags=0):
    """An array; all memory is alike."""
    return np.empty(shape, dtype, order)


def pagelocked_zeros(shape, dtype, order="C", mem_flags=0):
    """An array of zeros."""
    return np.zeros(shape, dtype, order)


def pagelocked_empty_like(array, mem_flags=0):
    """An array of another's shape and type."""
    return np.empty_like(array)


def register_host_memory(array, flags=0):
    """The array itself."""
    return array


managed_empty, managed_zeros = pagelocked_empty, pagelocked_zeros


def to_device(array):
    """Memory that holds the array's elements."""
    array = np.ascontiguousarray(array)
    memory = mem_alloc(array.nbytes)
    memcpy_htod(memory, array)
    return memory


def _bytes_of(buffer):
    return buffer.nbytes if hasattr(buffer, "nbytes") else len(buffer)


def memcpy_htod(dest, src):
    """A copy from an array or a buffer."""
    array = np.asarray(src) if not isinstance(src, bytes) else src
    if not isinstance(array, bytes) and not array.flags.forc:
        raise ValueError("the array is not contiguous")
    _checked(runtime.cudaMemcpy(dest, address_of(array), _bytes_of(array), 1))


def memcpy_htod_async(dest, src, stream=None):
    """The same: done when it returns."""
    memcpy_htod(dest, src)


def memcpy_dtoh(dest, src):
    """A copy to an array."""
    _checked(runtime.cudaMemcpy(address_of(dest), src, _bytes_of(dest), 2))


def memcpy_dtoh_async(dest, src, stream=None):
    """The same: done when it returns."""
    memcpy_dtoh(dest, src)


def memcpy_dtod(dest, src, size):
    """A copy."""
    _checked(runtime.cudaMemcpy(dest, src, size, 3))


def memcpy_dtod_async(dest, src, size, stream=None):
    """The same."""
    memcpy_dtod(dest, src, size)


def memset_d8(dest, data, count):
    """So many bytes of one value."""
    _checked(runtime.cudaMemset(dest, data, count))


def memset_d32(dest, data, count):
    """So many numbers of 32 bits."""
    values = np.full(count, data, np.uint32)
    memcpy_htod(dest, values)


class Stream:
    """A name for work that is done already."""

    def __init__(self, flags=0):
        self._stream = _checked(runtime.cudaStreamCreate())

    @property
    def handle(self):
        """The number behind it."""
        return int(self._stream)

    def synchronize(self):
        """Nothing is ever under way."""

    def is_done(self):
        """Always."""
        return True

    def wait_for_event(self, event):
        """Nothing is ever under way."""

    def __del__(self):
        if hasattr(self, "_stream"):
            runtime.cudaStreamDestroy(self._stream)


class Event:
    """A moment."""

    def __init__(self, flags=0):
        self._event = _checked(runtime.cudaEventCreate())

    def record(self, stream=None):
        """Now."""
        _checked(runtime.cudaEventRecord(self._event, 0))
        return self

    def synchronize(self):
        """Nothing is ever under way."""
        return self

    def query(self):
        """Always passed."""
        return True

    def time_since(self, event):
        """Milliseconds from another one."""
        return _checked(runtime.cudaEventElapsedTime(event._event, self._event))

    def time_till(self, event):
        """Milliseconds to another one."""
        return event.time_since(self)

    def __del__(self):
        if hasattr(self, "_event"):
            runtime.cudaEventDestroy(self._event)


def size_of(shape, dtype):
    """Bytes of an array."""
    return math.prod(shape if hasattr(shape, "__len__") else (shape,)) * np.dtype(dtype).itemsize
