# SPDX-License-Identifier: Apache-2.0
"""Subgraphs by example: a pattern is put together like a graph, and finds where it stands in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .base import GraphError
from .graphs import Graph
from .nodes import Node
from .tensors import Constant, Tensor


class PatternMapping(dict):
    """What a pattern was found as: get(name) is a node, or of a pattern inside the pattern a PatternMapping. `inputs` and `outputs` are the
    tensors that stand for those of the pattern, `constants` those by name."""

    def __init__(self, onnx_node: Node | None = None):
        super().__init__()
        self.onnx_node = onnx_node
        self.inputs: list = [] if onnx_node is None else list(onnx_node.inputs)
        self.outputs: list = [] if onnx_node is None else list(onnx_node.outputs)
        self.constants: dict[str, Tensor] = {}

    def get(self, name: str) -> Any:  # type: ignore[override]
        """The node of this name in the pattern, or the mapping of the pattern of this name."""
        found = self[name]
        return found if found.onnx_node is None else found.onnx_node

    def __str__(self) -> str:
        if self.onnx_node is not None:
            return self.onnx_node.name
        return "{" + ", ".join(f"{name}: {found}" for name, found in self.items()) + "}"


@dataclass
class _Step:
    """A node of a pattern, those of patterns inside it among them."""

    path: tuple[str, ...]
    op: str
    check: Callable[[Node], bool] | None
    inputs: list[int]
    outputs: list[int]


class GraphPattern:
    """Nodes and tensors to look for. Tensors are numbers that variable(), constant() and add() give. What is computed inside and is no
    output of the pattern may be read by nobody outside; without set_output_tensors() outputs are what nobody inside reads."""

    def __init__(self):
        self.nodes: dict[str, tuple] = {}
        self.input_tensors: list[int] = []
        self.output_tensors: list[int] = []
        self.constant_tensors: dict[int, str] = {}
        self.num_tensors = 0

    def _new(self) -> int:
        self.num_tensors += 1
        return self.num_tensors - 1

    def variable(self) -> int:
        """An input of the pattern: any tensor."""
        self.input_tensors.append(self._new())
        return self.input_tensors[-1]

    def constant(self, name: str | None = None) -> int:
        """A constant, known by this name in what is found."""
        tensor = self._new()
        self.constant_tensors[tensor] = f"unnamed_constant_tensor_{tensor}" if name is None else name
        return tensor

    def set_output_tensors(self, output_tensors: Sequence[int]) -> None:
        """What others may read."""
        for tensor in output_tensors:
            self._require(tensor)
        self.output_tensors = list(output_tensors)

    def _require(self, tensor: int) -> None:
        if not isinstance(tensor, int) or not 0 <= tensor < self.num_tensors:
            raise GraphError(f"{tensor!r} is no tensor of the pattern\n  hint: variable(), constant() and add() give tensors")

    def add(self, name: str, op: str | GraphPattern, check_func: Callable[[Node], bool] | None = None, inputs: Sequence[int] | None = None,
            num_output_tensors: int = 1) -> Any:
        """A node of an operator, for which `check_func` has to hold, or a pattern inside this one. Its tensor; of several a tuple; None of
        none."""
        if name in self.nodes:
            raise GraphError(f"the pattern has a node {name} already\n  hint: name it otherwise")
        given = list(inputs or ())
        for tensor in given:
            self._require(tensor)
        if isinstance(op, GraphPattern):
            if len(given) != len(op.input_tensors):
                raise GraphError(f"the pattern {name} takes {len(op.input_tensors)} tensors, {len(given)} are given")
            num_output_tensors = len(op._results())
        made = [self._new() for _ in range(num_output_tensors)]
        self.nodes[name] = (op, check_func, given, made)
        return None if not made else made[0] if len(made) == 1 else tuple(made)

    def _results(self) -> list[int]:
        if self.output_tensors:
            return self.output_tensors
        read = {tensor for _, _, inputs, _ in self.nodes.values() for tensor in inputs}
        return [tensor for _, _, _, outputs in self.nodes.values() for tensor in outputs if tensor not in read]

    def match_all(self, graph: Graph) -> list[PatternMapping]:
        """Every place in the graph where the pattern stands, in the order of its nodes; places may share nodes."""
        return [found for node in graph.nodes if (found := self.match(node, graph)) is not None]

    def match(self, node: Node, graph: Graph) -> PatternMapping | None:
        """The place where the pattern's first node is this one."""
        flat = _Flat(self)
        if not flat.steps:
            raise GraphError("the pattern is empty\n  hint: add() puts nodes into it")
        for found in _search(flat, {}, {}, [(0, node)], {id(tensor) for tensor in graph.outputs}):
            return flat.mapping(*found)
        return None


