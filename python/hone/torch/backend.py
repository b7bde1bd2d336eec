# SPDX-License-Identifier: Apache-2.0
"""torch.compile's backend: a graph's first call exports it and builds its engine, or loads the one that an earlier process has kept.

What cannot be exported runs in torch as it is, after one warning that says why. Where gradients are wanted, the forward pass is the
engine's, and the backward pass computes the graph once more in torch and differentiates that.
"""

from __future__ import annotations

import atexit
import json
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
from .tensors import Runner, device_for

MOST_STATES = 4  # sets of weights that a graph is called with; more: they are trained, or too many modules share the graph
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
    """A graph with its weights, exported for some fixed sizes, and its engines."""

    def __init__(self, traced: Traced, sizes: list[list[int]], export: Callable[[], Any], device, settings: Settings, identity: bytes):
        self.sizes = sizes
        self.names = [f"in{number}" for number in range(len(traced.tensors))]
        outputs = [f"out{number}" for number in range(len(traced.computed))]
        fixed = dict(zip(self.names, sizes))
        engines = ShapedEngines(lambda: exporting.model_of(export(), self.names, outputs), fixed, device, settings.flags,
                                identity=identity + json.dumps(sizes).encode(), folder=settings.folder)
        self.run = Runner(engines, outputs, traced.types)

    def fits(self, shapes: Sequence[Sequence[int]]) -> bool:
        """Whether the sizes that the export took for fixed are these."""
        return all(known in (-1, size) for sizes, shape in zip(self.sizes, shapes) for known, size in zip(sizes, shape))


class State:
    """The graph with one set of weights."""

    def __init__(self, traced: Traced, arguments: Sequence[Any], settings: Settings):
        self.traced, self.settings = traced, settings
        self.weights = [(weakref.ref(arguments[at]), _version(arguments[at])) for at in traced.weights]
        self.numbers = [arguments[at] for at in traced.numbers]
        self.identity = traced.identity(arguments)
        self.device = device_for([each for each in arguments if isinstance(each, torch.Tensor)])
        self.programs: list[Program] = []
        self._index = settings.folder and settings.folder / f"{self.identity.hex()[:32]}-{version()}.torch"

    def holds(self, arguments: Sequence[Any]) -> bool:
        """Whether these are its weights, unchanged, and its numbers."""
        for at, (reference, seen) in zip(self.traced.weights, self.weights):
            weight = arguments[at]
            if reference() is not weight or _version(weight) != seen:
                return False
        return all(arguments[at] == number for at, number in zip(self.traced.numbers, self.numbers))

    def program(self, arguments: Sequence[Any]) -> Program:
        """The program for the arguments' sizes; exported, or found in the folder."""
        inputs = [arguments[at] for at in self.traced.tensors]
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

        for sizes in self._kept():
            program = Program(self.traced, sizes, export, self.device, self.settings, self.identity)
            if program.fits(shapes):
                break
        else:
            made.append(export())
            program = Program(self.traced, exporting.sizes_of(made[0]), export, self.device, self.settings, self.identity)
            self._keep(program.sizes)
        self.programs.append(program)
        return program

    def _kept(self) -> list[list[list[int]]]:
        try:
            return json.loads(self._index.read_text()) if self._index else []
        except (OSError, ValueError):
            return []

    def _keep(self, sizes):
        if self._index is None:
            return
        try:
            self._index.parent.mkdir(parents=True, exist_ok=True)
            draft = self._index.with_suffix(f".{threading.get_ident()}")
            draft.write_text(json.dumps([*self._kept(), sizes]))
            draft.replace(self._index)
        except OSError:
            pass  # a folder that cannot be written only makes the next process slower

    def run(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        """What the engine computes."""
        program = self.program(arguments)
        return program.run({name: arguments[at] for name, at in zip(program.names, self.traced.tensors)})


def _version(tensor):
    return -1 if tensor.is_inference() else tensor._version


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
        self.given_up = False
        self._lock = threading.Lock()
        _compiled.add(self)
        self.traced = Traced(module, examples)
        self.rest = self.traced.rest()
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
        left = iter(self.rest(*arguments) if self.rest is not None else ())
        answers = dict(zip(self.traced.computed, computed))
        results = [answers[each] if each in answers else next(left) for each in self.traced.outputs]
        return results[0] if self.traced.single else tuple(results)

    def _give_up(self, why):
        self.given_up = True
        self.states = []
        warnings.warn(f"hone leaves a graph of {len(self.module.graph.nodes)} nodes to torch: {why}", HoneWarning, stacklevel=2)

    def _state(self, arguments) -> State:
        for state in self.states:
            if state.holds(arguments):
                return state
        with self._lock:
            self.states = [state for state in self.states if all(reference() is not None for reference, _ in state.weights)]
            if len(self.states) >= MOST_STATES:
                raise Refused("its weights or numbers change from call to call")
            state = State(self.traced, arguments, self.settings)
            self.states = [state, *self.states]
            return state

    def _computed(self, arguments):
        state = self._state(arguments)
        if torch.is_grad_enabled() and any(isinstance(each, torch.Tensor) and each.requires_grad for each in arguments):
            return _Differentiable.apply(self, state, *arguments)
        return state.run(arguments)

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
        results = state.run(arguments)
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
