# SPDX-License-Identifier: Apache-2.0
"""What programs derive from to be asked or told while an inference runs, and how a context asks and tells them."""

import functools
import sys

from .._base import enums, native
from .._base.reports import called
from .._base.values import Dims

_Location = enums.TensorLocation


class IOutputAllocator:
    """Gives outputs memory; to be derived from: reallocate_output_async(tensor_name, memory, size, alignment, stream) or
    reallocate_output(...) without the stream, and notify_shape(tensor_name, shape)."""

    def __init__(self):
        pass


class IDebugListener:
    """Hears of debug tensors; to be derived from: process_debug_tensor(addr, location, type, shape, name, stream)."""

    def __init__(self):
        pass


class IProfiler:
    """Hears of layers' times; to be derived from: report_layer_time(layer_name, ms)."""

    def __init__(self):
        pass

    def report_layer_time(self, layer_name, ms):
        """One layer of the last run."""


class Profiler(IProfiler):
    """Prints layers' times."""

    def report_layer_time(self, layer_name, ms):
        """A line for each layer."""
        print(f"{layer_name}: {ms}ms", file=sys.stdout)


class IGpuAllocator:
    """Gives a runtime's contexts device memory for activations; to be derived from: allocate(size, alignment, flags), deallocate(memory)."""

    def __init__(self):
        pass


class IGpuAsyncAllocator(IGpuAllocator):
    """The same, in a stream: allocate_async(size, alignment, flags, stream), deallocate_async(memory, stream)."""


class IErrorRecorder:
    """Is told of errors; to be derived from."""

    MAX_DESC_LENGTH = 127

    def __init__(self):
        pass


def allocate(context, name, shape, stream):
    """Memory for an output of this shape from the program's allocator, which then hears the shape; 0 where there is none."""
    allocator = context._allocators[name]
    size = max(1, native.bytes_of(context._engine.get_tensor_dtype(name), shape))
    before = context._placed.get(name, context._addresses.get(name, 0))
    if hasattr(allocator, "reallocate_output_async"):
        address = called(allocator.reallocate_output_async, name, before, size, 256, stream)
    else:
        address = called(allocator.reallocate_output, name, before, size, 256)
    address = int(address or 0)
    if address:
        context._placed[name] = address
        called(allocator.notify_shape, name, Dims(shape))
    return address


_ALIGNMENT = 256


def activations(allocator, size):
    """(address, a function that gives it back) of memory from a program's allocator; the address is 0 where it gives none that can be used."""
    if isinstance(allocator, IGpuAsyncAllocator) or not hasattr(allocator, "allocate"):
        address = called(allocator.allocate_async, size, _ALIGNMENT, 0, 0)
        back = functools.partial(called, allocator.deallocate_async, address, 0)
    else:
        address = called(allocator.allocate, size, _ALIGNMENT, 0)
        back = functools.partial(called, allocator.deallocate if hasattr(allocator, "deallocate") else allocator.free, address)
    address = int(address or 0)
    if address % _ALIGNMENT:
        back()
        return 0, None
    return address, back


def report_layers(profiler, times):
    """Each layer's name and time to a profiler."""
    for layer, ms in times:
        called(profiler.report_layer_time, layer, ms)


def report_debug_tensors(context, stream):
    """What debug tensors hold behind a run, inputs first."""
    engine, listener = context._engine, context._debug_listener
    observed = context._handle.debug_tensors()
    for name in [*(name for name in context._inputs() if engine.is_debug_tensor(name)), *observed]:
        if name in context._debug_off or not (engine.is_debug_tensor(name) or context._unfused_debug or engine._notes.get("unfused")):
            continue
        if name in engine._sides and name not in observed:
            dtype, shape, address = engine._sides[name][0], context._input_shape(name), context._addresses.get(name, 0)
            location = _Location.DEVICE
        else:
            value = context._handle.debug_value(name)
            number, shape = value.describe()
            dtype, address, location = native.dtype_of(number), value.address(), _Location.HOST
        if dtype is not None:
            called(listener.process_debug_tensor, address, location, dtype, Dims(shape), name, stream)