class _Flat:
    """A pattern with the patterns inside it put in their place: steps over one set of tensors."""

    def __init__(self, pattern: GraphPattern):
        self.steps: list[_Step] = []
        self.count = 0
        self.constants: set[int] = set()
        self.tensors = self._put(pattern, (), [])
        self.pattern = pattern
        self.results = {self.tensors[()][tensor] for tensor in pattern._results()}
        self.made = [tensor for step in self.steps for tensor in step.outputs]

    def _put(self, pattern: GraphPattern, path: tuple[str, ...], given: list[int]) -> dict[tuple, list[int]]:
        own = list(range(self.count, self.count + pattern.num_tensors))
        self.count += pattern.num_tensors
        for tensor, outer in zip(pattern.input_tensors, given):
            own[tensor] = outer
        named = {path: own}
        for name, (op, check, inputs, outputs) in pattern.nodes.items():  # each reads what those before it make
            if isinstance(op, GraphPattern):
                named.update(self._put(op, (*path, name), [own[tensor] for tensor in inputs]))
                for tensor, result in zip(outputs, op._results()):  # one tensor, known to both
                    own[tensor] = named[(*path, name)][result]
            else:
                self.steps.append(_Step((*path, name), op, check, [own[tensor] for tensor in inputs], [own[tensor] for tensor in outputs]))
        for tensor in pattern.constant_tensors:
            self.constants.add(own[tensor])
        return named

    def mapping(self, nodes: dict[int, Node], tensors: dict[int, Tensor]) -> PatternMapping:
        by_path = {step.path: nodes[at] for at, step in enumerate(self.steps)}

        def told(pattern: GraphPattern, path: tuple[str, ...]) -> PatternMapping:
            made, own = PatternMapping(), self.tensors[path]
            for name, (op, *_) in pattern.nodes.items():
                made[name] = told(op, (*path, name)) if isinstance(op, GraphPattern) else PatternMapping(by_path[(*path, name)])
            made.inputs = [tensors.get(own[tensor]) for tensor in pattern.input_tensors]
            made.outputs = [tensors.get(own[tensor]) for tensor in pattern._results()]
            made.constants = {name: tensors[own[tensor]] for tensor, name in pattern.constant_tensors.items() if own[tensor] in tensors}
            return made

        return told(self.pattern, ())


def _search(flat: _Flat, nodes: dict[int, Node], tensors: dict[int, Tensor], waiting: list, outputs: set[int]) -> Iterator[tuple[dict, dict]]:
    """Assigns nodes to steps, neighbour by neighbour. Where a tensor has several readers each is tried."""
    if not waiting:
        open_step = _next_step(flat, nodes, tensors)
        if open_step is None:
            if len(nodes) == len(flat.steps) and _is_closed(flat, nodes, tensors, outputs):
                yield nodes, tensors
            return
        at, candidates = open_step
        for candidate in candidates:
            yield from _search(flat, nodes, tensors, [(at, candidate)], outputs)
        return
    (at, node), *rest = waiting
    step = flat.steps[at]
    if any(each is node for each in nodes.values()) or node.op != step.op or len(node.inputs) != len(step.inputs):
        return
    if len(node.outputs) < len(step.outputs) or (step.check is not None and not step.check(node)):
        return
    nodes, tensors = {**nodes, at: node}, dict(tensors)
    for wanted, tensor in [*zip(step.inputs, node.inputs), *zip(step.outputs, node.outputs)]:
        if tensors.setdefault(wanted, tensor) is not tensor or (wanted in flat.constants and not isinstance(tensor, Constant)):
            return
    yield from _search(flat, nodes, tensors, rest, outputs)


def _next_step(flat: _Flat, nodes: dict[int, Node], tensors: dict[int, Tensor]) -> tuple | None:
    for at, step in enumerate(flat.steps):
        if at in nodes:
            continue
        for wanted in step.outputs:
            if wanted in tensors:
                return at, list(tensors[wanted].inputs)
        for wanted in step.inputs:
            if wanted in tensors:
                seen = {id(reader): reader for reader in tensors[wanted].outputs}
                return at, list(seen.values())
    return None


def _is_closed(flat: _Flat, nodes: dict[int, Node], tensors: dict[int, Tensor], outputs: set[int]) -> bool:
    """Whether nobody outside reads what is computed inside."""
    inside = {id(node) for node in nodes.values()}
    for wanted in flat.made:
        if wanted in flat.results:
            continue
        tensor = tensors[wanted]
        if id(tensor) in outputs or any(id(reader) not in inside for reader in tensor.outputs):
            return False
    return True
