# SPDX-License-Identifier: Apache-2.0
"""From a module to a model for Hone, by PyTorch's own exporter (torch.export, torch.onnx)."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..base import Error
from ..building import Model
from . import fused
from .graph import Refused

LARGEST_MESSAGE = 1_900_000_000  # bytes of a model in memory; protocol buffers end at 2 GiB
LOGGERS = ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")


@contextlib.contextmanager
def quietly():
    """Without what the exporters tell a person who called them."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels):
                logger.setLevel(level)


def reason(error: BaseException) -> str:
    """The line that names what is in the way: that of the first cause, without what surrounds it."""
    while error.__cause__ is not None or (error.__context__ is not None and not error.__suppress_context__):
        error = error.__cause__ or error.__context__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def exported(module: torch.nn.Module, arguments: Sequence[torch.Tensor], dynamic: Sequence[Sequence[int]],
             checks: Callable[[torch.export.ExportedProgram], None] | None = None) -> torch.export.ExportedProgram:
    """The module as a program; `dynamic`: axes of each argument that may change."""
    shapes = tuple({axis: torch.export.Dim.AUTO for axis in axes} for axes in dynamic)
    try:
        with quietly(), torch.inference_mode(False), torch.no_grad():
            program = torch.export.export(module, tuple(each.detach() for each in arguments), dynamic_shapes=(shapes,) if _variadic(module) else shapes,
                                          strict=False)
    except Exception as error:
        raise Refused(f"torch.export: {reason(error)}") from error
    (checks or check)(program)
    return program


def _variadic(module):
    return isinstance(module, torch.nn.Module) and not isinstance(module, torch.fx.GraphModule) and module.forward.__code__.co_flags & 4


class Changes(Refused):
    """What neither an engine nor a part of the graph can do."""


def check(program: torch.export.ExportedProgram) -> None:
    """Refuses what an engine cannot do: change its inputs or weights, draw random numbers."""
    check_changes(program)
    for node in program.graph.nodes:
        if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) and not inert(node):
            raise Refused(f"{node.target} draws random numbers")


def check_changes(program: torch.export.ExportedProgram) -> None:
    """Refuses changes of inputs and weights."""
    signature = program.graph_signature
    changed = [*signature.buffers_to_mutate.values(), *signature.user_inputs_to_mutate.values()]
    if changed:
        raise Changes(f"it changes {', '.join(changed)} in place")
    given = {_storage(node) for node in program.graph.nodes if node.op == "placeholder"} - {None}
    for node in program.graph.nodes:
        if "aten.batch_norm" in str(node.target) and node.args[5]:
            raise Changes(f"{node.target} is in training: it changes its running averages, and the exporter writes it as for inference")
        if given & {_storage(each) for each in _written(node)}:
            raise Changes(f"{node.target} changes an input or a weight in place")


def _storage(node):
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None


def _written(node):
    """The operands that an operator writes."""
    if "aten.instance_norm" in str(node.target) and node.args[5]:
        return node.args[3:5]  # running averages, which the schema does not tell
    if node.target is torch.ops.aten.detach_.default:
        return []  # what tensors that are written in the source begin with: no element changes
    schema = getattr(node.target, "_schema", None)
    if node.op != "call_function" or schema is None or not schema.is_mutable:
        return []
    return [value for known, value in zip(schema.arguments, node.args) if known.alias_info is not None and known.alias_info.is_write]


def inert(node: torch.fx.Node) -> bool:
    """Whether an operator that may draw random numbers draws none: dropout of an inference."""
    name = str(node.target)
    if name.endswith(".input") and name.split(".")[1] in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        return node.args[5] == 0 or not node.args[6]
    return "dropout" in name and len(node.args) > 2 and node.args[2] is False or "scaled_dot_product" in name and not (
        len(node.args) > 4 and node.args[4])


def sizes_of(program: torch.export.ExportedProgram) -> list[list[int]]:
    """Of each input, -1 for what may change."""
    names = set(program.graph_signature.user_inputs)
    return [[_known(size) for size in node.meta["val"].shape]
            for node in program.graph.nodes if node.op == "placeholder" and node.name in names and isinstance(node.meta.get("val"), torch.Tensor)]


def _known(size: int | torch.SymInt) -> int:
    """torch keeps as a symbol what an operator has fixed since, as a convolution does its channels."""
    if isinstance(size, int):
        return size
    number = size.node.maybe_as_int()
    return -1 if number is None else number


def model_of(program: torch.export.ExportedProgram, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None) -> Model:
    """The program as Hone reads it."""
    fused.teach()
    try:
        with quietly(), torch.no_grad():
            made = torch.onnx.export(program, dynamo=True, verbose=False, input_names=inputs, output_names=outputs)
    except Exception as error:
        raise Refused(f"torch.onnx: {reason(error)}") from error
    try:
        if sum(_bytes(each) for each in made.model.graph.initializers.values()) < LARGEST_MESSAGE:
            return Model.parse(made.model_proto.SerializeToString())
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            made.save(path, external_data=True)
            return Model.load(path)
    except Error as error:
        raise Refused(str(error).splitlines()[0]) from error


def _bytes(value: Any) -> int:
    return value.const_value.nbytes if value.const_value is not None else 0
