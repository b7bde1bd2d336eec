# SPDX-License-Identifier: Apache-2.0
"""Hone behind torch.compile, and torch.export's programs as plans.

    model = torch.compile(model, backend="hone")              # or hone.torch.compile(model, examples), which builds at once
    hone.torch.save_plan(torch.export.export(model, examples), "model.plan")

docs/from-pytorch.md says what happens when.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from ..building import Plan
from ..devices import Device
from ..shaped import range_around
from . import exporting
from .backend import HoneWarning, backend
from .graph import Refused

__all__ = ["HoneWarning", "Refused", "backend", "build_plan", "compile", "save_plan"]


def compile(model: Any, example_inputs: Sequence[Any] | None = None, *, dynamic: bool | None = None, mode: str | None = None,  # noqa: A001
            flags: Iterable[str] = (), cache: str | os.PathLike | bool = True) -> Any:
    """torch.compile(model, backend="hone"); with `example_inputs` the engines are there when it returns."""
    def hone(module, examples):
        return backend(module, examples, mode=mode, options={"flags": list(flags), "cache": cache})

    compiled = torch.compile(model, backend=hone, dynamic=dynamic)
    if example_inputs is not None:
        with torch.no_grad():
            compiled(*(example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)))
    return compiled


def build_plan(program: torch.export.ExportedProgram, arguments: Iterable[str] = (), device: str | Device = "cpu", **options: Any) -> Plan:
    """The plan of an exported program. `arguments` and `options` are those of hone.build(); without profiles, sizes that may change have a
    range around those that the program was exported with."""
    exporting.check(program)
    with exporting.model_of(program) as model:
        if not options.get("profiles"):
            sizes = {name: shape for name, (_, shape) in model.inputs.items()}
            shapes = dict(zip(sizes, _example_shapes(program)))
            profile = range_around(shapes, sizes)
            options["profiles"] = [profile] if profile else []
        return model.build(arguments, device, **options)


def save_plan(program: torch.export.ExportedProgram, path: str | os.PathLike, arguments: Iterable[str] = (), device: str | Device = "cpu",
              **options: Any) -> None:
    """build_plan(), into a file that hone.load(), trtexec and InferenceSession open."""
    with build_plan(program, arguments, device, **options) as plan:
        plan.save(path)


def _example_shapes(program):
    from torch.utils._pytree import tree_leaves

    examples = program.example_inputs
    if examples is None:
        raise Refused("the program has no example inputs\n  hint: give profiles={...}")
    return [tuple(each.shape) for each in tree_leaves(examples) if isinstance(each, torch.Tensor)]
