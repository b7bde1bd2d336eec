# SPDX-License-Identifier: Apache-2.0
"""Engines on torch's tensors: where they lie, on a GPU in torch's stream.

A call costs the host as little as it can: what is asked of a graph's inputs and outputs is asked once, when a slot is made. On a GPU
addresses must stay what they are, or the engine's CUDA graph is made anew: an input that comes from another address than before is
from then on copied into memory of the slot's own, and results are copied out of it, behind the launch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..arrays import KINDS, NAMES
from ..base import Error
from ..devices import Device, Stream
from ..shaped import Variant

_devices: dict[str, Device] = {}
_streams: dict[tuple[int, int], Stream] = {}  # to the end: one that goes is waited for, which no capture stands


def device_for(tensors: Sequence[torch.Tensor]) -> Device:
    """That of the tensors: a GPU, or the processor with torch's number of threads."""
    place = next((each.device for each in tensors if each.device.type != "cpu"), torch.device("cpu"))
    if place.type == "cuda":
        name = f"cuda:{place.index or 0}"
    else:
        name = f"cpu/{torch.get_num_threads()}"
    if name not in _devices:
        _devices[name] = Device(name)
    return _devices[name]


def stream_of(device: Device, native: int) -> Stream:
    """torch's stream, as the library knows it; torch has few of them."""
    key = device.ordinal, native
    if key not in _streams:
        _streams[key] = Stream(device, native or 1)
    return _streams[key]


def forget() -> None:
    """Frees the devices and streams that were used: the program ends."""
    _streams.clear()
    _devices.clear()


def place_of(device: Device) -> torch.device:
    """Where torch has the device's tensors."""
    return torch.device("cpu") if device.info.host_accessible else torch.device("cuda", device.ordinal)


def ready(tensor: torch.Tensor, place: torch.device) -> torch.Tensor:
    """The tensor, or a copy that lies there without gaps."""
    tensor = tensor.detach()
    if tensor.device != place:
        tensor = tensor.to(place)  # a number among tensors on a GPU
    return tensor if tensor.is_contiguous() and not tensor.is_neg() else tensor.resolve_neg().contiguous()


class Output:
    """An output of known sizes and where it was bound last."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: torch.dtype, place: torch.device):
        self.name, self.shape, self.dtype, self.place = name, shape, dtype, place
        self.address = 0
        self.kept: torch.Tensor | None = None  # on a GPU: where the engine writes it

    def empty(self) -> torch.Tensor:
        """Memory for it."""
        return torch.empty(self.shape, dtype=self.dtype, device=self.place)


class Slot:
    """A context for one set of shapes and, on a GPU, one stream. One call at a time."""

    def __init__(self, variant: Variant, inputs: Sequence[str], outputs: Sequence[tuple[str, torch.dtype]], tensors: Sequence[torch.Tensor],
                 stream: int):
        self.context = variant.take()
        engine = self.context.engine
        self.handle, self.place = self.context.handle, place_of(engine.device)
        self.on_gpu = self.place.type != "cpu"
        self.kind = KINDS["device" if self.on_gpu else "host"]
        self.stream = stream_of(engine.device, stream) if self.on_gpu else None
        self.inputs = [(at, name) for at, name in enumerate(inputs) if name in engine.inputs]
        self.addresses = [0] * len(tensors)
        self.copies: dict[int, torch.Tensor] = {}  # of inputs, on a GPU
        for at, name in self.inputs:
            _require_type(name, engine.types[name], tensors[at].dtype)
            if -1 in engine.inputs[name][1]:
                self.context.set_shape(name, tuple(tensors[at].shape))
        for name, dtype in outputs:
            _require_type(name, engine.types[name], dtype)
        self.names = [name for name, _ in outputs]
        self.outputs = [Output(name, self.context.shape(name), dtype, self.place) for name, dtype in outputs]
        self.decided = [each for each in self.outputs if -1 in each.shape]  # by the data
        self.outputs = [each for each in self.outputs if -1 not in each.shape]
        if self.on_gpu:
            with torch.inference_mode(False):
                for each in self.outputs:
                    each.kept = each.empty()
                    self._bind(each.name, each.kept)

    def moved(self, stream: int) -> Slot:
        """The same in another stream: one that is captured, for which nothing can be made ready."""
        self.stream = stream_of(self.context.engine.device, stream)
        return self

    def _bind(self, name, tensor):
        self.handle.bind(name, tensor.data_ptr() or 64, self.kind)  # an empty tensor must lie somewhere

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The outputs for the inputs, which have the slot's shapes."""
        return self._launched(tensors) if self.on_gpu else self._computed(tensors)

    def _computed(self, tensors):
        bind, addresses = self.handle.bind, self.addresses
        held = []  # copies: to the end of the run
        for at, name in self.inputs:
            tensor = tensors[at]
            if tensor.device.type != "cpu" or not tensor.is_contiguous() or tensor.is_neg():
                tensor = ready(tensor, self.place)
                held.append(tensor)
            address = tensor.data_ptr()
            if address != addresses[at] or not address:
                bind(name, address or 64, 0)
                addresses[at] = address
        made = []
        for output in self.outputs:
            tensor = torch.empty(output.shape, dtype=output.dtype)
            address = tensor.data_ptr()
            if address != output.address or not address:
                bind(output.name, address or 64, 0)
                output.address = address
            made.append(tensor)
        if self.decided:
            return self._with_decided(self.handle.run, lambda: made)
        self.handle.run()
        return made

    def _launched(self, tensors):
        for at, name in self.inputs:
            tensor, kept = tensors[at], self.copies.get(at)
            if kept is None:
                tensor = self._settled(at, name, tensor)
                if tensor is None:
                    continue
                kept = self.copies[at]
            kept.copy_(tensor)
        if self.decided:
            return self._with_decided(lambda: self.handle.enqueue(self.stream.handle), self._taken)
        self.handle.enqueue(self.stream.handle)
        return self._taken()

    def _taken(self):
        return [each.kept.clone() for each in self.outputs]

    def _settled(self, at, name, tensor):
        """None for an input that lies where it lay; else it has a copy from now on, into which it is to be copied."""
        fits = tensor.device == self.place and tensor.is_contiguous() and not tensor.is_neg()
        address = tensor.data_ptr()
        if fits and address == self.addresses[at] and address:
            return None
        if fits and not self.addresses[at] and address:
            self._bind(name, tensor)
            self.addresses[at] = address
            return None
        with torch.inference_mode(False):
            self.copies[at] = torch.empty(tensor.shape, dtype=tensor.dtype, device=self.place)
        self._bind(name, self.copies[at])
        return tensor

    def _with_decided(self, run, others):
        """The same where the data decide sizes: the engine asks for memory while it runs."""
        found: dict[str, torch.Tensor] = {}
        for each in self.decided:
            def place(shape, each=each):
                found[each.name] = torch.empty(shape, dtype=each.dtype, device=each.place)
                return found[each.name]

            self.context.place_output(each.name, place)
        run()
        found.update({each.name: tensor for each, tensor in zip(self.outputs, others())})
        return [found[name] for name in self.names]


def _require_type(name, known, wanted):
    if NAMES[known] != str(wanted).removeprefix("torch."):
        raise Error(f"the export has {name} in {NAMES[known]} where the graph has {wanted}")
