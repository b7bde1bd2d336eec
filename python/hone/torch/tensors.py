# SPDX-License-Identifier: Apache-2.0
"""Engines on torch's tensors: where they lie, on a GPU in torch's stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from ..arrays import NAMES
from ..base import Error
from ..devices import Device, Stream
from ..running import Context
from ..shaped import ShapedEngines, Variant

_devices: dict[str, Device] = {}


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


def forget() -> None:
    """Frees the devices that were used: the program ends."""
    _devices.clear()


def _ready(tensor, place):
    tensor = tensor.detach()
    if tensor.device != place:
        tensor = tensor.to(place)  # a number among tensors on a GPU
    return tensor if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg() else tensor.resolve_conj().resolve_neg().contiguous()


class Runner:
    """Inferences of a model's engines."""

    def __init__(self, engines: ShapedEngines, outputs: Sequence[str], types: Sequence[torch.dtype]):
        self.engines, self.outputs, self.types = engines, list(outputs), dict(zip(outputs, types))
        self._streams: dict[tuple[int, int], Context] = {}  # of a GPU: what is queued in one stream is done in order

    def __call__(self, feeds: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
        """The outputs for inputs by name."""
        device = self.engines.device
        on_gpu = not device.info.host_accessible
        place = torch.device("cuda", device.ordinal) if on_gpu else torch.device("cpu")
        feeds = {name: _ready(each, place) for name, each in feeds.items()}
        shapes = {name: tuple(each.shape) for name, each in feeds.items()}
        if not on_gpu:
            with self.engines.context(shapes) as context:
                made = self._bind(context, feeds, place)
                context.run_bound()
                return [made[name] for name in self.outputs]
        stream = torch.cuda.current_stream(place)
        context = self._context(self.engines.variant(shapes), stream.cuda_stream)
        made = self._bind(context, feeds, place)
        context.enqueue(Stream(device, stream.cuda_stream or 1))
        return [made[name] for name in self.outputs]

    def _context(self, variant: Variant, stream: int) -> Context:
        key = (id(variant), stream)
        if key not in self._streams:
            self._streams[key] = variant.take()
        return self._streams[key]

    def _bind(self, context, feeds, place):
        for name, tensor in feeds.items():
            if name in context.engine.inputs:
                if -1 in context.engine.inputs[name][1]:
                    context.set_shape(name, tuple(tensor.shape))
                context.bind(name, tensor)
        made = {}
        for name in self.outputs:
            shape = context.shape(name)
            if NAMES[context.engine.types[name]] != str(self.types[name]).removeprefix("torch."):
                raise Error(f"the export gives {NAMES[context.engine.types[name]]} where the graph gives {self.types[name]}")
            if -1 in shape:  # the data decide
                context.place_output(name, lambda sizes, name=name: made.setdefault(name, _empty(context, name, sizes, place)))
            else:
                made[name] = _empty(context, name, shape, place)
                context.bind(name, made[name])
        return made


def _empty(context, name, shape, place):
    return torch.empty(shape, dtype=getattr(torch, NAMES[context.engine.types[name]]), device=place)
