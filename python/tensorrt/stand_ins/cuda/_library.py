# SPDX-License-Identifier: Apache-2.0
"""The stand-in for libcudart.so as Python functions that answer as cuda-python's do: a tuple with an enum first.

What a function takes and gives is written in letters: small ones go in (p address, z size, i int, u unsigned, s handle), large ones come
out (P address, Z size, I int, U unsigned, F float, S stream, E event, G pool).
"""

import ctypes
import enum


def _load():
    try:
        from tensorrt._base.native import shim_folder
        folder = shim_folder()
    except ImportError:
        folder = None
    return ctypes.CDLL("libcudart.so" if folder is None else str(folder / "libcudart.so"))


LIBRARY = _load()


class cudaError_t(enum.IntEnum):  # noqa: N801: the package's names, here and below
    """What went wrong."""

    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2
    cudaErrorInitializationError = 3
    cudaErrorInvalidMemcpyDirection = 21
    cudaErrorNoDevice = 100
    cudaErrorInvalidDevice = 101
    cudaErrorInvalidResourceHandle = 400
    cudaErrorNotReady = 600
    cudaErrorNotSupported = 801
    cudaErrorUnknown = 999


class cudaMemcpyKind(enum.IntEnum):  # noqa: N801
    """From where to where."""

    cudaMemcpyHostToHost = 0
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2
    cudaMemcpyDeviceToDevice = 3
    cudaMemcpyDefault = 4


class Handle:
    """An object of the library: a number behind int()."""

    def __init__(self, init_value=0):
        self._number = int(init_value)

    def __int__(self):
        return self._number

    __index__ = __int__

    def __eq__(self, other):
        return int(self) == int(other)

    def __hash__(self):
        return hash(self._number)

    def getPtr(self):  # noqa: N802
        """The number."""
        return self._number

    def __repr__(self):
        return f"<{type(self).__name__} {self._number:#x}>"


class cudaStream_t(Handle):  # noqa: N801
    """A stream."""


class cudaEvent_t(Handle):  # noqa: N801
    """An event."""


class cudaMemPool_t(Handle):  # noqa: N801
    """A pool of memory."""


class cudaMemPoolProps:  # noqa: N801
    """How a pool is made: nothing of it matters here."""

    def __init__(self):
        self.allocType = self.handleTypes = 0
        self.location = type("cudaMemLocation", (), {"id": 0, "type": 0})()


_IN = {"p": ctypes.c_void_p, "z": ctypes.c_size_t, "i": ctypes.c_int, "u": ctypes.c_uint, "s": ctypes.c_void_p}
_OUT = {"P": (ctypes.c_void_p, lambda value: value or 0), "Z": (ctypes.c_size_t, int), "I": (ctypes.c_int, int), "U": (ctypes.c_uint, int),
        "F": (ctypes.c_float, float), "S": (ctypes.c_void_p, cudaStream_t), "E": (ctypes.c_void_p, cudaEvent_t),
        "G": (ctypes.c_void_p, cudaMemPool_t)}


def address_of(memory):
    """A number of an address: an int, a handle, an array, a buffer; 0 for None."""
    if memory is None:
        return 0
    if hasattr(memory, "ctypes"):  # an array, also one without dimensions
        return memory.ctypes.data
    if hasattr(memory, "__index__") or hasattr(memory, "__int__"):
        return int(memory)
    if isinstance(memory, bytes):
        return ctypes.cast(memory, ctypes.c_void_p).value
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def function(name, letters):
    """One function of the library."""
    native = getattr(LIBRARY, name)
    native.restype = ctypes.c_int

    def call(*arguments):
        left, native_arguments, outputs = list(arguments), [], []
        for letter in letters:
            if letter in _OUT:
                kind, convert = _OUT[letter]
                place = kind()
                outputs.append((place, convert))
                native_arguments.append(ctypes.byref(place))
            elif not left:
                raise TypeError(f"{name}() lacks arguments")
            else:
                native_arguments.append(_IN[letter](address_of(left.pop(0)) if letter in "ps" else int(left.pop(0))))
        if left:
            raise TypeError(f"{name}() was given {len(left)} arguments too many")
        error = cudaError_t(native(*native_arguments))
        return error, *(convert(place.value) if error == cudaError_t.cudaSuccess else None for place, convert in outputs)

    call.__name__ = name
    return call
