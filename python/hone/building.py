# SPDX-License-Identifier: Apache-2.0
"""Models, networks by hand, timing caches, plans: from ONNX to what an engine is made of."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .arrays import DTYPES, type_of
from .base import INFO, WARNING, Log, Object, _hone
from .devices import Device, device_of
from .progress import Progress, ProgressBar
from .values import from_value, to_value

if TYPE_CHECKING:
    from .running import Engine

Sides = dict[str, tuple[np.dtype, tuple[int, ...]]]
Shape = Sequence[int]
Profile = Mapping[str, tuple[Shape, Shape, Shape]]  # the smallest, the likeliest and the largest shape of each dynamic input


def sides(tensors: Any) -> tuple[Sides, Sides]:
    """{name: (dtype, sizes)} of the inputs and of the outputs; sizes that are not fixed are -1."""
    both: dict[bool, Sides] = {True: {}, False: {}}
    for name, dtype, is_input, sizes, *_ in tensors:
        both[is_input][name] = (DTYPES[dtype], tuple(sizes))
    return both[True], both[False]


class TimingCache(Object):
    """Times of tactics, so that none is measured twice: for build(timing_cache=...)."""

    def __init__(self, data: bytes = b""):
        """Empty, or of what bytes() gave, or of a file as --timingCacheFile writes it."""
        self._handle = _hone.TimingCache(data)

    def merge(self, other: TimingCache) -> None:
        """Adds what is missing; times that are there stay."""
        self.handle.merge(other.handle)

    def bytes(self) -> bytes:
        """As a file would hold it."""
        return self.handle.bytes()

    def __len__(self) -> int:
        return self.handle.entries()


class Network(Object):
    """A network that a program puts together of ONNX's operators, of version `opset`."""

    def __init__(self, opset: int = 17):
        self._handle = _hone.Network(opset)

    def input(self, name: str, dtype: Any, sizes: Sequence[int | str]) -> str:
        """An input. -1 is a size of any kind, a text is one that is equal wherever it stands. Returns the name."""
        symbols = [size if isinstance(size, str) else None for size in sizes]
        self.handle.add_input(name, type_of(dtype), [-1 if isinstance(size, str) else size for size in sizes], symbols)
        return name

    def constant(self, name: str, values: Any) -> str:
        """A tensor of numbers. Returns the name."""
        self.handle.add_constant(name, to_value(np.asarray(values)))
        return name

    def node(self, op: str, inputs: Sequence[str], outputs: Sequence[str], *, name: str | None = None, domain: str | None = None,
             **attributes: Any) -> str:
        """An operator. "" among the inputs stands for one that is left out. An attribute that is a Network is a body of If, Loop or
        Scan, as it is now; it sees the values around it. Returns the first output's name."""
        self.handle.add_node(op, list(inputs), list(outputs), name, domain, [(key, *_attribute(value)) for key, value in attributes.items()])
        return outputs[0]

    def output(self, tensor: str) -> None:
        """The tensor is an output of the network."""
        self.handle.mark_output(tensor)

    def bytes(self) -> bytes:
        """The network as an ONNX file."""
        return self.handle.bytes()

    def model(self, log: Log | None = None, threshold: int = WARNING) -> Model:
        """The network, checked."""
        return Model(_hone.Model.from_network(self.handle, log, threshold))


def _attribute(value):
    """(hone_attribute_kind, value)."""
    if isinstance(value, Network):
        return 7, value.handle
    if isinstance(value, np.ndarray):
        return 6, to_value(value)
    if isinstance(value, str):
        return 2, value
    if isinstance(value, (int, np.integer)):
        return 0, int(value)
    if isinstance(value, (float, np.floating)):
        return 1, float(value)
    items = list(value)
    if items and all(isinstance(item, str) for item in items):
        return 5, items
    if any(isinstance(item, (float, np.floating)) for item in items):
        return 4, [float(item) for item in items]
    return 3, [int(item) for item in items]


class Weight(NamedTuple):
    """What a refit asks of a weight."""

    dtype: np.dtype
    shape: tuple[int, ...]
    node: str  # that reads it first
    role: str  # what it is there: "Kernel", "Bias", "Scale", "Shift", "Constant"
    missing: bool  # its plan came without it: to be given
    refusal: str | None  # why a refit does not take another one in its place


def _with(made, *memory):
    """The object, which keeps what its library reads where it lies: bytes that a plan was read of."""
    made._data = tuple({id(each): each for each in memory}.values())
    return made


