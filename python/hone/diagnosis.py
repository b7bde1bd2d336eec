# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a model, node by node, without building it."""

from __future__ import annotations

import enum
import os
from typing import TYPE_CHECKING, NamedTuple

from .base import _hone

if TYPE_CHECKING:
    from .building import Network


class Problem(enum.IntEnum):
    """Of what kind an entry of a diagnosis is."""

    FILE = 0  # no ONNX model, or damaged
    GRAPH = 1  # a tensor that nothing makes, two of one name, a cycle, a body that does not fit its node
    OPERATOR = 2  # neither Hone, nor the program, nor a function of the model has it
    VERSION = 3  # the operator, or the model, is of a version that is not read
    OPERAND = 4  # of a node: missing, or of a shape that does not fit
    ATTRIBUTE = 5  # of a node: missing, unknown, or of a value that is not supported
    TYPE = 6  # an element type that is not supported where it stands
    WEIGHT = 7  # a constant whose data cannot be read
    UNJUDGED = 8  # the node reads what a refused node makes, or an input that cannot be read, and the file does not say its type
    NAME = 9  # two nodes of one name


class Diagnostic(NamedTuple):
    """An entry."""

    severity: int  # 1: the model is refused for it; 2, a warning; 3: a node that is not judged
    problem: Problem | int  # a number that this package does not know comes from a newer library
    node: int  # of Diagnosis.nodes; -1: the entry is about the model
    name: str  # of the node, or of that inside its body or function that is wrong
    op: str
    domain: str  # "": ONNX's own
    text: str
    hint: str


class DiagnosedNode(NamedTuple):
    """A node of the model's graph, those of bodies and functions not counted."""

    name: str
    op: str
    domain: str
    supported: bool


class Diagnosis(NamedTuple):
    """What diagnose() found."""

    entries: tuple[Diagnostic, ...]
    nodes: tuple[DiagnosedNode, ...]
    runs: tuple[tuple[int, ...], ...]  # supported nodes that follow each other where producers come first

    @property
    def ok(self) -> bool:
        """The model is taken as it is."""
        return all(entry.severity > 1 for entry in self.entries)


def _problem(number: int) -> Problem | int:
    return Problem(number) if number in Problem._value2member_map_ else number


def diagnose(model: str | os.PathLike | bytes | Network, folder: str | os.PathLike | None = None) -> Diagnosis:
    """Everything that is wrong with a model: a path, the bytes of a file (external data lie in `folder`), or a Network.

    Where Model.load() raises the first thing that is wrong, this goes on behind it. An Error is raised for a file that cannot be opened."""
    if isinstance(model, (str, os.PathLike)):
        entries, nodes, runs = _hone.diagnose_file(os.fspath(model))
    else:
        data = model if isinstance(model, bytes) else model.bytes()
        entries, nodes, runs = _hone.diagnose_bytes(data, None if folder is None else os.fspath(folder))
    return Diagnosis(tuple(Diagnostic(severity, _problem(problem), *rest) for severity, problem, *rest in entries),
                     tuple(DiagnosedNode(*node) for node in nodes), tuple(map(tuple, runs)))
