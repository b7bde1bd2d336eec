# SPDX-License-Identifier: Apache-2.0
"""Devices, streams and events."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

from .arrays import NAMES, Tensor, memory_of
from .base import Cancelled, Error, Object, _hone


class DeviceInfo(NamedTuple):
    """What a device is."""

    kind: str  # "cpu", "cuda"
    name: str  # "AMD EPYC 9V74", "NVIDIA H200"
    architecture: str  # "avx512", "sm_90"
    workers: int  # threads, or multiprocessors
    host_accessible: bool  # reads host memory as it is: nothing is copied for an inference
    memory_bytes: int
    cache_bytes: int  # L2 of one core, or of the GPU
    core_bytes: int  # fast memory of one core
    clock_ghz: float  # 0: not known
    multiplied_types: tuple[str, ...]  # that kernels multiply faster than by way of float32


class Ceilings(NamedTuple):
    """What a device has been seen to do at best; 0: not known."""

    bytes_per_second: float  # of a large copy, bytes read and bytes written
    f16_flops: float
    f32_flops: float


class Device(Object):
    """A processor or a GPU: "cpu", "cpu/4" (so many workers), "cpu@8-11" (these cores), "cuda:1"."""

    def __init__(self, name: str = "cpu", *, workers: int = 0, cores: Iterable[int] = (), instruction_set: str | None = None):
        """What the name does not say: `workers`, `cores`, and the most that is used of the processor: "scalar", "avx2", "avx512"."""
        self.name, self._handle = name, _hone.Device(name, workers, list(cores), instruction_set)

    @cached_property
    def info(self) -> DeviceInfo:
        """What it is."""
        *known, types = self.handle.describe()
        return DeviceInfo(*known, tuple(name for at, name in enumerate(NAMES) if types >> at & 1))

    @property
    def ordinal(self) -> int:
        """Which of several GPUs; 0 of a processor."""
        number = self.name.rpartition(":")[2]
        return int(number) if number.isdigit() else 0

    def measure(self) -> Ceilings:
        """What it does at best; measured at the first call, which takes a moment."""
        return Ceilings(*self.handle.measure())

    def empty(self, shape: tuple[int, ...], dtype: Any = "float32", kind: str = "device") -> Tensor:
        """Memory for a tensor: the "device"'s, the "host"'s, or "pinned" memory of the host, which a GPU copies fastest."""
        return Tensor(self, shape, dtype, kind)

    def stream(self, native: Any = None) -> Stream:
        """A new stream, or one of the caller's: see Stream."""
        return Stream(self, native)

    def event(self) -> Event:
        """An event, to be recorded."""
        return Event(self)


def device_of(device: str | Device) -> Device:
    """A device by its name."""
    return device if isinstance(device, Device) else Device(device)


def _native_of(stream):
    """A cudaStream_t as a number: it, or an object of torch (cuda_stream), CuPy (ptr) or what speaks __cuda_stream__."""
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        return stream.__cuda_stream__()[1]
    for name in ("cuda_stream", "ptr"):
        if isinstance(getattr(stream, name, None), int):
            return getattr(stream, name)
    raise Error(f"{stream!r} is no CUDA stream\n  hint: give its cudaStream_t as a number")


class Stream(Object):
    """A queue of work, which is done in order while the caller goes on. On a GPU it is a CUDA stream, a new one or, as `native`, the
    caller's (a number, or torch's or CuPy's object); a processor's has a thread of its own."""

    def __init__(self, device: str | Device = "cpu", native: Any = None):
        self.device = device_of(device)
        self._handle = (_hone.Stream(self.device.handle) if native is None else
                        _hone.Stream.from_native(self.device.handle, _native_of(native)))

    def copy(self, destination: Any, source: Any) -> None:
        """The elements of one array or tensor to another; both stay as they are until the copy has been made."""
        to, come = memory_of(destination), memory_of(source)
        if to is None or come is None or (to.type, to.shape) != (come.type, come.shape) or not to.writable:
            raise Error("a copy needs two tensors of one type and shape, without gaps, the first writable")
        size = destination.nbytes if hasattr(destination, "nbytes") else source.nbytes
        self.handle.copy(to.address, come.address, size)

    def record(self) -> Event:
        """An event behind the work so far."""
        event = Event(self.device)
        event.record(self)
        return event

    def wait(self, event: Event) -> None:
        """Later work starts when the event has been passed. Waits for nothing itself."""
        self.handle.wait(event.handle)

    def synchronize(self) -> None:
        """Waits until all work is done; raises what went wrong with it first since the last call."""
        self.handle.synchronize()

    def done(self) -> asyncio.Future[None]:
        """`await stream.done()`: until the work so far is done, while the loop does other things. Raises as synchronize() does."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def settle(status, failure):
            if future.done():
                return
            if status == 0:
                future.set_result(None)
            else:
                future.set_exception((Cancelled if status == 6 else Error)(failure))

        def told(status, failure):  # on another thread
            try:
                loop.call_soon_threadsafe(settle, status, failure)
            except RuntimeError:  # the loop has been closed: nobody waits
                pass

        self.handle.call(told)
        return future


class Event(Object):
    """A place in a stream's work."""

    def __init__(self, device: str | Device = "cpu"):
        self.device = device_of(device)
        self._handle = _hone.Event(self.device.handle)

    def record(self, stream: Stream) -> None:
        """Behind the stream's work so far."""
        self.handle.record(stream.handle)

    def synchronize(self) -> None:
        """Waits until the stream has passed it."""
        self.handle.synchronize()

    def passed(self) -> bool:
        """Whether the stream has passed it."""
        return self.handle.query()

    def milliseconds_since(self, earlier: Event) -> float:
        """By the device's clock."""
        return self.handle.elapsed(earlier.handle)
