# SPDX-License-Identifier: Apache-2.0
"""Engines and contexts: a plan on a device, and inferences."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from typing import Any

import numpy as np

from .arrays import DTYPES, NAMES, Memory, Tensor, empty, memory_of
from .base import WARNING, Error, Log, Object, _hone
from .building import Plan, Sides, sides
from .devices import Device, Stream, device_of
from .values import from_value, to_value


class Engine(Object):
    """A plan on a device; may be shared by threads. `inputs` and `outputs` are {name: (dtype, sizes)}, where sizes that are not
    fixed are -1."""

    inputs: Sides
    outputs: Sides

    def __init__(self, plan: Plan, device: str | Device = "cpu", log: Log | None = None, threshold: int = WARNING):
        self.device, self._plan = device_of(device), plan  # whose memory the engine may read
        self._handle = _hone.Engine(plan.handle, self.device.handle, log, threshold)
        tensors = self.handle.tensors()
        self.inputs, self.outputs = sides(tensors)
        self.types = {name: dtype for name, dtype, *_ in tensors}  # as hone_dtype
        self.by_value = {name: (dtype, *inside) for name, dtype, _, _, by_value, *inside in tensors if by_value}

    @property
    def profiles(self) -> int:
        """How many there are."""
        return self.handle.profiles()

    def memory_bytes(self, profile: int = 0) -> int:
        """What a context needs for activations at a profile's largest shapes."""
        return self.handle.memory_bytes(profile)

    def context(self, profile: int = 0) -> Context:
        """Memory for one inference at a time, with the tactics of a profile."""
        return Context(self, profile)


class Enqueued:
    """What enqueue() has put into a stream: `await` it, while the loop does other things, or go on and synchronize the stream."""

    def __init__(self, stream: Stream):
        self.stream = stream

    def __await__(self) -> Generator[Any, None, None]:
        return self.stream.done().__await__()


