# SPDX-License-Identifier: Apache-2.0
"""Hone underneath: the device that engines are built for and run on, types as it counts them, and on a processor the stand-in for CUDA's
run-time library.

HONE_TENSORRT_DEVICE names the device ("cpu", "cpu/4", "cuda:1"); without it the first GPU is taken where there is one, else the
processor. There device memory is host memory and a stream is a name, so that programs go on calling CUDA as they do.
"""

import ctypes
import functools
import glob
import math
import os
import pathlib

import hone
from hone import _hone
from hone.arrays import NAMES

from . import enums

# hone_dtype by the name of TensorRT's type; what is not here is no type of an input or output.
TYPES = {"FLOAT": "float32", "HALF": "float16", "BF16": "bfloat16", "INT8": "int8", "UINT8": "uint8", "INT32": "int32", "INT64": "int64",
         "BOOL": "bool", "FP8": "float8_e4m3fn", "INT4": "int4", "FP4": "float4_e2m1fn", "E8M0": "float8_e8m0fnu"}
_NAMED = {name: trt for trt, name in TYPES.items()}

HOST = 0  # kinds of memory, as hone_memory
DEVICE = 2


def dtype_of(number):
    """TensorRT's type of a hone_dtype; None where it has none."""
    return getattr(enums.DataType, _NAMED.get(NAMES[number], ""), None)


def bytes_of(dtype, shape):
    """Bytes of an input or output in memory, where an element has at least one."""
    return math.prod(shape) * max(1, int(dtype.itemsize))


def number_of(dtype):
    """hone_dtype of TensorRT's type."""
    return NAMES.index(TYPES[dtype.name])


@functools.cache
def device():
    """The device of this process."""
    asked = os.environ.get("HONE_TENSORRT_DEVICE", "").strip()
    if asked:
        return hone.Device(asked)
    try:
        return hone.Device("cuda:0")
    except hone.Error:
        return hone.Device("cpu")


def on_host():
    """Whether the device reads the host's memory as it is."""
    return device().info.host_accessible


@functools.lru_cache(maxsize=64)
def stream(handle):
    """A stream of the caller's on a GPU."""
    return hone.Stream(device(), handle)


def copy(to, source, size, handle):
    """Copies memory of the device, on a GPU in the caller's stream."""
    if on_host():
        ctypes.memmove(to, source, size)
        return
    arguments = ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(size), ctypes.c_void_p(handle)
    if size and ctypes.CDLL("libcuda.so.1").cuMemcpyDtoDAsync_v2(*arguments):
        raise RuntimeError(f"CUDA's driver did not copy {size} bytes")


def text_of(error):
    """A failure of Hone's in one line and its hint behind it."""
    return str(error).replace("\n  hint: ", " (hint: ") + (")" if "\n  hint: " in str(error) else "")


def tensor_value(dtype_number, shape, address):
    """A copy of a tensor of the host's, as a value of Hone's."""
    return _hone.Value.tensor(dtype_number, list(shape), address)


# ---- the stand-in for CUDA's run-time library ----

def shim_folder():
    """Where libcudart.so of this package is: in the package where it is installed, beside it in Hone's build. None: not built."""
    here = pathlib.Path(__file__).parent.parent
    for folder in (here / "_cudart", here.parent / "cudart"):
        if (folder / "libcudart.so").exists():
            return folder
    return None


def _has_driver():
    """Whether NVIDIA's driver is installed; nothing is started."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@functools.cache
def load_shim():
    """When the module is imported for a processor: all that opens "libcudart.so" by its bare name from now on gets the stand-in. Which
    device it is, no library is asked: a program may fork before it uses one. Its symbols stay its own: in the global scope they would
    answer for the CUDA run-time library of torch too, which then sees a card."""
    folder, asked = shim_folder(), os.environ.get("HONE_TENSORRT_DEVICE", "").strip()
    if folder is None or not asked.startswith("cpu") and (asked or _has_driver()):
        return None
    return ctypes.CDLL(str(folder / "libcudart.so"))


@functools.cache
def shim_advice():
    """What to do where programs that look for libcudart.so by path would find a real one, which answers 35 to all calls without a
    driver; None where there is nothing to say."""
    folder = shim_folder()
    if folder is None or not on_host():
        return None
    for place in [*filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)), "/usr/local/cuda/lib64", "/usr/lib", "/lib"]:
        found = sorted(glob.glob(os.path.join(place, "libcudart.so*")))
        if found and pathlib.Path(place).resolve() == folder.resolve():
            return None
        if found:
            return (f"{found[0]} is a CUDA run-time library that finds no driver here; programs that open it by path fail. "
                    "Start them with: hone trt-env -- COMMAND")
    return None