class Model(Object):
    """An ONNX model, read and checked. `log(severity, text)` receives what the reader has to say; `inputs` and `outputs` are
    {name: (dtype, sizes)}, where sizes that are not fixed are -1."""

    inputs: Sides
    outputs: Sides

    def __init__(self, handle: Any):
        self._handle, self._data = handle, ()
        self.inputs, self.outputs = sides(handle.tensors())

    @classmethod
    def load(cls, path: str | os.PathLike, log: Log | None = None, threshold: int = WARNING) -> Model:
        """Reads a file."""
        return cls(_hone.Model.load(os.fspath(path), log, threshold))

    @classmethod
    def parse(cls, data: bytes, folder: str | os.PathLike | None = None, log: Log | None = None, threshold: int = WARNING) -> Model:
        """The same from the bytes of a file; external data lie in `folder`."""
        return cls(_hone.Model.parse(data, None if folder is None else os.fspath(folder), log, threshold))

    def weights(self) -> Sides:
        """{name: (dtype, sizes)} of what set_weight() can exchange."""
        return {name: (DTYPES[dtype], tuple(sizes)) for name, dtype, _, sizes, *_ in self.handle.weights()}

    def weight_details(self) -> dict[str, Weight]:
        """{name: Weight} of the same."""
        return {name: Weight(*kind, *rest) for (name, kind), (_, *rest) in zip(self.weights().items(), self.handle.weight_details())}

    def weight(self, name: str) -> np.ndarray:
        """What a weight holds, copied; types that numpy lacks come as in DTYPES."""
        if name not in self.weights():
            self.handle.weight_data(name)  # says why
        dtype, shape = self.weights()[name]
        return np.frombuffer(self.handle.weight_data(name), dtype).reshape(shape)

    def set_weight(self, name: str, values: Any) -> None:
        """Other contents for a weight, of its type and sizes, copied: for a build or Plan.refit()."""
        dtype, shape = self.weights().get(name, (None, None))
        array = np.ascontiguousarray(values, dtype)
        if shape is not None and np.shape(values) != shape:
            raise _hone.Error(f"the weight {name} has the shape {shape}, the values have {np.shape(values)}")
        self.handle.set_weight(name, array.ctypes.data, array.nbytes)

    def evaluate(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """{output: array} for {input: array}: every operator by its plain meaning, one behind the other. Slow; what engines are held against."""
        reference = _hone.Reference(self.handle)
        for name, given in values.items():
            dtype, *_ = self.inputs.get(name, (None,))
            reference.set_input(name, to_value(given if dtype is None else np.asarray(given, dtype)))
        reference.run()
        return {name: from_value(reference.output(name)) for name in self.outputs}

    def build(self, arguments: Iterable[str] = (), device: str | Device = "cpu", log: Log | None = None, threshold: int = INFO, *,
              profiles: Sequence[Profile] = (), layer_types: Mapping[str, str] | None = None, formats: Mapping[str, str] | None = None,
              timing_cache: TimingCache | None = None, progress: Progress | bool | None = None, debug: Iterable[str] = (),
              notes: Mapping[str, str] | None = None) -> Plan:
        """The plan.

        `arguments` are trtexec's build flags. `profiles` are {input: (smallest, likeliest, largest shape)}; `layer_types` says what
        nodes compute in, {name or pattern: "fp32", "fp16", "bf16", "int8"}, `formats` how inputs and outputs lie, {name: "fp16:hwc"}.
        `progress` hears how far the build is; True shows a bar. `debug` names tensors that Context.debug_values() shall find; `notes`
        are texts that Plan.note() finds again.
        Other threads run meanwhile; Ctrl-C ends the build."""
        options = _hone.Options([str(argument) for argument in arguments])
        for profile in profiles:
            number = options.add_profile()
            for name, shapes in profile.items():
                options.set_range(number, name, *map(list, shapes))
        for node, kind in (layer_types or {}).items():
            options.set_layer_type(node, kind)
        for tensor, layout in (formats or {}).items():
            options.set_format(tensor, layout)
        if timing_cache is not None:
            options.set_timing_cache(timing_cache.handle)
        for tensor in debug:
            options.mark_debug(tensor)
        for key, text in (notes or {}).items():
            options.set_note(key, text)
        told = ProgressBar() if progress is True else progress or None
        return _with(Plan(_hone.build(self.handle, device_of(device).handle, options, told, log, threshold)), *self._data)


class PlanInfo(NamedTuple):
    """What a plan is."""

    version: str  # of Hone that built it
    device_kind: str  # "cpu", "cuda"
    device: str
    architecture: str
    model: str
    precision: str  # the types that its build allowed beside FP32
    options: str  # of the build, as flags
    profiles: int
    refittable: bool
    has_weights: bool
    weight_bytes: int
    file_bytes: int


class Candidate(NamedTuple):
    """A tactic that was tried for a layer, or refused."""

    tactic: str
    ms: float  # -1: neither timed nor estimated
    spread: float  # of the samples, relative
    note: str  # why it was refused; "estimated"; "" for a time that was measured
    chosen: bool


class Layer(NamedTuple):
    """A layer of a plan, in execution order."""

    name: str  # fused parts joined by " + "
    kind: str  # "Convolution", "MatrixMultiply", ...
    source: str  # of its tactic: "cpu", "onednn", "cublaslt", ...; "" for a view
    tactic: str
    parameters: str  # of the tactic as it was tuned, as JSON
    details: str  # what the layer does, as JSON
    is_view: bool  # computes nothing
    tuned_ms: float  # 0 where nothing was timed
    nodes: tuple[str, ...]  # of the model
    inputs: Sides
    outputs: Sides
    candidates: tuple[Candidate, ...]  # none where the plan does not keep them


def _layer(members):
    *known, nodes, inputs, outputs, candidates = members
    named = [{name: (DTYPES[dtype], tuple(sizes)) for name, dtype, _, sizes, *_ in each} for each in (inputs, outputs)]
    return Layer(*known, tuple(nodes), *named, tuple(Candidate(*each) for each in candidates))


class Plan(Object):
    """A tuned engine as data: what build() makes and load() reads."""

    def __init__(self, handle: Any):
        self._handle, self._data = handle, ()

    @classmethod
    def parse(cls, data: bytes) -> Plan:
        """Of what bytes() gave, which is copied unless it begins at a multiple of 64 bytes."""
        return _with(cls(_hone.Plan.parse(data)), data)  # the library may read it where it lies

    def save(self, path: str | os.PathLike) -> None:
        """Writes a file that is whole or not there."""
        self.handle.save(os.fspath(path))

    def bytes(self) -> bytes:
        """What save() writes."""
        return self.handle.bytes()

    def json(self) -> str:
        """The plan without its weights, as text."""
        return self.handle.json()

    def note(self, key: str) -> str | None:
        """What build(notes=...) left in the plan under this name."""
        return self.handle.note(key)

    def ranges(self, profile: int = 0) -> Profile:
        """{input: (smallest, likeliest, largest shape)} of the inputs whose sizes are not all fixed."""
        return {name: tuple(map(tuple, shapes)) for name, *shapes in self.handle.ranges(profile)}

    def info(self) -> PlanInfo:
        """What it is."""
        return PlanInfo(*self.handle.describe())

    def layers(self, profile: int = 0) -> list[Layer]:
        """What it computes, in order."""
        return [_layer(self.handle.layer(profile, index)) for index in range(self.handle.layers(profile))]

    def layers_json(self, profile: int = 0) -> str:
        """The layers as trtexec --exportLayerInfo writes them."""
        return self.handle.layers_json(profile)

    def network(self) -> Model:
        """The network that the plan keeps: built with --refit, with its weights; loaded from a file without weights, they are
        missing until they are given. For other weights and refit()."""
        return _with(Model(_hone.Model.from_plan(self.handle)), *self._data)

    def refit(self, model: Model | str | os.PathLike | Mapping[str, Any], device: str | Device = "cpu", log: Log | None = None,
              threshold: int = WARNING) -> Plan:
        """A new plan: the same engine with the weights of `model`, a Model or a path, or with weights by name, {name: values}, for
        which no model is needed. Nothing is timed; the plan must have been built with --refit."""
        if isinstance(model, Mapping):
            weights, model = model, self.network()
            for name, values in weights.items():
                model.set_weight(name, values)
        model = model if isinstance(model, Model) else Model.load(model)
        return _with(Plan(self.handle.refit(model.handle, device_of(device).handle, log, threshold)), *self._data, *model._data)

    def engine(self, device: str | Device = "cpu", log: Log | None = None, threshold: int = WARNING) -> Engine:
        """The plan, ready to run on the device. `log(severity, text)` hears when the plan did not fit the machine and its tactics
        were chosen anew."""
        from .running import Engine

        return Engine(self, device, log, threshold)


def build(path: str | os.PathLike, arguments: Iterable[str] = (), device: str | Device = "cpu", log: Log | None = None,
          threshold: int = INFO, *, profiles: Sequence[Profile] = (), layer_types: Mapping[str, str] | None = None,
          formats: Mapping[str, str] | None = None, timing_cache: TimingCache | None = None,
          progress: Progress | bool | None = None, debug: Iterable[str] = (), notes: Mapping[str, str] | None = None) -> Plan:
    """The plan of an ONNX file: Model.load(path).build(...), which says what the arguments are."""
    with Model.load(path, log, threshold) as model:
        return model.build(arguments, device, log, threshold, profiles=profiles, layer_types=layer_types, formats=formats,
                           timing_cache=timing_cache, progress=progress, debug=debug, notes=notes)


def load(path: str | os.PathLike) -> Plan:
    """Reads a plan that save() or trtexec --saveEngine wrote."""
    return Plan(_hone.Plan.load(os.fspath(path)))