class Context(Object):
    """One inference at a time. Arrays and tensors, numpy's, torch's and others', are used where they lie: what changes them changes the
    next inference, and they stay bound until others take their place."""

    def __init__(self, engine: Engine, profile: int = 0):
        self.engine = engine
        self._handle = _hone.Context(engine.handle, profile)
        self.bound: dict[str, Any] = {}  # what the library has the address of; goes behind the handle, whose end waits for its work
        self._stream: Stream | None = None
        self._staged: dict[str, Tensor] = {}
        self._written: dict[str, Tensor] = {}
        self._at_work = False

    def close(self) -> None:
        """Frees the context's memory, behind the end of its work; the arrays that were bound are their owners'."""
        super().close()
        self.bound, self._staged, self._written, self._stream = {}, {}, {}, None

    @property
    def stream(self) -> Stream:
        """The context's own, which run_async() uses."""
        if self._stream is None:
            self._stream = Stream(self.engine.device)
        return self._stream

    def _type_of(self, name, side):
        known = self.engine.inputs if side == "input" else self.engine.outputs
        if name not in known:
            raise Error(f"there is no {side} {name}; the {side}s are {', '.join(known)}")
        return self.engine.types[name], known[name][1]

    def set_input(self, name: str, values: Any) -> None:
        """Binds the array or tensor itself, without a copy where its type and order already fit, and sets its shape. A GPU's tensor is
        waited for."""
        self._give(name, values, None)

    def _give(self, name, values, stream):
        """set_input(); with a stream of a GPU, nothing is waited for and what lies on the host is copied there."""
        dtype, sizes = self._type_of(name, "input")
        if name in self.engine.by_value:
            return self.handle.set_value(name, to_value(values, *self.engine.by_value[name]))
        device = self.engine.device
        memory = memory_of(values, -1 if device.info.host_accessible else 1)
        if memory is None or memory.type != dtype:
            if memory is not None and memory.kind == 2:
                raise Error(f"input {name} is {NAMES[dtype]}, the tensor holds {NAMES[memory.type]}\n  hint: convert it")
            if DTYPES[dtype] is None:
                raise Error(f"input {name} is {NAMES[dtype]}, which numpy lacks\n  hint: install ml_dtypes, or give a tensor of that type")
            values = np.ascontiguousarray(values, DTYPES[dtype]).reshape(np.shape(values))
            memory = memory_of(values)
        if -1 in sizes:
            self.handle.set_shape(name, list(memory.shape))
        elif memory.shape != sizes:
            raise Error(f"input {name} has shape {memory.shape}, the engine wants {sizes}")
        if device.info.host_accessible:
            return self._bind(name, memory)
        if memory.kind == 2:  # its owner has put it in order with the stream 1, CUDA's default
            made = Stream(device, memory.stream or 1)
            if stream is None:
                made.synchronize()
            else:
                stream.wait(made.record())
        elif stream is not None:
            staged = self._staging(name, memory.shape, dtype)
            stream.copy(staged, values)
            self.bound[name + "\0host"] = values
            memory = memory_of(staged)
        return self._bind(name, memory)

    def _staging(self, name, shape, dtype):
        if name not in self._staged or self._staged[name].shape != shape:
            self._staged[name] = Tensor(self.engine.device, shape, NAMES[dtype])
        return self._staged[name]

    def _bind(self, name, memory: Memory):
        if memory.kind == 2 and self.engine.device.info.host_accessible:
            raise Error(f"{name} is bound to a tensor on a GPU, the engine is on {self.engine.device.name}\n  hint: bring it to the host")
        self.handle.bind(name, memory.address, memory.kind)
        self.bound[name] = memory.owner
        if name in self.engine.outputs and isinstance(memory.owner, Tensor):
            self._written[name] = memory.owner
        else:
            self._written.pop(name, None)

    def shape(self, name: str) -> tuple[int, ...]:
        """Sizes of a tensor at the present shapes of the inputs."""
        return tuple(self.handle.shape(name))

    def set_shape(self, name: str, sizes: tuple[int, ...]) -> None:
        """The sizes of an input; set_input() does that, too."""
        self.handle.set_shape(name, list(sizes))

    def bind(self, name: str, memory: Any) -> None:
        """The memory of an array or a tensor is used from now on: of an input or an output, contiguous, of its type and at least of its
        size. Nothing is waited for: who enqueues sees to the order of streams."""
        found = memory_of(memory)
        dtype, _ = self._type_of(name, "input" if name in self.engine.inputs else "output")
        if found is None:
            raise Error(f"what is bound to {name} has gaps, or is no array or tensor\n  hint: make it contiguous")
        if found.type != dtype:
            raise Error(f"{name} is {NAMES[dtype]}, what is bound to it holds {NAMES[found.type]}")
        if name in self.engine.outputs and not found.writable:
            raise Error(f"the output {name} is bound to memory that may not be written")
        self._bind(name, found)

    def allocate_outputs(self, on_device: bool = False) -> None:
        """Memory for what can be bound, numpy's arrays or, `on_device`, Tensors in its memory; other outputs are in the library's,
        sized by each run."""
        for name, (dtype, _) in self.engine.outputs.items():
            if name in self.engine.by_value:
                continue
            shape = self.shape(name)
            self.bind(name, Tensor(self.engine.device, shape, NAMES[self.engine.types[name]]) if on_device or dtype is None else
                      empty(shape, dtype))

    def place_output(self, name: str, function: Callable[[tuple[int, ...]], Any] | None) -> None:
        """Memory for the output comes from `function(shape)`, which returns an array or tensor, in every run; None: what is bound.
        Outputs whose sizes the data decide are copied there."""
        self._type_of(name, "output")
        if function is None:
            return self.handle.set_output_function(name, None)

        bound = self.bound  # not self: the library's context keeps the function

        def place(shape, _):
            memory = memory_of(function(tuple(shape)))
            if memory is None or not memory.writable:
                raise Error(f"the function for the output {name} returned no memory that can be written")
            bound[name] = memory.owner
            return memory.address

        return self.handle.set_output_function(name, place)

    def set_profile(self, profile: int) -> None:
        """Another profile: shapes are to be set again, memory stays bound."""
        self.handle.set_profile(profile)

    def memory_bytes(self) -> int:
        """What activations need at the present shapes."""
        return self.handle.memory_bytes()

    def set_memory(self, memory: Any) -> None:
        """An array's or tensor's memory for activations, 256-byte aligned: what contexts that never run at once may share. None: the
        context's own."""
        found = None if memory is None else memory_of(memory)
        self.handle.set_memory(0 if found is None else found.address, 0 if memory is None else memory.nbytes)
        self.bound["\0memory"] = memory

    def prepare(self) -> None:
        """Makes kernels and memory ready, as the first run at these shapes and bindings does."""
        self.handle.prepare()

    def run_bound(self) -> None:
        """Runs on what is bound: nothing else happens, so this is what to time."""
        self.handle.run()

    def _outcome(self):
        return {name: self.value(name) if name in self.engine.by_value else self.bound[name] for name in self.engine.outputs}

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name, in arrays of their own."""
        for name, values in feeds.items():
            self.set_input(name, values)
        self.allocate_outputs()
        self.run_bound()
        return self._outcome()

    def enqueue(self, stream: Stream | None = None) -> Enqueued:
        """Runs on what is bound, in the stream, by default the context's own: returns at once. Memory on a GPU has to be its own. The
        answer may be awaited."""
        stream = stream or self.stream
        self.handle.enqueue(stream.handle)
        for tensor in self._written.values():
            tensor.stream = stream
        return Enqueued(stream)

    async def run_async(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
        """run() while the loop does other things: nothing polls, no thread waits. Where the task is cancelled, so is the inference."""
        if self._at_work:
            raise Error("the context is at work\n  hint: await it first, or give each task a context of its own")
        self._at_work = True
        try:
            on_gpu = not self.engine.device.info.host_accessible
            for name, values in feeds.items():
                self._give(name, values, self.stream if on_gpu else None)
            self.allocate_outputs(on_device=on_gpu)
            self.enqueue()
            results = {name: empty(tensor.shape, tensor.dtype) for name, tensor in self._written.items() if on_gpu and tensor.dtype}
            for name, array in results.items():
                self.stream.copy(array, self._written[name])
            await self._until(self.stream.done())
            return {**self._outcome(), **results}
        finally:
            self._at_work = False

    async def _until(self, done):
        """The end of the work, also where the task is cancelled: memory is in use until then."""
        cancelled = None
        while not done.done():
            try:
                await asyncio.wait([done])
            except asyncio.CancelledError as error:
                cancelled = error
                self.cancel()
        failure = done.exception()
        if cancelled is not None:
            raise cancelled
        if failure is not None:
            raise failure

    def wait(self) -> None:
        """Waits for what was enqueued; raises what went wrong with it first since the last call."""
        self.handle.wait()

    def cancel(self) -> None:
        """Ends what is under way and what is enqueued, before its next kernel, with Cancelled; from any thread."""
        self.handle.cancel()

    def value(self, name: str) -> Any:
        """An output of the last run that could not be bound: an array, a list, a dictionary or None, as a copy."""
        return from_value(self.handle.value(name))

    def debug_values(self) -> dict[str, Any]:
        """{name: array} of the tensors marked with --markDebug and the like, as the last run left them."""
        return {name: from_value(self.handle.debug_value(name)) for name in self.handle.debug_tensors()}

    def profile(self) -> list[tuple[str, float]]:
        """[(layer, ms)] of one inference on what is bound."""
        return self.handle.profile()
