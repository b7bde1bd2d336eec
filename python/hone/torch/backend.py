# SPDX-License-Identifier: Apache-2.0
"""torch.compile's backend: a graph's first call exports it and builds its engine, or loads the one that an earlier process has kept.

What cannot be exported runs in torch as it is, after one warning that says why; the graph around it stays in engines (parts.py). Where gradients are wanted, the forward pass is the
engine's, and the backward pass computes the graph once more in torch and differentiates that.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import json
import operator
import os
import pathlib
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..base import Error, version
from ..shaped import ShapedEngines, default_folder, with_level
from . import exporting, tensors
from .graph import Refused, Traced
from .parts import Divided, DividedSlot, PartRefused
from .tensors import Slot, device_for

MOST_STATES = 4  # sets of weights that a graph is called with; more: they are trained, or too many modules share the graph
MOST_SLOTS = 32  # shapes and streams that a context is kept for
LEVELS = {None: 3, "default": 3, "reduce-overhead": 3, "max-autotune": 5, "max-autotune-no-cudagraphs": 5}


class HoneWarning(UserWarning):
    """A graph that Hone leaves to torch."""


class Settings:
    """What torch.compile(options=...) says: "flags" (trtexec's build flags), "cache" (a folder, or False for none)."""

    def __init__(self, mode: str | None = None, options: dict[str, Any] | None = None):
        options = dict(options or {})
        if mode not in LEVELS:
            raise Error(f"there is no mode {mode}\n  hint: {', '.join(str(each) for each in LEVELS if each)}")
        flags, cache = options.pop("flags", ()), options.pop("cache", True)
        if options:
            raise Error(f"there is no option {', '.join(options)}\n  hint: flags, cache")
        if isinstance(flags, str):
            flags = flags.split()
        self.flags = with_level(LEVELS[mode], list(flags))
        self.folder = pathlib.Path(default_folder() if cache is True else cache) if cache else None


class Program:
    """An exported graph with its weights, for some fixed sizes, and its engines."""

    def __init__(self, sizes: list[list[int]], types: Sequence[torch.dtype], export: Callable[[], Any], device, settings: Settings,
                 identity: bytes):
        self.sizes = sizes
        self.names = [f"in{number}" for number in range(len(sizes))]
        self.outputs = [(f"out{number}", dtype) for number, dtype in enumerate(types)]
        fixed = dict(zip(self.names, sizes))
        self.engines = ShapedEngines(lambda: exporting.model_of(export(), self.names, [name for name, _ in self.outputs]), fixed, device,
                                     settings.flags, identity=identity + json.dumps(sizes).encode(), folder=settings.folder)

    def fits(self, shapes: Sequence[Sequence[int]]) -> bool:
        """Whether the sizes that the export took for fixed are these."""
        return all(known in (-1, size) for sizes, shape in zip(self.sizes, shapes) for known, size in zip(sizes, shape))

    def slot(self, tensors: Sequence[torch.Tensor], stream: int) -> Slot:
        """A context for such tensors."""
        shapes = {name: tuple(each.shape) for name, each in zip(self.names, tensors)}
        return Slot(self.engines.variant(shapes), self.names, self.outputs, tensors, stream)


class Weights:
    """Tensors that an engine was made of: whether those of a call are the same, unchanged. Nothing is asked of each in Python."""

    def __init__(self, places: Sequence[int], arguments: Sequence[Any]):
        self.gone = False
        self._pick = _picker(places)
        self._ids = tuple(map(id, self._pick(arguments)))
        self._pick_counted = _picker([at for at in places if not arguments[at].is_inference()])  # the others cannot be changed
        self._versions = tuple(map(VERSION, self._pick_counted(arguments)))
        self._references = [weakref.ref(arguments[at], self._went) for at in places]  # their numbers may become others'

    def _went(self, _):
        self.gone = True

    def are(self, arguments: Sequence[Any]) -> bool:
        """Whether these are they."""
        return tuple(map(id, self._pick(arguments))) == self._ids and not self.gone and \
            tuple(map(VERSION, self._pick_counted(arguments))) == self._versions


VERSION, SHAPE = operator.attrgetter("_version"), operator.attrgetter("shape")


def _picker(places):
    """A function that takes the elements at `places` out of a sequence, as a tuple."""
    if len(places) > 1:
        return operator.itemgetter(*places)
    return (lambda values, at=places[0]: (values[at],)) if places else lambda values: ()


class Index:
    """What another process wants to know of a graph before it exports anything: a small file beside the plans."""

    def __init__(self, folder: pathlib.Path | None, identity: bytes):
        self._path = folder and folder / f"{identity.hex()[:32]}-{version()}.torch"

    def read(self) -> dict[str, Any]:
        """{"sizes": [those that exports took for fixed], "refused": [operators], "why": text}, of which all may be missing."""
        try:
            known = json.loads(self._path.read_text()) if self._path else {}
            return known if isinstance(known, dict) else {}
        except (OSError, ValueError):
            return {}

    def add(self, **members: Any) -> None:
        """Keeps members. A folder that cannot be written only makes the next process slower."""
        if self._path is None:
            return
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft = self._path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            draft.write_text(json.dumps({**self.read(), **members}))
            draft.replace(self._path)


def _return_memory():
    """What exporter and builder have freed goes back to the system: hundreds of MiB where weights are many."""
    with contextlib.suppress(OSError, AttributeError):  # not glibc's
        gc.collect(0)
        ctypes.CDLL(None).malloc_trim(0)


class State:
    """The graph with one set of weights. `told` hears what of it is left to torch."""

    def __init__(self, traced: Traced, arguments: Sequence[Any], settings: Settings, told: Callable[[str], None]):
        self.traced, self.settings, self._told = traced, settings, told
        self.weights = Weights(traced.weights, arguments)
        self.numbers = [(at, arguments[at]) for at in traced.numbers]
        self.identity = traced.identity(arguments)
        self.device = device_for([each for each in arguments if isinstance(each, torch.Tensor)])
        self.on_gpu = not self.device.info.host_accessible
        self.programs: list[Program] = []
        self._index = Index(settings.folder, self.identity)
        self._refused: tuple[list[str], str] | None = None  # operators, and why the whole is divided
        self._divided: dict[Any, Divided] = {}  # by shapes
        self._pick = _picker(traced.tensors)
        self._fixed = not any(traced.dynamic.values())
        self._slots: dict[Any, list[Slot | DividedSlot]] = {}  # that no call has, by shapes and stream

    def holds(self, arguments: Sequence[Any]) -> bool:
        """Whether these are its weights, unchanged, and its numbers."""
        return self.weights.are(arguments) and all(arguments[at] == number for at, number in self.numbers)

    def program(self, arguments: Sequence[Any]) -> Program:
        """The program for the arguments' sizes; exported, or found in the folder."""
        inputs = self._pick(arguments)
        shapes = [tuple(each.shape) for each in inputs]
        for program in self.programs:
            if program.fits(shapes):
                return program
        made: list[Any] = []

        def export():
            if not made:
                axes = [self.traced.dynamic[at] for at in self.traced.tensors]
                made.append(exporting.exported(self.traced.baked(arguments), inputs, axes))
            return made.pop()

        known = self._index.read().get("sizes", [])
        for sizes in known:
            program = Program(sizes, self.traced.types, export, self.device, self.settings, self.identity)
            if program.fits(shapes):
                break
        else:
            made.append(export())
            program = Program(exporting.sizes_of(made[0]), self.traced.types, export, self.device, self.settings, self.identity)
            self._index.add(sizes=[*known, program.sizes])
        self.programs.append(program)
        return program

    def divided(self, arguments: Sequence[Any], refused: Sequence[str], why: str) -> Divided:
        """The graph in parts, for the arguments' sizes."""
        inputs = self._pick(arguments)

        def export(part):
            return exporting.exported(part.module, part.examples(), [[] for _ in part.reads])

        def tries(part):
            exporting.model_of(export(part)).close()

        def makes(part):
            sizes = [list(each.shape) for each in part.examples()]
            identity = self.identity + part.module.code.encode()
            program = Program(sizes, part.types(), lambda: export(part), self.device, self.settings, identity)
            try:
                program.engines.variant(dict(zip(program.names, map(tuple, sizes))))
            except (Refused, Error) as error:
                raise PartRefused(part, str(error).splitlines()[0]) from error
            return program

        return Divided(self.traced.baked(arguments), inputs, refused, tries, makes, why)

    def run_if_ready(self, arguments: Sequence[Any]) -> list[torch.Tensor] | None:
        """What the engine computes, if it has computed for such tensors before."""
        tensors = self._pick(arguments)
        free = self._slots.get(self._key(tensors))
        try:
            slot = free.pop()
        except (AttributeError, IndexError):
            return None
        answers = slot.run(tensors)
        free.append(slot)
        return answers

    def run(self, arguments: Sequence[Any], differentiated: bool = False) -> list[torch.Tensor]:
        """What the engine computes."""
        answers = self.run_if_ready(arguments)
        if answers is None:
            tensors = self._pick(arguments)
            key = self._key(tensors)
            slot = self._slot(arguments, tensors, *key, differentiated)
            answers = slot.run(tensors)
            self._slots[key].append(slot)
        return answers

    def _key(self, tensors):
        """Of slots that can run these: their shapes where they may change, and torch's stream."""
        return (None if self._fixed else tuple(map(SHAPE, tensors)),
                torch._C._cuda_getCurrentRawStream(self.device.ordinal) if self.on_gpu else 0)

    def _slot(self, arguments, tensors, shapes, stream, differentiated):
        while len(self._slots) >= MOST_SLOTS:
            del self._slots[next(iter(self._slots))]  # the oldest
        self._slots.setdefault((shapes, stream), [])
        if self.on_gpu and torch.cuda.is_current_stream_capturing():
            for (known, _), free in self._slots.items():
                if known == shapes and free:
                    return free.pop().moved(stream)
            raise Error("an engine that has not run cannot be captured\n  hint: call the model a few times before the capture")
        if self._refused is None:
            kept = self._index.read()
            if "refused" in kept:
                self._refused = kept["refused"], kept["why"]
        if self._refused is None:
            try:
                program = self.program(arguments)
                before = program.engines.built
                slot = program.slot(tensors, stream)
                if program.engines.built > before:
                    _return_memory()
                return slot
            except exporting.Changes:
                raise
            except (Refused, Error) as error:
                self._refused = [], str(error).splitlines()[0]
        if shapes not in self._divided:
            self._divide(arguments, shapes, differentiated)
        return self._divided[shapes].slot(stream)

    def _divide(self, arguments, shapes, differentiated):
        if len(self._divided) >= MOST_SLOTS:
            raise Refused(self._refused[1])
        divided = self.divided(arguments, *self._refused)
        if divided.random and differentiated:
            raise Refused("it draws random numbers where gradients are wanted")
        self._told(divided.told())
        self._refused = divided.refused, self._refused[1]
        self._index.add(refused=divided.refused, why=self._refused[1])
        self._divided[shapes] = divided


_compiled: weakref.WeakSet[Compiled] = weakref.WeakSet()


@atexit.register
def _close() -> None:
    """torch keeps what it has compiled to the end and beyond; the library's objects go before their module does."""
    for each in tuple(_compiled):
        each.given_up, each.states = True, []
    tensors.forget()


class Compiled:
    """What torch calls in the graph's place."""

    def __init__(self, module: torch.fx.GraphModule, examples: Sequence[Any], settings: Settings):
        self.module, self.settings = module, settings
        self.states: list[State] = []
        self.given_up = self._warned = False
        self._lock = threading.Lock()
        _compiled.add(self)
        self.traced = Traced(module, examples)
        self.rest = self.traced.rest()
        self._plain = self.traced.computed == self.traced.outputs  # the engine's outputs are the graph's
        if not self.traced.computed:
            self.given_up = True  # nothing to compute: views and numbers alone

    def __call__(self, *arguments: Any) -> Any:
        if self.given_up:
            return self.module(*arguments)
        try:
            computed = self._computed(arguments)
        except (Refused, Error) as error:
            self._give_up(str(error).splitlines()[0])
            return self.module(*arguments)
        if self._plain:
            return computed[0] if self.traced.single else tuple(computed)
        left = iter(self.rest(*arguments) if self.rest is not None else ())
        answers = dict(zip(self.traced.computed, computed))
        results = [answers[each] if each in answers else next(left) for each in self.traced.outputs]
        return results[0] if self.traced.single else tuple(results)

    def _give_up(self, why):
        self.given_up = True
        self.states = []
        self._leave(f"a graph of {len(self.module.graph.nodes)} nodes to torch: {why}")

    def _leave(self, what):
        if not self._warned:
            warnings.warn(f"hone leaves {what}", HoneWarning, stacklevel=2)
        self._warned = True

    def _state(self, arguments) -> State:
        for state in self.states:
            if state.holds(arguments):
                return state
        with self._lock:
            self.states = [state for state in self.states if not state.weights.gone]
            if len(self.states) >= MOST_STATES:
                raise Refused("its weights or numbers change from call to call")
            state = State(self.traced, arguments, self.settings, self._leave)
            self.states = [state, *self.states]
            return state

    def _computed(self, arguments):
        if torch.is_grad_enabled() and any(isinstance(each, torch.Tensor) and each.requires_grad for each in arguments):
            return _Differentiable.apply(self, self._state(arguments), *arguments)
        if self.states and self.states[0].on_gpu:  # looks at the weights while the GPU computes
            state = self.states[0]
            results = state.run_if_ready(arguments)
            if results is not None and state.holds(arguments):
                return results
        return self._state(arguments).run(arguments)

    def again(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """The same by torch, for its derivatives."""
        results = self.module(*arguments)
        results = [results] if self.traced.single else results
        return [results[self.traced.outputs.index(each)] for each in self.traced.computed]


class _Differentiable(torch.autograd.Function):
    @staticmethod
    def forward(context, compiled, state, *arguments):
        context.compiled = compiled
        context.others = [None if isinstance(each, torch.Tensor) else each for each in arguments]
        context.save_for_backward(*(each for each in arguments if isinstance(each, torch.Tensor)))
        results = state.run(arguments, differentiated=True)
        context.mark_non_differentiable(*(each for each in results if not each.is_floating_point()))
        return tuple(results)

    @staticmethod
    def backward(context, *gradients):
        saved = iter(context.saved_tensors)
        wanted = context.needs_input_grad[2:]
        with torch.enable_grad():
            arguments = [next(saved).detach().requires_grad_(needs) if other is None else other for other, needs in zip(context.others, wanted)]
            results = context.compiled.again(arguments)
        pairs = [(result, gradient) for result, gradient in zip(results, gradients) if gradient is not None and result.requires_grad]
        sources = [each for each, needs in zip(arguments, wanted) if needs]
        found = iter(torch.autograd.grad([result for result, _ in pairs], sources, [gradient for _, gradient in pairs], allow_unused=True))
        return None, None, *(next(found) if needs else None for needs in wanted)


def backend(module: torch.fx.GraphModule, examples: Sequence[Any], *, mode: str | None = None, options: dict[str, Any] | None = None) -> Callable:
    """torch.compile(model, backend="hone", mode=..., options={"flags": [...], "cache": folder or False})."""
    settings = Settings(mode, options)
    try:
        return Compiled(module, examples, settings)
    except Refused as error:
        warnings.warn(f"hone leaves a graph of {len(module.graph.nodes)} nodes to torch: {error}", HoneWarning, stacklevel=2)
        return module.forward
